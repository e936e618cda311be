"""Graphs and states as text."""

from __future__ import annotations

from taso_gym.graph import Graph, output_index, producer_of
from taso_gym.render.scene import Scene

SHOWN_RULES = 10


def graph_text(graph: Graph) -> str:
    """Return a graph as text, one line an operator in topological order: ``%7 float[1, 64] = Relu(%6)``."""
    lines = [node_text(graph, node_id) for node_id in graph.topological_order()]
    return "\n".join([*lines, f"return {', '.join(_name(graph, v) for v in graph.outputs)}"])


def node_text(graph: Graph, node_id: int) -> str:
    """Return the line of one operator."""
    node = graph.nodes[node_id]
    arguments = [_name(graph, v) for v in node.inputs] + [f"{k}={v}" for k, v in node.sig.attrs]
    types = ", ".join(map(str, node.sig.outputs))
    return f"%{node_id} {types} = {node.sig.op.key}({', '.join(arguments)})"


def to_text(scene: Scene) -> str:
    """Return title, the operators that the last rewrite made, and the rules with most matches."""
    state = scene.state
    lines = [scene.title, *(f"  new: {node_text(state.graph, i)}" for i in sorted(scene.marked))]
    counts = sorted(((len(m), -i) for i, m in enumerate(state.matches) if m), reverse=True)
    lines += [f"  {count:4} × {state.rules[-negated].name}" for count, negated in counts[:SHOWN_RULES]]
    if len(counts) > SHOWN_RULES:
        lines.append(f"  and {len(counts) - SHOWN_RULES} rules more")
    return "\n".join(lines)


def _name(graph: Graph, value: int | None) -> str:
    if value is None:
        return "_"
    leaf = graph.leaves.get(value)
    if leaf:
        return leaf.name or f"w{producer_of(value)}"
    return f"%{producer_of(value)}" + (f".{output_index(value)}" if output_index(value) else "")
