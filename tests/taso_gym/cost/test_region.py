"""Contexts are found incrementally, and that equals finding them from scratch."""

import random
from collections.abc import Hashable, Iterable

import pytest
from cost_graphs import folded, mlp, weight
from games import pickled
from operator_samples import SAMPLES, Sample

from taso_gym import models
from taso_gym.builder import GraphBuilder
from taso_gym.cost.base import SummedCost
from taso_gym.cost.blocks import Blocks
from taso_gym.cost.dims import Dims
from taso_gym.cost.layout import Layouts
from taso_gym.cost.region import FUSED, Region, lone, region_of
from taso_gym.cost.window import Remembered, Window
from taso_gym.cost.work import Work, region_work, work
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import Signature, stable_hash
from taso_gym.tensor import TensorType
from taso_gym.weights import literal

SMALL_NETWORKS = {
    "SqueezeNet1.1": {"image": 64},
    "ResNet18": {"image": 64},
    "BERT": {"layers": 2, "sequence": 16},
    "GPT2": {"layers": 2, "sequence": 16},
}


LAYOUTS = Layouts(16)


class HashedCost(SummedCost):
    """Costs a hash of the context: two contexts that differ are sure to cost different times."""

    contextual = True
    key = "hashed"

    def __init__(self) -> None:
        super().__init__("hashed", None)
        self._contexts = Remembered(lambda view, node_id: region_of(view, node_id, LAYOUTS), LAYOUTS)

    def context(self, graph: Graph, node_id: int) -> Hashable:
        return self._contexts(graph, node_id)

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:
        return self._contexts.affected(before, after, node_ids)

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
        if isinstance(context, Region):
            context = [(part.sig.hash, part.operands) for part in context.nodes], context.inputs, context.outputs
        return stable_hash(sig.hash, context) % 10**9, 1


@pytest.mark.parametrize("name", SMALL_NETWORKS)
def test_incremental_contexts_equal_those_from_scratch(name: str) -> None:
    graph, rules, rng = models.build(name, **SMALL_NETWORKS[name]), RuleSet.load("default"), random.Random(0)
    state = RewriteState(graph, rules, HashedCost())
    for _ in range(25):
        legal = [match for row in state.matches for match in row]
        if not legal:
            break
        match = rng.choice(legal)
        predicted = state.cost + state.delta(match)
        state = state.apply(match)
        assert state.cost == predicted == HashedCost().graph(state.graph)


def test_an_epilogue_is_fused() -> None:
    graph = mlp()
    contexts = [region_of(Window(Blocks(graph, LAYOUTS)), i, LAYOUTS) for i, _ in graph.operators()]
    assert contexts[1:] == [FUSED, FUSED]
    assert isinstance(contexts[0], Region)
    assert [part.sig.op.key for part in contexts[0].nodes] == ["MatMul", "Add", "Relu"]


def test_a_node_by_itself_and_a_constant_have_no_context() -> None:
    graph = folded()
    assert [region_of(Window(Blocks(graph, LAYOUTS)), i, LAYOUTS) for i, _ in graph.operators()] == [None, None]


def test_a_lone_region_reads_its_own_inputs() -> None:
    sig = next(node.sig for _, node in mlp().operators())
    region = lone(sig)
    assert [operand and operand.kind for operand in region.nodes[0].operands] == ["input", "constant"]
    assert region.inputs == ("own",) and [tuple(w) for w in region.outputs] == [(0, 0, "plain")]


def test_a_finding_is_kept_where_nothing_that_it_saw_has_changed() -> None:
    asked: list[int] = []

    def readers(window: Window, node_id: int) -> int:
        asked.append(node_id)
        return len(window.uses[window.nodes[node_id].inputs[0] or 0])

    first, second = mlp(), mlp()
    remembered, node_id = Remembered(readers, LAYOUTS), min(i for i, _ in first.operators())
    assert remembered(first, node_id) == remembered(first, node_id) == 1
    assert asked == [node_id]
    assert remembered(second, node_id) == 1 and asked == [node_id] * 2
    assert remembered(first, node_id) == 1 and asked == [node_id] * 2


