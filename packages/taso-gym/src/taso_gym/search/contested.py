"""A search that ends with a contest of finalists: of the model as it is, and for a batch of a network for one sample.

Both are searched for, first that for one sample, whose kernels take a part of the time to measure; what was found for
it is what the search of the batch begins with. Then the two run against each other, and the faster has the contest:
costs don't know what a kernel leaves in the cache for the next, nor what a loop takes by itself. So there is no loop
where none was run, but where Ctrl-C left no time for the batch. One that is hopeless by the costs is left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from taso_gym.batch import batch_size, for_one_sample
from taso_gym.equivalence import Baseline
from taso_gym.errors import TasoError
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.bouts import Bout, expected_seconds
from taso_gym.search.checkpoint import Checkpoint
from taso_gym.search.contest import FIRST, IDLE, Contest
from taso_gym.search.equal import Screen
from taso_gym.search.finalist import Finalist, remaining
from taso_gym.search.guards import NAMED, RACED, guarded, pays
from taso_gym.search.loops import is_loop, may_loop, of_batch, time_ps, way_of_batch
from taso_gym.search.racing import Racing
from taso_gym.search.rivals import AS_GIVEN
from taso_gym.search.run import GRACE_S, Budget, SearchResult, run
from taso_gym.search.tiled import AS_FOUND, IN_TILES, NO_TILES, Tiles, faster_in_tiles, seconds_for

SAMPLE, LAST = 0.3, 0.2
"""Parts of the time for the first search of a network for one sample, and of what is left for the race, at most but for
two heats: these take longer where runs take seconds."""
HOPELESS = 1.5
"""A loop that is predicted to take so many times as long as the batch at once isn't run. Each has been looked at once,
by which short kernels, as those for one sample, seem to take a quarter longer than they do."""
COSTING = 0.5
"""Part of the time that is left which measuring what the model executes may have taken: as long as it may take again,
for one sample, and longer where what the model executes was measured before, and what it does for one sample wasn't."""
WHOLE, LOOP = "the batch at once", "sample by sample"


class Ended(NamedTuple):
    """How it ended.

    Attributes:
        start: where what was found begins: the model, or the network for one sample.
        found: it; what it took is that of all searches.
        graph: it as one for the model's batch, and in tiles where it is faster so.
        tiles: which of its chains are in tiles (`taso_gym.tiles`); of one sample where it is a loop over samples.
        bouts: every measurement.
        guards: the way from the model to one without denormal floats that all began with; None where there is none.
    """

    start: RewriteState
    found: SearchResult
    graph: Graph
    tiles: Tiles
    bouts: tuple[Bout, ...]
    guards: Finalist | None = None


