"""What a search lowers besides time."""

from typing import Any

import pytest
from cost_graphs import mlp

from taso_gym import cost, models
from taso_gym.cost.memory import constant_bytes
from taso_gym.cost.objective import OVER, QUANTITIES, Objective, quantities
from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.optimizer import optimize
from taso_gym.search import Budget


@pytest.fixture(scope="module")
def graph() -> Graph:
    return models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)


SUMS = ["time", "memory", "time+0.2*memory", "flops+2*size", "0.5*bytes+kernels"]
LONG_WEIGHTS = ["time+1000000*memory", "time+0.00001*memory", "time+0.12345678*memory"]


@pytest.mark.parametrize("text", [*SUMS, *LONG_WEIGHTS])
def test_what_is_written_is_read_again(text: str) -> None:
    assert str(Objective.parse(text)) == text


@pytest.mark.parametrize("text", ["speed", "", "time+time", "0*time", "time-memory", "time+"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"expected an objective such as time or time\+0.2\*memory, of time"):
        Objective.parse(text)


WRONG_WEIGHTS = [5, (), "time", (("speed", 1.0),), *((("time", w),) for w in ("1", float("nan"), 0, -1.0))]


@pytest.mark.parametrize("weights", WRONG_WEIGHTS)
def test_weights_of_what_there_is_none_of_are_refused(weights: Any) -> None:
    with pytest.raises(OptionError, match=r"expected pairs of time, .* and a weight above 0, found"):
        Objective(weights)


@pytest.mark.parametrize("wrong", [None, 5, []])
def test_an_objective_that_is_no_text_is_named(wrong: Any) -> None:
    with pytest.raises(OptionError, match="expected a sum of quantities as objective, found"):
        Objective.parse(wrong)


@pytest.mark.parametrize("wrong", ["500MB", 5.5, -1])
def test_a_limit_that_is_no_number_of_bytes_is_named(wrong: Any) -> None:
    with pytest.raises(OptionError, match="expected max_memory to be a whole number from 0 on, found"):
        Objective.parse("time", max_memory=wrong)


def test_a_weighted_sum_is_relative_to_the_start() -> None:
    goal, start = Objective.parse("time+3*flops"), {"time": 10**9, "flops": 50}
    assert goal.value(start, start) == 4 * 10**12
    assert goal.value({"time": 10**9, "flops": 25}, start) == 2.5 * 10**12


def test_what_is_0_at_the_start_counts_for_nothing_in_a_sum() -> None:
    goal, start = Objective.parse("time+0.2*size"), {"time": 10**9, "size": 0}
    assert goal.value({"time": 10**9, "size": 4}, start) == goal.value(start, start) == 10**12
    alone = Objective.parse("size")
    assert alone.value({"size": 4}, start) > alone.value(start, start)


def test_beyond_the_limit_is_worse_than_anything_within() -> None:
    goal = Objective(max_memory=100)
    within, beyond = ({"time": t, "memory": m} for t, m in ((10**15, 100), (1, 101)))
    assert goal.value(within, within) < OVER <= goal.value(beyond, beyond)
    assert not goal.is_time and not goal.of_sums and goal.needs == {"memory"}


@pytest.mark.parametrize(
    ("text", "limit", "lowers_time", "is_time"),
    [
        ("time", None, True, True),
        ("time", 100, True, False),
        ("memory", None, False, False),
        ("time+memory", None, False, False),
    ],
)
def test_time_is_lowered_whatever_the_limit(text: str, limit: int | None, lowers_time: bool, is_time: bool) -> None:
    goal = Objective.parse(text, limit)
    assert (goal.lowers_time, goal.is_time) == (lowers_time, is_time)


def test_weights_are_counted_as_they_are_saved() -> None:
    assert constant_bytes(mlp()) == 4 * (64 + 8)


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("search", ["greedy", "taso", "beam", "random"])
def test_every_search_lowers_every_quantity_or_leaves_the_graph(graph: Graph, name: str, search: str) -> None:
    found = optimize(graph, search, budget=Budget(steps=150), objective=name)
    before, after = found.quantities[name]
    assert after < before or (after == before and not found.applied)
    judge = cost.load("roofline")
    assert after == quantities(found.graph, judge.graph(found.graph), judge)[name]


def test_predicted_changes_are_what_happens(graph: Graph) -> None:
    found = optimize(graph, "taso", budget=Budget(steps=300), objective="time+memory+size")
    assert found.search.explored >= 300 or found.search.exhausted


def test_a_limit_on_memory_is_kept(graph: Graph) -> None:
    free = optimize(graph, "greedy", budget=Budget(steps=2000))
    needed = free.quantities["memory"][1]
    bound = optimize(graph, "greedy", budget=Budget(steps=2000), objective=Objective(max_memory=needed))
    assert bound.quantities["memory"][1] <= max(needed, bound.quantities["memory"][0])


def test_how_much_is_recorded_is_part_of_the_result(graph: Graph) -> None:
    assert optimize(graph, "greedy", budget=Budget(steps=1)).share_recorded is None
    found = optimize(graph, "greedy", cost="recorded:epyc-zen4-1t", budget=Budget(steps=1))
    assert found.share_recorded is not None and 0 <= found.share_recorded <= 1
