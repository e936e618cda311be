"""Names of generated graphs, and which are for training, validation and test; see `generated` for what they are."""

from __future__ import annotations

from typing import NamedTuple

from taso_gym.checks import check_whole
from taso_gym.errors import OptionError

PREFIX = "generated/"
FAMILIES = ("elementwise", "linear", "convolution", "attention", "gated")
HELD_OUT = ("attention", "gated")
"""Families that no training split has; they share their rules with the others, but not their architecture."""
_KNOWN = tuple(family for family in FAMILIES if family not in HELD_OUT)


class Split(NamedTuple):
    """Some of the generated graphs.

    Attributes:
        families: their names.
        seeds: of each family.
    """

    families: tuple[str, ...]
    seeds: range


SPLITS: dict[str, Split] = {
    "train": Split(_KNOWN, range(10_000)),
    "validation": Split(_KNOWN, range(10_000, 11_000)),
    "test": Split(_KNOWN, range(11_000, 12_000)),
    "held-out": Split(HELD_OUT, range(1_000)),
}
"""Name -> split; no two have a graph in common."""


def names(split: str, count: int) -> list[str]:
    """Return the names of the first graphs of a split, its families in turn.

    Raises:
        OptionError: no such split, or more than it has.
    """
    if split not in SPLITS:
        raise OptionError(f"expected a split among {', '.join(SPLITS)}, found {split!r}")
    families, seeds = SPLITS[split]
    check_whole(count=count)
    if not 0 < count <= len(families) * len(seeds):
        raise OptionError(f"expected 1 to {len(families) * len(seeds)} graphs of {split}, found {count}")
    turns = [divmod(i, len(families)) for i in range(count)]
    return [f"{PREFIX}{families[family]}/{seeds[turn]}" for turn, family in turns]


def is_generated(name: object) -> bool:
    """Whether a model's name is that of a generated graph."""
    return isinstance(name, str) and name.startswith(PREFIX)
