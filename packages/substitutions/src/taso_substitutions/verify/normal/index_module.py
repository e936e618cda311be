"""The array module of the size-generic prover: the bodies of operators run on index forms.

This is the one other definition of what arrays do that the project has, and the trust root of ``proved``; it knows the
primitives of `taso_gym.ops.modules.ArrayModule`, not the operators, so an operator that is added can be proved about.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from functools import reduce as fold
from typing import Any

from taso_gym.ops.modules import ArrayModule
from taso_substitutions.verify.normal.axes import UNIT, Axis, UnprovableError
from taso_substitutions.verify.normal.einsum import einsum
from taso_substitutions.verify.normal.extremes import extreme, over
from taso_substitutions.verify.normal.factors import Coordinate
from taso_substitutions.verify.normal.index_tensor import (
    IndexTensor,
    Position,
    combine,
    difference,
    positions,
    read_broadcast,
    sum_axis,
)
from taso_substitutions.verify.normal.padding import pad_axis
from taso_substitutions.verify.normal.polynomial import ONE, ZERO, Polynomial, atom, inverse, opaque
from taso_substitutions.verify.normal.regroup import regroup
from taso_substitutions.verify.normal.sizes import Sizes
from taso_substitutions.verify.normal.take import take

SMALL_POWERS = 8
"""Largest exponent that is written out as a product."""


class IndexModule(ArrayModule):
    """Computes on `IndexTensor`.

    Attributes:
        sizes: the atoms of this proof.
        axioms: identities beyond rings and finite sums that were used; none by this module.
    """

    exact = True

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
            return self.constant(values.item(), None)
        raise UnprovableError("expected no tensor of given values")

    def to_numpy(self, x: Any) -> Any:
        """Refuse: there are no numbers here."""
        raise UnprovableError("expected no step that needs numbers")

    def constant(self, value: Any, like: Any) -> IndexTensor:
        """Return a number, a size or a scalar; infinities are opaque."""
        return IndexTensor(self.sizes, (), lambda _: ONE).lift(value)

    def function(self, name: str, x: Any) -> IndexTensor:
        """Apply an opaque function."""
        return x.map(partial(self.apply, name))

    def apply(self, name: str, p: Polynomial) -> Polynomial:
        """Apply a function to an element."""
        return opaque(name, p)

    def power(self, a: Any, b: Any) -> IndexTensor:
        """a**b: exact for small integer exponents, sqrt for 1/2, else opaque."""
        return combine(self.raised, a, a.lift(b))

    def raised(self, base: Polynomial, exponent: Polynomial) -> Polynomial:
        """Return an element to the power of another one."""
        value = exponent.constant
        if value is not None and value.denominator == 1 and abs(value) <= SMALL_POWERS:
            result = fold(lambda p, _: p * base, range(abs(int(value))), ONE)
            return inverse(result) if value < 0 else result
        return self.apply("sqrt", base) if value == Fraction(1, 2) else opaque("pow", base, exponent)

    def divide(self, a: Any, b: Any) -> IndexTensor:
        """A / b."""
        return a / b

    def extreme(self, name: str, xs: Sequence[Any]) -> IndexTensor:
        """Element-wise "max" or "min", which is associative, commutative and idempotent."""
        return combine(lambda *ps: self.extreme_of(name, ps), *xs)

    def extreme_of(self, name: str, elements: Sequence[Polynomial]) -> Polynomial:
        """Return the maximum or minimum of some elements."""
        return extreme(name, elements)

    def equal(self, a: Any, b: Any) -> IndexTensor:
        """Opaque truth of a == b."""
        return self._truth("zero", a, b)

    def less(self, a: Any, b: Any) -> IndexTensor:
        """Opaque truth of a < b."""
        return self._truth("negative", a, b)

    def _truth(self, name: str, a: Any, b: Any) -> IndexTensor:
        return combine(difference, a, b).map(partial(self.truth, name))

    def truth(self, name: str, p: Polynomial) -> Polynomial:
        """Return whether an element is "zero" or "negative"; opaque but for numbers."""
        value = p.constant
        if value is None:
            return opaque(name, p)
        return ONE if (value == 0 if name == "zero" else value < 0) else ZERO

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
        return x.map(partial(opaque, f"cast to {dtype}"))

    def matmul(self, a: Any, b: Any) -> IndexTensor:
        """Batched matrix product."""
        left = a[None, :] if len(a.axes) == 1 else a
        right = b[:, None] if len(b.axes) == 1 else b
        result = self.einsum("...ij,...jk->...ik", left, right)
        result = result[..., 0] if len(b.axes) == 1 else result
        return result[..., 0, :] if len(a.axes) == 1 and len(b.axes) > 1 else result[0] if len(a.axes) == 1 else result

    def einsum(self, equation: str, *xs: Any) -> IndexTensor:
        """Sum of products by NumPy's notation."""
        return einsum(self.sizes, equation, xs)

    def reduce(self, name: str, x: Any, axes: Sequence[int], keepdims: bool) -> IndexTensor:
        """Sum over axes; "max" and "min" as opaque functions of the set of elements."""
        result = x
        for axis in sorted((a % len(x.axes) for a in axes), reverse=True):
            result = self._reduce_one(name, result, axis, keepdims)
        return result

    def pair(self, left: IndexTensor, right: IndexTensor, position: Position) -> tuple[Polynomial, Polynomial]:
        """Return an element of both sides, as they are compared."""
        return left.at(position), right.at(position)

    def _reduce_one(self, name: str, x: IndexTensor, axis: int, keepdims: bool) -> IndexTensor:
        axes = [*x.axes[:axis], *([UNIT] if keepdims else []), *x.axes[axis + 1 :]]
        self.sizes.touch(x.axes[axis])

        def at(position: Position) -> Polynomial:
            def element(c: Coordinate) -> Polynomial:
                return x.at((*position[:axis], c, *position[axis + keepdims :]))

            if name == "sum":
                return sum_axis(x.axes[axis], element)
            covered = list(positions(x.axes[axis], "s"))
            if name == "prod":
                if any(used for _, used in covered):
                    raise UnprovableError("expected no product over an axis", [a for s in x.axes[axis] for a in s])
                return fold(lambda a, b: a * b, [element(c) for c, _ in covered], ONE)
            return self.extreme_of(name, [over(name, element(c), used) for c, used in covered])

        return IndexTensor(self.sizes, axes, at)

    def concatenate(self, xs: Sequence[Any], axis: int) -> IndexTensor:
        """Join along an axis: the segments follow each other."""
        axis %= len(xs[0].axes)
        others = [[a for i, a in enumerate(x.axes) if i != axis] for x in xs]
        axes = others[0]
        for other in others[1:]:
            axes = [self.sizes.unify(a, b) for a, b in zip(axes, other, strict=True)]
        axes.insert(axis, tuple(s for x in xs for s in x.axes[axis]))
        self.sizes.touch(axes[axis])
        owner = [(x, i) for x in xs for i in range(len(x.axes[axis]))]

        def at(position: Position) -> Polynomial:
            x, segment = owner[position[axis][0]]
            return x.at((*position[:axis], (segment, position[axis][1]), *position[axis + 1 :]))

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
            axes[i] = axes[i] if axis == UNIT else self.sizes.unify(axis, axes[i])
        return IndexTensor(self.sizes, axes, lambda p: x.at(read_broadcast(x, p)))

    def pad(
        self, x: Any, widths: Sequence[tuple[Any, Any]], value: float | int = 0, mode: str = "constant"
    ) -> IndexTensor:
        """Pad with a constant."""
        if mode != "constant":
            raise UnprovableError(f"expected padding with a constant, found {mode}")
        result = x
        for axis, (before, after) in enumerate(widths):
            if before != 0 or after != 0:
                result = pad_axis(result, axis, before, after, self.sizes.number(value))
        return result

    def take(self, x: Any, indices: Any, axis: int) -> IndexTensor:
        """Read at positions that are elements."""
        return take(x, indices, axis)
