"""Rule files of a generation: sorted, with names that follow from what a rule says, and a header that says how."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from taso_gym.atomic import check_target, write_text
from taso_gym.errors import OptionError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import operators_of
from taso_gym.rules.unparse import unparse, unparse_body
from taso_substitutions import __version__
from taso_substitutions.generation.pipeline import Generated
from taso_substitutions.verify.certificates import sidecar_of

FULL, BASIS = "full", "basis"
EXCEPTIONS = "exceptions.txt"
VARIABLE = re.compile(r"\b[a-z]\w*\b(?!=)(?!\()")
"""A name that is neither an attribute's nor a function's."""
WORDS_OF_CONDITIONS = frozenset({"and", "or", "not", "in", "opset"})
WORDS = 3
"""Operators that a name mentions."""


def rule_name(rule: Rule) -> str:
    """Return a name that follows from what a rule says: its first operators and a hash."""
    words = list(dict.fromkeys(call.op.lower() for call in calls_of((*rule.lhs, *rule.rhs))))[:WORDS]
    digest = blake2b(unparse_body(rule).encode(), digest_size=4).hexdigest()
    return "-".join([*words, digest])


def named_lines(groups: Iterable[Sequence[str]]) -> list[str]:
    """Return the rules of groups as lines, each once, sorted by what they say; what holds both ways is one line."""
    rules = {unparse_body(r): r for group in groups for line in group for r in parse_rules(line)}
    ordered = sorted(rules.items(), key=lambda item: (len(operators_of(item[1].lhs)), len(item[0]), item[0]))
    lines: list[str] = []
    backward: dict[str, int] = {}
    for _, rule in ordered:
        claim = f"{rule.numerics} {rule.any_type} "
        place = backward.get(claim + _anonymous(rule))
        if place is not None and "<=>" not in lines[place]:
            lines[place] = lines[place].replace(" => ", " <=> ")
            continue
        backward.setdefault(claim + _anonymous(replace(rule, lhs=rule.rhs, rhs=rule.lhs)), len(lines))
        lines.append(unparse(Rule(rule_name(rule), rule.lhs, rule.rhs, rule.conditions, rule.numerics, rule.any_type)))
    return lines


def _anonymous(rule: Rule) -> str:
    """Return what a rule says with its variables numbered by first use, and its conditions in order."""
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"v{len(names)}") if match[0] not in WORDS_OF_CONDITIONS else match[0]

    body, _, conditions = unparse_body(rule).partition(" if ")
    sides = VARIABLE.sub(number, body)
    return " if ".join([sides, *sorted(VARIABLE.sub(number, c) for c in conditions.split(" and ") if c)])


def header(found: Generated, what: str, command: str, ops: int, rules: int, lines: int) -> list[str]:
    """Return the comment lines at the top of a rule file.

    Args:
        found: what was generated, of which the file is a part.
        what: what the file's rules are.
        command: the command line that made it.
        ops: most operators of a graph that was enumerated.
        rules: directed rules in the file.
        lines: lines of it that hold rules; one with ``<=>`` is two rules.
    """
    operators = sorted({i.key for r in found.results for i in r.fragment.instances})
    totals: Mapping[str, int] = {k: sum(r.counts[k] for r in found.results) for k in found.results[0].counts}
    bounds = [
        f"{r.fragment.name}, up to {ops} operators: "
        + ", ".join(f"{n}[{t}]" for n, t in r.fragment.inputs.items())
        + " with "
        + " and ".join("/".join(f"{k}={v}" for k, v in sorted(sizes.items())) for sizes in r.fragment.sizes)
        for r in found.results
    ]
    return [
        f"# {what}{_written_by(command)}",
        f"# {rules} rules in {lines} lines. {len(operators)} operators: {', '.join(operators)}.",
        *(f"# Fragment {line}." for line in bounds),
        "# Equalities: " + ", ".join(f"{count} {name}" for name, count in totals.items()) + ".",
        "# Completeness: all equalities of DAGs of as many operators over a fragment at its sizes were found, and",
        f"# the {len(found.basis)} statements of basis.rules derive them, but for {len(found.exceptions)} that",
        "# exceptions.txt lists.",
    ]


def check_writable(folder: Path, *, force: bool, resumed: str = "") -> None:
    """Make sure that the files of a generation can be written, before hours of work.

    Args:
        folder: where they go; made if it isn't there.
        force: replace files that are there.
        resumed: replace those that this version wrote for this command line, too.

    Raises:
        OptionError: one is there and isn't to be replaced, or can't be written, or the folder can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"expected a folder to write into, found {folder}: {error.strerror}") from error
    rules = {name: folder / f"{name}.rules" for name in (FULL, BASIS)}
    beside = {sidecar_of(file): file for file in rules.values()} | {folder / EXCEPTIONS: rules[BASIS]}
    for file, said_by in ({file: file for file in rules.values()} | beside).items():
        there = os.path.exists(check_target(file))
        if there and not force and not (resumed and _is_of(said_by, resumed)):
            other = " of other options or another version" if resumed else ""
            raise OptionError(f"expected no file at {file}, found one{other}: --force replaces it")


def _is_of(file: Path, command: str) -> bool:
    """Whether a rule file's header says that this version wrote it for a command line."""
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.readline().endswith(f"{_written_by(command)}\n")
    except (OSError, UnicodeDecodeError):
        return False


def _written_by(command: str) -> str:
    return f", written by taso-substitutions {__version__}: {command}"


def write(found: Generated, folder: Path, command: str, ops: int) -> dict[str, int]:
    """Write ``full.rules``, ``basis.rules`` and ``exceptions.txt``; return the number of rules of each set."""
    counts: dict[str, int] = {}
    short = [statement.lines for statement in found.basis]
    for name, what, groups in (
        (FULL, "All most general rules", [*found.full, *short]),
        (BASIS, "Rules that derive all others", short),
    ):
        lines = named_lines(groups)
        counts[name] = len(parse_rules("\n".join(lines)))
        text = "\n".join([*header(found, what, command, ops, counts[name], len(lines)), "", *lines])
        write_text(folder / f"{name}.rules", f"{text}\n")
    write_text(folder / EXCEPTIONS, "".join(f"{line}\n" for line in found.exceptions))
    return counts
