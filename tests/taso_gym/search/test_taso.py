"""Where costs are measured, TASO's search looks at what pays only together with what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path

import numpy as np
import pytest

from taso_gym.builder import GraphBuilder
from taso_gym.cost.roofline import RooflineCost
from taso_gym.cost.work import Work
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import Budget, run, searcher
from taso_gym.search.taso import Taso
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

PLACES = 4
RULES = """
dearer: Abs(x) => Max(x, Neg(x))
follows: Max(x, Neg(x)) => Sqrt(Mul(x, x))
in-the-way: Neg(Abs(x)) => Min(x, Neg(x))
"""
US = 1_000_000
PREVENTS = """
gains-more: Exp(x) => Sqrt(x)
prevented: Neg(Exp(x)) => Exp(x)
"""
FORMS = """
gains-more: Exp(x) => Max(x, x)
goes-on: Exp(x) => Sqrt(Max(x, x))
from-there: Sqrt(Max(x, x)) => Mul(x, x)
"""
TIMES_PS = {"Exp": 10 * US, "Abs": 10 * US, "Max": 6 * US, "Neg": 6 * US, "Sqrt": US, "Mul": US, "Min": 10 * US - 1000}


class Given(RooflineCost):
    """Times by operator that count as measured."""

    deterministic = False

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
        return TIMES_PS[sig.op.name], 1


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "NOISE", 0.0)


def negated(operator: str, rules: str) -> RewriteState:
    """A chain of an operator and Neg, `PLACES` times."""
    builder = GraphBuilder({"": 20})
    value = builder.input("x", TensorType("float", (2, 3)))
    for _ in range(PLACES):
        value = builder.add("Neg", builder.add(operator, value))
    builder.output("y", value)
    return RewriteState(builder.build(), RuleSet(parse_rules(rules)), Given())


@pytest.fixture
def start() -> RewriteState:
    return negated("Abs", RULES)


def operators(state: RewriteState) -> Counter[str]:
    return Counter(node.sig.op.name for _, node in state.graph.operators())


def test_what_pays_only_with_what_follows_is_taken_at_all_places(start: RewriteState) -> None:
    search = Taso(start, np.random.default_rng(0))
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {"Neg": PLACES, "Mul": PLACES, "Sqrt": PLACES}


def test_what_never_pays_is_looked_at_once(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIMES_PS, "Sqrt", 20 * US)
    search = Taso(start, np.random.default_rng(0))
    added: list[str] = []
    add = search.add

    def counted(parent: int, match: Match) -> tuple[int, RewriteState]:
        added.append(start.rules[match.rule].name)
        return add(parent, match)

    monkeypatch.setattr(search, "add", counted)
    while not search.settled:
        search.step()
    assert Counter(added) == {"dearer": 1, "in-the-way": PLACES}
    assert operators(search.state(search.best)) == {"Neg": PLACES, "Min": PLACES}


def test_what_never_pays_in_one_size_may_in_another() -> None:
    """What is looked at first costs as much as before in both."""

    class Sized(Given):
        def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
            operand = sig.inputs[0]
            assert isinstance(operand, TensorType) and operand.shape
            is_small = operand.shape[0] == 2
            times = {"Abs": (20, 10), "Max": (10, 5), "Neg": (10, 5), "Sqrt": (15, 1), "Mul": (15, 1)}
            return times[sig.op.name][is_small] * US, 1

    builder = GraphBuilder({"": 20})
    for rows in (8, 2):
        builder.output(f"y{rows}", builder.add("Abs", builder.input(f"x{rows}", TensorType("float", (rows, 3)))))
    search = Taso(RewriteState(builder.build(), RuleSet(parse_rules(RULES)), Sized()), np.random.default_rng(0))
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {"Abs": 1, "Mul": 1, "Sqrt": 1}


def test_what_would_be_prevented_is_applied_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Taso(negated("Exp", PREVENTS), np.random.default_rng(0))
    follow, followed = search._follow, list[Match]()

    def noted(parent: int, first: Match, also: Match | None = None) -> int:
        followed.append(first)
        return follow(parent, first, also)

    monkeypatch.setattr(search, "_follow", noted)
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {"Sqrt": PLACES}
    assert len(followed) == 2, "both orders are tried at one of four places that are alike"


def test_what_is_better_without_what_it_prevents_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = PREVENTS.replace("=> Exp(x)", "=> Min(x, x)")
    monkeypatch.setitem(TIMES_PS, "Min", 11 * US)
    search = Taso(negated("Exp", rules), np.random.default_rng(0))
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {"Sqrt": PLACES, "Neg": PLACES}


@pytest.mark.parametrize(("alone", "found"), [(6, "Mul"), (1, "Max")])
def test_of_two_forms_that_counts_which_is_better_with_what_follows(
    alone: int, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TIMES_PS, "Max", alone * US)
    monkeypatch.setitem(TIMES_PS, "Mul", 2 * US)
    search = Taso(negated("Exp", FORMS), np.random.default_rng(0))
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {found: PLACES, "Neg": PLACES}


def test_when_it_is_late_what_gains_is_applied_without_a_look_at_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """With measured costs the first look would take what time is left, and most that gains would stay undone."""
    search = Taso(negated("Exp", FORMS), np.random.default_rng(0))
    while not search._waiting:
        search.step()
    search.late = lambda: True
    monkeypatch.setattr(search, "_follow", lambda *_: pytest.fail("looked"))
    search.finish(lambda: False)
    assert operators(search.state(search.best)) == {"Max": PLACES, "Neg": PLACES}


def test_a_look_that_was_cut_short_is_taken_again(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second step ends as early as it can, as where the time is over; what is seen by then isn't in vain."""
    search = Taso(start, np.random.default_rng(0))
    looks, change = list[int](), search.change
    monkeypatch.setattr(search, "change", lambda *of: looks.append(search.explored) or change(*of))
    for number in range(1000):
        cut, weighed = bool(number % 2 and search._doubtful), len(looks)
        monkeypatch.setattr(search, "ended", lambda cut=cut: cut)
        search.step()
        assert not cut or len(looks) == weighed, "nothing is weighed"
        if search.settled:
            break
    assert operators(search.state(search.best)) == {"Neg": PLACES, "Mul": PLACES, "Sqrt": PLACES}


