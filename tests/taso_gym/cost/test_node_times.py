"""Times of single nodes: in turns each is measured as often, the second least counts, and it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from cost_graphs import mlp

from taso_gym.cost import looks, node_times
from taso_gym.cost.cache import Cache
from taso_gym.cost.executed import Executed
from taso_gym.cost.node_keys import COLD
from taso_gym.cost.node_times import LONG_PS, NodeTimes, Turn
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.turns import MOST, TURNS, UNKNOWN
from taso_gym.errors import OutOfMemoryError

pytest.importorskip("onnxruntime")


class Scripted(Runtime):
    """Measures nothing: times are written down by the first byte of a node's model, and whether it is cold."""

    def __init__(self, **times: Iterable[int | Exception]) -> None:
        super().__init__("cpu", 1)
        self.asked, self.together = list[str](), list[int]()
        self._times = {name: iter(found) for name, found in times.items()}

    def times(self, models: Sequence[tuple[bytes, object]], cold: bool = False) -> list[int]:
        """Return the next time of each, or fail."""
        self.together.append(len(models))
        self.asked += [model[:1].decode() + ("_cold" if cold else "") for model, _ in models]
        found = [next(self._times[name]) for name in self.asked[-len(models) :]]
        for time_ps in found:
            if isinstance(time_ps, Exception):
                raise time_ps
        return found


def node(name: str) -> Executed:
    """A node that is never run."""
    return Executed(name, name.encode, {}, name)


def test_each_has_its_turn_and_the_second_least_counts(tmp_path: Path) -> None:
    runtime = Scripted(a=[50, 100, 3, 1, 4, 100, 2, 5], b=[60, *range(9, 2, -1)])
    first = NodeTimes(runtime, tmp_path / "c")
    turns = [Turn(first.measure(node(name), cold=False), node(name)) for name in "ab"]
    seen: list[tuple[int, int]] = []
    again = first.in_turns(turns, math.inf, lambda *at: seen.append(at))
    assert runtime.asked[2:] == ["a", "b"] * TURNS
    assert seen == [(i, 2 * TURNS) for i in range(1, 2 * TURNS + 1)]
    assert [again.of(name, 0.0) for name in "ab"] == [2, 4]
    assert [first.of(name, 0.0) for name in "ab"] == [50, 60]  # what was computed with them stays true


def test_the_interval_is_of_the_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_times, "operands_of", lambda _: (0.5, 0))
    runtime = Scripted(a=[50, 7, 6, 5, 4, 3, 2, 1], a_cold=[60, 17, 16, 15, 14, 13, 12, 11], b=[9])
    first = NodeTimes(runtime, tmp_path / "c")
    keys = [first.measure(node("a"), cold=True), first.measure(node("b"), cold=False)]
    assert first.interval(keys[0], 0.0) is None
    again = first.in_turns([Turn(name, node("a")) for name in ("a", f"{COLD}a")], math.inf)
    assert again.of(keys[0], 0.0) == 7  # half of the time in the cache, half of that out of it
    assert again.interval(keys[0], 0.0) == (6, 10) and again.interval(keys[1], 0.0) is None


def test_memory_that_is_short_costs_a_turn_only(tmp_path: Path) -> None:
    runtime = Scripted(a=[50, 100, 3, OutOfMemoryError("short"), 4, 100, 2, 5], b=[60, *range(9, 2, -1)])
    first = NodeTimes(runtime, tmp_path / "c")
    turns = [Turn(first.measure(node(name), cold=False), node(name)) for name in "ab"]
    again = first.in_turns(turns, math.inf)
    assert runtime.asked[2:] == ["a", "b"] * TURNS
    assert [again.of(name, 0.0) for name in "ab"] == [3, 4]


