from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from taso_gym import cost, models
from taso_gym.builder import GraphBuilder
from taso_gym.cost.devices import DEVICES
from taso_gym.cost.roofline import RooflineCost
from taso_gym.errors import CostError, MatchError, MissingPackageError, OptionError
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState, check
from taso_gym.search import SEARCHES, Budget, run, searcher
from taso_gym.tensor import TensorType

run_module = sys.modules["taso_gym.search.run"]  # run is the function of the package
OWN = [name for name in SEARCHES if name != "policy"]


@pytest.fixture(scope="module")
def start() -> RewriteState:
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    return RewriteState(graph, RuleSet.load("default"), cost.load("roofline"))


def applied(state: RewriteState, path) -> RewriteState:
    for match in path:
        state = state.apply(match)
    return state


@pytest.mark.parametrize("name", OWN)
def test_finds_a_cheaper_graph_and_the_way_to_it(start, name):
    found = run(start, name, Budget(steps=4000), seed=1)
    assert found.state.cost.time_ps < start.cost.time_ps
    assert applied(start, found.path).hash == found.state.hash
    check(found.state)


@pytest.mark.parametrize("name", ["greedy", "taso"])
def test_what_costs_nothing_goes_for_the_sake_of_what_it_hides(name):
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (2, 6)))
    for shape in ((3, 4), (12,), (2, 6)):
        x = builder.add("Reshape", x, shape=shape)
    builder.output("y", builder.add("Relu", x))
    begin = RewriteState(builder.build(), RuleSet.load("default"), cost.load("roofline"))
    found = run(begin, name, Budget(steps=200))
    assert [node.sig.op.key for _, node in found.state.graph.operators()] == ["Relu"]


@pytest.mark.parametrize("name", OWN)
def test_same_seed_same_path(start, name):
    paths = {run(start, name, Budget(steps=1500), seed=7).path for _ in range(2)}
    assert len(paths) == 1


@pytest.mark.parametrize("name", OWN)
def test_resumed_search_ends_like_an_uninterrupted_one(start, name, tmp_path):
    file = tmp_path / "search.json"
    whole = run(start, name, Budget(steps=3000), seed=3)
    run(start, name, Budget(steps=1000), seed=3, checkpoint=file)
    resumed = run(start, name, Budget(steps=3000), seed=3, checkpoint=file)
    assert (resumed.path, resumed.explored) == (whole.path, whole.explored)


@pytest.mark.parametrize("name", ["greedy", "taso"])
def test_a_path_that_is_known_is_where_a_search_begins(start, name, tmp_path):
    path = run(start, "taso", Budget(steps=4000)).path[:8]
    whole = run(start, name, Budget(steps=3000), known=path)
    assert whole.path[: len(path)] == path and whole.explored > len(path)
    assert whole.state.cost.time_ps <= applied(start, path).cost.time_ps < start.cost.time_ps
    for steps in (0, 3, len(path), 100):
        file = tmp_path / f"{steps}.json"
        cut = run(start, name, Budget(steps=steps), known=path, checkpoint=file)
        assert cut.explored == steps and cut.path[: len(path)] == path[: len(cut.path)]
        resumed = run(start, name, Budget(steps=3000), known=path, checkpoint=file)
        assert (resumed.path, resumed.explored) == (whole.path, whole.explored)
    other = run(start, name, Budget(steps=3000), known=path[:2], checkpoint=file)
    assert other.path == whole.path, "it has gone on from somewhere else"
    with pytest.raises(MatchError, match="expected a legal match"):
        run(start, name, Budget(steps=4), known=[path[0], path[0]])


@pytest.mark.parametrize("name", ["beam", "random", "ranked"])
def test_a_search_that_does_not_go_on_from_the_best_takes_no_path(start, name):
    path = run(start, "taso", Budget(steps=4000)).path
    assert run(start, name, Budget(steps=300), known=path).path == run(start, name, Budget(steps=300)).path


def test_of_a_path_that_is_known_the_best_counts(start):
    dearer = next(m for row in start.matches for m in row if start.delta(m).time_ps > 0)
    assert run(start, "greedy", Budget(steps=1), known=[dearer]).state is start
    assert run(start, "greedy", Budget(seconds=0.0), known=[dearer]).explored == 0, "there is no time for it"


