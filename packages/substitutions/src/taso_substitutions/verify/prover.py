"""T1, the size-generic prover: both sides of a rule have the same normal form, element by element, for all sizes.

Ranks and attributes are those of an example; every dimension is general, unless an operator needs it as a number (the
spatial axes of a kernel). What the right side needs beyond the left side's typing and the rule's conditions is returned
as the preconditions that the rule lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.rules.conditions import Binding, evaluate, truth
from taso_gym.rules.functions import Operand, Undefined
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Rule, Var
from taso_gym.tensor import Dim, Poly, TensorType
from taso_substitutions.verify.index_module import IndexModule
from taso_substitutions.verify.index_tensor import IndexTensor, positions
from taso_substitutions.verify.sizes import UNIT, Axis, Refined, Sizes, UnprovableError

MAX_ROUNDS = 200
OPERATORS_BY_KEY: dict[str, Operator] = {op.key: op for op in OPERATORS.values()}
SIZE_ATTRIBUTES = {"Split": "split", "Reshape": "shape", "Expand": "shape"}
"""Attributes of the left side that hold sizes, and so are generalised with them."""
KERNELS = {"Conv": 1, "ms.FusedConv": 1}
"""Operand whose spatial axes are windows and have to be numbers."""


@dataclass(frozen=True)
class Proof:
    """What was shown.

    Attributes:
        rule: name of the rule.
        typing: what the left side and the conditions make equal.
        fixed: sizes that an operator needs as numbers (kernels); the proof is for these, as for the attributes.
        lacking: what must hold besides; the rule is proved where this is empty.
        assumed: conditions that restrict the rule further and that the proof didn't use.
        axioms: identities beyond rings and finite sums that were used.
        digest: hash of the normal forms.
        example: shapes that the proof generalises.
        results: shapes of the results over the inputs' dimensions; ``x.0`` is the first of ``x``.
    """

    rule: str
    typing: tuple[str, ...]
    fixed: tuple[str, ...]
    lacking: tuple[str, ...]
    assumed: tuple[str, ...]
    axioms: tuple[str, ...]
    digest: str
    example: Mapping[str, tuple[Dim, ...]]
    results: tuple[tuple[Dim, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is lacking."""
        return not self.lacking


def prove(rule: Rule, example: Binding) -> Proof:
    """Prove a rule at the ranks and attributes of an example, for all sizes.

    Raises:
        UnprovableError: the sides differ, or have no index form.
        WorkExhaustedError: the normal forms are too large.
    """
    sizes = Sizes()
    for _ in range(MAX_ROUNDS):
        try:
            return _Attempt(rule, example, sizes).run()
        except Refined:
            continue
    raise UnprovableError(f"expected a typing within {MAX_ROUNDS} refinements, found none")


