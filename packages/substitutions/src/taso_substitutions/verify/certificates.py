"""Certificates: what was shown about each rule of a file, in a sidecar of JSON lines beside it.

A row is keyed by the digest of what the rule claims, so that a rule that is changed has none until it is shown again.
docs/proofs.md says what the levels mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taso_gym.atomic import write_text
from taso_gym.errors import EquivalenceError, RuleError
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import reader_of, rule_digest
from taso_substitutions.verify.levels import Evidence, assess
from taso_substitutions.verify.testing import Counterexample

LEAST_ERROR = 1e-15
"""Errors below are stated as this: they differ from machine to machine."""
Row = dict[str, Any]


def certify(path: str | Path, *, instances: int = 24, draws: int = 2, seed: int = 0) -> Path:
    """Show every rule of a file and write its certificates beside it, all or none.

    Args:
        path: a rule file.
        instances: how many are sampled for each rule.
        draws: sets of values for each instance, in each arithmetic.
        seed: of instances and values.

    Returns:
        The sidecar, ``<stem>.certificates.jsonl``.

    Raises:
        RuleError: the file can't be read.
        EquivalenceError: a rule is false, or can't be tested; the message holds the counterexample.
    """
    source = Path(path)
    rows = certificates(reader_of(source)(source), instances=instances, draws=draws, seed=seed)
    sidecar = sidecar_of(source)
    write_text(sidecar, "".join(json.dumps(row) + "\n" for row in rows))
    return sidecar


def sidecar_of(path: Path) -> Path:
    """Return the file of a rule file's certificates."""
    return path.with_name(f"{path.stem}.certificates.jsonl")


def certificates(rules: Iterable[Rule], *, instances: int = 24, draws: int = 2, seed: int = 0) -> list[Row]:
    """Return the row of each rule.

    Raises:
        EquivalenceError: a rule is false, or can't be tested.
    """
    rows: list[Row] = []
    for rule in rules:
        found = assess(rule, instances=instances, draws=draws, seed=seed)
        if isinstance(found, Counterexample):
            raise EquivalenceError(str(found))
        rows.append(certificate(found))
    return rows


def certificate(evidence: Evidence) -> Row:
    """Return the row of a rule."""
    tested = evidence.tested
    dims = {"ranks": list(tested.ranks), "sizes": list(tested.sizes)}
    t3 = {"method": tested.method, "p": tested.prime, "tests": tested.tests, "seed": tested.seed, "dims": dims}
    t3 |= {"instances": tested.instances, "draws": evidence.draws}
    return {
        "rule": rule_digest(tested.rule),
        "name": tested.rule.name,
        "status": evidence.status,
        "numerics": tested.rule.numerics,
        "axioms": list(evidence.axioms),
        "small_model": evidence.small_model,
        "t1": None if evidence.symbolic is None else asdict(evidence.symbolic),
        "t2": None if evidence.bounded is None else asdict(evidence.bounded),
        "t3": t3,
        "error": stated_error(tested.error),
    }


def stated_error(error: float) -> float:
    """Return a power of ten that bounds a relative error, at least `LEAST_ERROR`; 0 for none."""
    return 0.0 if error == 0 else 10.0 ** math.ceil(math.log10(max(error, LEAST_ERROR)) - 1e-9)


def recheck(path: str | Path) -> list[str]:
    """Show every rule of a file again and return where its certificates say something else.

    Raises:
        RuleError: the file or its certificates can't be read.
        EquivalenceError: a rule can't be tested any more.
    """
    source = Path(path)
    stated = read_rows(sidecar_of(source))
    differences: list[str] = []
    rules = reader_of(source)(source)
    for rule in rules:
        row = stated.get(rule_digest(rule))
        if row is None:
            differences.append(f"{rule.name}: expected a certificate, found none")
        else:
            differences += _differences(rule, row)
    known = {rule_digest(rule) for rule in rules}
    stale = [row["name"] for digest, row in stated.items() if digest not in known]
    return differences + [f"{name}: expected no certificate, since there is no such rule" for name in stale]


def _differences(rule: Rule, row: Mapping[str, Any]) -> list[str]:
    try:
        t3 = row["t3"]
        found = assess(rule, instances=int(t3["instances"]), draws=int(t3["draws"]), seed=int(t3["seed"]))
    except (KeyError, TypeError, ValueError) as error:
        return [f"{rule.name}: expected a certificate with a test, found {row.get('t3')!r} ({error})"]
    if isinstance(found, Counterexample):
        return [str(found)]
    again = json.loads(json.dumps(certificate(found)))
    return [
        f"{rule.name}: expected {name} {json.dumps(row.get(name))}, found {json.dumps(again.get(name))}"
        for name in dict.fromkeys([*again, *row])
        if again.get(name) != row.get(name)
    ]


def read_rows(sidecar: Path) -> dict[str, Row]:
    """Return digest -> row of a file of certificates.

    Raises:
        RuleError: it can't be read.
    """
    rows: dict[str, Row] = {}
    try:
        lines = sidecar.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"expected certificates in {sidecar}, found {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows[str(row["rule"])] = row
            str(row["name"])
        except (ValueError, KeyError, TypeError) as error:
            where = f"{sidecar.name}:{number}"
            raise RuleError("expected a certificate as a JSON object", line=line, where=where) from error
    return rows
