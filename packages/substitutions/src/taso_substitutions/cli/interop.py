"""``taso-gen-subst import`` and ``export``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from taso_gym.atomic import check_targets, write_bytes, write_text
from taso_gym.console import console
from taso_gym.errors import EquivalenceError, OptionError, RuleError
from taso_gym.rules.files import READERS, files_of, reader_of
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.taso_pb import read_file
from taso_gym.rules.taso_wire import serialize
from taso_gym.rules.unparse import unparse
from taso_substitutions.cli.generate import CORES, Display, Jobs
from taso_substitutions.generation.engine import engine
from taso_substitutions.interop.judge import TasoWork, Verdict, judge, judge_taso
from taso_substitutions.interop.taso_export import record_of
from taso_substitutions.interop.tensat import read_tensat
from taso_substitutions.verify.certificates import Row, certificates, sidecar_of

SUFFIXES = (*READERS, ".txt")
"""Of files that are imported."""


def import_rules(
    file: Annotated[Path, typer.Argument(help="A .rules file, TASO's .pb, or TENSAT's .txt.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help=".rules file for those that hold.")] = None,
    force: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    jobs: Jobs = CORES,
) -> None:
    """Prove each rule of a file, refute it by a counterexample, or add the precondition that it lacks."""
    if file.suffix not in SUFFIXES:
        raise RuleError(f"expected a rule file ({', '.join(SUFFIXES)}), found {str(file)!r}")
    if output is not None:
        kept = {file: "is to be imported"}
        _check_output(output, sidecar_of(output), suffix=".rules", kept=kept, force=force)
    with Display() as display, engine("processes", jobs) as running:
        if file.suffix in (".pb", ".txt"):
            records = read_file(file) if file.suffix == ".pb" else read_tensat(file)
            work = [TasoWork(record, i, file.name) for i, record in enumerate(records)]
            results = running.map(judge_taso, work)
            total = len(work)
        else:
            rules = reader_of(file)(file)
            results, total = running.map(judge, rules), len(rules)
        verdicts: list[Verdict] = []
        for verdict in results:
            verdicts.append(verdict)
            display("decide", len(verdicts), total)
        if not verdicts:
            raise RuleError(f"expected rules in {file}, found none")
        report(verdicts)
        console.print(f"decided in {running.cpu_s:.0f} s of CPU time", highlight=False)
        if output is not None:
            rules = [v.rule for v in verdicts if v.rule is not None]
            shown = list(zip(rules, running.map(certified, rules), strict=True))
            held = [(rule, row) for rule, row in shown if not isinstance(row, str)]
            for rule, fault in shown:
                if isinstance(fault, str):
                    text = f"{rule.name}: left out, as its certificate refutes it: {fault}"
                    console.print(text, highlight=False, markup=False, soft_wrap=True)
            write_text(output, "".join(f"{unparse(rule)}\n" for rule, _ in held))
            write_text(sidecar_of(output), "".join(f"{json.dumps(row)}\n" for _, row in held))
            console.print(f"{len(held)} rules that hold are in {output}, with certificates")


def _check_output(output: Path, *beside: Path, suffix: str, kept: Mapping[Path, str], force: bool) -> None:
    """Make sure that a file and those beside it can be written, and replace nothing that is to be kept.

    Args:
        output: the file.
        beside: others that are written with it.
        suffix: that it has to have.
        kept: files that are read, as in `check_targets`.
        force: replace what else is there.
    """
    check_targets(output, *beside, kept=kept)
    if output.suffix != suffix:
        raise OptionError(f"expected the name of a {suffix} file to write, found {output}")
    for path in (output, *beside):
        if path.exists() and not force:
            raise OptionError(f"expected no file at {path}, found one: --force replaces it")


def certified(rule: Rule) -> Row | str:
    """Return the certificate of a rule, or why it has none: it is false after all, or can't be tested."""
    try:
        return certificates([rule])[0]
    except EquivalenceError as error:
        return str(error)


def report(verdicts: Sequence[Verdict]) -> None:
    """Print what became of rules."""
    for verdict in verdicts:
        if verdict.outcome in ("refuted", "undecided") or verdict.added:
            needs = f": holds if {' and '.join(verdict.added)}" if verdict.added else ""
            console.print(f"{verdict.name}: {verdict.outcome}{needs}", highlight=False, markup=False, soft_wrap=True)
            if verdict.counterexample:
                console.print(f"  {verdict.counterexample}", highlight=False, markup=False, soft_wrap=True)
    counts = Counter(f"{v.outcome}{' with a precondition added' if v.added else ''}" for v in verdicts)
    console.print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())) + f" of {len(verdicts)}")


def export(
    source: Annotated[str, typer.Argument(help="A rule set of the package, or a rule file.")],
    output: Annotated[Path, typer.Argument(help="TASO rule file to write, .pb.")],
    force: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
) -> None:
    """Write rules in TASO's format, those that it can express."""
    kept = dict.fromkeys(files_of(source), "is to be exported")
    _check_output(output, suffix=".pb", kept=kept, force=force)
    rules: list[Rule] = list(RuleSet.load(source, numerics="fast"))
    found = [record for rule in rules if (record := record_of(rule)) is not None]
    if not found:
        raise OptionError(f"expected rules that TASO's format can express, found none in {source}")
    write_bytes(output, serialize(found))
    others = "; the others say what the format can't" if len(found) < len(rules) else ""
    console.print(f"{len(found)} of {len(rules)} rules are in {output}{others}", soft_wrap=True)