def test_a_copy_is_taken_off_when_little_disturbs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow copy beside a fast kernel would else leave too little of it."""
    runtime, copies = Scripted(a=[50, *range(40, 40 + TURNS)]), iter([20, 90, *[10] * TURNS])
    monkeypatch.setattr(runtime, "times_of_copies", lambda values, _: [next(copies) for _ in values])
    adding = replace(node("a"), feeds={"y": None}, added_to="y")
    first = NodeTimes(runtime, tmp_path / "c")
    key = first.measure(adding, cold=False)
    assert first.of(key, 0.0) == 30
    assert first.in_turns([Turn(key, adding)], math.inf).of(key, 0.0) == 31


def test_what_was_measured_in_turns_counts_from_then_on(tmp_path: Path) -> None:
    first = NodeTimes(Scripted(a=[50, *[7] * TURNS]), tmp_path / "c")
    key = first.measure(node("a"), cold=False)
    assert first.unsettled([key]).keys() == {key}
    first.in_turns([Turn(key, node("a"))], math.inf)
    other = NodeTimes(Scripted(), tmp_path / "c")
    assert not other.unsettled([key])
    assert other.measure(node("a"), cold=False) == key and other.of(key, 0.0) == 7
    third = NodeTimes(Scripted(), tmp_path / "c")
    third.load([key])
    assert third.of(key, 0.0) == 7


def test_times_that_scatter_are_added_to_until_there_are_many(tmp_path: Path) -> None:
    noisy, still = [20, 30, 40, 50, 60, 70, 80], [10] * TURNS
    runtime = Scripted(a=[50, *noisy, *still], b=[50, *noisy * (MOST // TURNS)])
    times = NodeTimes(runtime, tmp_path / "c")
    for name, expected in (("a", [30, 10]), ("b", [30, 30, 30, 30])):
        turn = Turn(times.measure(node(name), cold=False), node(name))
        for time_ps in expected:
            assert times.unsettled([name])[name] > 0
            times = times.in_turns([turn], math.inf)
            assert times.of(name, 0.0) == time_ps
        assert not times.unsettled([name])


def test_nodes_are_measured_in_the_cache_and_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Scripted(a=[10, *[12] * TURNS], a_cold=[20, *[32] * TURNS])
    first = NodeTimes(runtime, tmp_path / "c")
    key = first.measure(node("a"), cold=True)
    assert key == f"{COLD}a"
    assert [first.of(key, share) for share in (0.0, 0.5, 0.75, 1.0)] == [10, 10, 15, 20]  # it reads nothing large
    monkeypatch.setattr(node_times, "LARGE", 0)
    assert [first.of(key, share) for share in (0.0, 0.5, 1.0)] == [10, 15, 20]
    assert first.unsettled([key]).keys() == {key, "a"}
    again = first.in_turns([Turn(part, node("a")) for part in sorted(first.unsettled([key]))], math.inf)
    assert [again.of(key, share) for share in (0.0, 0.5, 1.0)] == [12, 22, 32]
    assert first.measure(node("a"), cold=False) == "a"


def test_what_is_out_of_the_cache_is_measured_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured or takes long isn't, and what fails isn't known yet."""
    monkeypatch.setattr(node_times, "LARGE", 0)
    failing = [OutOfMemoryError("short"), OutOfMemoryError("short"), 40]
    runtime = Scripted(a=[1], b=[2], c=[3], d=[LONG_PS], a_cold=[10], b_cold=[20, 30], c_cold=failing)
    times = NodeTimes(runtime, tmp_path / "c")
    for name in "abcd":
        times.measure(node(name), cold=name == "a")
    times.measure_together([node(name) for name in "abcdb"])
    assert runtime.asked[5:] == ["b_cold", "c_cold", "b_cold", "c_cold"] and runtime.together[5:] == [2, 1, 1]
    assert [times.of(times.measure(node(name), cold=True), 1.0) for name in "abc"] == [10, 30, 40]
    assert len(runtime.asked) == 10


