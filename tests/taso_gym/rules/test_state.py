"""States under random walks: everything incremental equals recomputation from scratch, after every step."""

import copy
import pickle
import random
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from matching_graphs import RULES, cnn, graph_of, random_graph, rule_set, show, transformer

from taso_gym import RuleSet, models
from taso_gym.cost_model import Cost
from taso_gym.errors import MatchError, OptionError
from taso_gym.graph import Graph
from taso_gym.rules import compiled
from taso_gym.rules.rewrite import rewrite
from taso_gym.rules.state import Match, RewriteState, check
from taso_gym.signature import Signature

SET = rule_set()


class Flat:
    """Costs by signature: any numbers will do."""

    name = key = "flat"
    deterministic = True
    contextual = False

    def node(self, sig: Signature, context: object = None) -> Cost:
        return Cost(sig.hash % 1000, 1, len(sig.inputs), 1) if not sig.const else Cost()

    def least_ps(self, sig: Signature, context: object = None) -> int:
        return self.node(sig, context).time_ps

    def expect(self, nodes: Iterable[tuple[Signature, object]]) -> None:
        pass

    def context(self, graph: Graph, node_id: int) -> object:
        return None

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        return set()

    def graph(self, graph: Graph) -> Cost:
        return sum((self.node(node.sig) for _, node in graph.operators()), Cost())

    def peak_bytes(self, graph: Graph) -> int:
        return 0


def walk(state: RewriteState, steps: int, seed: int) -> list[RewriteState]:
    """Return the states of a random walk, which begins again where no match is left."""
    rng = random.Random(seed)
    start, states = state, [state]
    for _ in range(steps):
        legal = [match for row in state.matches for match in row]
        state = state.apply(rng.choice(legal)) if legal else start
        states.append(state)
    return states


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed: int) -> None:
    for state in walk(RewriteState(random_graph(seed), SET, Flat()), 25, seed):
        check(state)


@pytest.mark.parametrize("make", [transformer, cnn])
@pytest.mark.parametrize("seed", range(3))
def test_networks(make, seed: int) -> None:
    for state in walk(RewriteState(make(), SET, Flat()), 40, seed):
        check(state)


def test_every_rule_is_found_somewhere() -> None:
    rare = graph_of(
        "Add(MatMul(x, a), MatMul(x, b)), MatMul(Relu(x), a), Relu(x), Relu(Concat(x, a, axis=0)), "
        "Transpose(Transpose(y, perm=[1, 2, 0]), perm=[0, 2, 1])",
        x="4x4",
        y="2x3x4",
        a="4x4",
        b="4x4",
    )
    graphs = [rare, transformer(), cnn(), *map(random_graph, range(12))]
    states = [state for i, graph in enumerate(graphs) for state in walk(RewriteState(graph, SET), 25, i)]
    found = {row[0].rule for state in states for row in state.matches if row}
    assert [SET[rule].name for rule in range(len(SET)) if rule not in found] == []


def test_a_walk_within_limits_stays_within_them() -> None:
    start = random_graph(3)
    state = RewriteState(start, SET, max_nodes=len(start) + 1, max_edges=len(start) * 2, max_locations=2)
    for step in walk(state, 25, 0):
        check(step)
        assert len(step.graph) <= len(start) + 1 and all(len(row) <= 2 for row in step.matches)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": "model.onnx"}, "expected a Graph as graph, found 'model.onnx'"),
        ({"rules": "default"}, "expected a RuleSet as rules, found 'default'"),
        ({"rules": [*SET]}, "expected a RuleSet as rules, found "),
        ({"cost": "roofline"}, "expected a CostModel as cost, found 'roofline'"),
        ({"max_locations": 0}, "expected max_locations to be a whole number from 1 on, found 0"),
        ({"max_nodes": "x"}, "expected max_nodes to be a whole number from 1 on, found 'x'"),
    ],
)
def test_arguments_of_a_wrong_kind_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RewriteState(**{"graph": random_graph(0), "rules": SET, **arguments})


def test_what_is_no_match_is_named() -> None:
    state = RewriteState(transformer(), SET)
    for act in (state.apply, state.delta, state.child_hash):
        for wrong in (None, next(row for row in state.matches if row)):  # a row has all matches of a rule
            with pytest.raises(MatchError, match="expected a Match of this state, found"):
                act(wrong)


