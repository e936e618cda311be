"""Plans merged by their common beginnings; where a register is filled, the signature found there chooses what follows.

So a step through the graph is taken once for all patterns that take it, and only tests of patterns whose node has the
right operator are carried out. The branches below a choice are made when a signature first turns up there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from taso_gym.rules.labels import Labels
from taso_gym.rules.plan import EMIT, IN, USE, VAR, Instruction, Search
from taso_gym.signature import Signature

FILLING = frozenset({IN, USE, VAR})

Branch = tuple[int, int, Any, Any, Any, Any]
"""An instruction padded to five fields, without the label if it fills a register; then a `Switch` on the signature that
was found if it does, and else the branches that follow, as `Later`."""


class Switch(dict[Signature, tuple[Branch, ...]]):
    """Signature of the node that a register was filled with -> the branches that follow."""

    def __init__(self, labels: Labels, mask: int, choose: Callable[[int], Iterable[Sequence[Instruction]]]) -> None:
        """Choose among plans; ``choose`` returns those whose label is among some bits of ``mask``."""
        super().__init__()
        self._labels, self._mask, self._choose = labels, mask, choose
        self._made: dict[int, tuple[Branch, ...]] = {}

    @classmethod
    def of(cls, labels: Labels, searches: Sequence[Search]) -> Switch:
        """Choose among searches by the label of their anchor; those that never begin are never planned."""
        of: dict[int, list[Search]] = {}
        for search in searches:
            of.setdefault(search.bit, []).append(search)
        return cls(labels, sum(of), lambda bits: [search.plan for bit in of if bit & bits for search in of[bit]])

    def __missing__(self, sig: Signature) -> tuple[Branch, ...]:
        """Merge the plans whose label the signature has."""
        bits = self._labels[sig] & self._mask
        if bits not in self._made:
            self._made[bits] = merge(self._labels, self._choose(bits)) if bits else ()
        self[sig] = self._made[bits]
        return self[sig]


class Later:
    """Branches behind a test, merged when the test is first passed.

    Attributes:
        made: the branches; empty before that.
    """

    __slots__ = ("_labels", "_plans", "made")

    def __init__(self, labels: Labels, plans: list[Sequence[Instruction]]) -> None:
        """Hold what remains of the plans."""
        self._labels, self._plans = labels, plans
        self.made: tuple[Branch, ...] = ()

    def make(self) -> tuple[Branch, ...]:
        """Merge the plans."""
        self.made = merge(self._labels, self._plans)
        return self.made


def merge(labels: Labels, plans: Iterable[Sequence[Instruction]]) -> tuple[Branch, ...]:
    """Return plans as branches, merged where they begin alike: tests first, then steps, in the order of the plans."""
    tests: dict[Instruction, list[Sequence[Instruction]]] = {}
    steps: dict[Instruction, list[tuple[int, Sequence[Instruction]]]] = {}
    for plan in plans:
        head, tail = plan[0], plan[1:]
        if head[0] in FILLING:
            steps.setdefault(head[:-1], []).append((head[-1], tail))
        else:
            tests.setdefault(head, []).append(tail)
    branches: list[Branch] = [(*_padded(i), None if i[0] == EMIT else Later(labels, rest)) for i, rest in tests.items()]
    branches += [(*_padded(i), _switch(labels, rest)) for i, rest in steps.items()]
    return tuple(branches)


def _switch(labels: Labels, choices: list[tuple[int, Sequence[Instruction]]]) -> Switch:
    mask = 0
    for bit, _ in choices:
        mask |= bit
    return Switch(labels, mask, lambda bits: [plan for bit, plan in choices if bit & bits])


def _padded(instruction: Instruction) -> tuple[int, int, Any, Any, Any]:
    padding: Instruction = (None,) * (5 - len(instruction))
    code, a, b, c, d = instruction + padding
    return code, a, b, c, d
