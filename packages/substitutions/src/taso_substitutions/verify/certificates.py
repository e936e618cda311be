"""Certificates: what was shown about each rule of a file, in a sidecar of JSON lines beside it.

A row is keyed by the digest of what the rule claims, so that a rule that is changed has none until it is shown again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from taso_gym.atomic import write_text
from taso_gym.errors import EquivalenceError
from taso_gym.rules.ruleset import reader_of, rule_digest
from taso_substitutions.verify.testing import Counterexample, Passed, check_rule

LEAST_ERROR = 1e-15
"""Errors below are stated as this: they differ from machine to machine."""


def certify(path: str | Path, *, instances: int = 24, draws: int = 2, seed: int = 0) -> Path:
    """Test every rule of a file and write its certificates beside it, all or none.

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
    rows: list[dict[str, Any]] = []
    for rule in reader_of(source)(source):
        found = check_rule(rule, instances=instances, draws=draws, seed=seed)
        if isinstance(found, Counterexample):
            raise EquivalenceError(str(found))
        rows.append(certificate(found))
    sidecar = source.with_name(f"{source.stem}.certificates.jsonl")
    write_text(sidecar, "".join(json.dumps(row) + "\n" for row in rows))
    return sidecar


def certificate(tested: Passed) -> dict[str, Any]:
    """Return the row of a rule that passed."""
    return {
        "rule": rule_digest(tested.rule),
        "name": tested.rule.name,
        "status": "tested",
        "numerics": tested.rule.numerics,
        "t3": {
            "method": tested.method,
            "p": tested.prime,
            "tests": tested.tests,
            "seed": tested.seed,
            "dims": {"ranks": list(tested.ranks), "sizes": list(tested.sizes)},
        },
        "error": stated_error(tested.error),
    }


def stated_error(error: float) -> float:
    """Return a power of ten that bounds a relative error, at least `LEAST_ERROR`; 0 for none."""
    return 0.0 if error == 0 else 10.0 ** math.ceil(math.log10(max(error, LEAST_ERROR)) - 1e-9)
