"""Templates: the right side of a rule for given signatures of the matched nodes, with all types inferred.

A template is found once per (rule, operand order, signatures, equalities among the bound values, digests of weights
whose value the rule asks for) and kept; a match then costs a dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.graph import OUTPUT_BITS, Weight
from taso_gym.ops import MICROSOFT, Operator
from taso_gym.ops.onnx_form import conforms, to_onnx
from taso_gym.rules.acyclic import dependencies, guards
from taso_gym.rules.binding import Binder, floating_type
from taso_gym.rules.conditions import Binding, evaluate, holds
from taso_gym.rules.functions import Undefined
from taso_gym.rules.pattern import Pattern, operator_named
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Rule, Var
from taso_gym.signature import Signature, signature
from taso_gym.tensor import Poly, TensorType, ValueType

Ref = int | None
"""An operand of the right side: slot number, or ~(new node << 8 | output), or None for an absent one."""


class LiteralValue(NamedTuple):
    """A scalar that the right side adds."""

    value: float | int
    dtype: str


class Step(NamedTuple):
    """How to find the semantic ids of a new node's outputs.

    They are appended to a list that begins with those of the slots and a 0 for absent operands.

    Attributes:
        hash, symmetric: of the signature.
        reads: places of the operands in the list.
        heirs: for each output the (matched node, output) that it replaces, whose id it inherits, or None.
    """

    hash: int
    symmetric: bool
    reads: tuple[int, ...]
    heirs: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class Template:
    """What a match is rewritten into. Slots are the bound values in pattern order, then the literals.

    Attributes:
        sigs: signatures of the new nodes, producers first.
        inputs: operands of each new node.
        literals: scalars that become leaves.
        outputs: (matched node, output, what replaces it) of each replaced output.
        guards: (number in ``outputs``, slot) pairs: a cycle closes if that value depends on that output.
        preserving: each output depends on the same values as before, so reachability elsewhere stays as it is.
        exchanges: every replaced output gets a new node's output of its own, so that consumers' hashes stay.
        unused: bound values that the right side doesn't use; what computes them may die with the match.
        inner: places of the matched nodes none of whose outputs is replaced.
        steps: what the hashes of the new nodes are computed from, see `Step`.
    """

    sigs: tuple[Signature, ...]
    inputs: tuple[tuple[Ref, ...], ...]
    literals: tuple[LiteralValue, ...]
    outputs: tuple[tuple[int, int, int], ...]
    guards: tuple[tuple[int, int], ...]
    preserving: bool
    exchanges: bool
    unused: tuple[int, ...]
    inner: tuple[int, ...]
    steps: tuple[Step, ...]


class Refused(Exception):  # noqa: N818 - the answer is "no such rewrite here"
    """The right side doesn't exist for these types."""


class Source(NamedTuple):
    """What the templates of one rule, in one order of operands, are made from.

    Attributes:
        rule: the rule.
        pattern: the order of operands.
        binder: of the pattern.
        conditions: the rule's, those that read a weight last, so that it is only read for matches that hold otherwise.
        opsets: of the graph.
    """

    rule: Rule
    pattern: Pattern
    binder: Binder
    conditions: tuple[Expr, ...]
    opsets: Mapping[str, int]


def build(
    source: Source, sigs: Sequence[Signature], same: Sequence[int], weights: Mapping[str, Weight | None]
) -> Template | None:
    """Return the template of a rule for matched signatures, or None where it doesn't apply.

    Args:
        source: the rule.
        sigs: of the matched nodes in pattern order.
        same: for each bound value the first slot that holds the same value.
        weights: of the variables that ``value(...)`` asks for.
    """
    # A rule for floating types meets exactly one of them; indices and truth values may stand beside it.
    dtype = floating_type(sigs)
    if not dtype and not source.rule.any_type:
        return None
    binding = source.binder.bind(sigs, weights, source.opsets.get("", 0))
    if binding is None or not all(holds(c, binding) for c in source.conditions):
        return None
    spans, types = source.binder.spans(sigs), source.binder.row([sig.inputs for sig in sigs])
    side = RightSide(binding, source.opsets, spans, types, same, dtype)
    try:
        refs = [ref for root in source.rule.rhs for ref in side.refs(root)]
    except (Undefined, TypeInferenceError, Refused):
        return None
    replaced = _replaced(source.pattern, sigs)
    if len(refs) != len(replaced):
        return None
    if any(side.type_of(ref) != sigs[node].outputs[out] for ref, (node, out) in zip(refs, replaced, strict=True)):
        return None
    outputs = tuple((node, out, ref) for (node, out), ref in zip(replaced, refs, strict=True) if ref is not None)
    return _finish(side, outputs, dependencies(source.pattern, spans, same))


