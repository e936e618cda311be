"""``taso-gen-subst generate`` and ``merge``."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from taso_gym.checks import check_finite
from taso_gym.console import LONGEST, console, errors
from taso_gym.cost.machine import available_bytes
from taso_gym.errors import OptionError
from taso_substitutions.enumeration.enumerate import estimated_bytes
from taso_substitutions.enumeration.fragment import MOST_OPERATORS, Fragment
from taso_substitutions.enumeration.fragments import FRAGMENTS, chosen_fragments
from taso_substitutions.generation.engine import check_engine, engine
from taso_substitutions.generation.pipeline import Generated, Pipeline
from taso_substitutions.generation.store import check_writable, write
from taso_substitutions.generation.work import WorkFolder

FRAGMENT_NAMES = ", ".join(n if f.usual else f"{n} (not among all)" for n, f in FRAGMENTS.items())
CORES = os.cpu_count() or 1
Jobs = Annotated[int, typer.Option(help="Processes.", show_default="one a core", min=1)]
SIZE = rf"[1-9]\d{{0,{LONGEST - 1}}}"
MOST = 300
"""Equalities that full.rules states by default."""


def generate(
    max_shape: Annotated[str, typer.Option(help="Largest size on each axis, such as 4x4x4x4.")] = "4x4x4x4",
    ops: Annotated[int, typer.Option(help=f"Most operators in a graph: 1 to {MOST_OPERATORS}.")] = 4,
    fragments: Annotated[str, typer.Option(help=f"all, or by comma: {FRAGMENT_NAMES}.")] = "all",
    operators: Annotated[str, typer.Option(help="Operators that take part, by comma; all if empty.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the rule files.")] = Path("generated"),
    work: Annotated[Path | None, typer.Option(help="Folder for what stages find; OUTPUT/work by default.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with what is in the work folder.")] = False,
    force: Annotated[bool, typer.Option(help="Replace files that are there.")] = False,
    jobs: Jobs = CORES,
    engine_name: Annotated[str, typer.Option("--engine", help="processes, or ray for a cluster.")] = "processes",
    shard: Annotated[
        str, typer.Option(help="i/n: only each n-th fragment, from the i-th; `merge` does the rest.")
    ] = "",
    memory: Annotated[float, typer.Option(help="GiB that it may take; 0: what is available.", min=0)] = 0.0,
    most: Annotated[int, typer.Option(help="Most equalities that full.rules states, smallest first.", min=0)] = MOST,
    certificates: Annotated[bool, typer.Option(help="Certify what was found.")] = True,
) -> None:
    """Find all equalities between small graphs, prove them, and write full.rules and basis.rules."""
    chosen = _settings(max_shape, ops, fragments, operators)
    mine = _shard(chosen, shard)
    command = _command(max_shape, ops, fragments, operators, most)
    check_engine(engine_name, jobs)
    if not shard:
        check_writable(output, force=force, resumed=command if resume else "")
    folder = WorkFolder(work or output / "work", resume=resume, force=force)
    with Display() as display, engine(engine_name, jobs) as running:
        pipeline = Pipeline(running, folder, display)
        check_memory(pipeline.missing(mine, ops), ops, jobs, memory)
        if shard:
            pipeline.fragments(mine, ops)
        else:
            _finish(pipeline, mine, ops, most, output, command, certificates)
    _say_times(pipeline)
    if shard:
        console.print(f"shard {shard}: {', '.join(f.name for f in mine)} in {folder.path}; `merge` joins the shards")


def merge(
    work: Annotated[Path, typer.Argument(help="Work folder that holds what all shards found.")],
    max_shape: Annotated[str, typer.Option(help="As for `generate`.")] = "4x4x4x4",
    ops: Annotated[int, typer.Option(help="As for `generate`.")] = 4,
    fragments: Annotated[str, typer.Option(help="As for `generate`.")] = "all",
    operators: Annotated[str, typer.Option(help="As for `generate`.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the rule files.")] = Path("generated"),
    force: Annotated[bool, typer.Option(help="Replace files that are there.")] = False,
    jobs: Jobs = CORES,
    engine_name: Annotated[str, typer.Option("--engine", help="processes, or ray for a cluster.")] = "processes",
    most: Annotated[int, typer.Option(help="Most equalities that full.rules states, smallest first.", min=0)] = MOST,
    certificates: Annotated[bool, typer.Option(help="Certify what was found.")] = True,
) -> None:
    """Join what shards found into full.rules and basis.rules: the same bytes as without shards."""
    if not os.path.isdir(work):
        raise OptionError(f"expected a work folder, found none at {work}")
    chosen = _settings(max_shape, ops, fragments, operators)
    check_engine(engine_name, jobs)
    check_writable(output, force=force)
    with Display() as display, engine(engine_name, jobs) as running:
        pipeline = Pipeline(running, WorkFolder(work, resume=True, force=force), display)
        if missing := [f.name for f in pipeline.missing(chosen, ops)]:
            raise OptionError(
                f"expected what all shards found, by this version and with these options, in {work}, found nothing of "
                f"it for {', '.join(missing)}"
            )
        command = _command(max_shape, ops, fragments, operators, most)
        _finish(pipeline, chosen, ops, most, output, command, certificates)
    _say_times(pipeline)


def _finish(
    pipeline: Pipeline, chosen: list[Fragment], ops: int, most: int, output: Path, command: str, certificates: bool
) -> None:
    found = pipeline.finish(pipeline.fragments(chosen, ops), ops, most)
    _write(pipeline, found, output, ops, command, certificates)


def _say_times(pipeline: Pipeline) -> None:
    for stage, (wall, cpu) in pipeline.took.items():
        console.print(f"{stage}: {f'{wall:.1f} s, ' if wall else ''}{cpu:.1f} s of CPU time", highlight=False)


def _settings(max_shape: str, ops: int, fragments: str, operators: str) -> list[Fragment]:
    if not re.fullmatch(f"{SIZE}(x{SIZE})*", max_shape):
        raise OptionError(f"expected --max-shape such as 4x4x4x4, found {max_shape!r:.200}")
    if not 1 <= ops <= MOST_OPERATORS:
        raise OptionError(f"expected --ops of 1 to {MOST_OPERATORS}, found {ops}")
    return chosen_fragments(fragments, [int(size) for size in max_shape.split("x")], _listed(operators))


def _shard(fragments: list[Fragment], shard: str) -> list[Fragment]:
    if not shard:
        return fragments
    found = re.fullmatch(f"({SIZE})/({SIZE})", shard)
    if not found or int(found[1]) > int(found[2]):
        raise OptionError(f"expected --shard such as 1/4, found {shard!r:.200}")
    return fragments[int(found[1]) - 1 :: int(found[2])]


def check_memory(fragments: list[Fragment], ops: int, jobs: int, limit: float) -> None:
    """Raise `OptionError` if the enumeration would take more memory than there is.

    Args:
        fragments: those to be enumerated.
        ops: most operators.
        jobs: fragments that are enumerated at a time.
        limit: GiB; 0 for what is available.
    """
    check_finite(memory=limit)
    available = limit * 2**30 if limit else available_bytes()
    needed = {f.name: estimated_bytes(f, ops) for f in fragments}
    largest = sorted(needed, key=lambda name: -needed[name])[:jobs]
    total = sum(needed[name] for name in largest)
    if total > available:
        raise OptionError(
            f"expected graphs that fit {available / 2**30:.1f} GiB, found an estimate of {total / 2**30:.1f} GiB for "
            f"{' and '.join(largest)}: lower --max-shape, --ops or --jobs, or choose --fragments"
        )


def _command(max_shape: str, ops: int, fragments: str, operators: str, most: int) -> str:
    words = ["taso-gen-subst", "--max-shape", max_shape, "--ops", str(ops)]
    words += ["--fragments", ",".join(_listed(fragments))] if fragments != "all" else []
    words += ["--operators", ",".join(_listed(operators))] if _listed(operators) else []
    return " ".join([*words, *(["--most", str(most)] if most != MOST else [])])


def _listed(text: str) -> list[str]:
    """Return the words of a comma-separated list, each once, without what is around them: maybe breaks of lines."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _write(pipeline: Pipeline, found: Generated, output: Path, ops: int, command: str, certificates: bool) -> None:
    counts = write(found, output, command, ops)
    for result in found.results:
        console.print(f"{result.fragment.name}: " + ", ".join(f"{n} {k}" for k, n in result.counts.items()))
    console.print(f"{len(found.basis)} statements are a basis; exceptions: {len(found.exceptions)}")
    for name, count in counts.items():
        path = output / f"{name}.rules"
        console.print(f"{count} rules in {path}")
        if certificates:
            pipeline.certify(path)


class Display:
    """Shows each stage with its rate."""

    def __init__(self) -> None:
        columns = [
            TextColumn("{task.description:24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
        ]
        self._progress = Progress(*columns, TimeElapsedColumn(), console=errors)
        self._stages: dict[str, tuple[int, float]] = {}

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if stage not in self._stages:
            self._stages[stage] = self._progress.add_task(stage, total=total, rate=""), time.monotonic()
        task, begin = self._stages[stage]
        rate = done / max(time.monotonic() - begin, 1e-3)
        self._progress.update(task, completed=done, total=total, rate=f"{rate:.1f}/s")  # pyright: ignore[reportArgumentType]
