"""``taso-gym profile``, ``calibrate`` and ``record``: where a model's time goes, and how well it is predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress as Bar
from rich.table import Table

from taso_gym import cost as costs
from taso_gym import onnx_io
from taso_gym.atomic import check_target
from taso_gym.cli.choices import CLASSES, COSTS, Cache, Dim, RuleSource, Threads
from taso_gym.cli.judges import judge_of, provider_of
from taso_gym.cli.rows import peaks, rows_of, speeds
from taso_gym.console import console, dimensions, say
from taso_gym.cost.calibrate import calibrate as compare
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import SUFFIX, RecordedCost, merged
from taso_gym.cost.recorded import Table as CostTable
from taso_gym.cost.recorded import record as record_table
from taso_gym.cost.variants import neighbourhood, random_variants
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules.rule import numerics_named
from taso_gym.rules.ruleset import RuleSet
from taso_gym.signature import symbols_of

ROWS = 40
IN_TURNS_S = 30.0
"""Seconds for measuring again what a profile shows."""
LARGE = 0.01
"""Part of a model's time from which on an operator may show what the machine reaches."""
LEAST = 2
"""Variants that a cost model is judged by."""

Model = Annotated[Path, typer.Argument(help="An ONNX file.")]
Provider = Annotated[str, typer.Option(help="cpu or cuda.")]
Variants = Annotated[str, typer.Option("--numerics", help=f"Loosest rules for variants: {CLASSES}.")]


def profile(
    model: Model, dim: Dim = None, threads: Threads = 1, provider: Provider = "cpu", cache: Cache = None
) -> None:
    """Print where onnxruntime's time goes, operator by operator, and how far each is from the machine's peak.

    The peak is the most that MatMul and Add reach, or a large operator of the model. Times are within their interval
    with 85 % confidence; there is none of operators too small to be measured again in half a minute.
    Dashes stand where it isn't known how much an operator does, as the sizes of its outputs depend on values.
    """
    graph = onnx_io.load(model, dims=dimensions(dim or []))
    with _measuring("measuring") as progress:
        measured = _model(provider, graph, threads, cache, progress)
        measured.graph(graph)  # looked at once, which takes as long as it takes
        measured = _in_turns(measured, [graph], progress, IN_TURNS_S)
        rows = sorted(rows_of(graph, measured), key=lambda row: -row.cost.time_ps)
        total = sum(row.cost.time_ps for row in rows) or 1
        large = [row.cost for row in rows if row.measured and row.sized and row.cost.time_ps >= LARGE * total]
        peak_gflops, peak_gbs = peaks(measured, large)
    say(f"peak: {peak_gflops:.0f} GFLOP/s, {peak_gbs:.0f} GB/s, {threads} thread{'s' * (threads > 1)}")
    table = Table("operator", "ms", "interval", "share", "GFLOP/s", "GB/s", "of peak", title=f"{total / 1e9:.3f} ms")
    for row in rows[:ROWS]:
        within = f"{row.interval[0] / 1e9:.4f}–{row.interval[1] / 1e9:.4f}" if row.interval else ""
        share = f"{row.cost.time_ps / total:.1%}"
        table.add_row(row.name, f"{row.cost.time_ms:.4f}", within, share, *speeds(row, peak_gflops, peak_gbs))
    console.print(table)
    if len(rows) > ROWS:
        say(f"and {len(rows) - ROWS} more, {sum(row.cost.time_ps for row in rows[ROWS:]) / total:.1%} of the time")
    if unknown := [row.name for row in rows if not row.measured]:
        say(f"don't run alone; what is shown is the least that they could take: {', '.join(unknown)}")


def calibrate(
    model: Model,
    dim: Dim = None,
    cost: Annotated[str, typer.Option(help=f"The cost model to judge: {COSTS}.")] = "onnxruntime",
    variants: Annotated[int, typer.Option(help="Random legal variants.", min=LEAST)] = 20,
    rewrites: Annotated[int, typer.Option(help="Rewrites of a variant at most.", min=1)] = 8,
    numerics: Variants = "reassociate",
    threads: Threads = 1,
    seed: Annotated[int, typer.Option(help="Seed of the variants.", min=0)] = 0,
    sessions: Annotated[int, typer.Option(help="Fresh processes for each.", min=1)] = 2,
    rounds: Annotated[
        int | None, typer.Option(help="Interleaved rounds in each; default: 30, fewer of slow models.", min=2)
    ] = None,
    cache: Cache = None,
) -> None:
    """Compare what a cost model predicts with end-to-end time, over random variants of a model."""
    rules = RuleSet.load(numerics=numerics_named(numerics))
    graph = onnx_io.load(model, dims=dimensions(dim or []))
    chosen = list(random_variants(graph, rules, variants, seed, rewrites))
    if len(chosen) < LEAST:
        raise CostError(f"expected a model with {LEAST} variants at least to judge costs by, found {len(chosen)}")
    with _measuring("measuring operators") as progress:
        judged = judge_of(cost, graph, threads, cache, progress)
        runs_on = provider_of(cost, judged)
        if isinstance(judged, OnnxRuntimeCost):
            judged = _in_turns(judged, [graph, *chosen], progress)
        for variant in (graph, *chosen):
            judged.graph(variant)  # what isn't measured yet is now, while it is shown
    if isinstance(judged, RecordedCost):
        chosen = _recorded(judged, graph, chosen)
    with Bar(console=console, transient=True) as bar:
        task = bar.add_task("measuring variants", total=len(chosen))
        found = compare(
            graph,
            chosen,
            judged,
            threads=threads,
            dims=costs.bind_dims(graph),
            progress=lambda done, _: bar.update(task, completed=done),
            sessions=sessions,
            rounds=rounds,
            provider=runs_on,
        )
    say(f"{judged.name} over {len(chosen)} variants: {found}")


