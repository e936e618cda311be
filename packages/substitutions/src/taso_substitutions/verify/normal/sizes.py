"""Symbolic sizes, refined until both sides of a rule agree.

A proof begins with one atom for each dimension of each input, and a concrete example that says which atoms have which
size. Where an operator asks for two equal axes, the atoms are unified; where one axis is a concatenation and the other
is whole, the whole one is cut; where a Reshape needs it, an atom becomes a product. Each of these is a `Refined`
exception: the evaluation starts again with the refined inputs. So what remains in the end is the most general typing
that the example allows (principal typing), and no size that is equal by accident is taken to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, prod

from taso_gym.symbolic import Dim, Poly, floor_div, product, quotient_of, symbol
from taso_substitutions.verify.normal.axes import UNIT, Axis, Segment, UnprovableError, folded, spread
from taso_substitutions.verify.normal.factors import WorkExhaustedError
from taso_substitutions.verify.normal.polynomial import Polynomial, inverse, number

MAX_SEGMENTS = 512
"""Most segments of an axis: a size that is a number has one for each position."""


class Refined(Exception):  # noqa: N818 - a signal to start again, not an error
    """The sizes have been refined: evaluate again."""


class Sizes:
    """The atoms of one proof.

    Attributes:
        example: concrete size of each atom.
        facts: what atoms had to be, in order: ("=", "cut", "product" or "fixed", atom, what it became, phase).
        phase: who asks: "left", "condition" or "right"; set by the prover.
        number, inverse: what a number, and 1 / an element, are as elements; a module may know more about them.
        kept: sizes that mustn't become numbers only since an operator has no index form.
        numbers: those that did.
        trace: the example's sizes of the axes along which an operator does more than to map over them, or that are
            elements themselves, segment by segment, in the order in which operators ask for them.
    """

    def __init__(self, kept: frozenset[str] = frozenset()) -> None:
        self.kept, self.numbers = kept, list[str]()
        self.trace: list[tuple[int, ...]] = []
        self.example: dict[str, int] = {}
        self.facts: list[tuple[str, str, str, str]] = []
        self.phase = "left"
        self.number: Callable[[float | int], Polynomial] = number
        self.inverse: Callable[[Polynomial], Polynomial] = inverse
        self._refined: dict[str, Axis] = {}
        self._derived: dict[str, Poly] = {}
        self._order: dict[Dim, Axis] = {}
        self._dims: dict[Axis, Dim] = {}
        self._expansions: dict[Dim, Dim] = {}

    def fresh(self, name: str, size: int) -> Axis:
        """Return the axis of an input's dimension, as refined so far; size 1 is never generalised."""
        if size <= 1:
            return ((),) * size
        self.example.setdefault(name, size)
        return self._expand((name,))

    def _expand(self, segment: Segment) -> Axis:
        if len(segment) == 1:
            (atom,) = segment
            if atom in self._derived:
                return self.axis_of(self.expand(symbol(atom)))
            refined = self._refined.get(atom)
            return spread(segment) if refined is None else tuple(s for part in refined for s in self._expand(part))
        factors: list[str] = []
        for atom in segment:
            part = folded(self._expand((atom,)))
            if part is None:
                raise UnprovableError(f"expected factors that aren't cut, found {atom}")
            factors.extend(part)
        return spread(tuple(factors))

    def size_of(self, segment: Segment) -> int:
        """Return the example's size of a segment."""
        return prod(int(a) if a.isdigit() else self.example[a] for a in segment)

    def dim_of_atom(self, atom: str) -> Dim:
        """Return an atom as a dimension; a derived one stays a symbol, which `expand` replaces."""
        return int(atom) if atom.isdigit() else symbol(atom)

    def expand(self, dim: Dim) -> Dim:
        """Return a dimension over the sizes of the inputs only, multiples taken out of rounded quotients."""
        if isinstance(dim, int):
            return dim
        if dim not in self._expansions:
            total: Dim = 0
            for monomial, coefficient in dim.terms:
                total = total + product(map(self._expanded, monomial)) * coefficient
            self._expansions[dim] = total
        return self._expansions[dim]

    def _expanded(self, name: str) -> Dim:
        if name in self._derived:
            return self.expand(self._derived[name])
        if name in self._refined:
            return self.expand(self.dim(self._expand((name,))))
        quotient = quotient_of(name)
        return symbol(name) if quotient is None else _floor(*map(self.expand, quotient))

    def least(self, dim: Dim) -> float:
        """Return a lower bound of a dimension, given that sizes are at least 1."""
        if isinstance(dim, int):
            return dim
        for monomial, coefficient in dim.terms:
            quotient = quotient_of(monomial[0]) if len(monomial) == 1 else None
            if quotient and isinstance(quotient[1], int) and coefficient % quotient[1] == 0:
                lost = quotient[1] - 1 if coefficient > 0 else 0
                exact = (quotient[0] - lost) * (coefficient // quotient[1])
                return self.least(dim - symbol(monomial[0]) * coefficient + exact)
        if any(c < 0 for monomial, c in dim.terms if monomial):
            return -inf
        rounded = [m for m, _ in dim.terms if any(quotient_of(s) for s in m)]
        return sum(c for m, c in dim.terms if m not in rounded)

    def dim(self, axis: Axis) -> Dim:
        """Return the size of an axis as a dimension."""
        if axis in self._dims:
            return self._dims[axis]
        total: Dim = 0
        for segment in axis:
            total = total + product(self.dim_of_atom(a) for a in segment)
        if len(axis) > 1 or any(len(segment) > 1 for segment in axis):
            self._order[total] = axis
        self._dims[axis] = total
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
            return _few(((),) * dim)
        if dim in self._order:
            return self._order[dim]
        segments: list[Segment] = []
        for monomial, coefficient in dim.terms:
            known = all(s in self.example for s in monomial)
            if coefficient < 0 or not known or (not monomial and len(dim.terms) > 1):
                expanded = self.expand(dim)
                return (
                    self.axis_of(expanded)
                    if isinstance(expanded, int)
                    else ((self.atom_of(expanded, self.value(dim)),),)
                )
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
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            if x == y:
                continue
            m, n = self.size_of(x), self.size_of(y)
            self._number(x, b[i : i + m])
            self._number(y, a[i : i + n])
            if m == n:
                self.identify(x, y)
            elif m < n:
                self._cut(y, x, n - m)
            else:
                self._cut(x, y, m - n)
        raise UnprovableError(f"expected equal axes, found {self.dim(a)} and {self.dim(b)}")

    def _number(self, segment: Segment, others: Axis) -> None:
        """Make an atom the number that stands on the other side."""
        if len(segment) == 1 and self.is_free(segment[0]) and others == ((),) * self.size_of(segment):
            self.refine("=", segment[0], others)

    def identify(self, x: Segment, y: Segment) -> None:
        """Make two segments of one size in the example the same."""
        for one, other in ((x, y), (y, x)):
            if len(one) == 1 and self.is_free(one[0]) and one[0] not in other:
                self.refine("=" if len(other) <= 1 else "product", one[0], spread(other))
        raise UnprovableError(f"expected equal sizes, found {'*'.join(x) or 1} and {'*'.join(y) or 1}")

    def _cut(self, whole: Segment, first: Segment, rest: int) -> None:
        if len(whole) != 1 or not self.is_free(whole[0]):
            found = "*".join(whole)
            raise UnprovableError(
                f"expected an axis that can be cut after {'*'.join(first) or 1}, found {found}", whole
            )
        self.cut(whole[0], (first,), rest)

    def cut(self, atom: str, first: Axis, rest: int) -> None:
        """Make an atom the concatenation of segments and of a rest."""
        name = f"{atom}-{'*'.join(first[0]) or len(first)}"
        if rest > 1:
            self.example[name] = rest
        self.refine("cut", atom, (*first, *(((name,),) if rest > 1 else UNIT * rest)))

    def touch(self, axis: Axis) -> None:
        """Note that an operator does more with an axis than to map over it."""
        self.trace.append(tuple(map(self.size_of, axis)))

    def count(self, size: Poly) -> None:
        """Note that an operator computes with a size."""
        self.trace.append((self.value(size),))

    def is_free(self, atom: str) -> bool:
        """Whether an atom is a size that may still be refined."""
        return not atom.isdigit() and atom not in self._derived

    def divide(self, atom: str, first: str, rest: int) -> None:
        """Make an atom the product of another one, which is the outer factor, and of a rest."""
        name = f"{atom}/{first}"
        if rest != 1:
            self.example[name] = rest
        self.refine("product", atom, spread((first,) if rest == 1 else (first, name)))

    def fix(self, atom: str) -> None:
        """Make an atom the concrete size that it has in the example."""
        if not self.is_free(atom):
            raise UnprovableError(f"expected a size that the example fixes, found {atom}")
        self.refine("fixed", atom, ((),) * self.example[atom])

    def refine(self, kind: str, atom: str, axis: Axis) -> None:
        """Note what an atom is, and start again.

        Raises:
            UnprovableError: it would be defined by itself.
            WorkExhaustedError: it has too many segments.
        """
        _few(axis)
        if atom in self._depends_on(a for segment in axis for a in segment if not a.isdigit()):
            raise UnprovableError(f"expected a size that doesn't depend on itself, found {atom}")
        became = str(len(axis)) if not any(axis) else " + ".join("*".join(s) or "1" for s in axis)
        self.facts.append((kind, atom, became, self.phase))
        self._refined[atom] = axis
        self._expansions.clear()
        raise Refined

    def _depends_on(self, atoms: Iterable[str]) -> set[str]:
        """Return the inputs' atoms that atoms are computed from."""
        found: set[str] = set()
        for atom in atoms:
            dim = self._derived.get(atom, symbol(atom))
            found |= {atom} if atom not in self._derived else self._depends_on(dim.free_symbols)
        return found

    def describe(self, phase: str) -> list[str]:
        """Return the facts of a phase as text, but for the numbers that operators needed."""
        return [f"{atom} = {became}" for kind, atom, became, asked in self.facts if asked == phase and kind != "fixed"]

    def fixed(self) -> list[str]:
        """Return the sizes that operators needed as numbers."""
        return [f"{atom} = {became}" for kind, atom, became, _ in self.facts if kind == "fixed"]


def _few(axis: Axis) -> Axis:
    """Return an axis that hasn't too many segments."""
    if len(axis) > MAX_SEGMENTS:
        raise WorkExhaustedError(f"expected at most {MAX_SEGMENTS} segments of an axis, found {len(axis)}")
    return axis


def _floor(a: Dim, b: Dim) -> Dim:
    """Return floor(a / b), multiples of a number b taken out."""
    if isinstance(a, int) or not isinstance(b, int):
        return floor_div(a, b)
    whole: Dim = 0
    rest: Dim = 0
    for monomial, coefficient in a.terms:
        term = product(map(symbol, monomial))
        whole = whole + term * (coefficient // b)
        rest = rest + term * (coefficient % b)
    return whole + floor_div(rest, b)
