"""What is left of a search's result without some of its rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from priced_costs import Priced

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run
from taso_gym.search.finalist import Finalist, retraced
from taso_gym.tensor import TensorType

pytest.importorskip("onnxruntime")

RULES = """
neg: Neg(x) => Sqrt(x)
after-neg: Relu(Sqrt(x)) => Exp(x)
abs: Abs(x) => Floor(x)
after-abs: Relu(Floor(x)) => Ceil(x)
"""

PRICES = {"Relu": 10, "Neg": 10, "Abs": 9, "Sqrt": 8, "Floor": 7, "Exp": 2, "Ceil": 1, "Add": 0}


def branches(*operators: str, size: int = 4) -> Graph:
    """The sum of two branches: an operator and a Relu."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (size,)))
    ends = {op: b.add("Relu", b.add(op, x)) for op in operators}
    b.output("y", b.add("Add", ends["Neg"], ends["Abs"]))
    return b.build()


@pytest.fixture
def finalist(tmp_path: Path) -> Finalist:
    """Two branches, each rewritten twice."""
    start = RewriteState(branches("Neg", "Abs"), RuleSet(parse_rules(RULES)), Priced(tmp_path / "c", PRICES))
    return Finalist("first", start, run(start, "taso", Budget(steps=50), alpha=1.0))


def operators(finalist: Finalist) -> list[str]:
    return sorted(node.sig.op.name for _, node in finalist.graph.operators())


def test_gains_are_those_of_each_rule(finalist: Finalist) -> None:
    assert operators(finalist) == ["Add", "Ceil", "Exp"]
    gains = {name: gain // 10**9 for name, gain in finalist.gains.items()}
    assert gains == {"neg": 2, "after-neg": 16, "abs": 2, "after-abs": 16}


@pytest.mark.parametrize(
    ("dropped", "left"),
    [
        ({"neg"}, ["Add", "Ceil", "Neg", "Relu"]),  # what needs it goes with it
        ({"after-neg"}, ["Add", "Ceil", "Relu", "Sqrt"]),
        ({"abs"}, ["Abs", "Add", "Exp", "Relu"]),
        ({"abs", "after-neg"}, ["Abs", "Add", "Relu", "Relu", "Sqrt"]),
        ({"neg", "abs"}, ["Abs", "Add", "Neg", "Relu", "Relu"]),
    ],
)
def test_the_rest_of_the_way_is_kept(finalist: Finalist, dropped: set[str], left: list[str]) -> None:
    found = finalist.without(dropped)
    assert operators(found) == left and found.rules == finalist.rules - dropped
    assert found.name == f"first, without {', '.join(sorted(dropped))}"


def test_rules_that_it_was_found_without_are_not_in_its_name(finalist: Finalist) -> None:
    left = finalist.without({"neg"})
    assert left.without({"neg", "abs"}).name == "first, without neg, without abs"
    assert left.without({"neg"}).name == "first, without neg"


@pytest.mark.parametrize(
    ("below", "slack", "prices", "dropped"),
    [
        (3, 17, {}, set()),  # with neg and with abs goes what needs it
        (17, 16, {}, {"after-abs"}),  # without both it would be 32 dearer
        (0, -1, {"Exp": 20}, {"after-neg"}),
        (0, -1, {"Exp": 20, "Ceil": 20}, {"after-neg", "after-abs"}),
        (0, 0, {"Sqrt": 12}, set()),  # it loses time, and isn't in the way of one that gains more
    ],
)
def test_rules_that_gain_little_are_left_out_together(
    finalist: Finalist, below: int, slack: int, prices: dict[str, int], dropped: set[str], tmp_path: Path
) -> None:
    costed = finalist.costed_by(Priced(tmp_path / "c", PRICES | prices))
    left = costed.without_least(below * 10**9, slack * 10**9, lambda: False)
    assert costed.rules - left.rules == dropped and (left is costed) == (not dropped)
    assert costed.without_least(below * 10**9, slack * 10**9, lambda: True) is costed


def test_its_way_leads_there_from_its_start(finalist: Finalist) -> None:
    found = finalist.without({"after-neg"})
    state = found.start
    for match in found.found.path:
        state = state.apply(match)
    assert state.hash == found.found.state.hash and state.cost == found.found.state.cost


def test_its_way_is_gone_from_another_start(finalist: Finalist) -> None:
    """Of another size, and with other numbers of nodes; but for what isn't there."""
    start = RewriteState(branches("Abs", "Neg", size=7), finalist.start.rules)
    neg, relu, absolute, other, add = (i for i, _ in finalist.start.graph.operators())
    same = dict(zip((absolute, other, neg, relu, add), (i for i, _ in start.graph.operators()), strict=True))
    state, path = retraced(finalist.way, start, same)
    assert sorted(node.sig.op.name for _, node in state.graph.operators()) == ["Add", "Ceil", "Exp"]
    assert {t.shape for _, node in state.graph.operators() for t in node.sig.outputs} == {(7,)}
    assert len(path) == 4
    del same[relu]
    state, path = retraced(finalist.way, start, same)
    assert sorted(node.sig.op.name for _, node in state.graph.operators()) == ["Add", "Ceil", "Relu", "Sqrt"]