@pytest.mark.parametrize(("operator", "rules"), [("Abs", RULES), ("Exp", PREVENTS), ("Exp", FORMS)])
def test_a_look_that_was_interrupted_goes_on(operator: str, rules: str, tmp_path: Path) -> None:
    start = negated(operator, rules)
    whole = run(start, "taso", Budget(steps=60))
    for steps in (8, 10, 14, 18, 22):
        file = tmp_path / f"{steps}.json"
        assert not run(start, "taso", Budget(steps=steps), checkpoint=file).exhausted
        resumed = run(start, "taso", Budget(steps=60), checkpoint=file)
        assert (resumed.path, resumed.explored) == (whole.path, whole.explored)


@pytest.mark.parametrize(("model", "rows"), [(Given(), [2, 3, 8]), (RooflineCost(), [8, 2, 3])])
def test_where_costs_are_measured_what_moves_least_is_weighed_first(
    model: RooflineCost, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = GraphBuilder({"": 20})
    for size in (8, 2, 3):
        builder.output(f"y{size}", builder.add("Exp", builder.input(f"x{size}", TensorType("float", (size, 3)))))
    start = RewriteState(builder.build(), RuleSet(parse_rules("root: Exp(x) => Sqrt(x)")), model)
    weighed = list[object]()

    def changes(state: RewriteState, matches: Iterable[Match]) -> list[tuple[Match, int]]:
        found = [(match, 0) for match in matches]
        weighed.extend(state.graph.nodes[i].sig.outputs[0].shape[0] for match, _ in found for i in match.nodes)
        return found

    search = Taso(start, np.random.default_rng(0))
    monkeypatch.setattr(search, "changes", changes)
    while len(weighed) < len(rows):
        search.step()
    assert weighed == rows


def test_what_only_its_bound_made_worth_it_is_not_expanded() -> None:
    asked, times_ps = set[str](), {"Relu": 1000 * US, "Abs": 10 * US, "Max": 10**6 * US, "Sqrt": 10**6 * US}

    class Bounding(Given):
        contextual = True

        def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
            asked.add(sig.op.name)
            return times_ps[sig.op.name], 1

        def least_ps(self, sig: Signature, context: Hashable = None) -> int:
            asked.add(sig.op.name)
            return 20 * US

    builder = GraphBuilder({"": 20})
    builder.output("y", builder.add("Abs", builder.add("Relu", builder.input("x", TensorType("float", (2, 3))))))
    rules = RuleSet(parse_rules("dear: Abs(x) => Max(x, x)\nbeyond: Max(x, x) => Sqrt(x)"))
    start = RewriteState(builder.build(), rules, Bounding("", None))
    search = Taso(start, np.random.default_rng(0), descend=False)
    while search.step():
        pass
    assert asked == {"Relu", "Abs", "Max"}
    assert not search.best
