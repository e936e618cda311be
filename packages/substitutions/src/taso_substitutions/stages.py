"""The stages of the generation as pure functions: what they return depends on their argument only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from taso_gym.rules.unparse import unparse
from taso_substitutions.candidates import Classes, candidates
from taso_substitutions.encoding import decode, encode
from taso_substitutions.enumerate import enumerate_fragment
from taso_substitutions.fragments import Fragment
from taso_substitutions.generalise import Generaliser
from taso_substitutions.lift import lifted
from taso_substitutions.minimise import derivable
from taso_substitutions.statement import split_rule, state
from taso_substitutions.terms import Equality

SMALL = 3
"""Operators up to which every candidate is proved; larger ones only if the basis of the small doesn't derive them."""


class Enumerate(NamedTuple):
    """Argument of `enumerated`: a fragment with its letters bound, and the most operators."""

    fragment: Fragment
    ops: int


@dataclass(frozen=True)
class Found:
    """Result of `enumerated`.

    Attributes:
        counts: as TASO's table 3 states them: "graphs", "tensors", "raw" equalities, those "modulo renaming" of inputs,
            and after removal of a "common subgraph".
        small, large: equalities of DAGs of up to `SMALL` operators, and of larger ones, as `encode` writes them.
    """

    counts: Mapping[str, int]
    small: list[str] = field(repr=False)
    large: list[str] = field(repr=False)


class Generalise(NamedTuple):
    """Argument of `generalised`: encoded equalities, and the letters' sizes in the example that proofs start from."""

    equalities: Sequence[str]
    example: tuple[tuple[str, int], ...]


class Decide(NamedTuple):
    """Argument of `decided`: encoded equalities, and the rules that they may follow from."""

    equalities: Sequence[str]
    rules: Sequence[Equality]
    iterations: int


class State(NamedTuple):
    """Argument of `stated`.

    Attributes:
        equality: a most general equality.
        example: the letters' sizes in the example that proofs start from.
        lift: whether to state it for all attributes, where that can be shown, and with its multi-output form.
    """

    equality: Equality
    example: tuple[tuple[str, int], ...]
    lift: bool


def enumerated(work: Enumerate) -> Found:
    """Enumerate a fragment and return its equalities."""
    table, evaluator = enumerate_fragment(work.fragment, work.ops)
    classes = Classes(work.fragment, table, evaluator.trivial)
    found = list(candidates(classes))
    counts = {
        "graphs": sum(table.dags),
        "tensors": len(table),
        "raw": len(table) - len(np.unique(table.value)),
        "modulo renaming": int(classes.is_pair.sum()),
        "common subgraph": len(found),
    }
    small, large = ([encode(e) for size, e in found if (size > SMALL) is above] for above in (False, True))
    return Found(counts, small, large)


@cache
def _generaliser(example: tuple[tuple[str, int], ...]) -> Generaliser:
    return Generaliser(dict(example))


def generalised(work: Generalise) -> list[Equality | None]:
    """Return the most general form of each equality; None where it can't be proved."""
    generaliser = _generaliser(work.example)
    return [generaliser.run(decode(text)) for text in work.equalities]


def decided(work: Decide) -> list[bool]:
    """Return which equalities follow from the rules."""
    return derivable([decode(text) for text in work.equalities], work.rules, work.iterations)


def stated(work: State) -> list[str]:
    """Return the rules of an equality as lines whose name is still to be given; none where none can be shown."""
    generaliser = _generaliser(work.example)
    general = generaliser.proofs(work.equality)
    if not work.lift:
        return [unparse(rule) for rule in state(general, "rule")]
    lines = lifted(general, "rule") or [unparse(rule) for rule in state(general, "rule")]
    split = split_rule(general, generaliser, "split")
    return [*lines, *([unparse(split)] if split else [])]
