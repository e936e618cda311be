"""The generation: stages over fragments, each resumable, on any engine, with the same result everywhere.

enumerate → generalise → minimise → derive for each fragment by itself; fragments are what ``--shard`` divides. Larger
equalities are proved only if the basis of the smaller ones doesn't derive them. Then the rules are stated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from taso_gym.atomic import write_text
from taso_gym.rules.ruleset import read_rules
from taso_substitutions import __version__
from taso_substitutions.encoding import decode, encode
from taso_substitutions.engine import Engine
from taso_substitutions.fragments import Fragment
from taso_substitutions.minimise import BATCH, basis
from taso_substitutions.stages import (
    Decide,
    Enumerate,
    Found,
    Generalise,
    State,
    decided,
    enumerated,
    generalised,
    stated,
)
from taso_substitutions.terms import Equality
from taso_substitutions.verify.certificates import certificates, sidecar_of
from taso_substitutions.work import WorkFolder, digest_of

PROVED_AT_A_TIME = 50
DERIVED_AT_A_TIME = 5 * BATCH
CHECK_ITERATIONS = 4
Item = TypeVar("Item")


class Progress(Protocol):
    """What is told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Be told."""
        ...


@dataclass(frozen=True)
class FragmentResult:
    """What was found in a fragment.

    Attributes:
        fragment: inputs and operators.
        counts: number of graphs and equalities after each stage.
        general: the most general equalities of up to three operators, and larger ones that those don't derive.
        basis: those of them that derive all others.
        exceptions: what the basis doesn't derive, and what isn't proved.
    """

    fragment: Fragment
    counts: dict[str, int]
    general: list[Equality]
    basis: list[Equality]
    exceptions: list[str]


@dataclass(frozen=True)
class Generated:
    """What a generation found.

    Attributes:
        results: fragment by fragment.
        basis: equalities that derive all others, with the fragment that they were found in.
        exceptions: equalities that the basis doesn't derive within the iterations of the check, or that aren't proved.
        full, short: lines of the full set and of the basis, without names; a group for each equality.
    """

    results: list[FragmentResult]
    basis: list[tuple[str, Equality]]
    exceptions: list[str]
    full: list[list[str]]
    short: list[list[str]]


class Pipeline:
    """Runs the stages.

    Args:
        engine: where the work is done.
        work: where results are kept.
        progress: told how far each stage is.
    """

    def __init__(self, engine: Engine, work: WorkFolder, progress: Progress) -> None:
        self.engine, self.work, self.progress = engine, work, progress

    def fragments(self, fragments: Sequence[Fragment], ops: int) -> list[FragmentResult]:
        """Run the stages that concern one fragment."""
        keys = {f.name: digest_of(__version__, f, ops) for f in fragments}
        missing = [f for f in fragments if not self.work.has(f"{f.name}.general", keys[f.name])]
        missing = [f for f in missing if not self.work.has(f"{f.name}.candidates", keys[f.name])]
        made = self._map("enumerate", enumerated, [Enumerate(f, ops) for f in missing])
        return [self._fragment(f, keys[f.name], made) for f in fragments]

    def _found(self, fragment: Fragment, key: str, made: Iterator[Found]) -> Found:
        """Return what was enumerated: the next one that is made, or what the work folder has."""

        def make() -> list[str]:
            found = next(made)
            return [json.dumps([found.counts, len(found.small)]), *found.small, *found.large]

        head, *rows = self.work.lines(f"{fragment.name}.candidates", key, make)
        counts, small = json.loads(head)
        return Found(counts, rows[:small], rows[small:])

    def _fragment(self, fragment: Fragment, key: str, made: Iterator[Found]) -> FragmentResult:
        def make() -> list[str]:
            found = self._found(fragment, key, made)
            kinds = self._general(fragment, found)
            return [json.dumps([found.counts, [len(rows) for rows in kinds]]), *chain(*kinds)]

        head, *rows = self.work.lines(f"{fragment.name}.general", key, make)
        counts, lengths = json.loads(head)
        kinds = [[decode(next(left)) for _ in range(n)] for left in [iter(rows)] for n in lengths]
        general, chosen, underived, unproved = kinds
        exceptions = [f"underived: {e.body}" for e in underived] + [f"unproved: {e.body}" for e in unproved]
        counts["most general"] = len({e.body for e in [*general, *chosen]})
        return FragmentResult(fragment, counts, [*general, *chosen], chosen, exceptions)

    def _general(self, fragment: Fragment, found: Found) -> list[list[str]]:
        """Return the most general equalities outside the basis, the basis, what it doesn't derive, and the unproved."""
        general, unproved = self._generalise(fragment, found.small)
        given = self._basis(fragment.name, list(general.values()))
        failed = set(unproved)
        underived = [text for text in self._underived(fragment.name, found.small, given) if text not in failed]
        waiting = sorted(self._underived(fragment.name, found.large, given), key=lambda text: (len(text), text))
        while waiting:
            some = waiting[: max(200, len(waiting) // 4)]
            new, failures = self._generalise(fragment, some)
            given = [*given, *self._basis(fragment.name, [new[k] for k in sorted(new) if k not in general])]
            general |= new
            unproved += failures
            waiting = self._underived(fragment.name, waiting[len(some) :], given)
        chosen = {e.key for e in given}
        rest, short = (
            [encode(general[k]) for k in sorted(general) if (k in chosen) is wanted] for wanted in (False, True)
        )
        return [rest, short, sorted(underived), sorted(unproved)]

    def _generalise(self, fragment: Fragment, equalities: Sequence[str]) -> tuple[dict[str, Equality], list[str]]:
        example = tuple(sorted(fragment.example().items()))
        work = [Generalise(part, example) for part in _parts(equalities, PROVED_AT_A_TIME)]
        results = chain.from_iterable(self._map(f"{fragment.name}: prove", generalised, work))
        general: dict[str, Equality] = {}
        unproved: list[str] = []
        for text, found in zip(equalities, results, strict=True):
            if found is None:
                unproved.append(text)
            else:
                general[found.key] = found
        return general, unproved

    def _basis(self, name: str, equalities: Sequence[Equality]) -> list[Equality]:
        total = len(equalities)
        return basis(equalities, lambda left: self.progress(f"{name}: minimise", total - left, total))

    def _underived(self, name: str, equalities: Sequence[str], rules: Sequence[Equality]) -> list[str]:
        """Return the equalities that don't follow from rules: the direct check of completeness."""
        work = [Decide(part, rules, CHECK_ITERATIONS) for part in _parts(equalities, DERIVED_AT_A_TIME)]
        known = chain.from_iterable(self._map(f"{name}: derive", decided, work))
        return [text for text, done in zip(equalities, known, strict=True) if not done]

    def finish(self, results: Sequence[FragmentResult], most: int) -> Generated:
        """Join what was found in the fragments and state it as rules.

        Args:
            results: of all fragments.
            most: how many of the most general equalities are stated, smallest first.
        """
        origin = {e.key: r.fragment for r in reversed(results) for e in r.general}
        every = {e.key: e for r in results for e in r.general}
        key = digest_of(__version__, sorted(every), most)
        chosen = list({e.key: e for r in results for e in r.basis}.values())
        exceptions = sorted(f"{r.fragment.name}, {line}" for r in results for line in r.exceptions)
        short = self._state("state the basis", "short", key, chosen, origin, lift=True)
        bodies = {e.body: e for e in sorted(every.values(), key=lambda e: (e.size, e.key), reverse=True)}
        distinct = sorted(bodies.values(), key=lambda e: (e.size, e.reorders, e.key))
        full = self._state("state all", "full", key, distinct[:most], origin, lift=False)
        return Generated(list(results), [(origin[e.key].name, e) for e in chosen], exceptions, full, short)

    def _state(
        self,
        title: str,
        stage: str,
        key: str,
        equalities: Sequence[Equality],
        origin: dict[str, Fragment],
        *,
        lift: bool,
    ) -> list[list[str]]:
        work = [State(e, tuple(sorted(origin[e.key].example().items())), lift) for e in equalities]
        rows = self.work.lines(f"rules.{stage}", key, lambda: [json.dumps(r) for r in self._map(title, stated, work)])
        return [json.loads(row) for row in rows]

    def certify(self, path: Path) -> None:
        """Write the certificates of a rule file beside it."""
        rules = [[rule] for rule in read_rules(path)]
        key = digest_of(__version__, path.read_text(encoding="utf-8"))
        name = f"certificates.{path.stem}"
        rows = self.work.lines(
            name, key, lambda: [json.dumps(r) for part in self._map(name, certificates, rules) for r in part]
        )
        write_text(sidecar_of(path), "".join(f"{row}\n" for row in rows))

    def _map(self, title: str, function: Callable[[Item], Any], items: Sequence[Item]) -> Iterator[Any]:
        for number, result in enumerate(self.engine.map(function, items), 1):
            self.progress(title, number, len(items))
            yield result


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
