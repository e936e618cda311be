"""Right sides: what a rule makes of a term, and where it doesn't apply."""

import numpy as np
import pytest
from matching_graphs import children, graph_of, rule_set, show

from taso_gym.builder import GraphBuilder
from taso_gym.rules.state import RewriteState, check
from taso_gym.tensor import TensorType
from taso_gym.weights import literal

SPLIT = (
    "r: *Split(x, axis=a, split=[s, t]) => Slice(x, starts=[0], ends=[s], axes=[a]), "
    "Slice(x, starts=[s], ends=[s + t], axes=[a])"
)
SLICES = "Slice(z, axes=[1], ends=[1], starts=[0], steps=[1]), Slice(z, axes=[1], ends=[4], starts=[1], steps=[1])"
PARTS = "*Split(Concat(x, y, axis=0), axis=0, split=[3, 3])"
MADE = [
    ("r: Relu(Relu(x)) => Relu(x)", "Relu(Relu(x))", "Relu(x)"),
    ("r: Add(x, x) => Mul(x, 2)", "Add(x, x)", "Mul(x, 2)"),
    ("r: Mul(x, 2) => Add(x, x)", "Mul(x, 2)", "Add(x, x)"),
    ("r: LeakyRelu(x, alpha=a) => Relu(Mul(x, a * 2))", "LeakyRelu(x, alpha=0.5)", "Relu(Mul(x, 1))"),
    (
        "r: Transpose(x, perm=p) => Transpose(Neg(x), perm=inverse(p))",
        "Transpose(x, perm=[1, 0])",
        "Transpose(Neg(x), perm=[1, 0])",
    ),
    ("r: Transpose(Transpose(x, perm=p), perm=inverse(p)) => x", "Relu(Transpose(Transpose(x)))", "Relu(x)"),
    ("r: Concat(*xs, y, axis=a) => Concat(y, *xs, axis=a)", "Concat(x, y, x, axis=0)", "Concat(x, x, y, axis=0)"),
    ("r: Concat(y, *xs, axis=a) => Concat(*xs, y, axis=a)", "Concat(y, x, axis=0)", "Concat(x, y, axis=0)"),
    (SPLIT, "*Split(z, axis=1, split=[1, 3])", SLICES),
    (
        "r: Concat(*Split(x, axis=a, split=s), axis=a) => x",
        "Neg(Concat(*Split(z, axis=1, split=[1, 3]), axis=1))",
        "Neg(z)",
    ),
    ("r: *Split(Concat(*xs, axis=a), axis=a, split=s) => *xs if s == dims(xs, a)", PARTS, "x, y"),
    ("r: Softmax(x, axis=a) => Softmax(x, axis=a - 2)", "Softmax(Softmax(x, axis=1), axis=0)", None),
    ("r: Relu(x), Relu(x) => Relu(x), Relu(x)", "Neg(Relu(x)), Relu(x)", None),
    (
        "r: MatMul(Relu(x), y), Relu(x) => MatMul(Relu(x), y), Relu(Relu(x))",
        "MatMul(Relu(x), y), Relu(x)",
        "MatMul(Relu(x), y), Relu(Relu(x))",
    ),
]


@pytest.mark.parametrize(("rule", "terms", "result"), MADE, ids=[rule for rule, _, _ in MADE])
def test_what_a_rule_makes(rule: str, terms: str, result: str | None) -> None:
    assert children(rule, terms, x="3x3", y="3x3", z="2x4") == ([] if result is None else [result])


