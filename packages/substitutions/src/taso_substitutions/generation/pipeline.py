"""The generation: stages over fragments, each resumable, on any engine, with the same result everywhere.

A fragment is searched for statements that derive its equalities, and its smaller equalities are generalised; fragments
are what ``--shard`` divides. Then the statements of all fragments are minimised, and rules are stated and certified.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from taso_gym.atomic import write_text
from taso_gym.rules.files import read_rules
from taso_gym.rules.ruleset import rule_digest
from taso_gym.rules.unparse import unparse
from taso_substitutions import __version__
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.equalities.encoding import decode, encode
from taso_substitutions.equalities.terms import Equality
from taso_substitutions.generation.engine import Engine, spent_s
from taso_substitutions.generation.minimise import minimal, rank
from taso_substitutions.generation.search import Found, Statement
from taso_substitutions.generation.stages import (
    Generalise,
    Relate,
    Searching,
    State,
    generalised,
    related,
    searched,
    stated_rules,
)
from taso_substitutions.generation.work import WorkFolder, digest_of
from taso_substitutions.verify.certificates import Row, certificates, sidecar_of
from taso_substitutions.verify.certifying import CODE, code_digest

ALL_CODE = (
    *CODE,
    "taso_substitutions.derivation",
    "taso_substitutions.enumeration",
    "taso_substitutions.equalities",
    "taso_substitutions.generation",
)
"""Packages that decide what is found."""
PROVED_AT_A_TIME = 50
KEPT_AT_A_TIME = 100
"""Results that are written together, so that a run that is stopped loses few."""
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
        general: the most general equalities of up to three operators, and those of more that are statements.
        statements: they derive all others but the exceptions.
        exceptions: what isn't proved or can't be stated, as text.
    """

    fragment: Fragment
    counts: dict[str, int]
    general: list[Equality]
    statements: list[Statement]
    exceptions: list[str]


@dataclass(frozen=True)
class Generated:
    """What a generation found.

    Attributes:
        results: fragment by fragment.
        basis: statements that derive all equalities but the exceptions.
        exceptions: equalities that they don't derive, with their fragment.
        full: lines of the most general equalities, without names; a group for each equality.
    """

    results: list[FragmentResult]
    basis: list[Statement]
    exceptions: list[str]
    full: list[list[str]]


