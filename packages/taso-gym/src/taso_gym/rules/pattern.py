"""Left sides as graphs: pattern nodes with numbered inner edges, and the operand orders in which they are matched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from taso_gym.errors import RuleError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Rule, Var
from taso_gym.rules.unparse import unparse_term

_BY_KEY = {op.key: op for op in OPERATORS.values()}


def operator_named(key: str) -> Operator:
    """Return the operator of the table that rules write as ``key``."""
    return _BY_KEY[key]


@dataclass(frozen=True)
class Inner:
    """An operand that another pattern node computes; ``output`` is None for all its outputs in order."""

    node: int
    output: int | None


@dataclass(frozen=True)
class Literal:
    """An operand that is a weight all of whose elements have this value."""

    value: float


def is_all(operand: object) -> bool:
    """Whether an operand is all outputs of another pattern node."""
    return isinstance(operand, Inner) and operand.output is None


Operand = Var | Rest | Absent | Literal | Inner


@dataclass(frozen=True)
class PatternNode:
    """An operator of the left side.

    Attributes:
        op: the operator.
        operands: in order, without absent ones at the end.
        attrs, others: as in `taso_gym.rules.rule.Call`.
        held: the attributes that ``others`` stands for.
    """

    op: Operator
    operands: tuple[Operand, ...]
    attrs: tuple[tuple[str, Expr], ...]
    others: str | None
    held: frozenset[str]

    @cached_property
    def spread(self) -> int | None:
        """Position of the one operand that stands for any number of inputs, if there is one."""
        spreads = (i for i, o in enumerate(self.operands) if isinstance(o, Rest) or is_all(o))
        return next(spreads, None)

    def index(self, position: int) -> int:
        """Return the input index of an operand; negative (from the end) after the spread."""
        return position if self.spread is None or position <= self.spread else position - len(self.operands)


@dataclass(frozen=True)
class Pattern:
    """A left side with one choice of operand order.

    Attributes:
        nodes: in pattern order: roots left to right, depth first.
        roots: the outputs that the right side replaces.
        ascending: pairs of nodes that are interchangeable: the first must have the smaller id.
    """

    nodes: tuple[PatternNode, ...]
    roots: tuple[Inner, ...]
    ascending: tuple[tuple[int, int], ...] = ()

    def edges(self) -> Iterator[tuple[int, int, Inner]]:
        """Yield (consumer, operand position, inner operand) of every edge between pattern nodes."""
        for consumer, node in enumerate(self.nodes):
            for position, operand in enumerate(node.operands):
                if isinstance(operand, Inner):
                    yield consumer, position, operand

    @cached_property
    def inside(self) -> frozenset[int]:
        """The nodes whose uses decide about a match: none of their outputs is replaced, or the pattern uses one."""
        roots = {root.node for root in self.roots}
        return frozenset(range(len(self.nodes))) - roots | {inner.node for _, _, inner in self.edges()}

    def uses_inside(self, node: int, output: int) -> int:
        """Return how often the pattern itself uses an output."""
        return sum(inner.node == node and inner.output in (output, None) for _, _, inner in self.edges())

    def variables(self) -> Iterator[tuple[str, int, int]]:
        """Yield (name, node, operand position) of every tensor variable, in pattern order."""
        for i, node in enumerate(self.nodes):
            for position, operand in enumerate(node.operands):
                if isinstance(operand, Var | Rest):
                    yield operand.name, i, position


def pattern_of(rule: Rule, lhs: tuple[Root, ...] | None = None, ascending: tuple[tuple[int, int], ...] = ()) -> Pattern:
    """Return the pattern of a rule's left side, or of another order ``lhs`` of its operands.

    Raises:
        RuleError: a literal isn't a number, or the pieces aren't connected.
    """
    reader = _Reader(rule)
    roots: list[Inner] = []
    for root in lhs or rule.lhs:
        # A root that is written twice is two nodes that compute the same.
        if reader.root(root) in roots:
            reader.forget(root)
        roots.append(reader.root(root))
    pattern = Pattern(tuple(n for n in reader.nodes if n is not None), tuple(roots), ascending)
    if _pieces(pattern) > 1:
        message = "expected a left side whose operators are connected by tensors, found unrelated pieces"
        raise RuleError(message, line=rule.text, where=rule.where)
    return pattern


def held_attributes(rule: Rule) -> dict[str, frozenset[str]]:
    """Return, for each ``**k``, the attributes that it stands for.

    Those that the left side doesn't write out and that every operator with ``**k``, on either side, has. What it can't
    stand for must have its ONNX default on the left and gets it on the right.
    """
    held: dict[str, frozenset[str]] = {}
    for side in (rule.lhs, rule.rhs):
        for call in distinct_calls(side):
            if call.others:
                written = {name for name, _ in call.attrs} if side is rule.lhs else set[str]()
                own = frozenset(operator_named(call.op).defaults) - written
                held[call.others] = held.get(call.others, own) & own
    return held


def calls_of(roots: Iterable[Root]) -> Iterator[Call]:
    """Yield every call in terms, outer ones first."""
    for root in roots:
        call = root.call if isinstance(root, Output | AllOutputs) else root
        if isinstance(call, Call):
            yield call
            yield from calls_of(call.args)


def distinct_calls(roots: Iterable[Root]) -> list[Call]:
    """Return every call in terms, outer ones first, the same object once: large right sides share many."""
    found = dict[int, Call]()
    left = list(reversed(tuple(roots)))
    while left:
        root = left.pop()
        call = root.call if isinstance(root, Output | AllOutputs) else root
        if isinstance(call, Call) and id(call) not in found:
            found[id(call)] = call
            left += reversed(call.args)
    return list(found.values())


def bound_names(expr: Expr) -> list[str]:
    """Return the attribute variables that an attribute on the left binds: ``axis=a``, ``axes=[a, b]``."""
    items = expr.args if expr.kind == "list" else (expr,)
    return [str(item.value) for item in items if item.kind == "name"]


class _Reader:
    """Numbers the calls of a left side; equal calls are one node."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.held = held_attributes(rule)
        self.numbers: dict[Call, int] = {}
        self.nodes: list[PatternNode | None] = []

    def root(self, root: Root) -> Inner:
        match root:
            case Call():
                return Inner(self.call(root), 0)
            case Output(call, index):
                return Inner(self.call(call), index)
            case AllOutputs(call):
                return Inner(self.call(call), None)
            case _:
                message = f"expected an operator on the left side, found {unparse_term(root)}"
                raise RuleError(message, line=self.rule.text, where=self.rule.where)

    def forget(self, root: Root) -> None:
        """Let the root's call be a new node when it is read again."""
        call = root.call if isinstance(root, Output | AllOutputs) else root
        assert isinstance(call, Call)
        del self.numbers[call]

    def call(self, call: Call) -> int:
        if call in self.numbers:
            return self.numbers[call]
        number = self.numbers[call] = len(self.nodes)
        self.nodes.append(None)
        operands = tuple(map(self.operand, call.args))
        while operands and isinstance(operands[-1], Absent):
            operands = operands[:-1]
        held = self.held.get(call.others or "", frozenset())
        self.nodes[number] = PatternNode(operator_named(call.op), operands, call.attrs, call.others, held)
        return number

    def operand(self, term: Root) -> Operand:
        if isinstance(term, Var | Rest | Absent):
            return term
        if isinstance(term, Constant):
            return Literal(self.literal(term.value))
        return self.root(term)

    def literal(self, expr: Expr) -> float:
        message = "expected a number as a literal on the left side, found an expression over variables"
        try:
            value = evaluate(expr, Binding({}))
            if isinstance(value, int | float):
                return float(value)
        except Undefined:
            pass
        except OverflowError:
            message = "expected a number as a literal on the left side, found one that no float holds"
        raise RuleError(message, line=self.rule.text, where=self.rule.where, column=expr.column)


def _pieces(pattern: Pattern) -> int:
    """Count the parts of a pattern that no edge and no shared variable connects."""
    group = list(range(len(pattern.nodes)))

    def join(a: int, b: int) -> None:
        old, new = group[a], group[b]
        group[:] = [new if g == old else g for g in group]

    for consumer, _, inner in pattern.edges():
        join(consumer, inner.node)
    first: dict[str, int] = {}
    for name, node, position in pattern.variables():
        if isinstance(pattern.nodes[node].operands[position], Var):
            join(node, first.setdefault(name, node))
    return len(set(group))
