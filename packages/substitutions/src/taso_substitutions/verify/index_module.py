"""The array module of the size-generic prover: the bodies of operators run on index forms.

This is the one other definition of what arrays do that the project has, and the trust root of ``proved``; it knows the
primitives of `taso_gym.ops.modules.ArrayModule`, not the operators, so an operator that is added can be proved about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce as fold
from typing import Any

from taso_gym.ops.modules import ArrayModule
from taso_gym.tensor import Dim, Poly
from taso_substitutions.verify.index_tensor import (
    START,
    IndexTensor,
    Position,
    combine,
    inverse,
    positions,
    read_broadcast,
    sum_axis,
    whole_axis,
)
from taso_substitutions.verify.normal_form import (
    ONE,
    ZERO,
    Coordinate,
    Factor,
    Index,
    Polynomial,
    atom,
    collect,
    constant,
    sorted_arguments,
)
from taso_substitutions.verify.reshape import regroup
from taso_substitutions.verify.sizes import UNIT, Axis, Sizes, UnprovableError

SMALL_POWERS = 8


class IndexModule(ArrayModule):
    """Computes on `IndexTensor`.

    Attributes:
        sizes: the atoms of this proof.
        axioms: identities beyond rings and finite sums that were used, by name.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.axioms: set[str] = set()

    def variable(self, name: str, axes: Sequence[Axis]) -> IndexTensor:
        """Return an input of the rule."""
        return IndexTensor(self.sizes, axes, lambda p: atom(("x", name, p)))

    def asarray(self, values: Any) -> Any:
        """Take index tensors as they are; a NumPy scalar is a number."""
        if isinstance(values, IndexTensor):
            return values
        if getattr(values, "shape", None) == ():
            return IndexTensor(self.sizes, (), lambda _: _number(values.item()))
        raise UnprovableError("expected no tensor of given values")

    def to_numpy(self, x: Any) -> Any:
        """Refuse: there are no numbers here."""
        raise UnprovableError("expected no step that needs numbers")

    def constant(self, value: float | int, like: Any) -> IndexTensor:
        """Return a number or a size; infinities are opaque."""
        scalar = IndexTensor(self.sizes, (), lambda _: _number(value))
        return scalar.lift(value) if isinstance(value, Poly) else scalar

    def function(self, name: str, x: Any) -> IndexTensor:
        """Apply an opaque function; exp turns sums into products."""
        return x.map(self._exp if name == "exp" else lambda p: opaque(name, p))

    def _exp(self, p: Polynomial) -> Polynomial:
        if len(p.terms) > 1:
            self.axioms.add("exp(a + b) = exp(a) exp(b)")
        return fold(lambda a, t: a * _exp_term(collect([t])), p.terms.values(), ONE)

    def power(self, a: Any, b: Any) -> IndexTensor:
        """a**b: exact for small integer exponents, sqrt for 1/2, else opaque."""

        def of(base: Polynomial, exponent: Polynomial) -> Polynomial:
            value = exponent.constant
            if value is not None and value.denominator == 1 and abs(value) <= SMALL_POWERS:
                result = fold(lambda p, _: p * base, range(abs(int(value))), ONE)
                return inverse(result) if value < 0 else result
            return opaque("sqrt", base) if value == Fraction(1, 2) else opaque("pow", base, exponent)

        return combine(of, a, a.lift(b))

    def divide(self, a: Any, b: Any) -> IndexTensor:
        """A / b."""
        return a / b

    def extreme(self, name: str, xs: Sequence[Any]) -> IndexTensor:
        """Element-wise "max" or "min", which is associative, commutative and idempotent."""
        return combine(lambda *ps: extreme(name, ps), *xs)

    def equal(self, a: Any, b: Any) -> IndexTensor:
        """Opaque truth of a == b."""
        return combine(lambda p, q: opaque("equal", p + -q), a, b)

    def less(self, a: Any, b: Any) -> IndexTensor:
        """Opaque truth of a < b."""
        return combine(lambda p, q: opaque("negative", p + -q), a, b)

    def logical_and(self, a: Any, b: Any) -> IndexTensor:
        """Product of truths."""
        return a * b

    def logical_or(self, a: Any, b: Any) -> IndexTensor:
        """A + b - a b."""
        return a + b - a * b

    def logical_not(self, a: Any) -> IndexTensor:
        """1 - a."""
        return 1 - a

    def where(self, condition: Any, a: Any, b: Any) -> IndexTensor:
        """B + condition (a - b)."""
        return b + condition * (a - b)

    def cast(self, x: Any, dtype: str) -> IndexTensor:
        """Opaque: a conversion may round."""
        return x.map(lambda p: opaque(f"cast to {dtype}", p))

    def matmul(self, a: Any, b: Any) -> IndexTensor:
        """Batched matrix product."""
        left = a[None, :] if len(a.axes) == 1 else a
        right = b[:, None] if len(b.axes) == 1 else b
        result = self.einsum("...ij,...jk->...ik", left, right)
        result = result[..., 0] if len(b.axes) == 1 else result
        return result[..., 0, :] if len(a.axes) == 1 and len(b.axes) > 1 else result[0] if len(a.axes) == 1 else result

    def einsum(self, equation: str, *xs: Any) -> IndexTensor:
        """Sum of products by NumPy's notation."""
        terms, letters = _parse(equation, [len(x.axes) for x in xs])
        axes: dict[str, Axis] = {}
        for term, x in zip(terms[:-1], xs, strict=True):
            for letter, axis in zip(term, x.axes, strict=True):
                known = axes.get(letter, UNIT)
                axes[letter] = known if axis == UNIT else axis if known == UNIT else self.sizes.unify(known, axis)
        summed = [c for c in letters if c not in terms[-1]]

        def at(position: Position) -> Polynomial:
            return _contract(xs, terms[:-1], axes, dict(zip(terms[-1], position, strict=True)), summed)

        return IndexTensor(self.sizes, [axes[c] for c in terms[-1]], at)

    def reduce(self, name: str, x: Any, axes: Sequence[int], keepdims: bool) -> IndexTensor:
        """Sum over axes; products of concrete axes; "max" and "min" as opaque functions of the set of elements."""
        wanted = sorted(a % len(x.axes) for a in axes)
        result = x
        for axis in reversed(wanted):
            result = self._reduce_one(name, result, axis, keepdims)
        return result

    def _reduce_one(self, name: str, x: IndexTensor, axis: int, keepdims: bool) -> IndexTensor:
        axes = [*x.axes[:axis], *([UNIT] if keepdims else []), *x.axes[axis + 1 :]]

        def at(position: Position) -> Polynomial:
            def element(c: Coordinate) -> Polynomial:
                return x.at((*position[:axis], c, *position[axis + keepdims :]))

            if name == "sum":
                return sum_axis(x.axes[axis], element)
            if name == "prod":
                raise UnprovableError("expected no product over an axis")
            return extreme(name, [_over(name, element(c), used) for c, used in positions(x.axes[axis], "s")])

        return IndexTensor(self.sizes, axes, at)

    def concatenate(self, xs: Sequence[Any], axis: int) -> IndexTensor:
        """Join along an axis: the segments follow each other."""
        axis %= len(xs[0].axes)
        rest = [IndexTensor(self.sizes, [UNIT if i == axis else a for i, a in enumerate(x.axes)], x.at) for x in xs]
        axes = list(_common_axes(rest))
        axes[axis] = tuple(s for x in xs for s in x.axes[axis])
        starts = [0]
        for x in xs:
            starts.append(starts[-1] + len(x.axes[axis]))

        def at(position: Position) -> Polynomial:
            segment, indices = position[axis]
            number = max(i for i, s in enumerate(starts) if s <= segment and i < len(xs))
            own = (segment - starts[number], indices)
            return xs[number].at((*position[:axis], own, *position[axis + 1 :]))

        return IndexTensor(self.sizes, axes, at)

    def transpose(self, x: Any, perm: Sequence[int]) -> IndexTensor:
        """Permute the axes."""
        back = [list(perm).index(i) for i in range(len(perm))]
        return IndexTensor(self.sizes, [x.axes[p] for p in perm], lambda p: x.at(tuple(p[i] for i in back)))

    def reshape(self, x: Any, shape: Sequence[Any]) -> IndexTensor:
        """Regroup the factors of the axes."""
        return regroup(self.sizes, x, tuple(shape))

    def broadcast_to(self, x: Any, shape: Sequence[Any]) -> IndexTensor:
        """Repeat along axes of size 1 and new leading axes."""
        axes = [self.sizes.axis_of(d) for d in shape]
        for i, axis in enumerate(x.axes, len(axes) - len(x.axes)):
            axes[i] = axis if axis != UNIT else axes[i]
        return IndexTensor(self.sizes, axes, lambda p: x.at(read_broadcast(x, p)))

    def pad(
        self, x: Any, widths: Sequence[tuple[Any, Any]], value: float | int = 0, mode: str = "constant"
    ) -> IndexTensor:
        """Pad with a constant: elements outside are read through guards."""
        if mode != "constant":
            raise UnprovableError(f"expected padding with a constant, found {mode}")
        result = x
        for axis, (before, after) in enumerate(widths):
            if before != 0 or after != 0:
                result = self._pad_axis(result, axis, before, after, _number(value))
        return result

    def _pad_axis(self, x: IndexTensor, axis: int, before: Dim, after: Dim, value: Polynomial) -> IndexTensor:
        if isinstance(before, Poly) or isinstance(after, Poly):
            return self._pad_blocks(x, axis, before, after, value)
        own = x.axes[axis]
        if own == UNIT:
            own = (("1",),)
        if len(own) != 1 or len(own[0]) != 1:
            raise UnprovableError("expected an axis of one piece to pad")
        inner = own[0][0]
        padded = whole_axis(self.sizes, self.sizes.dim(own) + before + after)

        def at(position: Position) -> Polynomial:
            stride, name, offset = position[axis][1][0]
            index = (stride, name, offset - before)
            inside = self.guards(index, inner)
            if inside is None:
                return value
            read = START if x.axes[axis] == UNIT else (0, (index,))
            element = x.at((*position[:axis], read, *position[axis + 1 :]))
            guard = fold(lambda a, b: a * b, (atom(g) for g in inside), ONE)
            return guard * element + (ONE + -guard) * value

        return IndexTensor(self.sizes, [*x.axes[:axis], padded, *x.axes[axis + 1 :]], at)

    def _pad_blocks(self, x: IndexTensor, axis: int, before: Dim, after: Dim, value: Polynomial) -> IndexTensor:
        def block(size: Dim) -> list[IndexTensor]:
            axes = [*x.axes[:axis], self.sizes.axis_of(size), *x.axes[axis + 1 :]]
            return [] if size == 0 else [IndexTensor(self.sizes, axes, lambda _: value)]

        return self.concatenate([*block(before), x, *block(after)], axis)

    def guards(self, index: Index, size: str) -> list[Factor] | None:
        """Return what must hold for an index to lie within an axis; None where it never does."""
        stride, name, offset = index
        if not name:
            if offset < 0 or (size.isdigit() and offset >= int(size)):
                return None
            return [] if size.isdigit() else [("<", index, size)]
        guards: list[Factor] = []
        if offset < 0:
            guards.append((">=", index))
        atom_name = name.rpartition(":")[2]
        room = self.sizes.expand(
            self.sizes.dim_of_atom(size) - offset - 1 - (self.sizes.dim_of_atom(atom_name) - 1) * stride
        )
        if not (isinstance(room, int) and room >= 0):
            guards.append(("<", index, size))
        return guards

    def take(self, x: Any, indices: Any, axis: int) -> IndexTensor:
        """Refuse: positions that depend on values have no index form."""
        raise UnprovableError("expected no reading at positions that depend on values")


