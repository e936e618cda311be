"""What is found for one sample, in place of a batch."""

from __future__ import annotations

import pytest
from cost_graphs import weight

from taso_gym.batch import for_one_sample
from taso_gym.builder import GraphBuilder
from taso_gym.cost import load
from taso_gym.equivalence import validate
from taso_gym.errors import ModelError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, loops, run
from taso_gym.search.finalist import Finalist
from taso_gym.tensor import TensorType

BATCH, WIDTH = 4, 16
WEIGHTS = 4 * WIDTH * WIDTH


@pytest.fixture
def start() -> RewriteState:
    """A product and one Relu too many, for a batch."""
    b = GraphBuilder({"": 20})
    value = b.add("MatMul", b.input("x", TensorType("float", (BATCH, WIDTH))), weight(b, "w", WIDTH, WIDTH))
    b.output("y", b.add("Relu", b.add("Relu", value)))
    return RewriteState(b.build(), RuleSet(parse_rules("twice: Relu(Relu(x)) => Relu(x)")), load("roofline"))


def found(start: RewriteState) -> Finalist:
    """Return what greedy search finds."""
    return Finalist("first", start, run(start, "greedy", Budget(steps=10)))


@pytest.fixture
def lone(start: RewriteState) -> Finalist:
    """What it finds for one sample."""
    sample = for_one_sample(start.graph)
    assert sample and start.cost_model
    return found(RewriteState(sample, start.rules, start.cost_model))


def test_a_loop_costs_as_often_as_there_are_samples(start: RewriteState, lone: Finalist) -> None:
    whole = found(start)
    assert loops.is_loop(lone, start.graph) and not loops.is_loop(whole, start.graph)
    assert loops.time_ps(lone, start.graph) == BATCH * lone.found.state.cost.time_ps
    assert loops.time_ps(whole, start.graph) == whole.found.state.cost.time_ps


def test_what_is_found_for_one_sample_computes_the_batch(start: RewriteState, lone: Finalist) -> None:
    loop = loops.of_batch(lone, start.graph)
    assert any(node.sig.op.name == "Scan" for _, node in loop.operators()) and validate(start.graph, loop).ok
    whole = found(start)
    assert loops.of_batch(whole, start.graph) is whole.graph


@pytest.mark.parametrize(
    ("most", "before", "after"), [(WEIGHTS, True, True), (WEIGHTS - 1, False, True), (0, False, False)]
)
def test_weights_have_a_limit(
    most: int, before: bool, after: bool, start: RewriteState, lone: Finalist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many after it was rewritten."""
    monkeypatch.setattr(loops, "MOST_BYTES", most)
    assert loops.may_loop(start.graph) is before
    if after:
        loops.of_batch(lone, start.graph)
    else:
        with pytest.raises(ModelError, match=f"expected weights of at most 0 bytes in a loop, found {WEIGHTS}"):
            loops.of_batch(lone, start.graph)


def test_the_way_for_one_sample_is_one_for_the_batch(start: RewriteState, lone: Finalist) -> None:
    state = start
    for match in loops.way_of_batch(lone, start):
        state = state.apply(match)
    assert state.graph == found(start).graph and len(lone.found.path) == 1