def test_random_walks_differ_by_seed(start):
    explored = {run(start, "random", Budget(steps=200), seed=s).path for s in range(4)}
    assert len(explored) > 1


def test_forgotten_states_are_rebuilt(start, monkeypatch):
    expected = run(start, "taso", Budget(steps=3000))
    monkeypatch.setattr(searcher, "KEPT_STATES", 2)
    assert run(start, "taso", Budget(steps=3000)).path == expected.path


def test_taso_search_goes_through_dearer_graphs_only_within_alpha(start):
    cheap = run(start, "taso", Budget(steps=3000), alpha=1.0)
    wide = run(start, "taso", Budget(steps=3000), alpha=1.2)
    assert wide.explored >= cheap.explored
    assert wide.state.cost.time_ps <= start.cost.time_ps


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_search_weighs_some_at_a_time_and_takes_the_best_of_what_it_weighed(start, name):
    seen = []
    found = run(start, name, Budget(steps=searcher.CHUNK), on_progress=seen.append)
    assert len(seen) == 1 and seen[0].explored == searcher.CHUNK and seen[0].rewrites == 0
    first = [m for row in start.matches for m in row][: searcher.CHUNK]
    assert min(start.delta(m).time_ps for m in first) < 0
    assert [start.delta(m).time_ps for m in found.path] == [min(start.delta(m).time_ps for m in first)]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("steps", [1, 33, 100])
def test_no_more_is_weighed_than_the_budget_says(start, name, steps):
    seen = []
    found = run(start, name, Budget(steps=steps), on_progress=lambda progress: seen.append(progress.explored))
    assert seen[-1] == steps or (found.exhausted and seen[-1] < steps)


@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in OWN), ("taso", {"descend": False})], ids=lambda value: str(value)
)
def test_a_step_weighs_little(start, name, options):
    """A budget acts between steps, and with measured costs each rewrite may take a second."""
    seen = [0]
    run(start, name, Budget(steps=2000), on_progress=lambda progress: seen.append(progress.explored), **options)
    assert len(seen) > 20 and max(after - before for before, after in pairwise(seen)) <= searcher.CHUNK


def test_a_queue_has_an_end(start, monkeypatch):
    """The dearer half is forgotten."""
    module = sys.modules["taso_gym.search.taso"]
    monkeypatch.setattr(module, "MOST_QUEUED", 50)
    search = module.Taso(start, np.random.default_rng(0), alpha=10.0, descend=False)
    longest = 0
    for _ in range(200):
        search.step()
        longest = max(longest, len(search.frontier()["queue"]))
    assert longest + searcher.CHUNK > 50 and longest <= 50
    assert search.best_value < search.values[0]


class Pressing(RooflineCost):
    """Costs that are worked out once when Ctrl-C is pressed."""

    presses = False

    def node(self, sig, context=None):
        if self.presses:
            self.presses = False
            os.kill(os.getpid(), signal.SIGINT)
        return super().node(sig, context)


WEIGHING = [("greedy", {}), ("beam", {}), ("taso", {}), ("taso", {"descend": False})]


@pytest.mark.parametrize(("name", "options"), WEIGHING, ids=str)
def test_ctrl_c_ends_a_search_within_a_step_that_goes_on_as_if_it_hadnt(start, name, options, tmp_path):
    model, file = Pressing(), tmp_path / "search.json"
    begin = RewriteState(start.graph, start.rules, model)
    whole = run(begin, name, Budget(steps=1000), checkpoint=file, **options)
    file.unlink()
    fresh = RewriteState(start.graph, start.rules, model)
    model.presses = True
    first = run(fresh, name, Budget(steps=1000), checkpoint=file, **options)
    assert first.interrupted and first.explored < searcher.CHUNK
    resumed = run(begin, name, Budget(steps=1000), checkpoint=file, **options)
    assert (resumed.path, resumed.explored) == (whole.path, whole.explored)


@pytest.mark.parametrize(("name", "options"), WEIGHING, ids=str)
def test_a_step_that_measures_ends_when_it_took_long(start, name, options, monkeypatch):
    seen = [0]
    monkeypatch.setattr(searcher, "CHUNK_SECONDS", 0.0)
    begin = RewriteState(start.graph, start.rules, Anew())
    run(begin, name, Budget(steps=50), on_progress=lambda progress: seen.append(progress.explored), **options)
    assert max(after - before for before, after in pairwise(seen)) == 1


