"""Finds activations and normalisations that are written out in simple operators, which onnxruntime fuses into one.

All have one form: a value x goes through a few operators into a characteristic one, the anchor (erf in GELU, tanh in
its approximation, the sigmoid in SiLU, the square root in LayerNorm and RMSNorm), and meets x again behind it.
"""

from __future__ import annotations

from taso_gym.cost.window import Window
from taso_gym.graph import SINK, output_index, producer_of, value_of

GATE_ANCHORS = frozenset({"Erf", "Tanh", "Sigmoid", "HardSigmoid", "Sqrt"})
BEFORE = frozenset({"Add", "Mul", "Div", "Pow", "ReduceMean"})
AFTER = frozenset({"Add", "Mul", "Div"})
GATE_OPS = BEFORE | AFTER | {"Sub"}
MOST_BEFORE, MOST_AFTER = 4, 4
REACH = MOST_BEFORE + 2
"""A gate reaches so many edges from its anchor: the centring of a LayerNorm is two more before it."""


def gate(graph: Window, anchor: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the nodes before and after an anchor that form a gate with it, producers first; none where they don't."""
    if graph.nodes[anchor].sig.op.key not in GATE_ANCHORS:
        return (), ()
    cone = _cone(graph, anchor)
    if cone is None:
        return (), ()
    before, x = cone
    centring = _centring(graph, x)
    inside = {x, *(value_of(n) for n in before)}
    value, after, closed = value_of(anchor), list[int](), False
    for _ in range(MOST_AFTER):
        reader = only_reader(graph, value)
        if reader is None or graph.nodes[reader].sig.op.key not in AFTER:
            break
        others = [v for v in graph.nodes[reader].inputs if v is not None and v != value and not _const(graph, v)]
        halves = [producer_of(v) for v in others if v not in inside and _scaled(graph, v, x)]
        if len(halves) + sum(v in inside for v in others) != len(others):
            break
        closed |= bool(others)
        after += [*halves, reader]
        value = value_of(reader)
    return ((*centring, *before), tuple(after)) if closed else ((), ())


def gate_of(graph: Window, node_id: int) -> int | None:
    """Return the anchor of the gate that a node belongs to, or None."""
    if graph.nodes[node_id].sig.op.key not in GATE_OPS:
        return None
    for anchor in _anchors_near(graph, node_id):
        before, after = gate(graph, anchor)
        if node_id in before or node_id in after:
            return anchor
    return None


def only_reader(graph: Window, value: int) -> int | None:
    """Return the node that alone reads a first output, and once; None where others do, or the graph's caller."""
    uses = graph.uses[value]
    if len(uses) != 1 or output_index(value) != 0 or producer_of(uses[0]) == SINK:
        return None
    return producer_of(uses[0])


def _cone(graph: Window, anchor: int) -> tuple[tuple[int, ...], int] | None:
    """Return the nodes between x and the anchor, producers first, and x: the first value that something else reads."""
    found: list[int] = []
    front = [v for v in graph.nodes[anchor].inputs if v is not None]
    for _ in range(MOST_BEFORE + 1):
        inner = [v for v in front if v not in graph.leaves and _read_within(graph, v, {anchor, *found})]
        if not inner:
            return (tuple(reversed(found)), front[0]) if len(front) == 1 else None
        node_id = producer_of(inner[0])
        if graph.nodes[node_id].sig.op.key not in BEFORE:
            return None
        found.append(node_id)
        inputs = [v for v in graph.nodes[node_id].inputs if v is not None and not _const(graph, v)]
        front = list(dict.fromkeys([*(v for v in front if v != inner[0]), *inputs]))
    return None


def _centring(graph: Window, x: int) -> tuple[int, ...]:
    """Return the nodes of x = y - mean(y), if that is what x is."""
    if x in graph.leaves or graph.nodes[producer_of(x)].sig.op.key != "Sub":
        return ()
    minuend, mean = graph.nodes[producer_of(x)].inputs[:2]
    if mean is None or mean in graph.leaves or only_reader(graph, mean) is None:
        return ()
    node = graph.nodes[producer_of(mean)]
    fits = node.sig.op.key == "ReduceMean" and node.inputs[0] == minuend
    return (producer_of(mean), producer_of(x)) if fits else ()


def _scaled(graph: Window, value: int, x: int) -> bool:
    """Whether a value is x times a constant, and read once."""
    if value in graph.leaves or only_reader(graph, value) is None:
        return False
    node = graph.nodes[producer_of(value)]
    return node.sig.op.key in ("Mul", "Div") and {v for v in node.inputs if v and not _const(graph, v)} == {x}


def _read_within(graph: Window, value: int, nodes: set[int]) -> bool:
    return all(producer_of(use) in nodes for use in graph.uses[value])


def _const(graph: Window, value: int) -> bool:
    return graph.type_of(value).const


def _anchors_near(graph: Window, node_id: int) -> list[int]:
    """Return gate anchors within reach: after a node, before it, or (for a scaled x) before one that reads it."""
    found: list[int] = []
    readers = [n for n in _readers(graph, node_id) if graph.nodes[n].sig.op.key in AFTER]
    for start, down in ([node_id], True), ([node_id, *readers], False):
        front, seen = start, {node_id}
        for _ in range(REACH):
            reached: list[int] = []
            for current in front:
                for neighbour in _readers(graph, current) if down else _producers(graph, current):
                    if neighbour in seen:
                        continue
                    seen.add(neighbour)
                    key = graph.nodes[neighbour].sig.op.key
                    if key in GATE_ANCHORS:
                        found.append(neighbour)
                    elif key in GATE_OPS:
                        reached.append(neighbour)
            front = reached
    return found


def _readers(graph: Window, node_id: int) -> list[int]:
    uses = graph.uses[value_of(node_id)]
    return [producer_of(use) for use in uses if producer_of(use) != SINK]


def _producers(graph: Window, node_id: int) -> list[int]:
    return [producer_of(v) for v in graph.nodes[node_id].inputs if v is not None and v not in graph.leaves]
