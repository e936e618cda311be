"""Rule files of a generation: sorted, with names that follow from what a rule says, and a header that says how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from taso_gym.atomic import write_text
from taso_gym.errors import OptionError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import operators_of
from taso_gym.rules.unparse import unparse, unparse_body
from taso_substitutions import __version__
from taso_substitutions.minimise import ITERATIONS
from taso_substitutions.pipeline import CHECK_ITERATIONS, Generated

FULL, BASIS = "full", "basis"
WORDS = 3
"""Operators that a name mentions."""


def rule_name(rule: Rule) -> str:
    """Return a name that follows from what a rule says: its first operators and a hash."""
    words = list(dict.fromkeys(call.op.lower() for call in calls_of((*rule.lhs, *rule.rhs))))[:WORDS]
    digest = blake2b(unparse_body(rule).encode(), digest_size=4).hexdigest()
    return "-".join([*words, digest])


def named_lines(groups: Iterable[Sequence[str]]) -> list[str]:
    """Return the rules of groups as lines, each once, sorted by what they say."""
    rules = {unparse_body(r): r for group in groups for line in group for r in parse_rules(line)}
    ordered = sorted(rules.items(), key=lambda item: (len(operators_of(item[1].lhs)), len(item[0]), item[0]))
    return [_renamed(rule, rule_name(rule)) for _, rule in ordered]


def _renamed(rule: Rule, name: str) -> str:
    return unparse(Rule(name, rule.lhs, rule.rhs, rule.conditions, rule.numerics, rule.any_type))


def header(found: Generated, what: str, command: str, ops: int, lines: int) -> list[str]:
    """Return the comment lines at the top of a rule file."""
    operators = sorted({i.key for r in found.results for i in r.fragment.instances})
    totals: Mapping[str, int] = {k: sum(r.counts[k] for r in found.results) for k in found.results[0].counts}
    bounds = [
        f"{r.fragment.name}: {', '.join(f'{n}[{t}]' for n, t in r.fragment.inputs.items())} with "
        + " and ".join("/".join(f"{k}={v}" for k, v in sorted(sizes.items())) for sizes in r.fragment.sizes)
        for r in found.results
    ]
    return [
        f"# {what}, written by taso-substitutions {__version__}: {command}",
        f"# {lines} rules. {len(operators)} operators: {', '.join(operators)}.",
        *(f"# Fragment {line}." for line in bounds),
        "# Equalities: " + ", ".join(f"{count} {name}" for name, count in totals.items()) + ".",
        f"# Basis: {len(distinct(found.short))} statements for {len(found.basis)} equalities.",
        f"# Completeness: all equalities of DAGs of up to {ops} operators over a fragment at its sizes were found;",
        f"# the basis of each, chosen at {ITERATIONS} iterations of saturation, derives them in {CHECK_ITERATIONS},",
        f"# but for {len(found.exceptions)} that exceptions.txt lists.",
    ]


def distinct(groups: Iterable[Sequence[str]]) -> set[tuple[str, ...]]:
    """Return the groups that say something, each once."""
    return {tuple(group) for group in groups if group}


def check_writable(folder: Path, *, force: bool) -> None:
    """Raise `OptionError` if a rule file is there already and isn't to be replaced, or the folder can't be made."""
    for name in (FULL, BASIS):
        file = folder / f"{name}.rules"
        if file.exists() and not force:
            raise OptionError(f"expected no file at {file}, found one: --force replaces it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"expected a folder to write into, found {folder}: {error.strerror}") from error


def write(found: Generated, folder: Path, command: str, ops: int) -> dict[str, int]:
    """Write ``full.rules``, ``basis.rules`` and ``exceptions.txt``; return the number of rules of each set."""
    counts: dict[str, int] = {}
    for name, what, groups in (
        (FULL, "All most general rules", [*found.full, *found.short]),
        (BASIS, "Rules that derive all others", found.short),
    ):
        lines = named_lines(groups)
        text = "\n".join([*header(found, what, command, ops, len(lines)), "", *lines])
        write_text(folder / f"{name}.rules", f"{text}\n")
        counts[name] = len(lines)
    write_text(folder / "exceptions.txt", "".join(f"{line}\n" for line in found.exceptions))
    return counts
