"""``taso-gen-subst recheck``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from taso_gym.console import console
from taso_gym.errors import EquivalenceError, RuleError
from taso_gym.rules.files import DEFAULT, files_of, generated_sets, reader_of
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.cli.generate import CORES, Display, Jobs
from taso_substitutions.generation.engine import Engine, engine
from taso_substitutions.verify import certify
from taso_substitutions.verify import recheck as replay
from taso_substitutions.verify.certificates import sidecar_of
from taso_substitutions.verify.certifying import part_of


def recheck(
    sources: Annotated[
        list[str] | None, typer.Argument(help="Rule files with their certificates beside them, or sets of the package.")
    ] = None,
    write: Annotated[bool, typer.Option(help="Write the certificates anew, if no rule is false.")] = False,
    jobs: Jobs = CORES,
) -> None:
    """Show every rule of files again and compare with their certificates, or write these; by default all shipped files.

    With --write, what was shown is kept if the run is ended, and the next one goes on.
    """
    files = [file for source in sources or [DEFAULT, *generated_sets()] for file in files_of(source)]
    counts = [len(reader_of(file)(file) if write else RuleSet.load(file, numerics="fast")) for file in files]
    lacking = [sidecar_of(file) for file in files if not write and not sidecar_of(file).is_file()]
    if lacking:
        raise RuleError(f"expected certificates in {lacking[0]}, found no such file: --write shows all rules")
    faults = list[str]()
    with Display() as display, engine("processes", jobs) as running:
        for file, count in zip(files, counts, strict=True):
            faults += _written(file, count, running, display) if write else _compared(file, count, running, display)
    where = f"{len(files)} files" if len(files) > 1 else "a file"
    console.print(f"{sum(counts)} rules of {where} took {running.cpu_s:.0f} s of CPU time")
    if faults:
        raise EquivalenceError("\n".join(faults))


def _written(file: Path, count: int, running: Engine, display: Display) -> Iterator[str]:
    """Certify a file; yield what is wrong with it."""
    try:
        certify(file, mapped=running.map, progress=display)
    except EquivalenceError as error:
        yield f"{error}\nno certificates are written; what holds is kept in {part_of(file)} for the next --write"
        return
    shown = Counter(RuleSet.load(file, numerics="fast").certificates.values())
    levels = ", ".join(f"{number} {status}" for status, number in sorted(shown.items()))
    console.print(f"{levels} of {count} rules: certificates are in {sidecar_of(file)}", soft_wrap=True)


def _compared(file: Path, count: int, running: Engine, display: Display) -> Iterator[str]:
    """Show the rules of a file; yield where its certificates say something else."""
    differences = replay(file, mapped=running.map, progress=display)
    if not differences:
        console.print(f"{count} rules of {file.name} are what their certificates say", soft_wrap=True)
    yield from differences