def test_limits_drop_matches() -> None:
    graph = graph_of("Mul(x, Add(y, z))", x="2", y="2", z="2")
    rules = rule_set("distribute: Mul(x, Add(y, z)) => Add(Mul(x, y), Mul(x, z))")
    assert RewriteState(graph, rules, max_nodes=2, max_edges=6).matches == ((),)
    assert RewriteState(graph, rules, max_nodes=3, max_edges=5).matches == ((),)
    assert len(RewriteState(graph, rules, max_nodes=3, max_edges=6).matches[0]) == 1


def test_by_default_every_place_counts() -> None:
    rules = rule_set("relu-as-max: Relu(x) => Max(x, x)")
    names = [f"x{number}" for number in range(300)]
    state = RewriteState(graph_of(", ".join(map("Relu({})".format, names)), **dict.fromkeys(names, "2")), rules)
    assert len(state.matches[0]) == 300
    assert len(state.apply(state.matches[0][0]).matches[0]) == 299
    assert len(RewriteState(state.graph, rules, max_locations=200).matches[0]) == 200


@pytest.mark.parametrize("limits", [{}, {"max_locations": 2}, {"max_nodes": 26}])
def test_it_says_which_rules_have_other_matches(limits: dict[str, int]) -> None:
    states = walk(RewriteState(cnn(), SET, **limits), 40, 1)
    assert states[0].renewed == tuple(range(len(SET)))
    for parent, child in pairwise(states):
        if child is not states[0]:
            differ = [rule for rule, row in enumerate(child.matches) if row != parent.matches[rule]]
            assert sorted(child.renewed) == differ


def test_matches_that_read_a_new_value_stay() -> None:
    rules = rule_set("a: Relu(x) => Abs(x)\nb: Exp(Tanh(x)) => Sin(x)")
    state = RewriteState(graph_of("Exp(Tanh(Relu(x)))", x="2"), rules)
    child = state.apply(state.matches[0][0])
    check(child)
    assert child.matches[1][0] is state.matches[1][0]


def test_a_node_between_two_roots_is_searched_again() -> None:
    rules = rule_set("two: Relu(x), Sub(y, x) => Abs(x), Div(Neg(y), x)\ninside: Neg(Exp(x)) => Exp(x)")
    state = RewriteState(graph_of("Sub(Exp(Relu(x)), x)", x="2"), rules)
    child = state.apply(state.matches[0][0])
    check(child)
    assert len(child.matches[1]) == 1


def test_the_first_rewrites_are_prepared_for(monkeypatch: pytest.MonkeyPatch) -> None:
    state = RewriteState(transformer(), SET).prepare()
    monkeypatch.setattr(compiled, "build", lambda *_: pytest.fail("a template was waited for"))
    for match in [match for row in state.matches for match in row]:
        state.apply(match)


def test_the_same_seed_gives_the_same_walk() -> None:
    first, second = (walk(RewriteState(random_graph(5), SET, Flat()), 20, 5) for _ in range(2))
    assert [s.hash for s in first] == [s.hash for s in second]
    assert [s.matches for s in first] == [s.matches for s in second]
    assert [s.edit for s in first] == [s.edit for s in second]


def test_a_pickled_state_goes_on_identically() -> None:
    state = walk(RewriteState(random_graph(1), SET, Flat()), 6, 1)[-1]
    loaded = pickle.loads(pickle.dumps(state))  # noqa: S301
    assert (loaded.hash, loaded.matches, loaded.cost, loaded.edit) == (
        state.hash,
        state.matches,
        state.cost,
        state.edit,
    )
    for ours, theirs in zip(walk(state, 6, 2), walk(loaded, 6, 2), strict=True):
        assert (ours.hash, ours.matches, ours.cost) == (theirs.hash, theirs.matches, theirs.cost)


def test_a_fork_is_the_state_itself() -> None:
    state = RewriteState(cnn(), SET)
    assert copy.copy(state) is state and copy.deepcopy(state) is state


def test_a_parent_stays_as_it_was() -> None:
    state = RewriteState(transformer(), SET, Flat())
    before = show(state.graph), state.matches, state.cost
    walk(state, 10, 0)
    assert (show(state.graph), state.matches, state.cost) == before
    check(state)


def test_an_illegal_match_is_refused() -> None:
    state = RewriteState(transformer(), SET)
    legal = next(row[0] for row in state.matches if row)
    for match in (Match(-1, (), 0), Match(len(SET), (), 0), Match(legal.rule, (1, 2), 0), legal._replace(variant=99)):
        with pytest.raises(MatchError, match="expected a legal match"):
            state.apply(match)
        with pytest.raises(MatchError):
            state.delta(match)


