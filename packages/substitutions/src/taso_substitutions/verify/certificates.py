"""Certificates: what was shown about each rule of a file, in a sidecar of JSON lines beside it.

A row is keyed by the digest of what the rule claims, so that a rule that is changed has none until it is shown again.
docs/proofs.md says what the levels mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from taso_gym.errors import EquivalenceError, RuleError
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import rule_digest
from taso_substitutions.verify.levels import Bounded, Evidence, Symbolic, assess
from taso_substitutions.verify.trial import Counterexample

LEAST_ERROR = 1e-15
"""Errors below are stated as this: they differ from machine to machine."""
FIELDS = frozenset({"rule", "name", "status", "numerics", "axioms", "small_model", "t1", "t2", "t3", "error"})
"""Of a row."""
Row = dict[str, Any]


def sidecar_of(path: Path) -> Path:
    """Return the file of a rule file's certificates."""
    return path.with_name(f"{path.stem}.certificates.jsonl")


def certificates(rules: Iterable[Rule]) -> list[Row]:
    """Return the row of each rule.

    Raises:
        EquivalenceError: a rule is false, or can't be tested.
    """
    rows: list[Row] = []
    for rule in rules:
        found = assess(rule)
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


def outdated(row: Mapping[str, Any]) -> bool:
    """Whether a row hasn't the fields of a certificate: it was written by another version, and says less or other."""
    wanted = {"t1": Symbolic, "t2": Bounded}
    parts = [(row.get(name), {f.name for f in fields(kind)}) for name, kind in wanted.items()]
    return frozenset(row) != FIELDS or any(found is not None and set(found) != names for found, names in parts)


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
