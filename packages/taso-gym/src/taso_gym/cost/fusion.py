"""Emulates which operators onnxruntime fuses: groups of nodes around an anchor that run as one kernel, or as few.

Each group is measured as a whole, by letting onnxruntime optimise it as a small model of its own: so what a group
really becomes is onnxruntime's decision, and a group that it doesn't fuse costs its parts. The tables here only have to
name the neighbours that may matter: operators that follow an anchor on its only edge (`CHAINS`) or stand before one
(`PREFIXES`); `taso_gym.cost.gates` finds the forms that are written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from taso_gym.cost.gates import gate, gate_of, only_reader
from taso_gym.cost.layout import AFFINE, scales_channels
from taso_gym.cost.window import Window
from taso_gym.graph import SINK, Node, output_index, producer_of, value_of
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish"})
GELUS = frozenset({"Gelu", "ms.Gelu", "ms.FastGelu", "ms.QuickGelu"})
SCALES = frozenset({"Mul", "Div"})


class Step(NamedTuple):
    """An operator that may come next: its names, and what its other operand has to be (None: it has none)."""

    ops: frozenset[str]
    operand: str | None = None


ADD, SUM = frozenset({"Add"}), frozenset({"Add", "Sum"})
CONSTANT, SAME_SHAPE, SAME_MATRIX = "constant", "same shape", "same shape, two axes"
CHAINS = {
    "Conv": (*[(Step(AFFINE, CONSTANT),)] * 4, (Step(SUM, SAME_SHAPE),), (Step(ACTIVATIONS),)),
    "MatMul": ((Step(SCALES, CONSTANT),), (Step(ADD, CONSTANT), Step(ADD, SAME_MATRIX)), (Step(ACTIVATIONS | GELUS),)),
    "Gemm": ((Step(ACTIVATIONS),),),
    "BatchNormalization": ((Step(SUM, SAME_SHAPE),), (Step(ACTIVATIONS),)),
    "Mul": ((Step(SUM, SAME_SHAPE),), (Step(ACTIVATIONS),)),
}
"""Anchor -> what follows it: alternatives in each place, all optional, each the only reader of the one before. A Mul is
one where it scales channels."""

PREFIXES = {
    "Conv": (Step(frozenset({"Pad"})),),
    "MaxPool": (Step(frozenset({"Pad"})),),
    "AveragePool": (Step(frozenset({"Pad"})),),
    "MatMul": (Step(frozenset({"Transpose"})), Step(SCALES, CONSTANT)),
    "LayerNormalization": (Step(ADD, SAME_SHAPE), Step(ADD, CONSTANT)),
    "RMSNormalization": (Step(ADD, SAME_SHAPE), Step(ADD, CONSTANT)),
    "Gelu": (Step(ADD, CONSTANT),),
}
"""Anchor -> operators that may stand before it, whose only reader it is (see `_led_to`)."""

ADDING = frozenset({"Conv", "BatchNormalization", "Mul"})
"""Anchors whose kernels add another image: the last two run as depthwise convolutions on blocks."""

LONGEST = max(len(places) for places in CHAINS.values()) + 1
"""Edges from an anchor to the end of its chain: a HardSwish that is written out may be one more."""
FOLLOWERS = frozenset[str]().union(*(step.ops for places in CHAINS.values() for place in places for step in place))
LEADERS = frozenset[str]().union(*(step.ops for steps in PREFIXES.values() for step in steps))


def owner(graph: Window, node_id: int) -> int:
    """Return the anchor of the group that a node belongs to; itself where it belongs to no other's.

    A node that several groups could take goes to: 1. the chain after an anchor; 2. a gate; 3. the anchor after it.
    """
    if graph.nodes[node_id].sig.op.key == "Slice":
        return _slices(graph, node_id)[0]
    anchor = _chain_of(graph, node_id)
    if anchor is None:
        anchor = gate_of(graph, node_id)
    if anchor is None and graph.nodes[node_id].sig.op.key in LEADERS:
        reader = _led_to(graph, value_of(node_id))
        anchor = reader if reader is not None and node_id in _prefix(graph, reader) else None
    return node_id if anchor is None else anchor


def group(graph: Window, anchor: int) -> tuple[int, ...]:
    """Return the nodes of an anchor's group, producers first."""
    if graph.nodes[anchor].sig.op.key == "Slice":
        return _slices(graph, anchor)
    before, after = gate(graph, anchor)
    if before or after:
        return (*before, anchor, *after)
    return (*_prefix(graph, anchor), anchor, *_chain(graph, anchor))


def _slices(graph: Window, node_id: int) -> tuple[int, ...]:
    """Return all slices of the value that a node slices: together they may be a Split."""
    value = graph.nodes[node_id].inputs[0]
    if value is None or graph.nodes[node_id].sig.const:
        return (node_id,)
    found = {producer_of(use) for use in graph.uses[value] if output_index(use) == 0}
    slices = {i: graph.nodes[i].sig for i in found if i != SINK and graph.nodes[i].sig.op.key == "Slice"}
    return tuple(sorted(slices, key=lambda i: (slices[i].attrs, i)))


def _chain(graph: Window, anchor: int) -> tuple[int, ...]:
    """Return the nodes that follow an anchor."""
    found: list[int] = []
    value = value_of(anchor)
    for place in _places(graph.nodes[anchor].sig):
        reader = only_reader(graph, value)
        if reader is None:
            break
        if any(_fits(graph, reader, s, value) and not _taken(graph, anchor, reader, s) for s in place):
            found.append(reader)
            value = value_of(reader)
    return (*found, *_hard_swish(graph, value)) if graph.nodes[anchor].sig.op.key == "Conv" else tuple(found)


