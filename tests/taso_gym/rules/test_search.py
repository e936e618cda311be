"""Searching: each instruction of a plan, closedness, operand orders, interchangeable roots; a brute-force oracle."""

from typing import Any

import numpy as np
import pytest
from matching_graphs import cnn, graph_of, random_graph, rule_set, transformer

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, Leaf, producer_of, value_of
from taso_gym.rules.compiled import CompiledRules
from taso_gym.rules.pattern import Inner, Literal, Pattern
from taso_gym.rules.rule import Absent, Rest, Var
from taso_gym.rules.search import is_filled, search
from taso_gym.rules.state import RewriteState
from taso_gym.rules.variants import variants_of
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight

SAME = (
    "r: Relu(Concat(x, *xs, axis=1)), Neg(Concat(x, *xs, axis=0)) => "
    "Concat(Relu(x), Relu(Concat(*xs, axis=1)), axis=1), Neg(Concat(x, *xs, axis=0))"
)
EARLIER = "Slice(x, starts=[0], ends=[s[0]], axes=[a])"
LATER = "Slice(x, starts=[s[0]], ends=[s[0] + s[1]], axes=[a])"
FOUND = [
    # IN, USE, CLOSED
    ("r: Relu(Neg(x)) => x", "Relu(Neg(x))", 1),
    ("r: Relu(Neg(x)) => x", "Relu(Neg(x)), Neg(x)", 0),
    ("r: Relu(Neg(x)) => x", "Relu(Neg(x)), Abs(Neg(x))", 0),
    ("r: Relu(Neg(x)), Neg(x) => Abs(x), x", "Relu(Neg(x)), Neg(x)", 1),
    ("r: Relu(Neg(x)), Neg(x) => Abs(x), x", "Relu(Neg(x))", 1),
    ("r: Add(Neg(x), Neg(x)) => x", "Add(Neg(x), Neg(x))", 1),
    # EQ
    ("r: Add(x, Neg(x)) => x", "Add(x, Neg(x))", 1),
    ("r: Add(x, Neg(x)) => x", "Add(y, Neg(x))", 0),
    # VAR, NE
    ("r: Relu(x), Neg(x) => x, Abs(x)", "Relu(x), Neg(x)", 1),
    ("r: Relu(x), Neg(x) => x, Abs(x)", "Relu(x), Neg(y)", 0),
    ("r: Sub(x, y), Sub(x, z) => Sub(x, Neg(y)), z", "Sub(x, y)", 0),
    # EDGE
    ("r: Add(Relu(Neg(x)), Neg(x)) => x", "Add(Relu(Neg(x)), Neg(x))", 1),
    ("r: Sub(Relu(Neg(x)), Neg(x)) => x", "Sub(Neg(x), Relu(Neg(x)))", 0),
    # LITERAL
    ("r: Mul(x, 2) => x", "Mul(x, 2)", 1),
    ("r: Mul(x, 2) => x", "Mul(2, x)", 1),
    ("r: Mul(x, 2) => x", "Mul(x, 3)", 0),
    ("r: Mul(x, 2) => x", "Mul(x, y)", 0),
    ("r: Div(x, sqrt(2)) => x", "Div(x, sqrt(2))", 1),
    # SAME, EDGES, spreads before and after fixed operands
    (SAME, "Relu(Concat(x, y, a, axis=1)), Neg(Concat(x, y, a, axis=0))", 1),
    (SAME, "Relu(Concat(x, y, a, axis=1)), Neg(Concat(x, a, y, axis=0))", 0),
    ("r: Concat(*Split(x, axis=a, split=s), axis=a) => x", "Concat(*Split(x, axis=0, split=[1, 2]), axis=0)", 1),
    ("r: Concat(*Split(x, axis=a, split=s), axis=a) => x",
     "Concat(Split(x, axis=0, split=[1, 2])[1], Split(x, axis=0, split=[1, 2])[0], axis=0)", 0),
    ("r: Concat(y, *Split(x, axis=a, split=s), axis=a) => Concat(y, x, axis=a)",
     "Concat(y, *Split(x, axis=0, split=[1, 2]), axis=0)", 1),
    ("r: Concat(*Split(x, axis=a, split=s), y, axis=a) => Concat(x, y, axis=a)",
     "Concat(*Split(x, axis=0, split=[1, 2]), y, axis=0)", 1),
    ("r: Concat(*xs, Relu(y), axis=a) => Concat(*xs, y, axis=a)", "Concat(x, y, Relu(x), axis=0)", 1),
    ("r: Concat(*xs, Relu(y), axis=a) => Concat(*xs, y, axis=a)", "Concat(x, Relu(x), y, axis=0)", 0),
    # one of several outputs
    (f"r: Split(x, axis=a, split=s)[1] => {LATER}", "Split(x, axis=0, split=[1, 2])[1]", 1),
    (f"r: Split(x, axis=a, split=s)[1] => {LATER}", "*Split(x, axis=0, split=[1, 2])", 0),
    (f"r: Relu(Split(x, axis=a, split=s)[0]) => {EARLIER}", "Relu(Split(x, axis=0, split=[2, 1])[0])", 1),
    (f"r: Relu(Split(x, axis=a, split=s)[0]) => {EARLIER}", "Relu(Split(x, axis=0, split=[2, 1])[1])", 0),
    # absent operands
    ("r: Conv(x, w) => Conv(x, w, pads=[0, 0])", "Conv(u, w, b)", 0),
    ("r: Conv(x, w, b) => Conv(x, Neg(w), b)", "Conv(u, w, b)", 1),
    ("r: Conv(x, w, _) => Conv(x, Neg(w))", "Conv(u, w)", 1),
    # a variable bound to an output of another matched node
    ("r: Sub(x, y), Neg(y) => x, y", "Sub(Neg(y), y), Neg(y)", 0),
    # commutative operands, each way once
    ("r: Mul(Add(x, y), z) => Add(Mul(x, z), Mul(y, z))", "Mul(x, Add(y, x))", 1),
    ("r: Mul(Add(x, y), z) => Add(Mul(x, z), Mul(y, z))", "Mul(Add(x, y), Add(x, x))", 2),
    ("r: Add(x, Add(y, z)) => Add(Add(x, y), z)", "Add(x, Add(x, y))", 1),
    ("r: Add(x, Add(y, z)) => Add(Add(x, y), z)", "Add(a, Add(x, y))", 2),
    # interchangeable roots match once
    ("r: MatMul(x, a), MatMul(x, b) => *Split(MatMul(x, Concat(a, b, axis=1)), axis=1, split=[dim(a, 1), dim(b, 1)])",
     "MatMul(x, a), MatMul(x, y)", 1),
    ("r: Relu(x), Relu(x) => Relu(x), Relu(x)", "Relu(x)", 0),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "terms", "count"), FOUND, ids=[f"{r} in {t}" for r, t, _ in FOUND])
