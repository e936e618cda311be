"""The stages of the generation as pure functions: what they return depends on their argument only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from taso_gym.rules.notation import parse_rules
from taso_substitutions.derivation.closure import Closure
from taso_substitutions.derivation.everywhere import everywhere
from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.equalities.candidates import Classes
from taso_substitutions.equalities.encoding import decode, encode
from taso_substitutions.equalities.generalise import Generaliser
from taso_substitutions.equalities.terms import Equality
from taso_substitutions.generation.search import SMALL, Found, search, stated


class Searching(NamedTuple):
    """Argument of `searched`: a fragment with its letters bound, and the most operators."""

    fragment: Fragment
    ops: int


class Generalise(NamedTuple):
    """Argument of `generalised`: encoded equalities, and the letters' sizes in the example that proofs start from."""

    equalities: Sequence[str]
    example: tuple[tuple[str, int], ...]


class Relate(NamedTuple):
    """Argument of `related`: a fragment, the most operators, and the rules of statements."""

    fragment: Fragment
    ops: int
    statements: Sequence[tuple[str, ...]]


class State(NamedTuple):
    """Argument of `stated_rules`: a most general equality, and the sizes of the example that proofs start from."""

    equality: Equality
    example: tuple[tuple[str, int], ...]


def searched(work: Searching) -> Found:
    """Search a fragment for a basis."""
    return search(work.fragment, work.ops)


@cache
def _generaliser(example: tuple[tuple[str, int], ...]) -> Generaliser:
    return Generaliser(dict(example))


def generalised(work: Generalise) -> list[str | None]:
    """Return the most general form of each equality; None where it can't be proved."""
    generaliser = _generaliser(work.example)
    found = (generaliser.run(decode(text)) for text in work.equalities)
    return [encode(e) if e else None for e in found]


def related(work: Relate) -> list[list[str]]:
    """Return what each statement says in a fragment, as encoded equalities for each choice of types and attributes."""
    table, evaluator = enumerate_fragment(work.fragment, min(work.ops, SMALL))
    closure = Closure(Classes(work.fragment, table, evaluator.trivial), evaluator)
    types = list(dict.fromkeys(work.fragment.types.values()))
    found: list[list[str]] = []
    for lines in work.statements:
        rules = [rule for line in lines for rule in parse_rules(line)]
        said = (e for rule in rules for e in (*closure.edges(rule).instances, *everywhere(rule, types)))
        found.append(sorted(set(map(encode, said))))
    return found


def stated_rules(work: State) -> list[str]:
    """Return the rules of an equality as lines whose name is still to be given; none where none can be shown."""
    return stated(work.equality, dict(work.example), lift=False)