def _hard_swish(graph: Window, value: int) -> tuple[int, ...]:
    """Return the HardSigmoid of a value and the Mul of both, if nothing else reads it: a convolution takes them in."""
    readers = {graph.nodes[i].sig.op.key: i for i in map(producer_of, graph.uses[value]) if i != SINK}
    if len(graph.uses[value]) != 2 or readers.keys() != {"HardSigmoid", "Mul"}:
        return ()
    gate = readers["HardSigmoid"]
    return (gate, readers["Mul"]) if only_reader(graph, value_of(gate)) == readers["Mul"] else ()


def _places(sig: Signature) -> tuple[tuple[Step, ...], ...]:
    """Return what may follow an operator in its group."""
    return CHAINS.get(sig.op.key, ()) if sig.op.key != "Mul" or scales_channels(sig) else ()


def _chain_of(graph: Window, node_id: int) -> int | None:
    """Return the anchor whose chain a node is in; an anchor within another's chain has none of its own."""
    if graph.nodes[node_id].sig.op.key not in FOLLOWERS:
        return None
    for anchor in _upstream(graph, node_id):
        if node_id in _chain(graph, anchor) and _chain_of(graph, anchor) is None:
            return anchor
    return None


def _prefix(graph: Window, anchor: int) -> tuple[int, ...]:
    """Return the nodes right before an anchor that no other group takes."""
    found: list[int] = []
    node = graph.nodes[anchor]
    for value in dict.fromkeys(node.inputs[:2]):
        if value is None or value in graph.leaves or _led_to(graph, value) != anchor:
            continue
        producer = producer_of(value)
        if graph.nodes[producer].sig.const or not any(
            _fits(graph, producer, step, None) for step in PREFIXES.get(node.sig.op.key, ())
        ):
            continue
        if _chain_of(graph, producer) is None and gate_of(graph, producer) is None:
            found.append(producer)
    if len(found) > 1 and value_of(found[1]) in graph.nodes[found[0]].inputs:
        found.reverse()  # producers first, and else in the order of operands: ids say in which order rewrites came
    return tuple(found)


def _led_to(graph: Window, value: int) -> int | None:
    """Return the anchor that may take in a value's producer: the only reader, or of a Transpose the only MatMul.

    The MatMul reads what is transposed then; for the other readers the Transpose stays.
    """
    readers = [producer_of(use) for use in graph.uses[value]]
    if len(readers) > 1 and SINK not in readers and graph.nodes[producer_of(value)].sig.op.key == "Transpose":
        products = [i for i in readers if graph.nodes[i].sig.op.key == "MatMul"]
        return products[0] if len(products) == 1 else None
    return only_reader(graph, value)


def _upstream(graph: Window, node_id: int) -> Iterator[int]:
    """Yield the anchors before a node, nearest first, on paths of operators that may follow one."""
    front, seen = [node_id], {node_id}
    for _ in range(LONGEST):
        found: list[int] = []
        for current in front:
            for value in graph.nodes[current].inputs:
                if value is None or value in graph.leaves or producer_of(value) in seen:
                    continue
                producer = producer_of(value)
                seen.add(producer)
                key = graph.nodes[producer].sig.op.key
                if key in CHAINS:
                    yield producer
                if key in FOLLOWERS:
                    found.append(producer)
        front = found


def _taken(graph: Window, anchor: int, reader: int, step: Step) -> bool:
    """Whether an addition of two anchors' values belongs to the other one.

    On blocks it belongs to the first operand's, otherwise to a convolution that isn't on blocks itself, the one that
    runs first.
    """
    if step.operand in (None, CONSTANT):
        return False
    key = graph.nodes[anchor].sig.op.key
    found = [_adding(graph, value, key) for value in graph.nodes[reader].inputs]
    anchors = [node_id for node_id in found if node_id is not None]
    if key in ADDING and not graph.blocked[value_of(reader)]:
        plain = [i for i in anchors if graph.nodes[i].sig.op.key == "Conv" and not graph.blocked[value_of(i)]]
        anchors = sorted(plain) or anchors
    return bool(anchors) and anchors[0] != anchor


def _adding(graph: Window, value: int | None, key: str) -> int | None:
    """Return the anchor, of an operator like ``key``, whose chain ends with a value that only an addition reads."""
    found = None
    for _ in range(LONGEST):
        if value is None or value in graph.leaves or only_reader(graph, value) is None:
            break
        node = graph.nodes[producer_of(value)]
        if _places(node.sig) and (node.sig.op.key == key or {node.sig.op.key, key} <= ADDING):
            found = producer_of(value)
        images = _variable_inputs(node)
        if node.sig.op.key not in AFFINE or len(images) != 1:  # that before an Add of two adds an image already
            break
        value = images[0]
    return found


def _fits(graph: Window, node_id: int, step: Step, value: int | None) -> bool:
    node = graph.nodes[node_id]
    if node.sig.op.key not in step.ops or len(node.sig.outputs) != 1:
        return False
    if step.operand is None:
        return value is None or node.inputs[0] == value
    variable = _variable_inputs(node)
    if step.operand == CONSTANT:
        return len(variable) == 1 and len(node.sig.inputs) > 1 and value in (None, variable[0])
    shapes = [t.shape for t in node.sig.inputs if isinstance(t, TensorType)]
    if step.operand == SAME_MATRIX and len(shapes[0] or ()) != 2:
        return False
    return len(variable) == 2 and shapes[0] == shapes[1]


def _variable_inputs(node: Node) -> list[int]:
    pairs = zip(node.inputs, node.sig.inputs, strict=False)
    return [v for v, t in pairs if v is not None and t is not None and not t.const]
