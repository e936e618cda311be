"""Graph encoder: message passing with GN blocks (Battaglia et al. 2018) over the real rows of a padded observation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from taso_gym.errors import OptionError

OP_COLUMN = 0
"""Column of ``nodes`` that holds the number of the node's operator."""


class Packed(NamedTuple):
    """A batch of graphs without its padding; R real nodes and Q real edges in all.

    Attributes:
        row_of: (B * N,) packed row of each padded node; meaningless where there is no node.
        node_graph: (R,) graph of each node.
        edge_graph: (Q,) graph of each edge.
        source, target: (Q,) packed rows of an edge's producer and consumer.
        node_count, edge_count: (B, 1) at least 1, to take means with.
    """

    row_of: Tensor
    node_graph: Tensor
    edge_graph: Tensor
    source: Tensor
    target: Tensor
    node_count: Tensor
    edge_count: Tensor


def pack(node_mask: Tensor, edges: Tensor, edge_mask: Tensor) -> Packed:
    """Find the real rows of a padded batch.

    Args:
        node_mask: (B, N) bool.
        edges: (B, E, 2) rows of producer and consumer.
        edge_mask: (B, E) bool.
    """
    B, N = node_mask.shape
    row_of = node_mask.flatten().cumsum(0) - 1
    node_graph = node_mask.nonzero()[:, 0]
    edge_graph = edge_mask.nonzero()[:, 0]
    ends = row_of[edges[edge_mask].long() + edge_graph[:, None] * N]
    node_count = node_mask.sum(1, keepdim=True).clamp(min=1)
    edge_count = edge_mask.sum(1, keepdim=True).clamp(min=1)
    assert node_count.shape == (B, 1) and ends.shape == (len(edge_graph), 2)
    return Packed(row_of, node_graph, edge_graph, ends[:, 0], ends[:, 1], node_count, edge_count)


def sum_by(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum rows (R, H) that share an index into (size, H)."""
    return values.new_zeros(size, values.shape[1]).index_add_(0, index, values)


class GNBlock(nn.Module):
    """One graph-network block (Battaglia et al. 2018, Algorithm 1): edges, then nodes, then the global.

    Each update is a residual layer. A linear map of a concatenation is written as a sum of linear maps, so that those
    of nodes and globals are computed once a node and once a graph, not once an edge. A node sums what its incoming and
    its outgoing edges say separately, for producers matter to it as consumers do.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.from_edge = nn.Linear(hidden, hidden)
        self.from_node = nn.Linear(hidden, 3 * hidden, bias=False)
        self.from_global = nn.Linear(hidden, 2 * hidden)
        self.from_sums = nn.Linear(2 * hidden, hidden, bias=False)
        self.node_norm = nn.LayerNorm(hidden)
        self.update_global = nn.Linear(3 * hidden, hidden)
        self.global_norm = nn.LayerNorm(hidden)

    def forward(self, nodes: Tensor, edges: Tensor, glob: Tensor, packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
        """Update nodes (R, H), edges (Q, H) and globals (B, H)."""
        to_edges, to_nodes = self.from_global(glob).index_select(0, packed.node_graph).chunk(2, 1)
        as_source, as_target, own = self.from_node(nodes).chunk(3, 1)
        heard = (as_source + to_edges).index_select(0, packed.source) + as_target.index_select(0, packed.target)
        edges = edges + torch.relu(self.from_edge(edges) + heard)
        sums = [sum_by(edges, packed.target, len(nodes)), sum_by(edges, packed.source, len(nodes))]
        nodes = self.node_norm(nodes + torch.relu(own + to_nodes + self.from_sums(torch.cat(sums, 1))))
        node_mean = sum_by(nodes, packed.node_graph, len(glob)) / packed.node_count
        edge_mean = sum_by(edges, packed.edge_graph, len(glob)) / packed.edge_count
        glob = self.global_norm(glob + torch.relu(self.update_global(torch.cat([glob, node_mean, edge_mean], 1))))
        return nodes, edges, glob


def box(observation_space: spaces.Dict, key: str) -> spaces.Box:
    """Return one part of an observation space."""
    part = observation_space[key]
    assert isinstance(part, spaces.Box)
    return part


class Encoding(NamedTuple):
    """What the encoder says about a batch of graphs.

    Attributes:
        nodes: (R, H) embedding of each real node.
        globals: (B, H) embedding of each graph.
        packed: where the real rows lie.
    """

    nodes: Tensor
    globals: Tensor
    packed: Packed


class GraphEncoder(BaseFeaturesExtractor):
    """Embeds the graph of an observation by several GN blocks, each with its own parameters.

    As a features extractor of Stable-Baselines3 it returns the global embedding; the policies of this package call
    `encode` and use the nodes as well.

    Args:
        observation_space: the environment's ``Dict``.
        hidden: width H of all embeddings.
        rounds: number of blocks; a node sees what is at most so many edges away.
    """

    def __init__(self, observation_space: spaces.Dict, hidden: int = 64, rounds: int = 3) -> None:
        super().__init__(observation_space, features_dim=hidden)
        nodes, edges, glob = (box(observation_space, key) for key in ("nodes", "edge_features", "globals"))
        self.operators = nn.Embedding(int(nodes.high[0, OP_COLUMN]) + 1, hidden)
        self.embed_nodes = nn.Linear(nodes.shape[1], hidden)
        self.embed_edges = nn.Linear(edges.shape[1], hidden)
        self.embed_globals = nn.Linear(glob.shape[0], hidden)
        self.blocks = nn.ModuleList([GNBlock(hidden) for _ in range(rounds)])

    def encode(self, observation: dict[str, Tensor], further: Tensor | None = None) -> Encoding:
        """Embed the nodes and the whole of each graph in a batch of observations.

        ``further`` (R, H) is added to what the real nodes begin with.

        Raises:
            OptionError: observations are normalised, so that operators' numbers and masks are lost.
        """
        node_mask, edge_mask = observation["node_mask"].bool(), observation["edge_mask"].bool()
        packed = pack(node_mask, observation["edges"], edge_mask)
        features = observation["nodes"][node_mask].float()
        operator = features[:, OP_COLUMN].long()
        if not torch.equal(operator.float(), features[:, OP_COLUMN]):
            raise OptionError(
                "expected observations as the environment gives them, found operators whose numbers aren't whole: "
                "features are scaled already, so don't normalise them (VecNormalize: norm_obs=False)"
            )
        features[:, OP_COLUMN] = 0.0  # a number, not a quantity
        nodes = self.embed_nodes(features) + self.operators(operator)
        nodes = nodes if further is None else nodes + further
        edges = self.embed_edges(observation["edge_features"][edge_mask].float())
        glob = self.embed_globals(observation["globals"].float())
        for block in self.blocks:
            nodes, edges, glob = block(nodes, edges, glob, packed)
        return Encoding(nodes, glob, packed)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Return the global embeddings (B, H)."""
        return self.encode(observations).globals
