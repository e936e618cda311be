"""Axes of symbolic size: concatenations of segments, which are products of atoms."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from taso_gym.errors import TasoError

Segment = tuple[str, ...]
"""A product of atoms, row-major; () has size 1. An atom of digits is that number; one in front is never of digits."""
Axis = tuple[Segment, ...]
"""A concatenation of segments; a number k is k segments ()."""

UNIT: Axis = ((),)


class UnprovableError(TasoError):
    """A rule, or an operator in it, that this prover has no index form for, or whose sides differ.

    Attributes:
        atoms: sizes that would help if they were numbers.
    """

    def __init__(self, text: str, atoms: Iterable[str] = ()) -> None:
        """Say what was expected and found."""
        super().__init__(text)
        self.atoms = tuple(dict.fromkeys(atoms))


def spread(segment: Segment) -> Axis:
    """Return a product as an axis: numbers in front become that many equal segments."""
    count = 0
    while count < len(segment) and segment[count].isdigit():
        count += 1
    return (segment[count:],) * prod(map(int, segment[:count]))


def folded(axis: Axis) -> Segment | None:
    """Return an axis of equal segments as a product, or None where they differ."""
    if len(axis) == 1:
        return axis[0]
    return (str(len(axis)), *axis[0]) if len(set(axis)) == 1 else None


def is_number(axis: Axis) -> bool:
    """Whether the size of an axis is a number."""
    return not any(axis)


def atoms_of(axes: Iterable[Axis]) -> list[str]:
    """Return the atoms in axes, but for numbers."""
    return [a for axis in axes for segment in axis for a in segment if not a.isdigit()]
