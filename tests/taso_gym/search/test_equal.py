"""A result that differs loses the rules that make it differ, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from taso_gym import RuleSet
from taso_gym.builder import GraphBuilder
from taso_gym.cost.roofline import RooflineCost
from taso_gym.errors import EquivalenceError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.state import RewriteState
from taso_gym.search import Budget, run
from taso_gym.search.equal import Screen, equal_part, writing_the_same
from taso_gym.search.finalist import Finalist
from taso_gym.tensor import TensorType

RULES = """
neg-neg: Neg(Neg(x)) => x
relu-relu: Relu(Relu(x)) => Relu(x)
exp-sum: Mul(Exp(x), Exp(y)) => Exp(Add(x, y))
"""


@pytest.fixture
def found() -> Finalist:
    """Three rules, each used twice."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (64, 64)))
    for _ in range(2):
        x = b.add("Neg", b.add("Neg", x))
        x = b.add("Relu", b.add("Relu", x))
        x = b.add("Mul", b.add("Exp", x), b.add("Exp", b.add("Tanh", x)))
    b.output("y", x)
    start = RewriteState(b.build(), RuleSet(parse_rules(RULES)), RooflineCost())
    result = run(start, "greedy", Budget(steps=200))
    assert len(result.path) == 6
    return Finalist("", start, result)


def has(graph: Graph, op: str, count: int) -> bool:
    return sum(node.sig.op.name == op for _, node in graph.operators()) >= count


@pytest.mark.parametrize(("op", "count", "culprit"), [("Neg", 4, "neg-neg"), ("Relu", 3, "relu-relu")])
def test_only_what_makes_it_differ_is_left_out(found: Finalist, op: str, count: int, culprit: str) -> None:
    """A graph counts as different once the rule was used where it mustn't be: even once, or at the second place."""
    rest = equal_part(found, lambda graph: not has(graph, op, count))
    assert rest is not None
    left, culprits = rest
    assert culprits == (culprit,)
    assert len(left.found.path) == 4 and has(left.graph, op, 4)
    assert left.graph == left.found.state.graph


def test_several_rules_are_left_out(found: Finalist) -> None:
    rest = equal_part(found, lambda graph: not (has(graph, "Neg", 4) and has(graph, "Exp", 4)))
    assert rest is not None and set(rest[1]) == {"neg-neg", "exp-sum"}
    assert len(rest[0].found.path) == 2


def test_what_is_equal_stays(found: Finalist) -> None:
    rest = equal_part(found, lambda _: False)
    assert rest == (found, ())


def test_a_start_that_differs_cant_be_mended(found: Finalist) -> None:
    assert equal_part(found, lambda _: True) is None


def test_few_graphs_are_compared(found: Finalist) -> None:
    asked: list[Graph] = []
    equal_part(found, lambda graph: bool(asked.append(graph)) or not has(graph, "Neg", 4))
    assert len(asked) <= 2 + int(np.ceil(np.log2(6))) + 1


@pytest.mark.parametrize("culprit", ["neg-neg", "relu-relu", "exp-sum"])
def test_rules_that_an_equal_result_has_are_not_compared_again(found: Finalist, culprit: str) -> None:
    asked: list[Graph] = []
    ops = {"neg-neg": ("Neg", 4), "relu-relu": ("Relu", 3), "exp-sum": ("Exp", 4)}
    screen = Screen(lambda graph: bool(asked.append(graph)) or not has(graph, *ops[culprit]), lambda _: None)
    with pytest.warns(UserWarning, match=f"^{culprit} left out: with it outputs differ"):
        left = screen.passed(found, lambda: 1.0)
    assert screen.culprits == (culprit,) and len(left.found.path) == 4
    count = len(asked)
    assert screen.passed(found, lambda: 1.0).graph == left.graph
    assert screen.passed(found.without(["neg-neg"]), lambda: 1.0).gains.keys() <= left.gains.keys()
    assert len(asked) == count


def test_what_differs_by_two_rules_together_is_compared(found: Finalist) -> None:
    """Each of two was in an equal result, but not both in one."""
    asked: list[Graph] = []
    screen = Screen(lambda graph: bool(asked.append(graph)), lambda _: None)
    for rules in (["neg-neg"], ["relu-relu"]):
        screen.passed(found.without(rules), lambda: 1.0)
    assert len(asked) == 2
    screen.passed(found, lambda: 1.0)
    screen.passed(found.without(["exp-sum"]), lambda: 1.0)
    assert len(asked) == 3 and asked[-1] is found.graph


KERNELS = """
softmax: Div(Exp(x), ReduceSum(Exp(x), axes=[-1])) => Softmax(x, axis=-1)
softmax-scaled: Mul(Div(Exp(x), ReduceSum(Exp(x), axes=[-1])), y) => Mul(y, Softmax(x, axis=-1))
softmax-moved: Transpose(Softmax(x, axis=0), perm=[1, 0]) => Softmax(Transpose(x, perm=[1, 0]), axis=-1)
softmax-two: Exp(x) => Mul(Softmax(x, axis=-1), Gelu(x))
softmax-three: Tanh(x) => Mul(Softmax(x, axis=-1), Gelu(x))
relu: Mul(x, Neg(y)) => Relu(x)
relu-too: Sub(x, y) => Relu(x)
softmax-fast [fast]: Exp(x) => Softmax(x, axis=-1)
sum-of-two: Add(Neg(x), y) => Sum(y, x)
sum-of-three: Add(Add(Neg(x), y), z) => Sum(y, x, z)
"""