@pytest.fixture
def now(monkeypatch):
    """The time in a search: weighing a rewrite takes a second, applying it three."""
    now, deltas, apply = [0.0], RewriteState.deltas, RewriteState.apply

    def taking(seconds, matches):
        for match in matches:
            now[0] += seconds
            yield match

    monkeypatch.setattr(
        RewriteState, "deltas", lambda state, matches, **how: deltas(state, taking(1.0, matches), **how)
    )
    monkeypatch.setattr(RewriteState, "apply", lambda state, match: apply(state, *taking(3.0, [match])))
    for module in (sys.modules[run.__module__], searcher):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.mark.parametrize(("name", "options"), WEIGHING, ids=str)
def test_a_budget_of_seconds_is_kept_and_has_room_for_what_was_weighed(start, name, options, now):
    """Fifty seconds are used, not more but for the last act."""
    found = run(start, name, Budget(50.0), **options)
    assert found.seconds == now[0] and 50 <= found.seconds < 54
    assert found.state.cost.time_ps < start.cost.time_ps
    assert len(found.path) == (3 if (name, options) == ("taso", {}) else 1)


def test_a_budget_has_no_room_for_what_gains_nothing(start, now):
    bottom = run(start, "greedy", Budget()).state
    now[0], seconds = 0.0, 0.9 * sum(map(len, bottom.matches))
    found = run(bottom, "taso", Budget(seconds))
    assert not found.path and seconds <= found.seconds < seconds + 1


def test_interruption_keeps_the_best_so_far(start):
    def interrupt(progress):
        if progress.rewrites >= 2:
            os.kill(os.getpid(), signal.SIGINT)

    found = run(start, "greedy", Budget(60), on_progress=interrupt)
    assert found.interrupted
    assert len(found.path) == 2
    assert found.state.cost.time_ps < start.cost.time_ps


def test_ctrl_c_takes_what_was_weighed(start, now):
    """As the end of the budget would: minutes of weighing aren't lost."""
    weighed = []

    def interrupt(progress):
        weighed.append(progress.explored)
        if len(weighed) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    found = run(start, "taso", Budget(1000.0), on_progress=interrupt)
    assert found.interrupted and len(weighed) == 2
    assert found.path and found.state.cost.time_ps < start.cost.time_ps


def test_an_interruption_that_c_code_handles_stays_its_own(start, monkeypatch):
    def refuse(*_):
        raise TypeError("signal handler must be a Python function")

    theirs = SimpleNamespace(SIGINT=signal.SIGINT, getsignal=lambda _: None, signal=refuse)
    monkeypatch.setattr(sys.modules[run.__module__], "signal", theirs)
    assert run(start, "greedy", Budget(steps=200)).path


def test_unknown_search_is_refused(start):
    with pytest.raises(OptionError, match="expected a search of greedy, taso"):
        run(start, "gredy")