def test_a_pickled_region_brings_no_hash_of_its_process() -> None:
    region = lone(next(node.sig for _, node in mlp().operators()))
    assert hash(region) and "_hash" in vars(region)
    copied = pickled(region)
    assert copied == region and "_hash" not in vars(copied)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_work_of_one_operator_is_that_of_its_region(sample: Sample) -> None:
    assert region_work(lone(sample.signature), Dims()) == work(sample.signature, Dims())


def test_what_stays_within_a_region_is_not_moved() -> None:
    """A LayerNormalization that is written out runs as one kernel, its Sqrt's, which by itself does nearly nothing."""
    b = GraphBuilder({"": 16})
    x = b.input("x", TensorType("float", (1, 128, 64)))
    centred = b.add("Sub", x, b.add("ReduceMean", x, axes=[-1]))
    two, epsilon = (b.weight(name, *literal(value, "float")) for name, value in (("two", 2.0), ("epsilon", 1e-5)))
    variance = b.add("ReduceMean", b.add("Pow", centred, two), axes=[-1])
    normal = b.add("Div", centred, b.add("Sqrt", b.add("Add", variance, epsilon)))
    b.output("y", b.add("Add", b.add("Mul", normal, weight(b, "scale", 64)), weight(b, "bias", 64)))
    graph = b.build()
    contexts = [region_of(Window(Blocks(graph, LAYOUTS)), i, LAYOUTS) for i, _ in graph.operators()]
    (region,) = (c for c in contexts if isinstance(c, Region))
    found = region_work(region, Dims())
    assert len(region.nodes) == 9
    assert 2 * 4 * 128 * 64 <= found.bytes_moved < 2 * 4 * 128 * 64 + 1024 and found.flops > 6 * 128 * 64


def scores(scaled_first: bool) -> Graph:
    """Return a MatMul of what is scaled and what is transposed, in either order of their ids."""
    b = GraphBuilder({"": 20})
    q, k = (b.input(name, TensorType("float", (1, 2, 8, 4))) for name in "qk")
    scaled = b.add("Mul", q, weight(b, "half", 1)) if scaled_first else None
    turned = b.add("Transpose", k, perm=[0, 1, 3, 2])
    b.output("y", b.add("MatMul", scaled or b.add("Mul", q, weight(b, "half", 1)), turned))
    return b.build()


def test_what_comes_before_an_anchor_is_in_the_order_of_its_operands() -> None:
    """Ids say in which order rewrites came, on which costs that are recorded don't depend."""
    found = []
    for graph in map(scores, (True, False)):
        contexts = [region_of(Window(Blocks(graph, LAYOUTS)), i, LAYOUTS) for i, _ in graph.operators()]
        found += [context for context in contexts if isinstance(context, Region)]
    assert len(found) == 2 and found[0] == found[1]
    assert [part.sig.op.key for part in found[0].nodes] == ["Mul", "Transpose", "MatMul"]


def test_an_input_that_is_read_once_more_changes_what_reads_it() -> None:
    """All Slices of a value may be a Split together, of an input's, too."""
    b = GraphBuilder({"": 20})
    x, y = (b.input(name, TensorType("float", (4, 8))) for name in "xy")
    b.output("first", b.add("Relu", b.add("Slice", x, starts=[0], ends=[4], axes=[1], steps=[1])))
    b.output("second", b.add("Sub", b.add("Exp", y), x))
    halves = [f"Slice({{}}, starts=[{at}], ends=[{at + 4}], axes=[1], steps=[1])" for at in (0, 4)]
    parts = ", ".join(f"Sub({half.format('y')}, {half.format('x')})" for half in halves)
    state = RewriteState(
        b.build(), RuleSet(parse_rules(f"in-halves: Sub(y, x) => Concat({parts}, axis=1)", "test")), HashedCost()
    )
    child = state.apply(state.matches[0][0])
    assert child.cost == HashedCost().graph(child.graph)
