"""Certifying a file: every rule is shown, in processes if wanted; what was shown before a run was ended isn't lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from taso_gym.atomic import write_text
from taso_gym.checks import check_path
from taso_gym.errors import EquivalenceError, ModelError, OptionError
from taso_gym.rules.files import reader_of
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import rule_digest
from taso_substitutions.verify.certificates import LEAST_ERROR, Row, certificate, read_rows, sidecar_of
from taso_substitutions.verify.levels import assess
from taso_substitutions.verify.trial import Counterexample

CODE = ("taso_gym.ops", "taso_gym.rules", "taso_substitutions.verify")
"""Packages that decide what a row says."""


class Mapped(Protocol):
    """Maps a function over items, as ``map`` does, in the order of the items; maybe in other processes."""

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any], /) -> Iterable[Any]:
        """Return the results."""
        ...


class Progress(Protocol):
    """What is told how many rules of a file are done."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Be told."""
        ...


class Work(NamedTuple):
    """A rule that is to be shown, and how it is tested."""

    rule: Rule
    instances: int
    draws: int
    seed: int


class Shown(NamedTuple):
    """What became of it: its row, or why there is none."""

    row: Row | None
    fault: str


def show(work: Work) -> Shown:
    """Show a rule."""
    try:
        found = assess(work.rule, instances=work.instances, draws=work.draws, seed=work.seed)
    except EquivalenceError as error:
        return Shown(None, str(error))
    except ModelError as error:  # an operator that can't be computed
        return Shown(None, f"{work.rule.name}: {error}")
    return Shown(None, str(found)) if isinstance(found, Counterexample) else Shown(certificate(found), "")


def certify(
    path: str | Path,
    *,
    instances: int = 24,
    draws: int = 2,
    seed: int = 0,
    mapped: Mapped = map,
    progress: Progress | None = None,
) -> Path:
    """Show every rule of a file and write its certificates beside it, all or none.

    Rows are kept in ``<sidecar>.part`` as they come. The next call takes them from there, if the code, the rule and the
    settings are the same, so that a call that was ended, or met a false rule, costs no more than what it lacks.

    Args:
        path: a rule file.
        instances: how many are sampled for each rule.
        draws: sets of values for each instance, in each arithmetic.
        seed: of instances and values.
        mapped: what shows the rules.
        progress: is told of each rule.

    Returns:
        The sidecar, ``<stem>.certificates.jsonl``.

    Raises:
        RuleError: the file can't be read.
        OptionError: it is no path.
        EquivalenceError: rules are false, or can't be tested; the message holds a counterexample of each.
    """
    source = check_path(path, "the path of a rule file")
    rules = reader_of(source)(source)
    sidecar, part = sidecar_of(source), part_of(source)
    header = json.dumps({"code": code_digest(), "instances": instances, "draws": draws, "seed": seed})
    rows = _kept(part, header)
    work = [Work(rule, instances, draws, seed) for rule in rules if rule_digest(rule) not in rows]
    faults: list[str] = []
    write_text(part, "".join(f"{line}\n" for line in (header, *map(json.dumps, rows.values()))))
    for done, shown in enumerate(mapped(show, work), len(rules) - len(work) + 1):
        if shown.row is None:
            faults.append(shown.fault)
        else:
            rows[shown.row["rule"]] = shown.row
            with part.open("a", encoding="utf-8") as file:
                file.write(json.dumps(shown.row) + "\n")
        if progress:
            progress(f"show {source.stem}", done, len(rules))
    if faults:
        raise EquivalenceError("\n".join(faults))
    write_text(sidecar, "".join(json.dumps({**rows[rule_digest(r)], "name": r.name}) + "\n" for r in rules))
    part.unlink()
    return sidecar


def part_of(path: Path) -> Path:
    """Return the file of the rows of a file that isn't certified to its end."""
    sidecar = sidecar_of(path)
    return sidecar.with_name(f"{sidecar.name}.part")


@cache
def code_digest(packages: tuple[str, ...] = CODE) -> str:
    """Return a hash of the code of packages, by default those that decide what a row says."""
    roots = [Path(str(resources.files(name))) for name in packages]
    texts = [
        f"{file.name}\n{file.read_text(encoding='utf-8')}" for root in roots for file in sorted(root.rglob("*.py"))
    ]
    return blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()


def _kept(part: Path, header: str) -> dict[str, Row]:
    """Return the rows, by the digests of their rules, of a call that was ended, if it was one with this header."""
    if not part.is_file():
        return {}
    first, *lines = part.read_bytes().splitlines(keepends=True) or [b""]
    if first != f"{header}\n".encode():
        return {}
    try:
        whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return {row["rule"]: row for row in whole}
    except (ValueError, KeyError, TypeError):  # damaged: all rules are shown
        return {}


def recheck(path: str | Path, *, mapped: Mapped = map, progress: Progress | None = None) -> list[str]:
    """Show every rule of a file again and return where its certificates say something else.

    Args:
        path: a rule file.
        mapped: what shows the rules.
        progress: is told of each rule.

    Raises:
        RuleError: the file or its certificates can't be read.
        OptionError: it is no path.
        EquivalenceError: a rule can't be tested any more.
    """
    source = check_path(path, "the path of a rule file")
    stated = read_rows(sidecar_of(source))
    rules = reader_of(source)(source)
    work = [(rule, stated.get(rule_digest(rule))) for rule in rules]
    differences: list[str] = []
    for done, found in enumerate(mapped(differences_of, work), 1):
        differences += found
        if progress:
            progress(f"recheck {source.stem}", done, len(rules))
    return differences + list(_stale(rules, stated))


def _stale(rules: Sequence[Rule], stated: Mapping[str, Row]) -> Iterator[str]:
    known = {rule_digest(rule) for rule in rules}
    for digest, row in stated.items():
        if digest not in known:
            yield f"{row['name']}: expected no certificate, since there is no such rule"


def differences_of(work: tuple[Rule, Row | None]) -> list[str]:
    """Return what a certificate says that isn't so, or doesn't say."""
    rule, row = work
    if row is None:
        return [f"{rule.name}: expected a certificate, found none"]
    try:
        t3 = row["t3"]
        found = assess(rule, instances=int(t3["instances"]), draws=int(t3["draws"]), seed=int(t3["seed"]))
    except (KeyError, TypeError, ValueError, OptionError) as error:
        return [f"{rule.name}: expected a certificate with a test, found {row.get('t3')!r} ({error})"]
    if isinstance(found, Counterexample):
        return [str(found)]
    again = json.loads(json.dumps(certificate(found)))
    return [
        f"{rule.name}: expected {name} {json.dumps(row.get(name))}, found {json.dumps(again.get(name))}"
        for name in dict.fromkeys([*again, *row])
        if not _agree(name, row.get(name), again.get(name))
    ]


def _agree(name: str, stated: Any, found: Any) -> bool:
    """Whether a field says what was found; errors may be a power of ten apart, as CPUs sum in different orders.

    The least that is stated may be none elsewhere: with vectors of another width functions round otherwise.
    """
    if name == "error" and isinstance(stated, float) and isinstance(found, float):
        least, most = sorted((stated, found))
        return most < 11 * least or most <= LEAST_ERROR
    return stated == found
