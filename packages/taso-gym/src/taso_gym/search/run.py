"""Running a search within a budget: progress, interruption, checkpoints."""

from __future__ import annotations

import inspect
import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from taso_gym.arguments import check_kinds
from taso_gym.checks import check_kind, check_seed
from taso_gym.cost.objective import Objective
from taso_gym.errors import CostError, MissingPackageError, OptionError
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.checkpoint import Checkpoint
from taso_gym.search.searcher import Searcher

SEARCHES = {
    "greedy": "taso_gym.search.greedy:Greedy",
    "taso": "taso_gym.search.taso:Taso",
    "beam": "taso_gym.search.beam:Beam",
    "random": "taso_gym.search.walk:RandomWalk",
    "ranked": "taso_gym.search.ranked:Ranked",
    "policy": "taso_agents.policies.policy_search:PolicySearch",
}
"""Name -> class; ``name:PATH`` hands the class a ``path`` (``policy:CHECKPOINT``)."""


LOOKING = 0.5
"""Part of the time for applying what was weighed until when it is looked what else comes of it: where that has to be
measured a single look can take all."""
STILL = 0.1
"""Part of a budget's time at whose end a search that has found a better graph in it is still finding."""
GRACE_S = 5.0
"""Seconds after Ctrl-C for applying what is known to lower the value; a second one doesn't wait for that."""


class Budget(NamedTuple):
    """What a search may spend; it ends at the first limit.

    Attributes:
        seconds: in all.
        steps: rewrites weighed or applied, but for what is applied at the end of those weighed by then, and a second
            look that has begun, where costs are measured.
        idle: seconds without a better graph, once the search has gone down (`Searcher.settled`).
    """

    seconds: float = math.inf
    steps: float = math.inf
    idle: float = math.inf


def check_budget(budget: object) -> None:
    """Raise OptionError for what isn't a `Budget` of 0 or more; so nan isn't, with which no search would end."""
    if not isinstance(budget, Budget):
        raise OptionError(f"expected a Budget, found {budget!r}")
    if not all(isinstance(limit, Real) and limit >= 0 for limit in budget):
        raise OptionError(f"expected a budget of 0 or more seconds, steps and idle seconds, found {budget}")


class Progress(NamedTuple):
    """Where a running search stands; the value is what it lowers, by default picoseconds."""

    explored: int
    seconds: float
    best_value: int
    rewrites: int


@dataclass(frozen=True)
class SearchResult:
    """The cheapest state that was found.

    Attributes:
        state: the state; the start itself where nothing cheaper was found.
        path: matches that lead to it from the start.
        explored: rewrites weighed or applied.
        seconds: wall time spent.
        exhausted: the search ended by itself and not by its budget.
        interrupted: it was ended by Ctrl-C.
        cut_short: its time was over while it was still finding better graphs.
    """

    state: RewriteState
    path: tuple[Match, ...]
    explored: int
    seconds: float
    exhausted: bool
    interrupted: bool
    cut_short: bool = False


