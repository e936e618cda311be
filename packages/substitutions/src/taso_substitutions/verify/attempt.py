"""One evaluation of both sides of a rule on index forms, and the proof that it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from math import prod
from typing import Any, NamedTuple

from taso_gym.rules.conditions import Binding, evaluate, truth
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Expr, Rule
from taso_gym.symbolic import Dim, Poly
from taso_substitutions.verify.facts import is_call
from taso_substitutions.verify.normal.axes import UNIT, Axis, UnprovableError, atoms_of
from taso_substitutions.verify.normal.evaluation import Evaluator, calls_of
from taso_substitutions.verify.normal.factors import WorkExhaustedError
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.index_tensor import IndexTensor, Position, positions
from taso_substitutions.verify.normal.polynomial import Polynomial
from taso_substitutions.verify.normal.small_model import bound_of
from taso_substitutions.verify.partial import lost

SIZE_ATTRIBUTES = {"Split": "split", "Reshape": "shape", "Expand": "shape"}
"""Attributes of the left side that hold sizes, and so are generalised with them."""
MAX_BLOCKS = 20_000
"""Most blocks of a result: a size that is a number has one for each position."""


class Dimension(NamedTuple):
    """An axis of an input of a rule."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class Proof:
    """What was shown.

    Attributes:
        rule: name of the rule.
        typing: what the left side and the conditions make equal.
        fixed: sizes that an operator needs as numbers (kernels); the proof is for these, as for the attributes.
        numbers: those of them that are no windows: for these the proof covers the numbers only.
        lacking: what must hold besides; the rule is proved where this is empty.
        axioms: identities beyond rings and finite sums that were used.
        digest: hash of the normal forms.
        small_model: bound of the small-model theorem.
        example: shapes that the proof generalises.
        results: shapes of the outputs over the sizes of the inputs.
        meeting: axes of the inputs that have sizes in common: what is shown for sizes above 1 needn't hold where some
            of these are 1.
        trace: the example's sizes of the axes along which operators do more than to map over them, in order.
    """

    rule: str
    typing: tuple[str, ...]
    fixed: tuple[str, ...]
    numbers: tuple[str, ...]
    lacking: tuple[str, ...]
    axioms: tuple[str, ...]
    digest: str
    small_model: int
    example: Mapping[str, tuple[Dim, ...]]
    results: tuple[tuple[Dim, ...], ...]
    meeting: tuple[tuple[Dimension, ...], ...]
    trace: tuple[tuple[int, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is lacking."""
        return not self.lacking


class Attempt:
    """One evaluation of both sides with the sizes as they are refined so far."""

    def __init__(self, rule: Rule, example: Binding, xp: IndexModule) -> None:
        self.rule, self.xp, self.sizes = rule, xp, xp.sizes
        self.evaluator = Evaluator(xp, example)
        self.lifted: list[Axis] = []

    def run(self) -> Proof:
        """Compare the sides element by element."""
        left, right = self.typed()
        trace = tuple(self.sizes.trace)
        blocks = [block for a, b in zip(left, right, strict=True) for block in self._compare(a, b)]
        forms = "\n".join(f"{position}: {form}" for position, form in blocks)
        example = self.evaluator.example.tensors.items()
        return Proof(
            rule=self.rule.name,
            typing=(*self.sizes.describe("left"), *self.sizes.describe("condition")),
            fixed=tuple(self.sizes.fixed()),
            numbers=tuple(self.sizes.numbers),
            lacking=(*self.sizes.describe("right"), *lost(self.rule, forms)),
            axioms=tuple(sorted(self.xp.axioms)),
            digest=blake2b(forms.encode(), digest_size=16).hexdigest(),
            small_model=bound_of(form for _, form in blocks),
            example={k: o.type.shape or () for k, o in example if isinstance(o, Operand)},
            results=tuple(tuple(self.sizes.expand(d) for d in t.shape) for t in left),
            meeting=tuple(self._meeting()),
            trace=trace,
        )

    def typed(self) -> tuple[list[IndexTensor], list[IndexTensor]]:
        """Return both sides on index forms, with axes that agree."""
        self.sizes.phase = "left"
        self.sizes.trace.clear()
        self._lift_attributes()
        self.sizes.phase = "condition"
        self._impose_all()
        self.sizes.phase = "left"
        left = self.evaluator.roots(self.rule.lhs)
        self.sizes.phase = "condition"
        self._impose_all()
        self.sizes.phase = "right"
        right = self.evaluator.roots(self.rule.rhs)
        if len(left) != len(right):
            raise UnprovableError(f"expected as many results on both sides, found {len(left)} and {len(right)}")
        for a, b in zip(left, right, strict=True):
            if len(a.axes) != len(b.axes):
                raise UnprovableError(f"expected results of one rank, found {a.shape} and {b.shape}")
            for one, other in zip(a.axes, b.axes, strict=True):
                self.sizes.unify(one, other)
        return left, right

    def _lift_attributes(self) -> None:
        """Replace sizes in the left side's attribute variables by atoms."""
        attrs = self.evaluator.attrs
        for call in calls_of(self.rule.lhs):
            name = SIZE_ATTRIBUTES.get(call.op)
            if name is None:
                continue
            written = dict(call.attrs).get(name)
            if written is not None and written.kind == "name":
                variable = str(written.value)
                attrs[variable] = self._lift(variable, self.evaluator.example.attrs[variable])
            elif written is None and call.others:
                mapping = dict(self.evaluator.example.attrs[call.others])
                mapping[name] = self._lift(f"{call.others}.{name}", mapping[name])
                attrs[call.others] = mapping

    def _lift(self, name: str, values: Sequence[int]) -> tuple[Dim, ...]:
        axes = [self.sizes.fresh(f"{name}.{i}", v) for i, v in enumerate(values)]
        self.lifted += axes
        return tuple(self.sizes.dim(a) for a in axes)

    def _impose_all(self) -> None:
        """Make the conditions hold by refining sizes; those that no sizes can be refined by only restrict the rule."""
        for condition in self.rule.conditions:
            self._impose(condition)

    def _impose(self, condition: Expr) -> None:
        if condition.kind == "and":
            for arg in condition.args:
                self._impose(arg)
            return
        found = None if _reads_values(condition) else truth(condition, self.evaluator.binding())
        if found is False:
            raise UnprovableError("expected conditions that hold for general sizes, found one that is refuted")
        if found is None and condition.kind == "==":
            self._equate(condition)

    def _equate(self, condition: Expr) -> None:
        a, b = condition.args
        binding = self.evaluator.binding()
        try:
            if a.kind == "%" and b.value == 0:
                self._divide(*(evaluate(x, binding) for x in a.args))
                return
            values = (_items(a, binding), _items(b, binding))
        except Undefined:
            return
        pairs = zip(*values, strict=False) if all(isinstance(v, tuple) for v in values) else [values]
        for x, y in pairs:
            if isinstance(x, int | Poly) and isinstance(y, int | Poly) and x != y:
                try:
                    self.sizes.unify(self.sizes.axis_of(x), self.sizes.axis_of(y))
                except UnprovableError:  # sizes that can't be solved for: the condition is only assumed
                    continue

    def _divide(self, dim: Any, by: Any) -> None:
        axis = self.sizes.axis_of(dim) if isinstance(dim, Poly) else UNIT
        if len(axis) == 1 and len(axis[0]) == 1 and isinstance(by, int) and by > 1 and self.sizes.is_free(axis[0][0]):
            self.sizes.divide(axis[0][0], str(by), self.sizes.size_of(axis[0]) // by)

    def _compare(self, left: IndexTensor, right: IndexTensor) -> list[tuple[Position, Polynomial]]:
        """Return the position and normal form of every block, which both sides have in common."""
        forms: list[tuple[Position, Polynomial]] = []
        if (blocks := prod(len(axis) for axis in left.axes)) > MAX_BLOCKS:
            raise WorkExhaustedError(f"expected at most {MAX_BLOCKS} blocks of a result, found {blocks}")
        for choice in product(*(list(positions(axis, f"i{n}")) for n, axis in enumerate(left.axes))):
            position = tuple(c for c, _ in choice)
            a, b = self.xp.pair(left, right, position)
            if a != b:
                raise UnprovableError(f"the sides differ at {position}:\n  left  {a}\n  right {b}")
            forms.append((position, a))
        return forms

    def _meeting(self) -> Iterator[tuple[Dimension, ...]]:
        """Yield the axes that have sizes in common."""
        inputs = self.evaluator.inputs()
        axes = {Dimension(name, i): a for name, t in inputs for i, a in enumerate(t.axes)}
        axes |= {Dimension("", i): a for i, a in enumerate(self.lifted)}
        groups: list[tuple[set[Dimension], set[str]]] = []
        for dimension, axis in axes.items():
            mine = ({dimension}, set(atoms_of([axis])))
            for other in [g for g in groups if g[1] & mine[1]]:
                groups.remove(other)
                mine = (mine[0] | other[0], mine[1] | other[1])
            groups += [mine] if mine[1] else []
        yield from (tuple(sorted(together)) for together, _ in groups if len(together) > 1)


def _items(expr: Expr, binding: Binding) -> Any:
    """Return the value of an expression; of a list, items that can't be said for general sizes are None."""
    if expr.kind != "list":
        return evaluate(expr, binding)
    found: list[Any] = []
    for arg in expr.args:
        try:
            found.append(evaluate(arg, binding))
        except Undefined:  # a quotient that is whole only once the left side's typing is known
            found.append(None)
    return tuple(found)


def _reads_values(expr: Expr) -> bool:
    """Whether a condition asks for the values of a constant, which are general here."""
    return is_call(expr, "value") or any(map(_reads_values, expr.args))
