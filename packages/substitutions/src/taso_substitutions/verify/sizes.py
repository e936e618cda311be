"""Symbolic sizes: axes as lists of segments of products of atoms, refined until both sides of a rule agree.

A proof begins with one atom for each dimension of each input, and a concrete example that says which atoms have which
size. Where an operator asks for two equal axes, the atoms are unified; where one axis is a concatenation and the other
is whole, the whole one is cut; where a Reshape needs it, an atom becomes a product. Each of these is a `Refined`
exception: the evaluation starts again with the refined inputs. So what remains in the end is the most general typing
that the example allows (principal typing), and no size that is equal by accident is taken to be equal.
"""

from __future__ import annotations

from math import prod

from taso_gym.errors import TasoError
from taso_gym.tensor import Dim, Poly, product, symbol

Segment = tuple[str, ...]
"""A product of atoms, row-major; () has size 1. An atom of digits is that concrete size."""
Axis = tuple[Segment, ...]
"""A concatenation of segments."""

UNIT: Axis = ((),)


class UnprovableError(TasoError):
    """A rule, or an operator in it, that this prover has no index form for, or whose sides differ."""


class Refined(Exception):  # noqa: N818 - a signal to start again, not an error
    """The sizes have been refined: evaluate again."""


class Sizes:
    """The atoms of one proof.

    Attributes:
        example: concrete size of each atom.
        facts: what atoms had to be, in order: ("=", "cut", "product" or "fixed", atom, what it became, phase).
        phase: who asks: "left", "condition" or "right"; set by the prover.
    """

    def __init__(self) -> None:
        self.example: dict[str, int] = {}
        self.facts: list[tuple[str, str, str, str]] = []
        self.phase = "left"
        self._refined: dict[str, Axis] = {}
        self._derived: dict[str, Poly] = {}
        self._order: dict[Dim, Axis] = {}

    def fresh(self, name: str, size: int) -> Axis:
        """Return the axis of an input's dimension, as refined so far; size 1 is never generalised."""
        if size == 1:
            return UNIT
        self.example.setdefault(name, size)
        return self._expand(name)

    def _expand(self, atom: str) -> Axis:
        if atom not in self._refined:
            return ((atom,),)
        result: list[Segment] = []
        for segment in self._refined[atom]:
            parts = [self._expand(a) for a in segment]
            if len(parts) == 1:
                result.extend(parts[0])
                continue
            if any(len(part) != 1 for part in parts):
                raise UnprovableError(f"expected factors of {atom} that aren't cut")
            result.append(tuple(a for part in parts for a in part[0]))
        return tuple(result)

    def size_of(self, segment: Segment) -> int:
        """Return the example's size of a segment."""
        return prod(int(a) if a.isdigit() else self.example[a] for a in segment)

    def dim_of_atom(self, atom: str) -> Dim:
        """Return an atom as a dimension; a derived one stays a symbol, which `expand` replaces."""
        return int(atom) if atom.isdigit() else symbol(atom)

    def expand(self, dim: Dim) -> Dim:
        """Return a dimension over the sizes of the inputs only."""
        if isinstance(dim, int) or not any(s in self._derived for s in dim.symbols):
            return dim
        total: Dim = 0
        for monomial, coefficient in dim.terms:
            total = total + product(self.expand(self._derived.get(s, symbol(s))) for s in monomial) * coefficient
        return total

    def dim(self, axis: Axis) -> Dim:
        """Return the size of an axis as a dimension."""
        total: Dim = 0
        for segment in axis:
            total = total + product(self.dim_of_atom(a) for a in segment)
        if len(axis) > 1:
            self._order[total] = axis
        return total

    def atom_of(self, dim: Poly, size: int) -> str:
        """Return an atom that stands for a dimension which is no product of atoms (``h - 2``)."""
        if dim.terms == (((name := str(dim),), 1),) and name in self.example:
            return name
        name = f"({dim})"
        self._derived[name] = dim
        self.example.setdefault(name, size)
        return name

    def axis_of(self, dim: Dim) -> Axis:
        """Return an axis of this size: one that has been seen, else a segment for each term of the sum."""
        if isinstance(dim, int):
            return UNIT if dim == 1 else ((str(dim),),)
        if dim in self._order:
            return self._order[dim]
        segments: list[Segment] = []
        for monomial, coefficient in dim.terms:
            known = all(s in self.example for s in monomial)
            if coefficient < 0 or not known or (not monomial and len(dim.terms) > 1):
                return ((self.atom_of(dim, self.value(dim)),),)
            segments.extend([monomial] * coefficient)
        return tuple(segments)

    def value(self, dim: Dim) -> int:
        """Return the example's value of a dimension."""
        if isinstance(dim, int):
            return dim
        bound = dim.bind(self.example)
        if not isinstance(bound, int):
            raise UnprovableError(f"expected a size over the rule's dimensions, found {dim}")
        return bound

    def unify(self, a: Axis, b: Axis) -> Axis:
        """Return the axis that two have in common; refine the sizes and start again if they differ.

        Raises:
            UnprovableError: they can't be made equal.
        """
        if a == b:
            return a
        for x, y in zip(a, b, strict=False):
            if x == y:
                continue
            m, n = self.size_of(x), self.size_of(y)
            if m == n:
                self.identify(x, y)
            elif m < n:
                self._cut(y, x, n - m)
            else:
                self._cut(x, y, m - n)
        raise UnprovableError(f"expected equal axes, found {self.dim(a)} and {self.dim(b)}")

    def identify(self, x: Segment, y: Segment) -> None:
        """Make two segments of one size in the example the same."""
        for one, other in ((x, y), (y, x)):
            if len(one) == 1 and self.is_free(one[0]) and one[0] not in other:
                self.refine("=" if len(other) == 1 else "product", one[0], (other,))
        raise UnprovableError(f"expected equal sizes, found {'*'.join(x)} and {'*'.join(y)}")

    def _cut(self, whole: Segment, first: Segment, rest: int) -> None:
        if len(whole) != 1 or not self.is_free(whole[0]):
            raise UnprovableError(f"expected an axis that can be cut after {'*'.join(first)}, found {'*'.join(whole)}")
        name = f"{whole[0]}-{'*'.join(first)}"
        if rest != 1:
            self.example[name] = rest
        self.refine("cut", whole[0], (first, () if rest == 1 else (name,)))

    def is_free(self, atom: str) -> bool:
        """Whether an atom is a size that may still be refined."""
        return not atom.isdigit() and atom not in self._derived

    def divide(self, atom: str, first: str, rest: int) -> None:
        """Make an atom the product of another one and of a rest, which is the outer or the inner factor alike."""
        name = f"{atom}/{first}"
        segment = () if rest == 1 else (name,)
        if rest != 1:
            self.example[name] = rest
        self.refine("product", atom, (segment,) * int(first) if first.isdigit() else ((first, *segment),))

    def fix(self, atom: str) -> None:
        """Make an atom the concrete size that it has in the example."""
        if not self.is_free(atom):
            raise UnprovableError(f"expected a size that the example fixes, found {atom}")
        self.refine("fixed", atom, ((str(self.example[atom]),),))

    def refine(self, kind: str, atom: str, axis: Axis) -> None:
        """Note what an atom is, and start again."""
        self.facts.append((kind, atom, " + ".join("*".join(s) or "1" for s in axis), self.phase))
        self._refined[atom] = axis
        raise Refined

    def describe(self, phase: str) -> list[str]:
        """Return the facts of a phase as text, but for the numbers that operators needed."""
        return [f"{atom} = {became}" for kind, atom, became, asked in self.facts if asked == phase and kind != "fixed"]

    def fixed(self) -> list[str]:
        """Return the sizes that operators needed as numbers."""
        return [f"{atom} = {became}" for kind, atom, became, _ in self.facts if kind == "fixed"]


def is_concrete(segment: Segment) -> bool:
    """Whether a segment's size is a number."""
    return all(a.isdigit() for a in segment)