def _common_axes(xs: Sequence[IndexTensor]) -> tuple[Axis, ...]:
    axes = xs[0].axes
    for x in xs[1:]:
        axes = tuple(x.sizes.unify(a, b) for a, b in zip(axes, x.axes, strict=True))
    return axes


def _number(value: float | int) -> Polynomial:
    if isinstance(value, float) and not math.isfinite(value):
        return atom(("x", repr(value), ()))
    return constant(Fraction(value))


def _exp_term(p: Polynomial) -> Polynomial:
    (term,) = p.terms.values()
    if term.coefficient < 0:
        return inverse(opaque("exp", -p))
    return opaque("exp", p)


def opaque(name: str, *arguments: Polynomial) -> Polynomial:
    """Return an unknown function of normal forms."""
    return atom(("f", name, arguments))


def extreme(name: str, arguments: Sequence[Polynomial]) -> Polynomial:
    """Return the maximum or minimum of a set: nested ones are flattened, and that of one element is the element."""
    neutral = _number(-math.inf if name == "max" else math.inf)
    flat: set[Polynomial] = set()
    for p in arguments:
        terms = list(p.terms.values())
        inner = terms[0].factors[0] if len(terms) == 1 and len(terms[0].factors) == 1 and not terms[0].bound else None
        nested = inner is not None and inner[:2] == ("f", name) and terms[0].coefficient == 1
        flat.update(inner[2] if nested and inner else [p])
    flat.discard(neutral)
    found = sorted_arguments(name, tuple(flat))
    return neutral if not found else found[0] if len(found) == 1 else opaque(name, *found)