@pytest.mark.parametrize("contextual", [False, True])
def test_cost_changes_are_predicted(contextual: bool) -> None:
    model = Flat()
    model.contextual = contextual
    state = RewriteState(transformer(), SET, model)
    matches = [match for row in state.matches for match in row]
    for match in matches:
        assert state.cost + state.delta(match) == state.apply(match).cost
    assert state.deltas(iter(matches)) == [(match, state.delta(match)) for match in matches]


def test_a_model_hears_of_all_that_it_will_be_asked_for_before_it_is_asked() -> None:
    """And how long that takes may end the matches that are asked for."""
    heard, asked = list[tuple[Signature, object]](), list[tuple[Signature, object]]()

    class Expecting(Flat):
        contextual = True

        def node(self, sig: Signature, context: object = None) -> Cost:
            asked.append((sig, context))
            return super().node(sig, context)

        def expect(self, nodes: Iterable[tuple[Signature, object]]) -> None:
            assert not asked
            heard.extend(nodes)

    state = RewriteState(transformer(), SET, Expecting())
    matches = [match for row in state.matches for match in row]
    asked.clear()
    found = state.deltas(match for count, match in enumerate(matches) if len(heard) < 8 or not count)
    assert 1 < len(found) < len(matches)
    before = {(node.sig, None) for node in state.graph.nodes.values()}
    assert set(asked) - before <= set(heard) <= set(asked)


@pytest.mark.parametrize(("least_ps", "hopeless"), [(10**6, True), (0, False)])
def test_a_bound_is_enough_of_what_is_hopeless(least_ps: int, hopeless: bool) -> None:
    heard = list[tuple[Signature, object]]()

    class Bounding(Flat):
        contextual = True

        def least_ps(self, sig: Signature, context: object = None) -> int:
            return least_ps

        def expect(self, nodes: Iterable[tuple[Signature, object]]) -> None:
            heard.extend(nodes)

    state = RewriteState(
        graph_of("Sqrt(Mul(x, x))", x="2"), rule_set("r [fast]: Sqrt(Mul(x, x)) => Abs(x)"), Bounding()
    )
    (match,) = state.matches[0]
    [(_, change)] = state.deltas([match], bounded=True)
    assert bool(heard) is not hopeless
    assert change == (Cost(least_ps - state.cost.time_ps) if hopeless else state.delta(match))
    assert state.apply(match).cost == state.cost + state.delta(match)


def test_an_edit_says_what_was_done() -> None:
    state = RewriteState(
        graph_of("Relu(Relu(x)), Relu(Relu(x))", x="2"), rule_set("r [exact]: Relu(Relu(x)) => Relu(x)")
    )
    assert state.edit is None
    (match,) = state.matches[0]
    child = state.apply(match)
    outer, inner = match.nodes
    assert child.edit == ((outer, inner), (state.graph.next_id,), (0,))


def test_matches_come_in_ascending_order() -> None:
    for row in RewriteState(transformer(), rule_set(RULES)).matches:
        assert list(row) == sorted(row)


def test_an_operator_can_be_exchanged_at_all_places() -> None:
    places = 40
    chain = graph_of("Exp(Neg(" * places + "x" + "))" * places, x="2")
    (matches,) = RewriteState(chain, rule_set("r: Exp(x) => Sqrt(x)")).matches
    assert len(matches) == places


@pytest.mark.parametrize("name", ["GPT2", "T5Encoder", "NasRNN"])
def test_only_matches_that_give_the_same_graph_are_left_out(name: str) -> None:
    state = RewriteState(models.build(name, **({} if name == "NasRNN" else {"layers": 2})), RuleSet.load("default"))
    every = state._all
    assert every._others
    for change, others in every._others.items():
        first, *rest = (every.site(match) for match in (every._first[change], *others))
        digest = rewrite(state.graph, first).finish().canonical_digest()
        assert all(rewrite(state.graph, site).finish().canonical_digest() == digest for site in rest)


def test_its_text_says_how_large_it_is_and_what_it_costs() -> None:
    state = RewriteState(graph_of("Relu(Relu(x))", x="2"), rule_set("r: Relu(Relu(x)) => Relu(x)"), Flat())
    assert repr(state).startswith("<RewriteState: 2 operators, 1 matches of 1 rules, Cost(time_ps=")