REFUSED = [
    ("r: Relu(x) => Neg(x)", "Relu(i)", "an integer tensor in a rule for floats"),
    ("r: Relu(x) => Neg(x) if rank(x) == 1", "Relu(x)", "a condition that doesn't hold"),
    ("r: Relu(x) => Concat(x, x, axis=0)", "Relu(x)", "another output type"),
    ("r: Relu(x) => Softmax(x, axis=5)", "Relu(x)", "a right side that has no type"),
    ("r: Relu(x) => Relu(Transpose(Transpose(x, perm=shape(x)), perm=range(2)))", "Relu(x)", "wrong attributes"),
    ("r: Relu(x) => Gelu(x, approximate='tanh')", "Relu(x)", "an operator that the opset lacks"),
    ("r: *Split(x, axis=a, split=s) => Relu(x), Relu(x), Relu(x)", "*Split(x, axis=0, split=[1, 2])", "3 for 2"),
    ("r: Relu(x) => *Split(x, axis=0, split=[1, 2])", "Relu(x)", "2 for 1"),
    ("r: Relu(x) => Split(x, axis=0, split=[3])[1]", "Relu(x)", "an output that isn't there"),
    ("r: Relu(x) => Add(x, value(x))", "Relu(x)", "the value of something that isn't a weight"),
    ("r: Relu(x) => Add(x, shape(x))", "Relu(x)", "a list as a literal"),
    ("r: Relu(x) => Elu(x, alpha=10 ** 64 * 10 ** 64 * 10 ** 64 * 10 ** 64 * 10 ** 64)", "Relu(x)", "no float"),
    ("r: Relu(x) => LRN(x, size=2 ** 63 + 1)", "Relu(v)", "an attribute that no file holds"),
    ("r: Relu(x) => MaxPool(x, kernel_shape=[1, 1], strides=[2 ** 63, 2 ** 63])", "Relu(v)", "strides, too"),
    ("r: Relu(x) => Resize(x, sizes=[10 ** 30] * rank(x), mode='linear')", "Relu(v)", "sizes, too"),
    ("r: Add(x, y) => Add(y, x)", "Add(x, y)", "the same but for operand order"),
    ("r: Relu(x) => Slice(Concat(x, x, axis=0), starts=[0], ends=[dim(x, 0)], axes=[0])", "Relu(s)", "symbolic ends"),
    ("r: Relu(x) => Neg(x)", "MatMul(x, Relu(c))", "a constant root"),
    ("r: LeakyRelu(x) => Relu(x)", "LeakyRelu(x, alpha=0.5)", "an attribute that isn't the default"),
    ("r: Clip(x, min=0, max=m) => Clip(Relu(x), min=0, max=m) if m == 6", "Clip(x, min=0, max=5)", "another value"),
    ("r: Transpose(Transpose(x, perm=p), perm=p) => x", "Transpose(Transpose(t, perm=[1, 2, 0]), perm=[2, 0, 1])", "p"),
    ("r: Softmax(Softmax(x, axis=a), axis=a + 1) => x", "Softmax(Softmax(x, axis=1), axis=0)", "another axis"),
]