def _replaced(pattern: Pattern, sigs: Sequence[Signature]) -> list[tuple[int, int]]:
    """Return (matched node, output) of every output that the right side replaces."""
    found: list[tuple[int, int]] = []
    for root in pattern.roots:
        outputs = range(len(sigs[root.node].outputs)) if root.output is None else (root.output,)
        found += [(root.node, output) for output in outputs]
    return found


class RightSide:
    """Builds the right side; equal subterms are one node."""

    def __init__(
        self,
        binding: Binding,
        opsets: Mapping[str, int],
        spans: Mapping[str, range],
        types: Sequence[ValueType | None],
        same: Sequence[int],
        dtype: str,
    ) -> None:
        """Begin with the bound values only; ``dtype`` is of literals that have no tensor beside them."""
        self.binding, self.opsets, self.spans, self.types, self.same = binding, opsets, spans, list(types), same
        self.dtype = dtype
        self.literals: list[LiteralValue] = []
        self.nodes: dict[tuple[Signature, tuple[Ref, ...]], int] = {}
        self.sigs: list[Signature] = []

    def type_of(self, ref: Ref) -> ValueType | None:
        """Return the type of an operand."""
        if ref is None:
            return None
        if ref >= 0:
            return self.types[ref]
        node, output = divmod(~ref, 1 << OUTPUT_BITS)
        return self.sigs[node].outputs[output]

    def refs(self, term: Root, beside: str = "") -> list[Ref]:
        """Return the operands that a term stands for; a literal takes the element type ``beside`` it."""
        match term:
            case Var(name) | Rest(name):
                return [self.same[i] for i in self.spans[name]]
            case Absent():
                return [None]
            case Constant(value):
                return [self._literal(evaluate(value, self.binding), beside)]
            case Call():
                return [~(self.call(term) << OUTPUT_BITS)]
            case Output(call, index):
                node = self.call(call)
                if index >= len(self.sigs[node].outputs):
                    raise Refused(f"no output {index}")
                return [~(node << OUTPUT_BITS | index)]
            case AllOutputs(call):
                node = self.call(call)
                return [~(node << OUTPUT_BITS | i) for i in range(len(self.sigs[node].outputs))]

    def call(self, call: Call) -> int:
        """Return the number of the node that a call stands for."""
        tensors = [None if isinstance(arg, Constant) else self.refs(arg) for arg in call.args]
        dtypes = [self._dtype(refs) for refs in tensors]
        operands: list[Ref] = []
        for i, refs in enumerate(tensors):
            operands += self.refs(call.args[i], _nearest(dtypes, i) or self.dtype) if refs is None else refs
        attrs = dict(self.binding.attrs[call.others]) if call.others else {}
        attrs |= {name: evaluate(expr, self.binding) for name, expr in call.attrs}
        op = operator_named(call.op)
        sig = signature(op, attrs, [self.type_of(ref) for ref in operands])
        if not _is_writable(sig, self.opsets.get(op.domain, 1 if op.domain == MICROSOFT else 0)):
            raise Refused(f"{sig} can't be written to a file of these opsets")
        return self._node(sig, tuple(operands[: len(sig.inputs)]))

    def _node(self, sig: Signature, operands: tuple[Ref, ...]) -> int:
        number = self.nodes.setdefault((sig, operands), len(self.sigs))
        if number == len(self.sigs):
            self.sigs.append(sig)
        return number

    def _dtype(self, refs: list[Ref] | None) -> str:
        types = [self.type_of(ref) for ref in refs or ()]
        found = [t.dtype for t in types if isinstance(t, TensorType) and t.dtype != "bool"]
        return found[0] if found else ""

    def _literal(self, value: Any, dtype: str) -> int:
        if not isinstance(value, int | float) or not dtype:
            raise Refused(f"a literal {value} of type {dtype or 'unknown'}")
        literal = LiteralValue(value, dtype)
        begin = len(self.types) - len(self.literals)
        if literal not in self.literals:
            self.literals.append(literal)
            self.types.append(TensorType(dtype, (), const=True))
        return begin + self.literals.index(literal)