@pytest.mark.parametrize(
    ("culprit", "alike"),
    [
        ("softmax", {"softmax-scaled", "softmax-two", "softmax-three", "softmax-fast"}),
        ("softmax-scaled", {"softmax", "softmax-two", "softmax-three", "softmax-fast"}),
        ("softmax-moved", set[str]()),
        ("softmax-two", set[str]()),
        ("softmax-fast", set[str]()),
        ("sum-of-two", set[str]()),
        ("relu", set[str]()),
    ],
)
def test_rules_that_write_the_kernel_of_one_that_differs(culprit: str, alike: set[str]) -> None:
    """Where a rule writes several, or rounds differently, no kernel is known to be at fault; nor is a simple one."""
    assert set(writing_the_same(culprit, RuleSet(parse_rules(KERNELS)))) == alike


def test_attention_is_left_out_in_all_its_forms() -> None:
    """Those with a mask where one with a mask differs; those without don't read what it does.

    What only computes weights beforehand, or has the operator on both sides, writes no kernel.
    """
    rules = RuleSet.load("default", numerics="fast")
    alike = writing_the_same("attention-of-heads-scaled-both-masked", rules)
    assert {"multi-head-attention-biased-as-standard", "attention-fuse-masked"} <= set(alike)
    assert writing_the_same("conv-then-1x1", rules) == writing_the_same("conv-fold-batch-norm", rules) == ()
    assert "attention-of-heads" not in alike and "multi-head-attention-scaled-both-masked" not in alike
    assert all("Attention" in rules[rules.index(name)].text for name in alike)


def test_what_writes_the_same_kernel_is_left_out_with_it() -> None:
    b = GraphBuilder({"": 20})
    e = b.add("Exp", b.input("x", TensorType("float", (4, 4))))
    b.output("y", b.add("Div", e, b.add("ReduceSum", e, axes=(-1,))))
    start = RewriteState(b.build(), RuleSet(parse_rules(KERNELS)[:2]), RooflineCost())
    screen = Screen(lambda graph: has(graph, "Softmax", 1), lambda _: None)
    with pytest.warns(UserWarning, match="^softmax left out"):
        left = screen.passed(Finalist("", start, run(start, "greedy", Budget(steps=9))), lambda: 1.0)
    assert screen.culprits == ("softmax", "softmax-scaled") and not left.found.path


def test_what_writes_the_same_kernel_and_is_equal_stays() -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (4, 4)))
    for axis in (0, -1):
        e = b.add("Exp", x)
        x = b.add("Div", e, b.add("ReduceSum", e, axes=(axis,)))
    b.output("y", x)
    text = "other: Div(Exp(x), ReduceSum(Exp(x), axes=[0])) => Softmax(x, axis=0)\n" + KERNELS
    start = RewriteState(b.build(), RuleSet(parse_rules(text)[:2]), RooflineCost())
    found = run(start, "greedy", Budget(steps=99))
    screen = Screen(lambda graph: has(graph, "Softmax", 2), lambda _: None)
    with pytest.warns(UserWarning, match="left out"):
        left = screen.passed(Finalist("", start, found), lambda: 1.0)
    assert len(screen.culprits) == 1 and has(left.graph, "Softmax", 1)


def test_what_there_is_no_time_for_is_not_compared(found: Finalist) -> None:
    """The third comparison is one too many; the next finalist is compared all the same."""
    asked: list[Graph] = []
    screen = Screen(lambda graph: bool(asked.append(graph)) or not has(graph, "Neg", 4), lambda _: None)
    assert screen.passed(found, lambda: 2.0 - len(asked)) is found
    assert len(asked) == 2 and not screen.culprits
    with pytest.warns(UserWarning, match="neg-neg left out"):
        assert screen.passed(found, lambda: 1.0) is not found


def test_what_cant_be_run_is_asked_once(found: Finalist) -> None:
    asked: list[Graph] = []

    def differs(graph: Graph) -> bool:
        asked.append(graph)
        raise EquivalenceError("a custom operator")

    screen = Screen(differs, lambda _: None)
    assert screen.passed(found, lambda: 1.0) is found and screen.passed(found, lambda: 1.0) is found
    assert len(asked) == 1


@pytest.mark.parametrize("error", [OptionError("a full disk"), OSError("a full disk"), MemoryError()])
def test_what_there_is_no_room_for_is_not_compared_but_the_next_is(found: Finalist, error: Exception) -> None:
    asked: list[Graph] = []

    def differs(graph: Graph) -> bool:
        asked.append(graph)
        if len(asked) == 1:
            raise error
        return not has(graph, "Neg", 4)

    screen = Screen(differs, lambda _: None)
    assert screen.passed(found, lambda: 1.0) is found
    with pytest.warns(UserWarning, match="neg-neg left out"):
        assert screen.passed(found, lambda: 1.0) is not found