def run(
    start: RewriteState,
    search: str = "taso",
    budget: Budget | None = None,
    seed: int = 0,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    objective: Objective | None = None,
    known: Iterable[Match] = (),
    **options: Any,
) -> SearchResult:
    """Search from a state; with a step budget and the same seed the result is the same, interrupted or not.

    Args:
        start: where to begin.
        search: a row of `SEARCHES`.
        budget: default 60 seconds.
        seed: of the search's random stream.
        on_progress: called after every step.
        checkpoint: file to write every half minute and at the end, and to go on from if it is there.
        objective: what is lowered; default the time by the state's cost model.
        known: a path from the start that may lead to a better graph: what greedy search and TASO's begin with, unless
            a checkpoint has gone on from somewhere else.
        options: handed to the search (``alpha=1.0``, ``width=16``).

    Raises:
        OptionError: no such search, options that it doesn't take, an argument of a wrong kind, or a budget or seed
            below 0.
        MatchError: a match of ``known`` isn't legal there.
        CostError: a graph can't be costed. Measured costs that are lost on the way end the search with a warning.
    """
    budget = Budget(60.0) if budget is None else budget
    _check_arguments(start, budget, objective, search=search, checkpoint=checkpoint)
    seed = check_seed(seed)
    if objective and not objective.is_time:
        options["objective"] = objective
    begun = time.monotonic()
    searcher = _make(start, search, seed, options)
    searcher.most = budget.steps
    keeper = Checkpoint(checkpoint, start, search, seed, options)
    began, found_s = begun - keeper.load(searcher), -math.inf

    def spent() -> float:
        return time.monotonic() - began

    with _interruptible() as interrupted:
        searcher.ended = lambda: interrupted() or spent() >= (1 - searcher.reserve) * budget.seconds
        lost = _loses_costs(searcher, lambda: searcher.begin_with(known))
        gained, best = time.monotonic(), searcher.best_value
        while not (lost or searcher.exhausted or searcher.ended() or searcher.explored >= searcher.most):
            lost = _loses_costs(searcher, searcher.advance)
            idle = searcher.settled and searcher.best_value >= best
            if not idle:
                gained, found_s, best = time.monotonic(), spent(), searcher.best_value
            if on_progress:
                rewrites = len(searcher.path(searcher.best))
                on_progress(Progress(searcher.explored, spent(), searcher.best_value, rewrites))
            keeper.save_if_due(searcher, spent())
            if idle and time.monotonic() - gained >= budget.idle:
                break
        still = spent() - found_s < STILL * budget.seconds
        cut_short = still and searcher.ended() and not (lost or searcher.exhausted or interrupted())
        if not lost:  # in the midst of a step
            keeper.save(searcher, spent())
        if not (lost or searcher.exhausted):
            # after it was saved: what is taken up again goes on as if it hadn't ended
            ends = min(budget.seconds, spent() + (GRACE_S if interrupted() else math.inf))
            _finish(searcher, spent, ends)
        path, state = searcher.path(searcher.best), searcher.state(searcher.best)
        return SearchResult(state, path, searcher.explored, spent(), searcher.exhausted, interrupted(), cut_short)


def _finish(searcher: Searcher, spent: Callable[[], float], ends: float) -> None:
    """Let a search take what it knows by now, until it has spent so many seconds."""
    late = spent() + LOOKING * (ends - spent())
    searcher.ended, searcher.late = lambda: spent() >= ends, lambda: spent() >= late
    _loses_costs(searcher, lambda: searcher.finish(searcher.ended))


def _check_arguments(start: object, budget: object, objective: object, **others: object) -> None:
    check_kind("start", start, (RewriteState,), "a RewriteState")
    check_kinds(**others)
    check_budget(budget)
    check_kind("objective", objective, (Objective, type(None)), "an Objective")


def _loses_costs(searcher: Searcher, act: Callable[[], object]) -> bool:
    """Act; return whether costs that are measured can't be any more: a device is lost, or the disk of a cache is full.

    Raises:
        CostError: so it is, and nothing was found yet that could be returned.
    """
    try:
        act()
    except CostError as error:
        if not searcher.best or searcher.costs_are_fixed:
            raise
        warnings.warn(f"the search ended early: {error}", stacklevel=3)
        return True
    return False


@contextmanager
def _interruptible() -> Generator[Callable[[], bool]]:
    """Turn Ctrl-C into a question asked between steps, so that no step is cut in two; a second one is raised."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is None:  # C code's, for good
        yield lambda: False
        return
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, previous)


def check_search(search: str, **options: Any) -> None:
    """Raise OptionError for what isn't a row of `SEARCHES`, with or without a path, or doesn't take these options."""
    _maker(search, options)


def _make(start: RewriteState, search: str, seed: int, options: dict[str, Any]) -> Searcher:
    return _maker(search, options)(start, np.random.default_rng(seed))


def _maker(search: str, options: dict[str, Any]) -> Callable[[RewriteState, np.random.Generator], Searcher]:
    """Return what makes a search, given a start and a source of chance."""
    name, _, argument = search.partition(":")
    if name not in SEARCHES:
        raise OptionError(f"expected a search of {', '.join(SEARCHES)}, found {search!r}")
    module, _, cls = SEARCHES[name].partition(":")
    try:
        kind = getattr(import_module(module), cls)
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"search {name!r} needs {error.name}: pip install taso-agents") from error
    arguments = {"path": argument, **options} if argument else options
    known = dict([*inspect.signature(kind).parameters.items()][2:])
    if "path" in known and known["path"].default is inspect.Parameter.empty and "path" not in arguments:
        raise OptionError(f"expected the path of a file, {name}:PATH, as search, found {search!r}")
    if unknown := [option for option in arguments if option not in known]:
        raise OptionError(f"expected options of search {search!r} among {', '.join(known)}, found {', '.join(unknown)}")
    kind.check_options(**arguments)
    return partial(kind, **arguments)