class _Attempt:
    """One evaluation of both sides with the sizes as they are refined so far."""

    def __init__(self, rule: Rule, example: Binding, sizes: Sizes) -> None:
        self.rule, self.example, self.sizes = rule, example, sizes
        self.xp = IndexModule(sizes)
        self.tensors: dict[str, IndexTensor | tuple[IndexTensor, ...]] = {}
        for name, operand in example.tensors.items():
            if isinstance(operand, tuple) and not isinstance(operand, Operand):
                self.tensors[name] = tuple(self._variable(f"{name}{i}", o) for i, o in enumerate(operand))
            else:
                self.tensors[name] = self._variable(name, operand)
        self.attrs = dict(example.attrs)
        self.memo: dict[Call, tuple[IndexTensor, ...]] = {}

    def _variable(self, name: str, operand: Any) -> IndexTensor:
        axes = [self.sizes.fresh(f"{name}.{i}", d) for i, d in enumerate(operand.type.shape)]
        return self.xp.variable(name, axes)

    def run(self) -> Proof:
        self.sizes.phase = "left"
        self._lift_attributes()
        left = self._roots(self.rule.lhs)
        self.sizes.phase = "condition"
        assumed = [text for c in self.rule.conditions for text in self._impose(c)]
        self.sizes.phase = "right"
        right = self._roots(self.rule.rhs)
        if len(left) != len(right):
            raise UnprovableError(f"expected as many results on both sides, found {len(left)} and {len(right)}")
        forms = [form for a, b in zip(left, right, strict=True) for form in self._compare(a, b)]
        shapes = {k: o.type.shape or () for k, o in self.example.tensors.items() if isinstance(o, Operand)}
        typing = (*self.sizes.describe("left"), *self.sizes.describe("condition"))
        digest = blake2b("\n".join(forms).encode(), digest_size=16).hexdigest()
        lacking = tuple(self.sizes.describe("right"))
        axioms = tuple(sorted(self.xp.axioms))
        fixed = tuple(self.sizes.fixed())
        results = tuple(tuple(self.sizes.expand(d) for d in t.shape) for t in left)
        return Proof(self.rule.name, typing, fixed, lacking, tuple(assumed), axioms, digest, shapes, results)

    def _lift_attributes(self) -> None:
        """Replace sizes in the left side's attribute variables by atoms."""
        for call in _calls(self.rule.lhs):
            name = SIZE_ATTRIBUTES.get(call.op)
            if name is None:
                continue
            written = dict(call.attrs).get(name)
            if written is not None and written.kind == "name":
                variable = str(written.value)
                self.attrs[variable] = self._lift(variable, self.attrs[variable])
            elif written is None and call.others:
                mapping = dict(self.attrs[call.others])
                mapping[name] = self._lift(f"{call.others}.{name}", mapping[name])
                self.attrs[call.others] = mapping

    def _lift(self, name: str, values: Sequence[int]) -> tuple[Dim, ...]:
        axes = (self.sizes.fresh(f"{name}.{i}", v) for i, v in enumerate(values))
        return tuple(self.sizes.dim(a) for a in axes)

    def _roots(self, roots: Sequence[Root]) -> list[IndexTensor]:
        return [t for root in roots for t in self._terms(root)]

    def _terms(self, term: Root) -> tuple[IndexTensor, ...]:
        match term:
            case Var(name) | Rest(name):
                found = self.tensors[name]
                return found if isinstance(found, tuple) else (found,)
            case Constant(value):
                number = self._evaluate(value)
                if not isinstance(number, int | float):
                    raise UnprovableError(f"expected a number, found {number}")
                return (self.xp.constant(number, None),)
            case AllOutputs(call):
                return self._call(call)
            case Output(call, index):
                return (self._call(call)[index],)
            case Call():
                return (self._call(term)[0],)
            case Absent():
                raise UnprovableError("expected a tensor, found an absent input")

    def _call(self, call: Call) -> tuple[IndexTensor, ...]:
        if call not in self.memo:
            self.memo[call] = self._apply(call)
        return self.memo[call]

    def _apply(self, call: Call) -> tuple[IndexTensor, ...]:
        op = OPERATORS_BY_KEY[call.op]
        if op.body is None:
            raise UnprovableError(f"expected an operator with a body, found {op.key}")
        args: list[IndexTensor | None] = []
        for arg in call.args:
            args.extend([None] if isinstance(arg, Absent) else self._terms(arg))
        self._fix_kernel(call, args)
        types = [None if a is None else TensorType("float", a.shape) for a in args]
        given = {k: self._evaluate(v) for k, v in call.attrs}
        others = {k: v for k, v in self.attrs[call.others].items() if k not in given} if call.others else {}
        try:
            attrs = op.normalize({**op.defaults, **others, **given}, types)
            if call.op == "Split" and args[0] is not None:
                self._cut(args[0], attrs)
            result = op.body(self.xp, *args, **attrs)
        except (TypeInferenceError, TypeError, AttributeError) as error:
            raise UnprovableError(f"{op.key}: {error}") from error
        return result if isinstance(result, tuple) else (result,)

    def _fix_kernel(self, call: Call, args: list[IndexTensor | None]) -> None:
        weight = args[KERNELS[call.op]] if call.op in KERNELS else None
        for axis in weight.axes[2:] if weight is not None else ():
            for segment in axis:
                for atom in (a for a in segment if not a.isdigit()):
                    self.sizes.fix(atom)

    def _cut(self, x: IndexTensor, attrs: Mapping[str, Any]) -> None:
        """Cut the axis that is split at its parts."""
        parts: Axis = tuple(s for d in attrs["split"] for s in self.sizes.axis_of(d))
        self.sizes.unify(x.axes[attrs["axis"]], parts)

    def _binding(self) -> Binding:
        def operand(t: IndexTensor | tuple[IndexTensor, ...], like: Any) -> Any:
            if isinstance(t, tuple):
                return tuple(operand(x, o) for x, o in zip(t, like, strict=True))
            return Operand(like.type._replace(shape=t.shape), None)

        tensors = {k: operand(t, self.example.tensors[k]) for k, t in self.tensors.items()}
        return Binding(tensors, self.attrs, self.example.opset)

    def _evaluate(self, expr: Expr) -> Any:
        try:
            return evaluate(expr, self._binding())
        except Undefined as error:
            raise UnprovableError(f"expected an expression over sizes and attributes: {error}") from error

    def _impose(self, condition: Expr) -> list[str]:
        """Make a condition hold by refining sizes; return those that only restrict the rule further."""
        if condition.kind == "and":
            return [text for arg in condition.args for text in self._impose(arg)]
        found = truth(condition, self._binding())
        if found is True:
            return []
        if found is False:
            raise UnprovableError("expected conditions that hold for general sizes, found one that is refuted")
        if condition.kind == "==":
            self._equate(condition)
        return [f"condition at column {condition.column}"]

    def _equate(self, condition: Expr) -> None:
        a, b = condition.args
        if a.kind == "%" and b.value == 0:
            self._divide(*(self._evaluate(x) for x in a.args))
            return
        try:
            values = (evaluate(a, self._binding()), evaluate(b, self._binding()))
        except Undefined:
            return
        pairs = zip(*values, strict=True) if all(isinstance(v, tuple) for v in values) else [values]
        for x, y in pairs:
            if isinstance(x, int | Poly) and isinstance(y, int | Poly) and x != y:
                self.sizes.unify(self.sizes.axis_of(x), self.sizes.axis_of(y))

    def _divide(self, dim: Any, by: Any) -> None:
        axis = self.sizes.axis_of(dim) if isinstance(dim, Poly) else UNIT
        if len(axis) == 1 and len(axis[0]) == 1 and isinstance(by, int) and by > 1:
            self.sizes.divide(axis[0][0], str(by), self.sizes.size_of(axis[0]) // by)

    def _compare(self, left: IndexTensor, right: IndexTensor) -> list[str]:
        """Return the normal form of every block, which both sides have in common."""
        if len(left.axes) != len(right.axes):
            raise UnprovableError(f"expected results of one rank, found {left.shape} and {right.shape}")
        axes = [self.sizes.unify(a, b) for a, b in zip(left.axes, right.axes, strict=True)]
        forms: list[str] = []
        for choice in product(*(list(positions(axis, f"i{n}")) for n, axis in enumerate(axes))):
            position = tuple(c for c, _ in choice)
            a, b = left.at(position), right.at(position)
            if a != b:
                raise UnprovableError(f"the sides differ at {position}:\n  left  {a}\n  right {b}")
            forms.append(f"{position}: {a}")
        return forms


def _calls(roots: Sequence[Root]) -> list[Call]:
    """Return all calls of a side, operands first."""
    result: list[Call] = []
    for root in roots:
        call = root.call if isinstance(root, Output | AllOutputs) else root
        if isinstance(call, Call):
            result += [*_calls(call.args), call]
    return result