def record(
    models: Annotated[
        list[Path], typer.Argument(help="ONNX files whose operators, and their variants', are recorded.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write.")],
    walks: Annotated[int, typer.Option(help="Random walks whose neighbourhoods are recorded too.", min=0)] = 5,
    dim: Dim = None,
    rules: RuleSource = "default",
    numerics: Variants = "reassociate",
    threads: Threads = 1,
    provider: Provider = "cpu",
    cache: Cache = None,
) -> None:
    """Record a table of costs on this machine, for --cost recorded:FILE anywhere."""
    if not output.name.endswith(SUFFIX):
        raise OptionError(f"expected a table whose name ends in {SUFFIX}, found {output}")
    check_target(output)
    rule_set = RuleSet.load(rules, numerics=numerics_named(numerics))
    graphs = _sized([onnx_io.load(path) for path in models], dimensions(dim or []))
    with _measuring("recording") as progress:
        tables: list[CostTable] = []
        for path, graph in zip(models, graphs, strict=True):  # each has its opset, sizes and need of memory
            measured = _model(provider, graph, threads, cache, progress)
            regions = neighbourhood(graph, rule_set, measured, walks)
            tables.append(record_table(regions, measured, partial(_say_done, progress, path.name), path.stem))
    found = merged(tables)
    found.save(output)
    say(f"{output}: {len(found.costs)} operators and fused groups on {found.device}")


def _sized(graphs: Sequence[Graph], dims: Mapping[str, int]) -> list[Graph]:
    """Return graphs that know the sizes of those dimensions that each has.

    Raises:
        OptionError: none of them has one of the dimensions.
    """
    names = [symbols_of(map(graph.type_of, graph.info.inputs)) for graph in graphs]
    known = sorted(frozenset[str]().union(*names))
    if unknown := sorted(dims.keys() - set(known)):
        choices = ", ".join(known) or "none, as all sizes are fixed"
        raise OptionError(f"expected dimensions of the inputs ({choices}), found {', '.join(unknown)}")
    sizes = [{name: size for name, size in dims.items() if name in own} for own in names]
    return [onnx_io.with_dims(graph, own) for graph, own in zip(graphs, sizes, strict=True)]


def _recorded(model: RecordedCost, start: Graph, variants: Sequence[Graph]) -> list[Graph]:
    """Return the variants that are recorded, and say how many aren't: the others have no costs to judge.

    Raises:
        CostError: the start isn't, or fewer than two are.
    """
    whole = [graph for graph in variants if model.share_recorded(graph) == 1]
    if (share := model.share_recorded(start)) < 1 or len(whole) < LEAST:
        raise CostError(
            f"expected a table with the whole model and {LEAST} variants of it at least, found {share:.1%} of it and "
            f"{len(whole)} of {len(variants)} variants in {model.name}: taso-gym record makes one"
        )
    if len(whole) < len(variants):
        say(f"left out: {len(variants) - len(whole)} of {len(variants)} variants, which {model.name} hasn't in whole")
    return whole


def _model(provider: str, graph: Graph, threads: int, cache: Path | None, progress: Any) -> OnnxRuntimeCost:
    dims = costs.bind_dims(graph)
    return OnnxRuntimeCost(provider, dims, threads=threads, cache=cache, progress=progress, start=graph)


def _say_done(progress: Callable[[str], None], name: str, done: int, in_all: int) -> None:
    progress(f"{name}, {done} of {in_all}")


def _in_turns(
    model: OnnxRuntimeCost, graphs: Sequence[Graph], progress: Callable[[str], None], seconds: float = math.inf
) -> OnnxRuntimeCost:
    return model.in_turns(graphs, seconds, lambda done, in_all: progress(f"in turns, {done} of {in_all}"))


@contextmanager
def _measuring(what: str) -> Generator[Any]:
    """Show what is measured at the moment."""
    with console.status(what) as status:

        def show(text: object) -> None:
            status.update(escape(f"{what} {str(text)[:100]}"))

        yield show
