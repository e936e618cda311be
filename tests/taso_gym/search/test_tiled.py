"""What was found with its chains in tiles, where that is faster."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cost_graphs import weight
from priced_costs import Priced

from taso_gym import optimize
from taso_gym.builder import GraphBuilder
from taso_gym.cost.measurement import THREAD_CPU, Measurement
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.result import Result
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.search import contested, racing, tiled
from taso_gym.search.contest import Contest
from taso_gym.search.race import race_seconds
from taso_gym.tensor import TensorType
from taso_gym.tiles import Chain, chains

pytest.importorskip("onnxruntime")

ROWS, WIDTH = 64, 64
CACHE = 16 * ROWS
"""Bytes: a value takes sixteen times as many."""
PRICES = {"Abs": 5, "Sin": 5, "MatMul": 20, "Neg": 5}
BOTH = 2
"""Chains of the network."""


@pytest.fixture(autouse=True)
def _small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "cache_bytes", lambda _: CACHE)


def network() -> Graph:
    """A chain, a product, and a chain with two operators too many."""
    b = GraphBuilder({"": 20})
    x = b.add("Sin", b.add("Abs", b.input("x", TensorType("float", (ROWS, WIDTH)))))
    value = b.add("MatMul", x, weight(b, "w", WIDTH, WIDTH))
    for op in ("Neg", "Neg", "Abs", "Sin"):
        value = b.add(op, value)
    b.output("y", value)
    return b.build()


def loops(graph: Graph) -> int:
    """Return the number of loops in a graph."""
    return sum(node.sig.op.name == "Scan" for _, node in graph.operators())


def forever() -> float:
    """Return the seconds that are left."""
    return math.inf


@pytest.mark.parametrize(("price", "count"), [(9, BOTH), (11, 1), (21, 0)])
def test_those_chains_are_in_tiles_that_cost_less_so(price: int, count: int, tmp_path: Path) -> None:
    """The first takes 10 ms, the second 20."""
    model = Priced(tmp_path / "c", PRICES | {"Scan": price})
    found, tiles = tiled.in_faster_tiles(network(), model, forever)
    assert loops(found) == tiles.number == count
    assert round(tiles.saved_ps / 1e9) == {9: 12, 11: 9, 21: 0}[price]


def test_of_chains_that_are_alike_one_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder({"": 20})
    value = b.input("x", TensorType("float", (ROWS, WIDTH)))
    for name in ("v", "w"):
        value = b.add("Sin", b.add("Abs", b.add("MatMul", value, weight(b, name, WIDTH, WIDTH))))
    b.output("y", value)
    looked_at, tile = list[int](), tiled.in_tiles

    def in_tiles(graph: Graph, chosen: list[Chain]) -> Graph:
        looked_at.append(len(chosen))
        return tile(graph, chosen)

    monkeypatch.setattr(tiled, "in_tiles", in_tiles)
    found, tiles = tiled.in_faster_tiles(b.build(), Priced(tmp_path / "c", PRICES | {"Scan": 1}), forever)
    assert loops(found) == tiles.number == BOTH and looked_at == [1, BOTH]


def test_what_saves_hardly_anything_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "LEAST", 0.5)
    graph = network()
    assert tiled.in_faster_tiles(graph, Priced(tmp_path / "c", PRICES | {"Scan": 9}), forever) == (
        graph,
        tiled.NO_TILES,
    )


def test_where_no_time_is_left_nothing_is_measured(tmp_path: Path) -> None:
    model = Priced(tmp_path / "c", PRICES)  # which doesn't know what a loop costs
    assert tiled.in_faster_tiles(network(), model, lambda: 0.0)[1].number == 0


def test_a_loop_that_does_not_run_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be costed by its bytes alone."""
    model = Priced(tmp_path / "c", PRICES | {"Scan": 1})
    monkeypatch.setattr(model, "runs_alone", lambda _: False)
    assert tiled.in_faster_tiles(network(), model, forever)[1].number == 0


def test_where_the_size_of_the_cache_is_not_known_there_are_no_tiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Priced(tmp_path / "c", PRICES)
    assert len(tiled.chains_of(network(), model)) == BOTH
    monkeypatch.setattr(tiled, "cache_bytes", lambda _: 0)
    assert not tiled.chains_of(network(), model)


def test_time_is_kept_for_a_race_where_there_are_chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, model = network(), Priced(tmp_path / "c", PRICES)
    assert 0 < tiled.seconds_for(graph, model, 1.0, 10.0) <= tiled.MOST * 10 < 10
    assert tiled.seconds_for(graph, model, 1.0, 0.0) == 0.0
    monkeypatch.setattr(tiled, "cache_bytes", lambda _: 0)
    assert tiled.seconds_for(graph, model, 1.0, 10.0) == 0.0