def test_unknown_option_is_refused(start):
    with pytest.raises(OptionError, match=r"expected options of search 'greedy' among objective, found width"):
        run(start, "greedy", width=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("greedy:x", {}, "path"),
        ("policy", {}, "path"),
        ("taso", {"alpha": 0.9}, "expected an alpha of 1 or more, found 0.9"),
        ("taso", {"alpha": float("nan")}, "expected an alpha of 1 or more, found nan"),
        ("taso", {"alpha": "1.05"}, "expected an alpha of 1 or more, found '1.05'"),
        ("beam", {"width": 0}, "expected width to be a whole number from 1 on, found 0"),
        ("beam", {"width": "8"}, "expected width to be a whole number from 1 on, found '8'"),
        ("beam", {"width": 2.5}, "expected width to be a whole number from 1 on, found 2.5"),
        ("beam", {"patience": 0}, "expected patience to be a whole number from 1 on, found 0"),
        ("random", {"horizon": 0}, "expected horizon to be a whole number from 1 on, found 0"),
        ("greedy", {"seed": -1}, "expected a seed of 0 or more, found -1"),
        ("greedy", {"seed": True}, "expected a seed of 0 or more, found True"),
        ("greedy", {"budget": Budget(float("nan"))}, "expected a budget of 0 or more seconds, steps and idle seconds"),
        ("greedy", {"budget": Budget(idle=float("nan"))}, "expected a budget of 0 or more .*idle=nan"),
        ("greedy", {"budget": Budget(steps=-1)}, "expected a budget of 0 or more seconds, steps and idle seconds"),
        ("greedy", {"budget": Budget(steps=None)}, "expected a budget of 0 or more .*steps=None"),
        ("greedy", {"budget": Budget("5")}, "expected a budget of 0 or more .*seconds='5'"),
        ("greedy", {"budget": 5}, "expected a Budget, found 5"),
        ("greedy", {"budget": (1, 2)}, r"expected a Budget, found \(1, 2\)"),
        ("greedy", {"objective": "memory"}, "expected an Objective as objective, found 'memory'"),
        (5, {}, "expected a name as search, found 5"),
    ],
)
def test_option_outside_its_range_is_refused(start, name, options, message):
    with pytest.raises(OptionError, match=message):
        run(start, name, **options)


def test_a_search_of_something_else_than_a_state_is_refused(start):
    with pytest.raises(OptionError, match="expected a RewriteState as start, found <Graph"):
        run(start.graph, "greedy")


def test_checkpoint_without_a_folder_is_refused_before_the_search(start, tmp_path):
    with pytest.raises(OptionError, match="expected a folder to write search"):
        run(start, "greedy", checkpoint=tmp_path / "none" / "search.json", on_progress=lambda _: pytest.fail("began"))


class NumPyCosts(RooflineCost):
    """Costs that are NumPy's integers."""

    def time(self, sig, context, load):
        return np.int64(super().time(sig, context, load)[0]), 1


@pytest.mark.parametrize("name", OWN)
def test_numbers_of_numpy_are_numbers(start, name, tmp_path):
    budget, file = Budget(steps=np.int64(100)), tmp_path / "search.json"
    begin = RewriteState(start.graph, start.rules, NumPyCosts())
    whole = run(begin, name, budget, seed=np.int64(3))
    assert run(begin, name, Budget(steps=40), seed=np.int64(3), checkpoint=file).explored
    assert run(begin, name, budget, seed=3, checkpoint=file).path == whole.path


def test_checkpoint_that_cant_be_written_any_more_ends_nothing(start, tmp_path):
    folder = tmp_path / "soon gone"
    folder.mkdir()
    budget, file = Budget(steps=500), folder / "search.json"
    whole = run(start, "greedy", budget)
    with pytest.warns(UserWarning, match="can't be taken up from here: expected a folder"):
        found = run(start, "greedy", budget, checkpoint=file, on_progress=lambda _: shutil.rmtree(folder, True))
    assert found.path == whole.path


def test_missing_package_is_named(start, monkeypatch):
    monkeypatch.setitem(SEARCHES, "policy", "taso_agents_that_are_not_there:PolicySearch")
    with pytest.raises(MissingPackageError, match="pip install taso-agents"):
        run(start, "policy:x")


@pytest.mark.parametrize(
    "damage",
    ["no json", "[" * 100_000, "{}", '{"identity": {}, "seconds": 1}', '{"identity": 1, "seconds": 1, "searcher": {}}'],
)
def test_damaged_checkpoint_is_refused(start, tmp_path, damage):
    file = tmp_path / "search.json"
    file.write_text(damage)
    with pytest.raises(OptionError, match=r"search\.json"):
        run(start, "greedy", checkpoint=file)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("explored", "7"),
        ("explored", None),
        ("exhausted", 0),
        ("start", "1"),
        ("start", float("nan")),
        ("start", 10**400),
        ("best", 1),
        ("best", [-1, 5]),
        ("best", [9, 5]),
        ("best", [1, None]),
        ("best", [True, 5]),
        ("tree", 3),
        ("tree", [[-1, 0, [1], 0, 5]]),
        ("tree", [[1, 0, [1], 0, 5]]),
        ("tree", [[0, 10**6, [1], 0, 5]]),
        ("tree", [[0, 0, ["1"], 0, 5]]),
        ("tree", [[0, 0, 1, 0, 5]]),
        ("tree", [[0, 0, [1], 0, "5"]]),
        ("rng", 5),
    ],
)
def test_checkpoint_with_what_no_search_writes_is_refused(start, tmp_path, key, value):
    file = tmp_path / "search.json"
    run(start, "greedy", Budget(steps=1), checkpoint=file)
    data = json.loads(file.read_text())
    data["searcher"][key] = value
    file.write_text(json.dumps(data))
    with pytest.raises(OptionError, match=r"search\.json: expected a checkpoint of Greedy, found damaged data"):
        run(start, "greedy", Budget(steps=2), checkpoint=file)


