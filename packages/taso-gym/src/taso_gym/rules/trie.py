"""Plans merged by their common beginnings; where a register is filled, the signature found there chooses what follows.

So a step through the graph is taken once for all patterns that take it, and only tests of patterns whose node has the
right operator are carried out. The branches below a choice are made when a signature first turns up there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from taso_gym.rules.labels import Labels
from taso_gym.rules.plan import IN, USE, VAR, Instruction
from taso_gym.signature import Signature

FILLING = frozenset({IN, USE, VAR})

Branch = tuple[int, Any, Any, Any, Any, Any]
"""An instruction padded to five fields, without the label if it fills a register; then a `Switch` on the signature that
was found if it does, and else the branches that follow."""


class Switch(dict[Signature, tuple[Branch, ...]]):
    """Signature of the node that a register was filled with -> the branches that follow."""

    def __init__(self, labels: Labels, plans: Iterable[tuple[int, Sequence[Instruction]]]) -> None:
        """Choose among plans; each comes with the bit of the label that the node must have."""
        super().__init__()
        self._labels, self._plans = labels, list(plans)
        self._made: dict[int, tuple[Branch, ...]] = {}
        self._mask = 0
        for bit, _ in self._plans:
            self._mask |= bit

    def __missing__(self, sig: Signature) -> tuple[Branch, ...]:
        """Merge the plans whose label the signature has."""
        bits = self._labels[sig] & self._mask
        if bits not in self._made:
            self._made[bits] = merge(self._labels, [plan for bit, plan in self._plans if bit & bits])
        self[sig] = self._made[bits]
        return self[sig]


def merge(labels: Labels, plans: Iterable[Sequence[Instruction]]) -> tuple[Branch, ...]:
    """Return plans as branches, merged where they begin alike, in the order of the plans."""
    filling: dict[Instruction, list[tuple[int, Sequence[Instruction]]]] = {}
    testing: dict[Instruction, list[Sequence[Instruction]]] = {}
    for plan in plans:
        head, tail = plan[0], plan[1:]
        if head[0] in FILLING:
            filling.setdefault(head[:-1], []).append((head[-1], tail))
        else:
            testing.setdefault(head, []).append(tail)
    tests: list[Branch] = [(*_padded(i), merge(labels, filter(None, rest))) for i, rest in testing.items()]
    steps: list[Branch] = [(*_padded(i), Switch(labels, rest)) for i, rest in filling.items()]
    return (*tests, *steps)


def _padded(instruction: Instruction) -> tuple[int, Any, Any, Any, Any]:
    code, a, b, c, d = (*instruction, None, None, None, None)[:5]
    return code, a, b, c, d