class Pipeline:
    """Runs the stages.

    Args:
        engine: where the work is done.
        work: where results are kept.
        progress: told how far each stage is.

    Attributes:
        took: stage -> its wall time and CPU time in seconds, without what was taken from the work folder.
    """

    def __init__(self, engine: Engine, work: WorkFolder, progress: Progress) -> None:
        self.engine, self.work, self.progress = engine, work, progress
        self.took: dict[str, tuple[float, float]] = {}
        self._certified: dict[str, Row] = {}

    def fragments(self, fragments: Sequence[Fragment], ops: int) -> list[FragmentResult]:
        """Run the stages that concern one fragment."""
        keys = {f.name: self.key(f, ops) for f in fragments}
        for name, key in keys.items():
            self.work.expect_same(f"{name}.found", key)
            self.work.expect_same(f"{name}.general", key)
        missing = self.missing(fragments, ops)
        found: dict[str, Found] = {}
        with self._timed("search"):
            made = self.engine.completed(searched, [Searching(f, ops) for f in missing])
            for number, (place, one) in enumerate(made, 1):  # each is kept at once, whatever becomes of the others
                self.progress("search", number, len(missing))
                name = missing[place].name
                found[name] = self._found(name, keys[name], one)
            found |= {f.name: self._found(f.name, keys[f.name]) for f in fragments if f.name not in found}
        with self._timed("prove"):
            return [self._result(f, keys[f.name], found[f.name]) for f in fragments]

    def missing(self, fragments: Sequence[Fragment], ops: int) -> list[Fragment]:
        """Return those whose search isn't in the work folder."""
        return [f for f in fragments if not self.work.has(f"{f.name}.found", self.key(f, ops))]

    @staticmethod
    def key(fragment: Fragment, ops: int) -> str:
        """Return the digest of all that a search depends on."""
        return digest_of(__version__, code_digest(ALL_CODE), fragment, ops)

    def _found(self, name: str, key: str, found: Found | None = None) -> Found:
        """Return what a search found, as the work folder keeps it; without ``found``, what it has."""

        def make() -> list[str]:
            assert found is not None
            self._add_time("enumerate, part of search", 0.0, found.enumeration_s)
            statements = [
                json.dumps([encode(s.equality), s.lines, [encode(e) for e in s.instances]]) for s in found.statements
            ]
            kinds = [[encode(e) for e in some] for some in (found.small, found.exceptions)]
            lengths = [len(statements), *map(len, kinds)]
            return [json.dumps([found.counts, lengths]), *statements, *chain(*kinds)]

        head, *rows = self.work.lines(f"{name}.found", key, make)
        counts, (first, *lengths) = json.loads(head)
        statements = [
            Statement(decode(text), tuple(lines), tuple(map(decode, instances)))
            for text, lines, instances in map(json.loads, rows[:first])
        ]
        left = iter(rows[first:])
        small, exceptions = ([decode(next(left)) for _ in range(n)] for n in lengths)
        return Found(counts, small, statements, exceptions)

    def _result(self, fragment: Fragment, key: str, found: Found) -> FragmentResult:
        small = [encode(e) for e in found.small]
        example = tuple(sorted(fragment.example().items()))
        work = [Generalise(part, example) for part in _parts(small, PROVED_AT_A_TIME)]

        def make() -> list[str]:
            results = chain.from_iterable(self._map(f"{fragment.name}: prove", generalised, work))
            return sorted({text for text in results if text})

        every = {e.key: e for e in map(decode, self.work.lines(f"{fragment.name}.general", key, make))}
        every |= {s.equality.key: s.equality for s in found.statements}
        general = [every[k] for k in sorted(every)]
        counts = {**found.counts, "most general": len({e.body for e in general}), "statements": len(found.statements)}
        exceptions = sorted({f"{e.body} for {', '.join(map(str, e.types))}" for e in found.exceptions})
        return FragmentResult(fragment, counts, general, found.statements, exceptions)

    def finish(self, results: Sequence[FragmentResult], ops: int, most: int) -> Generated:
        """Join what was found in the fragments and state it as rules.

        Args:
            results: of all fragments.
            ops: most operators of a graph.
            most: how many of the most general equalities are stated, smallest first.

        Raises:
            OptionError: the work folder has results of other fragments or options, which would be lost.
        """
        key = digest_of(*(self.key(r.fragment, ops) for r in results))
        key_of_rules = digest_of(key, most)
        work = _smallest(results, most)
        self.work.expect_same("basis", key)
        self._expect_same_parts("rules", key_of_rules, work)
        with self._timed("minimise"):
            basis = self._basis(results, key, ops)
        with self._timed("state"):
            rows = self._in_parts("state all", "rules", key_of_rules, stated_rules, work)
        exceptions = [f"{r.fragment.name}: {line}" for r in results for line in r.exceptions]
        return Generated(list(results), basis, exceptions, rows)

    def _basis(self, results: Sequence[FragmentResult], key: str, ops: int) -> list[Statement]:
        every = {s.key: s for r in results for s in r.statements}
        keys = sorted(every, key=lambda k: rank(every[k]))

        def make() -> list[str]:
            work = [Relate(r.fragment, ops, [every[k].lines for k in keys]) for r in results]
            said = self._map("relate", related, work)
            uses = {r.fragment.name: dict(zip(keys, rows, strict=True)) for r, rows in zip(results, said, strict=True)}
            own = {r.fragment.name: r.statements for r in results}
            return [
                json.dumps(k) for k in minimal(own, uses, lambda done, total: self.progress("minimise", done, total))
            ]

        return [every[json.loads(row)] for row in self.work.lines("basis", key, make)]

    def certify(self, path: Path) -> None:
        """Write the certificates of a rule file beside it; a rule of a file before has its certificate.

        Raises:
            OptionError: the work folder has certificates of other rules, which would be lost.
        """
        every = read_rules(path)
        rules = [[rule] for rule in every if rule_digest(rule) not in self._certified]
        key = digest_of(__version__, code_digest(), [unparse(rule) for rule in every])
        name = f"certificates.{path.stem}"
        self._expect_same_parts(name, key, rules)
        with self._timed("certify"):
            rows = chain.from_iterable(self._in_parts(f"certify {path.stem}", name, key, certificates, rules))
            self._certified |= {row["rule"]: row for row in rows}
        shown = [{**self._certified[rule_digest(rule)], "name": rule.name} for rule in every]
        write_text(sidecar_of(path), "".join(f"{json.dumps(row)}\n" for row in shown))

    def _expect_same_parts(self, name: str, key: str, items: Sequence[object]) -> None:
        for begin in _begins(items):
            self.work.expect_same(f"{name}.{begin}", key)

    def _in_parts(
        self, title: str, name: str, key: str, function: Callable[[Item], Any], items: Sequence[Item]
    ) -> list[Any]:
        """Return the results for items; those of each `KEPT_AT_A_TIME` are a file of the work folder."""
        rows: list[str] = []
        for begin in _begins(items):
            part = items[begin : begin + KEPT_AT_A_TIME]
            made = self._map(title, function, part, begin, len(items))
            rows += self.work.lines(f"{name}.{begin}", key, lambda made=made: list(map(json.dumps, made)))
        return list(map(json.loads, rows))

    @contextmanager
    def _timed(self, stage: str) -> Generator[None]:
        wall, cpu = time.perf_counter(), spent_s(self.engine)
        yield
        self._add_time(stage, time.perf_counter() - wall, spent_s(self.engine) - cpu)

    def _add_time(self, stage: str, wall: float, cpu: float) -> None:
        before = self.took.get(stage, (0.0, 0.0))
        self.took[stage] = before[0] + wall, before[1] + cpu

    def _map(
        self, title: str, function: Callable[[Item], Any], items: Sequence[Item], begin: int = 0, total: int = 0
    ) -> Iterator[Any]:
        for number, result in enumerate(self.engine.map(function, items), 1):
            self.progress(title, begin + number, total or len(items))
            yield result


def _smallest(results: Sequence[FragmentResult], most: int) -> list[State]:
    """Return the smallest of the most general equalities of fragments, each with the example of its first fragment."""
    origin = {e.key: r.fragment for r in reversed(results) for e in r.general}
    every = {e.key: e for r in results for e in r.general}
    bodies = {e.body: e for e in sorted(every.values(), key=lambda e: (e.size, e.key), reverse=True)}
    distinct = sorted(bodies.values(), key=lambda e: (e.size, e.reorders, e.key))
    return [State(e, tuple(sorted(origin[e.key].example().items()))) for e in distinct[:most]]


def _begins(items: Sequence[object]) -> range:
    """Return where parts of items begin; where there are none, an empty part says so."""
    return range(0, max(1, len(items)), KEPT_AT_A_TIME)


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