@pytest.mark.parametrize(("rule", "terms", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_where_a_rule_does_not_apply(rule: str, terms: str, why: str) -> None:
    types = {"x": "3x3", "y": "3x3", "i": "int32 3", "s": "n", "c": "const 3x3", "t": "3x3x3", "v": "1x1x3x3"}
    assert children(rule, terms, opset=18, **types) == []


def test_any_type() -> None:
    rule = "r [any]: Neg(Neg(x)) => x"
    assert children(rule, "Abs(Neg(Neg(x)))", x="int64 2") == ["Abs(x)"]


def test_a_literal_has_the_type_of_what_is_beside_it() -> None:
    graph = graph_of("Add(x, x)", x="float16 2")
    state = RewriteState(graph, rule_set("r: Add(x, x) => Mul(2, x)"))
    child = state.child_graph(state.matches[0][0])
    assert [str(leaf.type) for leaf in child.leaves.values() if leaf.weight] == ["const float16[]"]


def test_a_literal_without_a_tensor_beside_it_has_the_floating_type_of_the_match() -> None:
    rule = "r: Relu(x) => Mul(Relu(x), Expand(1, shape=shape(x)))"
    assert children(rule, "Relu(x)", x="2x3") == ["Mul(Relu(x), Expand(1, shape=[2, 3]))"]


def test_zeros_of_either_sign_are_two_literals() -> None:
    """Whichever came first: literals of all graphs share a cache."""
    for first, second in (("0.0", "-0.0"), ("-0.0", "0.0")):
        state = RewriteState(graph_of("Relu(x)", x="2"), rule_set(f"r: Relu(x) => Add(Add(x, {first}), {second})"))
        child = state.child_graph(state.matches[0][0])
        signs = [np.signbit(leaf.weight.array()).item() for leaf in child.leaves.values() if leaf.weight]
        assert sorted(signs) == [False, True]


@pytest.mark.parametrize("rules", ["r [exact]: Add(x, -0.0) => x", "p: Sub(x, 0.0) => x\nr: Sub(x, -0.0) => x"])
def test_a_zero_matches_one_of_its_sign(rules: str) -> None:
    op = "Add" if "Add" in rules else "Sub"
    for zero, count in ((-0.0, 1), (0.0, 0)):
        b = GraphBuilder({"": 20})
        b.output("y", b.add(op, b.input("x", TensorType("float", (2,))), b.weight("zero", *literal(zero, "float"))))
        assert len(RewriteState(b.build(), rule_set(rules)).matches[-1]) == count


def test_equal_subterms_are_one_node() -> None:
    state = RewriteState(graph_of("Relu(x)", x="2"), rule_set("r: Relu(x) => Mul(Neg(Relu(x)), Neg(Relu(x)))"))
    assert len(state.child_graph(state.matches[0][0])) == 3


def test_terms_of_equal_values_are_one_node() -> None:
    rules = rule_set("r: Concat(x, y, axis=0) => Concat(Neg(Neg(x)), Neg(Neg(y)), axis=0)")
    one, two = (
        RewriteState(graph_of(terms, x="2", y="2"), rules) for terms in ("Concat(x, x, axis=0)", "Concat(x, y, axis=0)")
    )
    assert [len(s.child_graph(s.matches[0][0])) for s in (one, two)] == [3, 5]
    check(one)
    check(two)


def test_values_of_weights_decide_match_by_match() -> None:
    graph = graph_of("Relu(Add(Relu(x), 1)), Relu(Add(Relu(y), -1))", x="2", y="2")
    state = RewriteState(graph, rule_set("r: Relu(Add(Relu(x), c)) => Add(Relu(x), c) if const(c) and value(c) >= 0"))
    assert [show(state.child_graph(match)) for match in state.matches[0]] == ["Add(Relu(x), 1), Relu(Add(Relu(y), -1))"]


def test_a_value_may_become_an_attribute() -> None:
    rule = "r: Mul(MatMul(x, y), c) => ms.FusedMatMul(x, y, alpha=value(c)) if const(c) and rank(c) == 0"
    assert children(rule, "Mul(MatMul(x, y), 2)", x="3x3", y="3x3") == ["ms.FusedMatMul(x, y, alpha=2.0)"]


def test_values_that_differ_become_no_attribute() -> None:
    assert children("r: PRelu(x, s) => LeakyRelu(x, alpha=value(s))", "PRelu(x, s)", x="2x3", s="const 3") == []


@pytest.mark.parametrize("terms", ["Relu(x)", "Relu(x), Neg(Relu(x))"])
def test_an_output_may_become_a_graph_input(terms: str) -> None:
    state = RewriteState(graph_of(terms, x="2"), rule_set("r: Relu(x) => x"))
    child = state.apply(state.matches[0][0])
    check(child)
    assert child.graph.outputs[0] == child.graph.info.inputs[0]


def test_symbolic_sizes_pass_through() -> None:
    merged = "Split(MatMul(x, Concat(a, b, axis=1)), axis=-1, split=[dim(a, 1), dim(b, 1)])"
    rules, terms = f"r: MatMul(x, a), MatMul(x, b) => *{merged}", "MatMul(x, a), MatMul(x, b)"
    both = "Split(MatMul(x, Concat(a, b, axis=1)), axis=1, split=[2, 3])"
    assert children(rules, terms, x="nx4", a="const 4x2", b="const 4x3") == [f"{both}[0], {both}[1]"]
    assert children(rules, terms, x="4xn", a="nxm", b="nxk") == []