def _over(name: str, p: Polynomial, used: list[tuple[str, str]]) -> Polynomial:
    """Bind the variables of an element inside an opaque function of all of them."""
    if not used:
        return p
    bound: dict[str, Index] = {v: (1, f"@{p.height}_{i}", 0) for i, (v, _) in enumerate(used)}
    return opaque(f"{name} over {', '.join(size for _, size in used)}", p.substitute(bound))


def _parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Return the letters of each operand and of the result, the ellipsis spelled out, and all letters."""
    left, _, right = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    extra = max(rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(operands, ranks, strict=True))

    def letters(term: str, rank: int | None) -> list[str]:
        if "..." not in term:
            return list(term)
        before, _, after = term.partition("...")
        own = extra if rank is None else rank - len(before) - len(after)
        return [*before, *(f"_{i}" for i in range(extra - own, extra)), *after]

    terms = [letters(t, rank) for t, rank in zip(operands, ranks, strict=True)]
    seen = list(dict.fromkeys(c for term in terms for c in term))
    if "->" not in equation:
        right = "..." * (extra > 0) + "".join(sorted(c for c in seen if left.count(c) == 1 and len(c) == 1))
    return [*terms, letters(right, None)], seen


def _contract(
    xs: Sequence[IndexTensor],
    terms: list[list[str]],
    axes: dict[str, Axis],
    fixed: dict[str, Coordinate],
    summed: list[str],
) -> Polynomial:
    """Sum the product of the operands' elements over the letters that the result doesn't have."""
    if summed:
        letter = summed[0]
        return sum_axis(axes[letter], lambda c: _contract(xs, terms, axes, {**fixed, letter: c}, summed[1:]))
    total = ONE
    for x, term in zip(xs, terms, strict=True):
        position = tuple(START if axis == UNIT else fixed[c] for c, axis in zip(term, x.axes, strict=True))
        total = total * x.at(position)
        if total is ZERO:
            break
    return total