def test_how_often_a_rule_matches(rule: str, terms: str, count: int) -> None:
    types = {"x": "3x3", "y": "3x3", "a": "3x3", "u": "1x2x5", "w": "const 2x2x1", "b": "const 2"}
    state = RewriteState(graph_of(terms, **types), rule_set(rule))
    assert len(state.matches[0]) == count


def test_a_repeated_root_is_another_node() -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (2,)))
    for i in range(3):
        builder.output(f"y{i}", builder.add("Relu", x))
    state = RewriteState(builder.build(), rule_set("r: Relu(x), Relu(x) => Relu(x), Relu(x)"))
    assert [match.nodes for match in state.matches[0]] == [(2, 3)]  # the other pairs give an equal graph
    assert len(state.child_graph(state.matches[0][0])) == 2


def test_a_literal_is_compared_as_its_element_type_holds_it() -> None:
    graph = graph_of("Mul(x, 0.1)", x="2")
    (leaf,) = (leaf for leaf in graph.leaves.values() if leaf.weight)
    assert is_filled(leaf, 0.1) and not is_filled(leaf, 0.10001)


@pytest.mark.parametrize(
    ("weight", "value", "filled"),
    [
        (np.array(0), 0.5, False),
        (np.array(1), 1.5, False),
        (np.array(2), 2, True),
        (np.uint8(2), -1, False),
        (np.float32(-0.0), 0, False),
        (np.float32([0.0, -0.0]), 0, False),
        (np.float32([0.0, 0.0]), 0, True),
        (np.float16(0.1), 0.1, True),
    ],
)
def test_a_whole_number_is_no_fraction_and_zero_has_a_sign(weight: Any, value: float, filled: bool) -> None:
    assert is_filled(Leaf("", *array_weight(np.asarray(weight)), 0), value) is filled