@pytest.mark.parametrize("search", ["greedy", "beam", "taso"])
def test_a_frontier_further_than_there_are_matches_ends(start, tmp_path, search):
    """As of a release that finds fewer matches: it would weigh none of them for ever."""
    file = tmp_path / "search.json"
    run(start, search, Budget(steps=3), checkpoint=file)
    data = json.loads(file.read_text())
    frontier = data["searcher"]["frontier"]
    if search == "greedy":
        frontier += [0] * 10_000
    elif search == "beam":
        frontier[3] = 10_000
    else:
        frontier |= {"descending": False, "open": [0], "opened": 10_000}
    file.write_text(json.dumps(data))
    found = run(start, search, Budget(seconds=60.0, steps=2_000), checkpoint=file)
    assert found.exhausted or found.explored == 2_000


def test_checkpoint_of_another_version_is_refused(start, tmp_path):
    file = tmp_path / "search.json"
    run(start, "greedy", Budget(steps=1), checkpoint=file)
    data = json.loads(file.read_text())
    data["identity"]["version"] = "0.0"
    file.write_text(json.dumps(data))
    with pytest.raises(OptionError, match=r"search\.json: expected version '.*', the checkpoint has '0.0'"):
        run(start, "greedy", Budget(steps=2), checkpoint=file)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, "soon"])
def test_checkpoint_of_no_time_is_refused(start, tmp_path, seconds):
    file = tmp_path / "search.json"
    run(start, "greedy", Budget(steps=1), checkpoint=file)
    file.write_text(json.dumps({**json.loads(file.read_text()), "seconds": seconds}))
    with pytest.raises(OptionError, match=r"expected a search checkpoint, found damaged data in .*search\.json"):
        run(start, "greedy", Budget(steps=2), checkpoint=file)


def test_checkpoint_of_another_search_is_refused(start, tmp_path):
    file = tmp_path / "search.json"
    run(start, "greedy", Budget(steps=10), checkpoint=file)
    with pytest.raises(OptionError, match="expected search 'taso', the checkpoint has 'greedy'"):
        run(start, "taso", Budget(steps=10), checkpoint=file)


def two_branches(opset: int, order: str = "ab") -> RewriteState:
    b = GraphBuilder({"": opset})
    x = b.input("x", TensorType("float", (4, 4)))
    turned = {branch: b.add("Transpose", b.add("Relu" if branch == "a" else "Neg", x)) for branch in order}
    b.output("y", b.add("Add", turned["a"], turned["b"]))
    return RewriteState(b.build(), RuleSet.load("default"), cost.load("roofline"))


def test_checkpoint_of_a_graph_with_other_numbers_or_opset_is_refused(tmp_path):
    """Rewrites are told by the numbers of nodes; a file that is exported again may have them in another order."""
    file = tmp_path / "search.json"
    first = two_branches(20)
    run(first, "greedy", Budget(steps=3), checkpoint=file)
    run(two_branches(20), "greedy", Budget(steps=4), checkpoint=file)
    for other in (two_branches(20, "ba"), two_branches(17)):
        assert other.graph.canonical_digest() == first.graph.canonical_digest()
        with pytest.raises(OptionError, match=r"expected graph '.*', the checkpoint has"):
            run(other, "greedy", Budget(steps=5), checkpoint=file)


def test_checkpoint_holds_only_plain_data(start, tmp_path):
    file = tmp_path / "search.json"
    run(start, "beam", Budget(steps=2000), checkpoint=file)
    assert set(json.loads(file.read_text())) == {"identity", "seconds", "searcher"}