def test_what_takes_long_together_is_measured_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By times in the cache, short ones first."""
    monkeypatch.setattr(node_times, "TOGETHER_PS", 9)
    runtime = Scripted(a=[8], b=[4], c=[1], d=[6], a_cold=[10], b_cold=[20], c_cold=[30], d_cold=[40])
    times = NodeTimes(runtime, tmp_path / "c")
    for name in "abcd":
        times.measure(node(name), cold=False)
    times.measure_together([node(name) for name in "abcd"])
    assert runtime.asked[4:] == ["c_cold", "b_cold", "d_cold", "a_cold"] and runtime.together[4:] == [3, 1]


def test_nodes_take_turns_out_of_the_cache_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_times, "TOGETHER", 2)
    runtime = Scripted(**{f"{name}_cold": range(1, 9) for name in "abc"}, a=range(1, 9))
    times = NodeTimes(runtime, tmp_path / "c")
    turns = [Turn(name, node(name.removeprefix(COLD))) for name in (f"{COLD}a", "a", f"{COLD}b", f"{COLD}c")]
    times.in_turns(turns, math.inf)
    assert runtime.asked == ["a", "a_cold", "b_cold", "c_cold"] * TURNS
    assert runtime.together == [1, 2, 1] * TURNS


def test_what_fails_together_has_its_turn_by_itself(tmp_path: Path) -> None:
    runtime = Scripted(a_cold=range(1, 20), b_cold=[OutOfMemoryError("short")] * 2 * TURNS)
    times = NodeTimes(runtime, tmp_path / "c")
    times.measure_together([])
    again = times.in_turns([Turn(f"{COLD}{name}", node(name)) for name in "ab"], math.inf)
    unsettled = again.unsettled([f"{COLD}a", f"{COLD}b"])
    assert unsettled[f"{COLD}a"] != UNKNOWN == unsettled[f"{COLD}b"]


def test_what_takes_long_is_measured_in_the_cache_only(tmp_path: Path) -> None:
    runtime = Scripted(a=[LONG_PS], b=[LONG_PS - 1], b_cold=[LONG_PS])
    times = NodeTimes(runtime, tmp_path / "c")
    assert [times.measure(node(name), cold=True) for name in "ab"] == ["a", f"{COLD}b"]
    assert times.of("a", 1.0) == LONG_PS and runtime.asked == ["a", "b", "b_cold"]


def test_weights_are_out_of_the_cache_and_of_other_values_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_times, "LARGE", 1 << 18)  # whatever this machine's inner caches hold
    runtime = Scripted(M=[10, 10], M_cold=[20, 20])
    times = NodeTimes(runtime, tmp_path / "c")
    for rows, expected in ((4, (16, 16, 20)), (1 << 18, (10, 15, 20))):
        product = node(f"MatMul-13[](float[{rows}], const float[6])")
        key = times.measure(product, cold=True)
        assert tuple(times.of(key, share) for share in (0.0, 0.5, 1.0)) == expected


def test_what_was_looked_at_once_is_taken_for_what_turns_say_of_its_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "FEW", 2)
    runtime = Scripted(a=[100, *[80] * TURNS], b=[100, *[80] * TURNS], c=[200], d=[300, *[330] * TURNS], e=[400])
    first = NodeTimes(runtime, tmp_path / "c")
    for name in "abcd":
        first.measure(node(name), cold=False)
    again = first.in_turns([Turn(name, node(name)) for name in "ab"], math.inf)
    assert [again.of(name, 0.0) for name in "abcd"] == [80, 80, 160, 240]
    again.measure(node("e"), cold=False)
    assert again.of("e", 0.0) == 320
    third = again.in_turns([Turn("d", node("d"))], math.inf)
    assert [third.of(name, 0.0) for name in "abcde"] == [80, 80, 160, 330, 320]
    assert first.of("c", 0.0) == 200
    cautious = third.cautious()
    assert [cautious.of(name, 0.0) for name in "abcde"] == [80, 80, 208, 330, 416]
    later = NodeTimes(Scripted(), tmp_path / "c")
    later.load("abcde")
    assert [later.of(name, 0.0) for name in "abcde"] == [80, 80, 160, 330, 320]


def test_what_turns_say_of_all_is_read_with_one_look_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Scripted(**{name: [100, *[80] * TURNS] for name in "abc"}, d=[1])
    first = NodeTimes(runtime, tmp_path / "c")
    first.in_turns([Turn(first.measure(node(name), cold=False), node(name)) for name in "abc"], math.inf)
    later, asked, get = NodeTimes(runtime, tmp_path / "c"), list[str](), Cache.get

    def counted(cache: Cache, key: str) -> str | None:
        asked.append(key)
        return get(cache, key)

    monkeypatch.setattr(Cache, "get", counted)
    later.measure(node("d"), cold=False)
    assert len(asked) == 2 + 3  # whether d is settled or was looked at, and the looks at the others


def test_what_has_a_turn_has_time_for_all_and_the_rest_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Scripted(a=[50, *[1] * TURNS], b=[60])
    times = NodeTimes(runtime, tmp_path / "c")
    turns = [Turn(times.measure(node(name), cold=False), node(name)) for name in "ab"]
    clock = count()
    monkeypatch.setattr(node_times.time, "monotonic", lambda: next(clock))
    again = times.in_turns(turns, 2 * TURNS)
    assert runtime.asked[2:] == ["a"] * TURNS
    assert [again.of(name, 0.0) for name in "ab"] == [1, 60]


def test_what_had_few_turns_when_the_time_is_over_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Scripted(a=[50, *[1] * TURNS])
    times = NodeTimes(runtime, tmp_path / "c")
    turn = Turn(times.measure(node("a"), cold=False), node("a"))
    clock = iter([0, 1, *[5] * (TURNS // 2 - 1), *[100] * TURNS])  # slow from the middle on
    monkeypatch.setattr(node_times.time, "monotonic", lambda: next(clock))
    assert times.in_turns([turn], 2 * TURNS).of("a", 0.0) == 50


def test_a_time_that_the_cache_lacks_is_said_to_be_missing(tmp_path: Path) -> None:
    first = NodeTimes(Scripted(a=[10]), tmp_path / "c")
    first.measure(node("a"), cold=False)
    other = NodeTimes(Scripted(), tmp_path / "c")
    assert other.load(["a"]) and not other.load(["a", "MatMul"])


def test_what_is_measured_anew_takes_the_place_of_what_was(tmp_path: Path) -> None:
    times = NodeTimes(Scripted(), tmp_path / "c")
    assert times.found("region", lambda: {"executed": ["a"]}) == {"executed": ["a"]}
    assert times.found("region", lambda: {"executed": ["b"]}) == {"executed": ["a"]}
    assert times.found("region", lambda: {"executed": ["b"]}, anew=True) == {"executed": ["b"]}
    assert NodeTimes(Scripted(), tmp_path / "c").recall("region") == {"executed": ["b"]}


def test_a_model_with_truer_costs_leaves_the_first_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, cache = mlp(256, 256), tmp_path / "cache"
    first = OnnxRuntimeCost(cache=cache)
    before = first.graph(graph)
    seen: list[tuple[int, int]] = []
    again = first.in_turns([graph], progress=lambda *at: seen.append(at))
    assert seen and seen[-1] == (2 * TURNS, 2 * TURNS)  # a view, and a product with what is fused to it
    assert first.graph(graph) == before
    after = again.graph(graph)
    assert 0 < after.time_ps < 20 * before.time_ps and after.kernels == before.kernels
    monkeypatch.setattr(node_times, "uncertainty", lambda taken: float(not taken))  # whether it scattered or not
    assert again.in_turns([graph], progress=lambda *at: seen.append(at)).graph(graph) == after
    assert len(seen) == 2 * TURNS  # nothing was measured again
    assert OnnxRuntimeCost(cache=cache).graph(graph) == after  # and every later process knows it


def test_nothing_is_measured_when_there_is_no_time(tmp_path: Path) -> None:
    first = OnnxRuntimeCost(cache=tmp_path / "cache")
    assert first.in_turns([mlp()], seconds=0.0).graph(mlp()) == first.graph(mlp())


def test_turns_that_are_interrupted_are_kept(tmp_path: Path) -> None:
    def interrupt(done: int, in_all: int) -> None:
        if done == in_all - 1:
            raise KeyboardInterrupt

    first = NodeTimes(Scripted(a=[50, *[7] * TURNS], b=[60, *[8] * TURNS]), tmp_path / "c")
    turns = [Turn(first.measure(node(name), cold=False), node(name)) for name in "ab"]
    with pytest.raises(KeyboardInterrupt):
        first.in_turns(turns, math.inf, interrupt)
    other = NodeTimes(Scripted(), tmp_path / "c")
    assert other.load("ab") and [other.of(name, 0.0) for name in "ab"] == [7, 8]


def test_turns_that_another_process_takes_meanwhile_are_added_to(tmp_path: Path) -> None:
    runtime = Scripted(a=[50, *[7] * TURNS])
    first = NodeTimes(runtime, tmp_path / "c")
    turn = Turn(first.measure(node("a"), cold=False), node("a"))
    other = NodeTimes(Scripted(a=[5] * TURNS), tmp_path / "c")

    def meanwhile(done: int, in_all: int) -> None:
        if done == in_all:
            other.in_turns([turn], math.inf)

    first.in_turns([turn], math.inf, meanwhile)
    [(_, known)] = first.beginning(node_times._settled(""))
    assert sorted(whole for whole, _ in known["turns"]) == [5] * TURNS + [7] * TURNS