@pytest.mark.parametrize(
    ("shape", "count"), [((), 1), ((4,), 1), ((1, 1), 1), ((1, 4), 1), ((5, 1), 0), ((1, 1, 1), 0)]
)
def test_a_literal_does_not_widen_what_it_is_applied_to(shape: tuple[int, ...], count: int) -> None:
    """In a rule it is a number: five rows of twos have five times the sum of one."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (1, 4)))
    two = builder.weight("two", *array_weight(np.full(shape, 2, np.float32)))
    builder.output("y", builder.add("ReduceSum", builder.add("Mul", x, two), axes=(0,), keepdims=1))
    rules = rule_set("r: ReduceSum(Mul(x, 2), axes=a, keepdims=k) => Mul(ReduceSum(x, axes=a, keepdims=k), 2)")
    assert len(RewriteState(builder.build(), rules).matches[0]) == count


@pytest.mark.parametrize("graph", [transformer(), cnn(), *map(random_graph, range(10))])
def test_the_search_finds_what_brute_force_finds(graph: Graph) -> None:
    rules = rule_set()
    compiled = CompiledRules(rules, graph.info.opsets)
    found = search(graph, compiled.once, graph.nodes)
    assert len(set(found)) == len(found)
    everywhere = search(graph, compiled.anywhere, graph.nodes)
    assert set(everywhere) == set(found)
    number = 0
    for rule in rules:
        for pattern in variants_of(rule):
            ours = {nodes for variant, nodes in found if variant == number}
            # Labels hold conditions too, so brute force may find more; those have no template.
            brute = set(brute_force(graph, pattern))
            assert ours <= brute
            for nodes in brute - ours:
                variant = compiled.variants[number]
                records = [graph.nodes[i] for i in nodes]
                assert variant.template(graph, records, variant.bound(records)) is None
            number += 1


def brute_force(graph: Graph, pattern: Pattern) -> list[tuple[int, ...]]:
    """Try every choice of nodes, operator by operator."""
    candidates = [[i for i, n in graph.operators() if n.sig.op is node.op] for node in pattern.nodes]
    partial: list[tuple[int, ...]] = [()]
    for number in range(len(pattern.nodes)):
        partial = [(*nodes, i) for nodes in partial for i in candidates[number] if i not in nodes]
        partial = [nodes for nodes in partial if agrees(graph, pattern, nodes)]
    return [nodes for nodes in partial if closed(graph, pattern, nodes)]


def agrees(graph: Graph, pattern: Pattern, nodes: tuple[int, ...]) -> bool:
    """Whether operands and variables of the first nodes fit, as far as they are chosen."""
    bound: dict[str, object] = {}
    if any(max(pair) < len(nodes) and nodes[pair[0]] > nodes[pair[1]] for pair in pattern.ascending):
        return False
    for number, node_id in enumerate(nodes):
        record, node = graph.nodes[node_id], pattern.nodes[number]
        inputs, spread = list(record.inputs), len(record.inputs) - len(node.operands) + 1
        is_root = any(root.node == number for root in pattern.roots)
        if (is_root and record.sig.const) or spread < 0 or (node.spread is None and spread != 1):
            return False
        for position, operand in enumerate(node.operands):
            count = spread if position == node.spread else 1
            here, inputs = inputs[:count], inputs[count:]
            if not fits(graph, operand, here, nodes, bound):
                return False
    return True


def fits(
    graph: Graph, operand: object, here: list[int | None], nodes: tuple[int, ...], bound: dict[str, object]
) -> bool:
    """Whether some inputs are what an operand stands for."""
    match operand:
        case Var(name) | Rest(name):
            return None not in here and bound.setdefault(name, here) == here
        case Literal(value):
            leaf = graph.leaves.get(here[0] or 0)
            return leaf is not None and getattr(leaf.weight, "splat", None) == value
        case Inner(node, output) if node < len(nodes):
            outputs = range(len(graph.nodes[nodes[node]].sems)) if output is None else [output]
            return here == [value_of(nodes[node], o) for o in outputs]
        case Absent():
            return here == [None]
        case _:
            return True


def closed(graph: Graph, pattern: Pattern, nodes: tuple[int, ...]) -> bool:
    """Whether outputs that aren't replaced are used by the matched nodes only."""
    for number, node_id in enumerate(nodes):
        for output in range(len(graph.nodes[node_id].sems)):
            if any(r.node == number and r.output in (output, None) for r in pattern.roots):
                continue
            if any(producer_of(use) not in nodes for use in graph.uses.get(value_of(node_id, output), ())):
                return False
    return True


