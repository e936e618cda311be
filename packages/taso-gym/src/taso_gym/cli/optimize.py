"""``taso-gym optimize``: a faster file that computes the same, or the file as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from taso_gym import onnx_io
from taso_gym.atomic import check_targets
from taso_gym.checks import MOST_THREADS, check_seed
from taso_gym.cli.choices import CLASSES, COSTS, Cache, RuleSource
from taso_gym.cli.deliver import Wanted, deliver
from taso_gym.cli.hints import hints
from taso_gym.cli.judges import judge_of, provider_of
from taso_gym.cli.runs import expect_runs, expect_timed
from taso_gym.cli.settings_file import expect_replaceable, settings_file
from taso_gym.console import console, dimensions, parse_bytes, progress_bar, say, seconds
from taso_gym.cost import bind_dims
from taso_gym.cost.machine import physical_cores
from taso_gym.cost.objective import QUANTITIES, Objective
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io.convert import converted
from taso_gym.onnx_io.external import files_of
from taso_gym.ops import MICROSOFT
from taso_gym.optimizer import optimize as search_for
from taso_gym.result import Result
from taso_gym.rules.rule import Numerics, numerics_named
from taso_gym.rules.ruleset import RuleSet, load_checked
from taso_gym.search import SEARCHES, Budget, Progress
from taso_gym.search.checkpoint import saved
from taso_gym.search.run import check_search

SEARCH_HELP = f"{', '.join(name for name in SEARCHES if name != 'policy')}, ranked:latency or policy:CHECKPOINT."
OPSET_HELP = "Convert the model to this opset first; where nothing is gained, the copy isn't. Default: as it is."
WIDEST = 100
"""Characters of what is measured that are shown: a signature may be longer than a line."""


def optimize(
    model: Annotated[Path, typer.Argument(help="The ONNX file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the result goes.")],
    search: Annotated[str, typer.Option(help=SEARCH_HELP)] = "taso",
    budget: Annotated[str, typer.Option(help="Time for the search: 60s, 5m, 1h; --steps replaces it.")] = "60s",
    steps: Annotated[
        int | None, typer.Option(help="Most rewrites to weigh; replaces --budget: no time limit.", min=1)
    ] = None,
    cost: Annotated[str, typer.Option(help=f"What the search lowers: {COSTS}.")] = "roofline",
    rules: RuleSource = "default",
    numerics: Annotated[str, typer.Option(help=f"Loosest rules to use: {CLASSES}.")] = "reassociate",
    portable: Annotated[
        bool, typer.Option("--portable", help="Add no operators beyond the ONNX standard (com.microsoft's).")
    ] = False,
    dim: Annotated[
        list[str] | None,
        typer.Option(help="Size of a dynamic dimension to cost, compare and time at: batch=1; repeat."),
    ] = None,
    strict_dims: Annotated[
        bool, typer.Option("--strict-dims", help="Refuse dimensions that --dim leaves open.")
    ] = False,
    opset: Annotated[int | None, typer.Option(help=OPSET_HELP)] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="How many times as dear as the best --search taso goes on from, at most; default: 1.05."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File to write the search to every half minute, and to resume it from.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads that the model will run with; default: 1, and what is written is timed on all cores, too.",
            min=1,
            max=MOST_THREADS,
        ),
    ] = None,
    cache: Cache = None,
    objective: Annotated[
        str, typer.Option(help=f"What is lowered, alone or weighted (time+0.2*memory): {', '.join(QUANTITIES)}.")
    ] = "time",
    max_memory: Annotated[
        str | None, typer.Option(help="Most memory of weights and activations: 500MB, 2GiB; default: no limit.")
    ] = None,
    session_settings: Annotated[
        bool, typer.Option("--session-settings", help="Also look for settings of onnxruntime's session that pay.")
    ] = False,
    no_measure: Annotated[
        bool, typer.Option("--no-measure", help="Write the cheapest graph without timing it.")
    ] = False,
    finalists: Annotated[
        bool | None,
        typer.Option(
            help="Search again in a part of the budget, with other costs and fewer rules, and choose among what is "
            "found by timing it; default: where --cost onnxruntime measures, unless --no-measure. Never with --steps, "
            "--max-memory or another --objective or --cost."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Write the file even if it isn't equal or faster, or can't be compared or can't be timed."
        ),
    ] = False,
) -> None:
    """Make an ONNX model faster with substitutions that keep its meaning.

    The result is compared with the original on random inputs and timed against it before it is written: what makes
    it differ is left out, and where nothing is gained the original is copied unchanged. With --cost onnxruntime a model
    for a batch of fixed size is searched for one sample first; unless --numerics exact, it may become a loop over the
    network for one, elementwise operators may run tile by tile, and a Softmax may be kept from writing floats below
    1.2e-38 where these slow the model down.
    """
    loosest = numerics_named(numerics)
    options = _options(search, alpha, threads or 1)
    goal = Objective.parse(objective, None if max_memory is None else parse_bytes(max_memory))
    _check_early(search, options, goal, seed, model, output, checkpoint, session_settings)
    limit = Budget(steps=steps) if steps else Budget(seconds(budget))
    graph = _read(model, dimensions(dim or []), opset, strict_dims)
    rule_set = _rules_of(rules, portable, loosest)
    bar = progress_bar()
    task = bar.add_task(f"{search} search", best="")

    def show(progress: Progress) -> None:
        lowest = f"{progress.best_value / 1e9:.4f} ms" if goal.is_time else f"{progress.best_value:,}"
        bar.update(task, best=f"{lowest} after {progress.rewrites} rewrites, {progress.explored} weighed")

    used, cores = (threads, 0) if threads else (1, physical_cores())
    judge = judge_of(cost, graph, used, cache, lambda text: bar.update(task, best=f"measuring {text[:WIDEST]}"))
    if not force:
        expect_runs(model, graph, opset)
    on = provider_of(cost, judge, not no_measure or session_settings)
    wanted = Wanted(used, not no_measure, force, session_settings, on, cores, converted=opset is not None)
    expect_timed(model, graph, wanted)
    with bar:
        result = search_for(
            graph,
            search,
            rule_set,
            judge,
            limit,
            seed=seed,
            numerics=loosest,
            portable=portable,
            on_progress=show,
            checkpoint=checkpoint,
            objective=goal,
            finalists=not no_measure if finalists is None else finalists,
            on_contest=lambda doing: bar.update(task, best=doing),
            **options,
        )
    _report(result, cost, session_settings)
    deliver(model, output, result, wanted, _say_applied)


def _read(model: Path, dims: dict[str, int], opset: int | None, strict: bool) -> Graph:
    """Load a model; say at which sizes its dynamic dimensions are costed."""
    graph = onnx_io.load(model, dims=dims) if opset is None else _with_opset(model, dims, opset)
    bound = bind_dims(graph)
    unbound = [name for name in bound if name not in dims]
    if unbound and strict:
        raise OptionError(f"expected --dim for each dynamic dimension of {model}, found none for {', '.join(unbound)}")
    if unbound:
        sizes = ", ".join(f"{name}={bound[name]}" for name in unbound)
        say(f"costed at {sizes}; --dim sets other sizes, and the file stays open to all")
    return graph


def _rules_of(source: str, portable: bool, numerics: Numerics) -> RuleSet:
    """Return the rules that are asked for; of none a search would only say that it found nothing."""
    rules = load_checked(source, portable=portable, numerics=numerics)
    if not len(rules):
        kind = f"{' of the ONNX standard' * portable} of class {numerics}"
        raise OptionError(f"expected a rule{kind} or stricter in {source}, found none")
    return rules


def _options(search: str, alpha: float | None, threads: int) -> dict[str, Any]:
    """Return what is handed to a search."""
    options: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    return options | ({"threads": threads} if search.startswith("ranked") else {})


def _check_early(
    search: str,
    options: dict[str, Any],
    goal: Objective,
    seed: int,
    model: Path,
    output: Path,
    checkpoint: Path | None,
    settings: bool,
) -> None:
    """Check what would be found wrong only after the start is measured; only the output may replace the model."""
    check_search(search, **options, **({} if goal.is_time else {"objective": goal}))
    check_seed(seed)
    files = files_of(model)
    check_targets(output, checkpoint, kept={file: what for file, what in files.items() if file != model})
    beside = settings_file(output) if settings else None
    check_targets(checkpoint, beside, kept=files)
    if beside:
        expect_replaceable(beside)
    if checkpoint:
        saved(checkpoint)


def _with_opset(model: Path, dims: dict[str, int], opset: int) -> Graph:
    graph = onnx_io.from_model(converted(model, opset), model.parent)
    say(f"converted to opset {opset}")
    return onnx_io.with_dims(graph, dims)


def _report(result: Result, cost: str, settings: bool) -> None:
    """Print what was found, how finalists compared, what was applied, and what else may help."""
    say(headline(result, cost))
    for bout in result.bouts:
        say(f"measured against the fastest before: {bout}")
    _say_applied(result)
    for hint in hints(result, settings):
        say(hint)


def _say_applied(result: Result) -> None:
    if result.is_loop:
        say("sample by sample: the result is a loop (Scan) over the batch, and what follows is of one sample")
    if result.tiles:
        say(f"tile by tile: chains of elementwise operators that are loops (Scan) over parts of values: {result.tiles}")
    if result.applied:
        console.print(summary(result))
        say(str(result.sites))
        if added := beyond_the_standard(result):
            say(f"operators beyond the ONNX standard: {added}; onnxruntime runs them, --portable does without")


def headline(result: Result, cost: str) -> str:
    """Return a line that says what the search saved by the cost model, and how it ended."""
    before, after, search = result.before.time_ms, result.after.time_ms, result.search
    ending = "interrupted" if search.interrupted else "exhausted" if search.exhausted else "out of budget"
    change = f"{before:.4f} ms → {after:.4f} ms, {result.improvement_percent:.2f} % saved"
    if not result.objective.is_time:
        changes = (f"{name} {a:,} → {b:,}" for name, (a, b) in result.quantities.items() if name != "time")
        change += f"; {', '.join(changes)}"
    if result.share_recorded is not None:
        change += f"; {result.share_recorded:.0%} of the result is recorded"
    return f"{cost}: {change}; {search.explored} rewrites weighed in {search.seconds:.1f} s, {ending}"


def summary(result: Result) -> Table:
    """Return a table of what was applied, how often, where first, and what it changed by the cost model."""
    table = Table()
    table.add_column("rule")
    table.add_column("times", justify="right")
    table.add_column("change, ms", justify="right")
    table.add_column("first at", overflow="fold")
    for rule, count in result.rule_counts().most_common():
        sites = [a for a in result.applied if a.rule == rule]
        change = sum(a.change_ms for a in sites)
        table.add_row(rule, str(count), f"{change:+.4f}", ", ".join(sites[0].site))
    return table


def beyond_the_standard(result: Result) -> str:
    """Return the com.microsoft operators that the result has and the original hasn't, with how many more."""
    found = Counter(n.sig.op.name for _, n in result.rewritten.operators() if n.sig.op.domain == MICROSOFT)
    found.subtract(n.sig.op.name for _, n in result.start.operators() if n.sig.op.domain == MICROSOFT)
    return ", ".join(f"{count} com.microsoft.{name}" for name, count in sorted(found.items()) if count > 0)
