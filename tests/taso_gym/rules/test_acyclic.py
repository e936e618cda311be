"""Cycles: no rewrite makes one, and none is refused that wouldn't."""

import pytest
from matching_graphs import graph_of, random_graph, rule_set

from taso_gym.errors import ModelError
from taso_gym.graph import Graph, value_of
from taso_gym.rules.acyclic import Reachability, guards
from taso_gym.rules.rewrite import rewrite
from taso_gym.rules.state import RewriteState, check

MERGE = "r: Sub(x, a), Sub(x, b) => *Split(Sub(Concat(x, x, axis=0), Concat(a, b, axis=0)), axis=0, split=[2, 2])"


def has_cycle(graph: Graph) -> bool:
    try:
        graph.topological_order()
    except ModelError:
        return True
    return False


def test_siblings_that_do_not_depend_on_each_other_are_merged() -> None:
    state = RewriteState(graph_of("Sub(x, a), Sub(x, b)", x="2", a="2", b="2"), rule_set(MERGE))
    assert len(state.matches[0]) == 1
    check(state.apply(state.matches[0][0]))


@pytest.mark.parametrize("between", ["Sub(x, a)", "Neg(Sub(x, a))", "Neg(Add(Abs(Sub(x, a)), b))"])
def test_a_sibling_behind_the_other_is_not_merged(between: str) -> None:
    state = RewriteState(graph_of(f"Sub(x, {between}), Sub(x, a)", x="2", a="2", b="2"), rule_set(MERGE))
    assert state.matches == ((),)


def test_constants_never_close_a_cycle() -> None:
    state = RewriteState(graph_of("Sub(x, a), Sub(x, b)", x="2", a="const 2", b="const 2"), rule_set(MERGE))
    (match,) = state.matches[0]
    assert state._all.site(match).template.guards == ()


def test_matches_become_legal_and_illegal_with_the_ways_between_them() -> None:
    rules = rule_set(MERGE + "\nforget: Exp(Div(y, z)) => Exp(y)\njoin: Abs(y), Mul(y, z) => Mul(y, z), Mul(y, z)")
    state = RewriteState(graph_of("Sub(x, Exp(Div(b, Sub(x, a)))), Sub(x, a)", x="2", a="2", b="2"), rules)
    assert state.matches[0] == () and len(state.matches[1]) == 1
    child = state.apply(state.matches[1][0])
    check(child)
    assert len(child.matches[0]) == 1

    apart = "Sub(x, Abs(b)), Mul(b, Sub(x, a)), Sub(x, a)"
    state = RewriteState(graph_of(apart, x="2", a="2", b="2"), rules)
    assert len(state.matches[0]) == 1 and len(state.matches[2]) == 1
    child = state.apply(state.matches[2][0])
    check(child)
    assert child.matches[0] == ()


@pytest.mark.parametrize("seed", range(8))
def test_exactly_the_rewrites_that_make_cycles_are_refused(seed: int) -> None:
    rules = rule_set(
        "m: MatMul(x, a), MatMul(x, b) => *Split(MatMul(x, Concat(a, b, axis=1)), axis=1, split=[4, 4])\n"
        "n: Add(x, a), Mul(x, b) => *Split(Concat(Add(x, a), Mul(x, b), axis=0), axis=0, split=[4, 4])\n"
        "o: Relu(x), Add(x, y) => Relu(Sub(Add(x, y), y)), Add(x, y)"
    )
    state = RewriteState(random_graph(seed * 2 + 1, 40), rules)
    for match, site in state._all.sites().items():
        cyclic = has_cycle(rewrite(state.graph, site).finish())
        assert cyclic == state._all._blocked.get(match, False), match


def test_reachability_follows_one_output() -> None:
    graph = graph_of("Neg(Split(x, axis=0, split=[1, 1])[0]), Abs(Split(x, axis=0, split=[1, 1])[1])", x="2")
    reach = Reachability(graph)
    ids = {node.sig.op.name: i for i, node in graph.operators()}
    first, second = (value_of(ids["Split"], output) for output in range(2))
    assert reach.depends(graph.outputs[0], first) and not reach.depends(graph.outputs[0], second)
    assert reach.depends(first, first) and not reach.depends(graph.info.inputs[0], first)


def test_guards_are_new_dependencies() -> None:
    a, b = frozenset([0]), frozenset([1])
    assert list(guards([a, b], [a, b])) == []
    assert list(guards([a, b], [a | b, b])) == [(0, 1)]
    assert list(guards([a, b], [a | b, a | b])) == [(0, 1), (1, 0)]
    # Neither new dependency closes a cycle by itself, but 0 could reach slot 2 and 1 reach slot 3.
    assert list(guards([a, b], [a | {3}, b | {2}])) == [(0, 2), (0, 3), (1, 2), (1, 3)]