def test_symmetric_orders_are_left_out() -> None:
    counts = {
        "Add(x, y) => Add(y, x)": 1,
        "Sub(x, y) => Add(x, Neg(y))": 1,
        "Mul(Add(x, y), z) => Add(Mul(x, z), Mul(y, z))": 2,
        "Add(x, Add(y, z)) => Add(Add(x, y), z)": 4,
        "Add(x, Add(y, z)) => Add(x, Add(z, y))": 2,
        "Add(x, x) => Mul(x, 2)": 1,
        "Add(Mul(x, y), Mul(x, z)) => Mul(x, Add(y, z))": 4,
    }
    assert {body: len(variants_of(rule_set(f"r: {body}")[0])) for body in counts} == counts


def test_roots_are_interchangeable_if_the_rule_is_symmetric() -> None:
    merge = "*Split(MatMul(x, Concat(a, b, axis=1)), axis=1, split=[dim(a, 1), dim(b, 1)])"
    lhs = "MatMul(x, a), MatMul(x, b)"
    pairs = {
        f"{lhs} => {merge}": 1,
        f"{lhs} => {merge} if shape(a) == shape(b)": 1,
        f"{lhs} => {merge} if dim(a, 1) <= dim(b, 1)": 0,
        f"{lhs} => MatMul(x, a), Add(MatMul(x, a), MatMul(x, Sub(b, a)))": 0,
        "Sub(x, a), Sub(b, x) => Sub(x, Neg(a)), b": 0,
        "Mul(x, a), Mul(x, b) => Mul(x, Neg(a)), Mul(x, Neg(b))": 1,
        f"{lhs}, MatMul(x, c) => MatMul(x, a), MatMul(x, b), MatMul(x, c) "
        "if shape(a) == shape(b) and shape(b) == shape(c)": 3,
    }
    assert {body: len(variants_of(rule_set(f"r: {body}")[0])[0].ascending) for body in pairs} == pairs


def test_three_interchangeable_roots_match_once_for_each_choice() -> None:
    rules = rule_set("r: Sub(x, a), Sub(x, b), Sub(x, c) => Sub(x, Neg(a)), Sub(x, Neg(b)), Sub(x, Neg(c))")
    types = dict.fromkeys("xabcd", "2")
    state = RewriteState(graph_of("Sub(x, a), Sub(x, b), Sub(x, c), Sub(x, d)", **types), rules)
    assert len(state.matches[0]) == 4
