"""TASO's rule files (``graph_subst.pb``) as rules of ours.

What TASO leaves implicit is written out. A convolution's number of groups is 1 (TASO infers it from the channels, which
makes some of its rules false; `text_of` gives the rule as TASO means it without ``explicit_groups``). A Split divides
as the Concat below it joined. SAME padding with stride 1 is symmetric; with another stride it depends on the size of
the image, and TASO pads the other end than ONNX, so such a rule is refused. A fused activation is an operator of its
own. Pools are ONNX's: the average counts the padding, the maximum doesn't.
"""

from __future__ import annotations

from pathlib import Path

from taso_gym.errors import RuleError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.taso_terms import CONV, ENLARGE, KERNEL_H, KERNEL_W, SCALED, Side, name_of
from taso_gym.rules.taso_wire import TasoOperator, TasoRule, TasoTensor, parse


def read_taso(path: Path) -> list[Rule]:
    """Read a rule file of TASO; rules are called ``taso-0``, ``taso-1``, … in its order, of those that ONNX can say.

    Raises:
        RuleError: it can't be read, or isn't such a file.
    """
    found = [rule_of(taso, f"taso-{i}", path.name) for i, taso in enumerate(read_file(path))]
    return [rule for rule in found if isinstance(rule, Rule)]


def read_file(path: Path) -> list[TasoRule]:
    """Return the records of a file.

    Raises:
        RuleError: it can't be read, or isn't such a file.
    """
    try:
        return parse(path.read_bytes(), path.name)
    except OSError as error:
        raise RuleError(f"expected a readable file, found {path}: {error}") from error


def rule_of(taso: TasoRule, name: str, where: str) -> Rule | str:
    """Return a rule, or why it has none in our notation.

    Args:
        taso: the record.
        name: its name.
        where: file, for messages.

    Raises:
        RuleError: an operator lacks parameters or operands.
    """
    try:
        (rule,) = parse_rules(f"{name}: {text_of(taso)}", where)
    except RuleError as error:
        return str(error)
    except (LookupError, ValueError, ArithmeticError) as error:  # an operator without its parameters or operands
        raise RuleError(f"{where}: expected a rule of TASO as record {name}, found a damaged one: {error!r}") from error
    return rule


def text_of(taso: TasoRule, *, explicit_groups: bool = True, joined: bool = False) -> str:
    """Return the body of a rule.

    Args:
        taso: the record.
        explicit_groups: convolutions have one group; else as many as the channels say, which is what TASO means.
        joined: write several outputs as operands of a Concat, so that they need not be connected.

    Raises:
        RuleError: it uses what ONNX or our notation doesn't have.
    """
    kernels = _kernels(taso)
    left = Side(taso.source, kernels, "" if explicit_groups else "left")
    right = Side(taso.target, kernels, "" if explicit_groups else "right")
    sides = [[left.term(a) for a, _ in taso.outputs], [right.term(b) for _, b in taso.outputs]]
    if joined and len(taso.outputs) > 1:
        sides = [[f"Concat({', '.join(side)}, axis=0)"] for side in sides]
    used = sorted(left.variables | right.variables)
    conditions = [*left.conditions, *(c for c in right.conditions if c not in left.conditions)]
    if unbound := right.variables - left.variables:
        raise RuleError(f"expected variables of the source, found {name_of(max(unbound))} in the target only")
    ranks = [
        f"rank({name_of(v)}) == {rank}" for v in used if (rank := left.ranks.get(v, right.ranks.get(v))) is not None
    ]
    return f"{', '.join(sides[0])} => {', '.join(sides[1])}" + _suffix([*ranks, *conditions])


def _suffix(conditions: list[str]) -> str:
    return f" if {' and '.join(dict.fromkeys(conditions))}" if conditions else ""


def _kernels(taso: TasoRule) -> dict[int, tuple[int, int]]:
    """Return the kernel of each variable that is the weight of a convolution."""
    found: dict[int, tuple[int, int]] = {}

    def visit(ops: tuple[TasoOperator, ...], tensor: TasoTensor, kernel: tuple[int, int]) -> None:
        if tensor.op < 0:
            found.setdefault(tensor.op, kernel)
        elif ops[tensor.op].type != ENLARGE:
            scalars = 1 if ops[tensor.op].type == SCALED else 0
            for operand in ops[tensor.op].inputs[: len(ops[tensor.op].inputs) - scalars]:
                visit(ops, operand, kernel)

    for ops in (taso.source, taso.target):
        for op in ops:
            if op.type == CONV and KERNEL_H in op.parameters:
                visit(ops, op.inputs[1], (op.parameters[KERNEL_H], op.parameters[KERNEL_W]))
    return found