class ContestedSearch(Racing):
    """A first search, or two, and a contest."""

    def __init__(
        self,
        start: RewriteState,
        search: str,
        seed: int,
        options: Mapping[str, Any],
        *,
        exact: bool = False,
        say: Callable[[str], None] | None = None,
        **kept: Any,
    ) -> None:
        """Begin with a model.

        Args:
            start: it; its costs are measured, and say with how many threads graphs are.
            search: how to search, a row of `SEARCHES`.
            seed: of all searches.
            options: of all searches.
            exact: every bit has to stay: the result is no loop, as kernels may round differently for one sample than
                for a batch, and denormal floats stay (`taso_gym.search.guards`).
            say: called with what is done next.
            **kept: what only the first search of the model takes: ``on_progress``, ``checkpoint``, ``objective``.
        """
        super().__init__(start, say)
        self._samples = batch_size(start.graph)
        self._search, self._seed, self._options, self._kept = search, seed, dict(options), kept
        self._may_round, self._explored, self._interrupted = not exact, 0, False
        self._guards: Finalist | None = None
        self._known: list[Match] = []
        self._screen_of_one: Screen | None = None

    def run(self, spend: Budget, seconds: float, costing: float = 0.0) -> Ended:
        """Search.

        Args:
            spend: the budget.
            seconds: of it that are left.
            costing: that it took to measure what the model executes.
        """
        began = time.monotonic()
        ends = began + seconds
        spend = spend._replace(idle=min(IDLE * spend.seconds, spend.idle))
        self._taken_up(any_graph=True)
        self._guard(ends)
        before = self._taken_up()
        has_time = costing < COSTING * seconds and not self._interrupted
        lone = self._for_one_sample(spend._replace(seconds=SAMPLE * seconds), ends) if has_time else None
        loop = lone if self._may_round and may_loop(self._start.graph) else None
        left = self._first_part(ends - time.monotonic(), loop)
        enough = spend._replace(seconds=left)
        if self._interrupted:
            enough = Budget(before + GRACE_S, steps=len(self._known))
        whole = self._first(self._start, enough, known=self._known, **self._kept)
        if loop and self._time_ps(loop) > HOPELESS * self._time_ps(whole):
            loop = None
        first, graph = self._faster(whole, loop, ends) if loop else (whole, whole.graph)
        best, exhausted = first, first.found.exhausted
        for_tiles = self._for_tiles(first, ends)
        if not self._interrupted:
            best, exhausted = self._contest(first, ends - for_tiles)
        if best is not first:
            best, graph = self._written(best, first, graph)
        graph, tiles = self._in_tiles(best, graph, ends)
        found = replace(
            best.found,
            explored=self._explored,
            seconds=time.monotonic() - began,
            exhausted=exhausted,
            interrupted=self._interrupted,
            cut_short=first.found.cut_short,
        )
        return Ended(best.start, found, graph, tiles, tuple(self._bouts), self._guards)

    def _taken_up(self, *, any_graph: bool = False) -> float:
        """Return the seconds that a search which is taken up had; OptionError for a checkpoint of another one."""
        kept = self._kept.get("checkpoint")
        left = Checkpoint(kept, self._start, self._search, self._seed, self._options).read(any_graph=any_graph)
        return left.seconds if left else 0.0

    def _guard(self, ends: float) -> None:
        """Begin without denormal floats where that surely is faster when it is run, or a checkpoint has begun so."""
        if not self._may_round:
            return
        try:
            held, time_ms = guarded(self._start), self._start.cost.time_ms
            if held is None:
                return
            left = ends - time.monotonic()
            wins = partial(self._wins, (AS_GIVEN, self._start.graph), NAMED, held.graph, time_ms, ends - RACED * left)
            if not pays(held, self._kept.get("checkpoint"), left, wins):
                return
            model = self._model.started(held.graph)
            start = RewriteState(held.graph, self._start.rules, model)
        except KeyboardInterrupt:
            self._interrupted = True
            self._kept.pop("checkpoint", None)  # of a search that may begin elsewhere
        except (TasoError, MemoryError, OSError) as error:
            warnings.warn(f"not tried {NAMED}: {error}", stacklevel=2)
        else:
            self._start, self._model, self._guards = start, model, held

    def _first_part(self, left: float, loop: Finalist | None) -> float:
        """Return the seconds for the first search: of what is left all where a contest has no room for a race."""
        races = expected_seconds(self._start.cost.time_ms, 1) * (2 if loop else 1)
        has_room = races < (1 - FIRST) * left
        return max((FIRST if has_room else 1 - (LAST if loop else 0.0)) * left, 0.0)

    def _for_one_sample(self, spend: Budget, ends: float) -> Finalist | None:
        """Return what a search finds for one sample, if the model is for a batch and the samples are known apart."""
        graph = self._start.graph
        sample = for_one_sample(graph)
        if sample is None:
            return None
        self._say(f"searching for one of {self._samples} samples")
        began, lone = time.monotonic(), None
        try:
            start = RewriteState(sample, self._start.rules, self._model.started(sample))
            left = max(spend.seconds - (time.monotonic() - began), 0.0)
            lone = self._first(start, spend._replace(seconds=left))
            lone = self._screened(lone, ends)
            self._known = way_of_batch(lone, self._start)
        except KeyboardInterrupt:
            self._interrupted = True
        except (TasoError, MemoryError, OSError) as error:  # a kernel that doesn't run for one sample, perhaps
            self._say(str(error))
        return lone

    def _screened(self, lone: Finalist, ends: float) -> Finalist:
        """Return what is left of what was found for one sample if it computes something else.

        The batch is searched without the rules that make it so, which it takes longer to tell of a batch; but for a
        search with a checkpoint, which is taken up with the same rules.
        """
        until = time.monotonic() + LAST * (ends - time.monotonic())
        screen = self._screen_of_one = Screen(Baseline(lone.start.graph).differs, self._say)
        left = screen.passed(lone, lambda: 0.0 if self._interrupted else until - time.monotonic())
        if screen.culprits and not self._kept.get("checkpoint"):
            rules = remaining(self._start.rules, screen.culprits)
            self._start = RewriteState(self._start.graph, rules, self._model)
        return left

    def _first(self, start: RewriteState, spend: Budget, **kept: Any) -> Finalist:
        found = run(start, self._search, spend, self._seed, **kept, **self._options)
        self._explored += found.explored
        self._interrupted |= found.interrupted
        return Finalist("first", start, found)

    def _faster(self, whole: Finalist, loop: Finalist, ends: float) -> tuple[Finalist, Graph]:
        """Return the loop where it surely is faster when it is run, else the batch at once; and its graph."""
        left = whole, whole.graph
        if self._interrupted:
            cut_short = whole.found.interrupted or not whole.found.explored  # no time for the batch
            is_better = loop.found.path and not whole.found.path and self._time_ps(loop) < self._time_ps(whole)
            return self._written(loop, *left) if cut_short and is_better else left
        try:
            raced = of_batch(loop, self._start.graph)
            until = time.monotonic() + LAST * (ends - time.monotonic())
            is_faster = self._wins((WHOLE, whole.graph), LOOP, raced, self._time_ps(whole) / 1e9, until)
        except KeyboardInterrupt:
            self._interrupted = True
            return left
        except (TasoError, MemoryError, OSError) as error:
            warnings.warn(f"{LOOP} wasn't compared with {WHOLE}: {error}", stacklevel=2)
            return left
        return (loop, raced) if is_faster else left

    def _contest(self, first: Finalist, ends: float) -> tuple[Finalist, bool]:
        """Return the best of a contest, and whether that ended before its time, since all that it tries was tried."""
        known = self._screen_of_one if is_loop(first, self._start.graph) else None
        screen = known or Screen(Baseline(first.start.graph).differs, self._say)
        contest = Contest(first, self._search, self._seed, self._options, screen=screen, progress=self._progress)
        best = contest.run(ends - time.monotonic())
        self._explored += contest.explored
        self._interrupted |= contest.interrupted
        self._bouts += contest.bouts
        return best, contest.exhausted

    def _written(self, best: Finalist, other: Finalist, graph: Graph) -> tuple[Finalist, Graph]:
        """Return the best with its graph for the model's batch, or the other with that where there can't be one."""
        try:
            return best, of_batch(best, self._start.graph)
        except KeyboardInterrupt:
            self._interrupted = True
        except (TasoError, MemoryError, OSError) as error:
            warnings.warn(f"what was found {LOOP} isn't the result: {error}", stacklevel=2)
        return other, graph

    def _for_tiles(self, found: Finalist, ends: float) -> float:
        """Return the seconds that are kept for tiles."""
        if self._interrupted or not self._may_round:
            return 0.0
        try:
            return seconds_for(found.graph, found.model, self._time_ps(found) / 1e9, ends - time.monotonic())
        except KeyboardInterrupt:
            self._interrupted = True
            return 0.0

    def _in_tiles(self, best: Finalist, graph: Graph, ends: float) -> tuple[Graph, Tiles]:
        """Return what was found in tiles, for the batch, where it surely is faster so; and which chains are."""
        if self._interrupted or not self._may_round:
            return graph, NO_TILES
        run_ms = self._time_ps(best) / 1e9

        def wins(tiled: Graph) -> bool:
            return self._wins((AS_FOUND, graph), IN_TILES, of_batch(best, self._start.graph, tiled), run_ms, ends)

        try:
            tiled, tiles = faster_in_tiles(best.graph, best.model, wins, lambda: ends - time.monotonic(), run_ms)
            return (of_batch(best, self._start.graph, tiled), tiles) if tiles.number else (graph, tiles)
        except KeyboardInterrupt:
            self._interrupted = True
        except (TasoError, MemoryError, OSError) as error:
            warnings.warn(f"not tried {IN_TILES}: {error}", stacklevel=2)
        return graph, NO_TILES

    def _time_ps(self, finalist: Finalist) -> int:
        return time_ps(finalist, self._start.graph)
