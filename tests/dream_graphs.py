"""Small graphs for tests of dreamt ones."""

from taso_agents.world_models.graph.dream_graph import DreamNode, Nodes, with_codes


def graph(labels: dict[int, int], edges: list[tuple[int, int]]) -> Nodes:
    """Make a graph of labels and (producer, consumer), all edges of kind 0."""
    nodes = {
        x: DreamNode(
            label, tuple((a, 0) for a, b in edges if b == x), tuple(sorted((b, 0) for a, b in edges if a == x))
        )
        for x, label in labels.items()
    }
    with_codes(nodes, nodes)
    return nodes


def chain(*labels: int) -> Nodes:
    """Make a chain of nodes 0, 1, …"""
    return graph(dict(enumerate(labels)), [(i, i + 1) for i in range(len(labels) - 1)])
