"""Tests of the shipped rules, and mutants of them, in pieces that a killed run of the same code doesn't repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from support.cells import cell
from support.mutants import rules_digest, tally

from taso_gym.errors import EquivalenceError
from taso_gym.rules.files import generated_sets, package_sets
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify.certifying import code_digest
from taso_substitutions.verify.testing import check_rule
from taso_substitutions.verify.trial import Counterexample

FIRST_SEED = 1000
MUTANTS = 5000
"""Of a piece."""
PIECES = 4
"""That a process makes: what is known of the types that it meets is kept as long as it lives."""
INSTANCES, DRAWS = 24, 4
"""Of each rule in a piece: shapes and attributes, and sets of values for each."""


def sound(tests: int, jobs: int, folder: Path) -> None:
    """Test every shipped rule at random shapes, attributes and values, seed after seed, and print what was found."""
    folder /= code_digest()[:12]
    names = [*package_sets(), *generated_sets()]
    pieces = _mapped(_tested, [(folder, name, FIRST_SEED) for name in names], jobs)
    of_seed, rules = (sum(piece[name] for piece in pieces) for name in ("tests", "rules"))
    seeds = range(FIRST_SEED, FIRST_SEED - (-tests // of_seed))
    print(f"  {of_seed} tests of {rules} rules with each of {len(seeds)} seeds", flush=True)
    pieces += _mapped(_tested, [(folder, name, seed) for seed in seeds[1:] for name in names], jobs)
    failures = [text for piece in pieces for text in piece["failures"]]
    untested = Counter(text for piece in pieces for text in piece["untested"])
    total, spent = (sum(piece[name] for piece in pieces) for name in ("tests", "cpu_s"))
    print(f"  {total} tests of {rules} rules, {len(failures)} failures, cpu_s {spent:.0f}; {_versions(pieces)} of code")
    print("\n".join([*failures, *(f"{name} isn't tested with {n} seeds" for name, n in untested.items())]))


def mutate(count: int, jobs: int, folder: Path) -> None:
    """Show and test mutants of true rules, and print where the prover and the tests disagree."""
    folder /= f"{code_digest()[:12]}-{rules_digest()[:12]}"
    pieces = _mapped(_mutated, [(folder, seed) for seed in range(1, -(-count // MUTANTS) + 1)], jobs)
    names = ("mutants", "proved", "refuted", "undecided", "ill_formed")
    totals = ", ".join(f"{sum(piece[name] for piece in pieces)} {name}" for name in names)
    spent, peak = sum(piece["cpu_s"] for piece in pieces), max(piece["peak_mib"] for piece in pieces)
    disagreements = [text for piece in pieces for text in piece["disagreements"]]
    print(f"  {totals}; {len(disagreements)} disagreements; cpu_s {spent:.0f}, peak_mib {peak:.0f}")
    print(f"  {_versions(pieces)} of code and rules")
    print("\n".join(disagreements))


def _mapped(function: Callable[..., Any], work: Sequence[tuple[Any, ...]], jobs: int) -> list[Any]:
    with get_context("spawn").Pool(jobs, maxtasksperchild=PIECES) as pool:
        return pool.starmap(partial(_told, function), work, chunksize=1)


def _told(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function; what would end the worker, for which a pool waits for ever, is an error like others.

    Raises:
        ValueError: the function raised SystemExit.
    """
    try:
        return function(*given)
    except SystemExit as error:
        raise ValueError(str(error)) from error


def _versions(pieces: Sequence[dict[str, Any]]) -> str:
    """Return of how many versions pieces are: several, if files were changed meanwhile."""
    count = len({piece["version"] for piece in pieces})
    return "one version" if count == 1 else f"{count} versions"


def _tested(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """Test the rules of a file with a seed, as they are shipped at the moment."""
    rules = RuleSet.load(name, numerics="fast")
    settings = {"rules": rules.digest, "instances": INSTANCES, "draws": DRAWS, "seed": seed}
    return cell(folder / f"{name}-{rules.digest[:8]}", f"seed-{seed}", settings, lambda: _tests(rules, seed))


def _tests(rules: RuleSet, seed: int) -> dict[str, Any]:
    version, count, failures, untested = code_digest(), 0, list[str](), list[str]()
    for rule in rules:
        try:
            found = check_rule(rule, instances=INSTANCES, draws=DRAWS, seed=seed)
        except EquivalenceError:  # most instances of this seed compute nothing: empty slices
            untested.append(rule.name)
            continue
        if isinstance(found, Counterexample):
            failures.append(str(found))
        count += 1 if isinstance(found, Counterexample) else found.tests
    return {"rules": len(rules), "tests": count, "failures": failures, "untested": untested, "version": version}


def _mutated(folder: Path, seed: int) -> dict[str, Any]:
    def measure() -> dict[str, Any]:
        found = {"version": f"{code_digest()} {rules_digest()}", **tally(MUTANTS, seed).as_dict()}
        return found | {"peak_mib": getrusage(RUSAGE_SELF).ru_maxrss / 1024}

    return cell(folder, f"seed-{seed}", {"mutants": MUTANTS, "seed": seed}, measure)