class Anew(RooflineCost):
    """Costs that are measured, and another time are others."""

    deterministic = False
    key = "measured"


@pytest.mark.parametrize("name", OWN)
def test_a_search_by_measured_costs_goes_on_when_they_were_measured_anew(start, name, tmp_path):
    file, models_ = tmp_path / "search.json", [Anew(device) for device in list(DEVICES)[:2]]
    found = [
        run(RewriteState(start.graph, start.rules, model), name, Budget(steps=steps), seed=1, checkpoint=file)
        for model, steps in zip(models_, (3000, 3100), strict=True)
    ]
    assert found[1].path[:1] == found[0].path[:1] and found[1].explored >= found[0].explored
    assert found[1].state.cost.time_ps < models_[1].graph(start.graph).time_ps


class Losing(Anew):
    """Measured costs that can't be measured any more from some time on."""

    lost = False

    def node(self, sig, context=None):
        if self.lost:
            raise CostError("expected a disk, found none")
        return super().node(sig, context)


@pytest.mark.parametrize("name", OWN)
def test_measured_costs_that_are_lost_end_a_search_with_what_it_found(start, name, tmp_path):
    model, file = Losing(), tmp_path / "search.json"
    begin = RewriteState(start.graph, start.rules, model)

    def lose(progress):
        model.lost = progress.rewrites > 0

    with pytest.warns(UserWarning, match="the search ended early: expected a disk"):
        found = run(begin, name, Budget(steps=20_000), seed=1, on_progress=lose, checkpoint=file)
    assert found.state.cost.time_ps < begin.cost.time_ps and not found.exhausted
    assert not file.exists()  # a step that was cut in two isn't saved
    model.lost = True
    with pytest.raises(CostError, match="expected a disk"):
        run(begin, name, Budget(steps=20_000), seed=1)


@pytest.mark.parametrize("name", ["greedy", "taso"])
def test_a_search_without_time_to_idle_still_goes_down(start, name):
    found = run(start, name, Budget(60.0, idle=0.0))
    assert not any(found.state.delta(m).time_ps < 0 for row in found.state.matches for m in row)


@pytest.mark.parametrize(
    ("times", "cut_short"), [([0.95, 1.0], True), ([0.5, 1.0], False), ([0.95, math.inf, 1.0], False), ([], False)]
)
def test_a_search_says_whether_it_was_still_finding(start, times, cut_short, monkeypatch):
    """By a clock that moves after each step, to infinity where Ctrl-C is pressed."""
    clock, left = [0.0], list(times)

    def move(_):
        clock[0] = left.pop(0) if left else clock[0]
        if clock[0] == math.inf:
            clock[0] = left.pop(0)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found = run(start, "greedy", Budget(1.0), on_progress=move)
    assert found.cut_short == cut_short and found.exhausted != bool(times) and found.path


def test_a_search_that_is_taken_up_when_its_time_is_over_finds_nothing(start, tmp_path, monkeypatch):
    """By a clock that moves to the end of the budget after the first step."""
    clock = [0.0]
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    taken = {"budget": Budget(1.0), "checkpoint": tmp_path / "c"}
    first = run(start, "greedy", on_progress=lambda _: clock.__setitem__(0, 1.0), **taken)
    again = run(start, "greedy", **taken)
    assert first.path and again.path == first.path and first.explored == again.explored and not again.cut_short


def test_what_it_takes_to_begin_counts(start, monkeypatch):
    """`ranked:latency` measures the start."""
    clock = [0.0]

    def slow(*args):
        clock[0] += 7.0
        return make(*args)

    make = run_module._make
    monkeypatch.setattr(run_module, "_make", slow)
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found = run(start, "greedy", Budget(5.0))
    assert found.seconds == 7.0 and not found.explored


def test_a_beam_is_idle_where_a_depth_brings_nothing(start):
    found = run(start, "beam", Budget(60.0, idle=0.0), width=2)
    assert len(found.path) > 1


def test_a_search_that_finds_nothing_more_ends_when_it_has_been_idle(start):
    found = run(start, "taso", Budget(60.0, idle=0.0))
    assert not found.exhausted and found.seconds < 30
    bottom = run(found.state, "greedy", Budget(steps=4000))
    assert bottom.path == ()  # it had gone down before