def test_without_room_for_a_race_there_is_none(tmp_path: Path) -> None:
    """However long it takes to see to it that the result is the same."""
    model, graph, raced = Priced(tmp_path / "c", PRICES | {"Scan": 1}), network(), list[Graph]()
    needed, asked = race_seconds(1000.0, 1), list[int]()

    def left() -> float:
        asked.append(1)
        return needed - 1 if len(asked) > enough else needed + 1

    for enough in (0, BOTH, BOTH + 1, math.inf):
        asked.clear()
        found = tiled.faster_in_tiles(graph, model, lambda g: not raced.append(g), left, 1000.0)[0]
        assert (found is not graph) == bool(raced) == (enough == math.inf)


@pytest.mark.parametrize(("differs", "wins", "count"), [(False, True, BOTH), (True, True, 0), (False, False, 0)])
def test_what_is_equal_and_faster_when_it_is_run_is_taken(
    differs: bool, wins: bool, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taso_gym.equivalence.Baseline.differs", lambda *_: differs)
    model, raced = Priced(tmp_path / "c", PRICES | {"Scan": 1}), list[Graph]()
    found, tiles = tiled.faster_in_tiles(network(), model, lambda g: bool(raced.append(g)) or wins, forever, 1.0)
    assert loops(found) == tiles.number == count and len(raced) == (not differs)


def test_chains_that_are_wired_otherwise_are_not_alike() -> None:
    b = GraphBuilder({"": 20})
    x, t, u = (b.input(name, TensorType("float", (ROWS, WIDTH))) for name in "xtu")
    b.output("y", b.add("Mul", b.add("Add", x, t), t))
    b.output("z", b.add("Mul", b.add("Add", x, t), u))
    b.output("w", b.add("Mul", b.add("Add", u, x), x))
    graph = b.build()
    first, second, third = (tiled.described(graph, chain) for chain in chains(graph, CACHE, CACHE))
    assert len({first, second, third}) == 2


Optimised = Callable[..., Result]


@pytest.fixture
def optimised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Optimised:
    """Optimise the network where loops take half the time, or twice."""

    def pretend(*, fast: bool = True, **options: Any) -> Result:
        def measure(graphs: dict[str, Graph], *, rounds: int, **_: Any) -> Measurement:
            times = {n: np.full((1, rounds), 1.0 if bool(loops(g)) == fast else 2.0) for n, g in graphs.items()}
            return Measurement(times, 1, "cpu", THREAD_CPU)

        monkeypatch.setattr(contested, "for_one_sample", lambda _: None)
        monkeypatch.setattr(racing, "measure", measure)
        monkeypatch.setattr(Contest, "_take_apart", lambda _: ())
        monkeypatch.setattr(Contest, "_doubtful", lambda _: ())
        rules = RuleSet(parse_rules("neg-twice [exact]: Neg(Neg(x)) => x"))
        return optimize(
            network(), rules=rules, cost=Priced(tmp_path / "c", PRICES | {"Scan": 4}), budget=60.0, **options
        )

    return pretend


def test_the_result_is_in_tiles_where_that_is_faster(optimised: Optimised) -> None:
    result = optimised()
    assert result.tiles == loops(result.graph) == BOTH and not result.is_loop
    assert [a.rule for a in result.applied] == ["neg-twice"] and not loops(result.rewritten)
    assert any(bout.name == tiled.IN_TILES for bout in result.bouts)
    assert result.validate().ok
    assert round(result.before.time_ms) == 50 and round(result.after.time_ms) == 28


def test_a_result_is_known_without_tiles(optimised: Optimised) -> None:
    result = optimised()
    plain = result.without_tiles()
    assert plain.tiles == loops(plain.graph) == 0 and plain.applied == result.applied
    assert plain.graph == result.rewritten


def test_a_loop_of_the_model_that_does_not_run_alone_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Priced(tmp_path / "c", PRICES | {"Scan": 1})
    once = tiled.in_tiles(network(), tiled.chains_of(network(), model)[:1])
    own = {node.sig for _, node in once.operators() if node.sig.op.name == "Scan"}
    monkeypatch.setattr(model, "runs_alone", lambda sig: sig not in own)
    assert tiled.in_faster_tiles(once, model, forever)[1].number == 1


def test_the_result_is_not_in_tiles_where_that_is_slower(optimised: Optimised) -> None:
    result = optimised(fast=False)
    assert result.tiles == loops(result.graph) == 0 and result.applied


def test_where_every_bit_has_to_stay_there_are_no_tiles(optimised: Optimised) -> None:
    """Kernels may compute the last elements of a value by other instructions than the rest."""
    assert optimised(numerics="exact").tiles == 0


@pytest.mark.filterwarnings("ignore:not tried in tiles")
@pytest.mark.parametrize("error", [CostError("it doesn't run"), MemoryError(), KeyboardInterrupt()])
def test_where_tiles_fail_the_result_has_none(
    error: BaseException, optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(racing, "race", failing)
    result = optimised()
    assert result.tiles == 0 and result.applied
    assert result.search.interrupted == isinstance(error, KeyboardInterrupt)


def test_an_interruption_before_the_contest_keeps_what_was_found(
    optimised: Optimised, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    began = list[Contest]()
    monkeypatch.setattr(contested, "seconds_for", interrupted)
    monkeypatch.setattr(Contest, "run", began.append)
    result = optimised()
    assert result.search.interrupted and result.applied and result.tiles == 0 and not began