def _finish(side: RightSide, outputs: tuple[tuple[int, int, int], ...], before: Sequence[frozenset[int]]) -> Template:
    """Return the template of a finished right side; ``before`` is what each matched node depends on."""
    inputs = tuple(operands for _, operands in side.nodes)
    after: list[frozenset[int]] = []
    for operands in inputs:
        after.append(frozenset().union(*(_slots(ref, after) for ref in operands)))
    varying = frozenset(i for i, t in enumerate(side.types) if t is not None and not t.const)
    old = [before[node] & varying for node, _, _ in outputs]
    new = [_slots(ref, after) & varying for _, _, ref in outputs]
    refs = [ref for _, _, ref in outputs]
    used = {ref for operands in inputs for ref in operands} | set(refs)
    return Template(
        tuple(side.sigs),
        inputs,
        tuple(side.literals),
        outputs,
        tuple(guards(old, new)),
        old == new,
        all(ref < 0 for ref in refs) and len(set(refs)) == len(refs),
        tuple(slot for slot in sorted(set(side.same)) if slot not in used),
        tuple(i for i in range(len(before)) if all(i != node for node, _, _ in outputs)),
        tuple(_steps(side, outputs)),
    )


def _steps(side: RightSide, outputs: Sequence[tuple[int, int, int]]) -> Iterator[Step]:
    heirs = {ref: (node, out) for node, out, ref in reversed(outputs)}
    absent = len(side.types)
    place: dict[Ref, int] = {None: absent}
    for number, (sig, operands) in enumerate(side.nodes):
        reads = tuple(place[ref] if ref is None or ref < 0 else ref for ref in operands)
        born = [~(number << OUTPUT_BITS | output) for output in range(len(sig.outputs))]
        for ref in born:
            place[ref] = absent + len(place)
        yield Step(sig.hash, sig.symmetric, reads, tuple(map(heirs.get, born)))


def _slots(ref: Ref, nodes: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the slots that an operand depends on."""
    if ref is None:
        return frozenset()
    return frozenset([ref]) if ref >= 0 else nodes[~ref >> OUTPUT_BITS]


def _nearest(dtypes: Sequence[str], index: int) -> str:
    """Return the element type of the nearest operand: first those before, then those after."""
    order = [*reversed(range(index)), *range(index + 1, len(dtypes))]
    return next((dtypes[i] for i in order if dtypes[i]), "")


@lru_cache(maxsize=65536)
def _is_writable(sig: Signature, opset: int) -> bool:
    """Whether a file of an opset can hold an operator: its operands, and attributes without symbolic sizes."""
    assert isinstance(sig.op, Operator)
    if not conforms(sig, opset):
        return False
    attrs = sig.op.export(dict(sig.attrs), sig.inputs, sig.outputs, opset)  # pyright: ignore[reportArgumentType]
    if any(map(_is_symbolic, attrs.values())):
        return False
    try:
        to_onnx(sig, opset)
    except ModelError:
        return False
    return True


def _is_symbolic(value: object) -> bool:
    return isinstance(value, Poly) or (isinstance(value, tuple) and any(map(_is_symbolic, value)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
