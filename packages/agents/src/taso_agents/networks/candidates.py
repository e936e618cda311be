"""The candidates of an observation: which are legal, how each is embedded, and distributions over them and NO-OP."""

from __future__ import annotations

from typing import NamedTuple

import torch
from gymnasium import spaces
from torch import Tensor, nn

from taso_agents.networks.encoder import Encoding, sum_by

Observation = dict[str, Tensor]


class Candidates(NamedTuple):
    """The legal candidates of a batch without padding; C in all.

    Attributes:
        legal: (B, M) bool; its true entries, in order, are the candidates.
        graph: (C,) row in the batch.
        xfer: (C,) substitution.
        rows: (C, P) rows of the matched nodes within their graph, negative where there is none.
        change: (C,) change of run time in % of the start graph's, if the observation shows it.
    """

    legal: Tensor
    graph: Tensor
    xfer: Tensor
    rows: Tensor
    change: Tensor | None

    def spread(self, values: Tensor, fill: float) -> Tensor:
        """Return values (C,) as (B, M), with ``fill`` at what is illegal."""
        return torch.full_like(self.legal, fill, dtype=values.dtype).masked_scatter(self.legal, values)


def find_candidates(
    observation: Observation, action_masks: Tensor | None = None, by_candidate: bool = False
) -> Candidates:
    """Read the legal candidates off the masks of a batch of observations.

    A candidate is legal if ``match_mask``, ``xfer_mask`` and its location's mask or count say so, all of them, so
    that a wrapper may forbid substitutions by clearing any. ``action_masks`` of sb3-contrib narrow them further: those
    of a Discrete have an entry for each candidate (``by_candidate``), those of a MultiDiscrete one for each
    substitution, then one for each location.
    """
    matches = observation["matches"].long()
    legal = observation["match_mask"].bool().clone()
    graph, slot = legal.nonzero(as_tuple=True)
    xfer, location = matches[graph, slot, 0], matches[graph, slot, 1]
    allowed = observation["xfer_mask"].bool()[graph, xfer]
    if "location_masks" in observation:
        allowed &= observation["location_masks"].bool()[graph, xfer, location]
    else:
        allowed &= location < observation["location_counts"][graph, xfer]
    if action_masks is not None:
        masks = action_masks.bool().view(len(matches), -1)
        first_location = observation["xfer_mask"].shape[1]
        allowed &= masks[graph, slot] if by_candidate else masks[graph, xfer] & masks[graph, first_location + location]
    legal[graph, slot] = allowed
    graph, slot, xfer = graph[allowed], slot[allowed], xfer[allowed]
    change = observation["cost_changes"][graph, slot] if "cost_changes" in observation else None
    return Candidates(legal, graph, xfer, matches[graph, slot, 2:], change)


class CandidateEmbedding(nn.Module):
    """Embeds a candidate by its substitution, its matched nodes' mean, the graph, and the cost change if shown."""

    def __init__(self, hidden: int, xfers: int, sees_costs: bool) -> None:
        super().__init__()
        self.xfer = nn.Embedding(xfers, hidden)
        self.change = nn.Linear(3, hidden, bias=False) if sees_costs else None
        self.matched = nn.Linear(hidden, hidden)
        self.whole = nn.Linear(hidden, hidden, bias=False)
        self.mix = nn.Linear(hidden, hidden)

    def forward(self, encoding: Encoding, candidates: Candidates) -> Tensor:
        """Return (C, H)."""
        max_nodes = len(encoding.packed.row_of) // len(encoding.globals)
        present = candidates.rows >= 0
        padded = candidates.graph[:, None] * max_nodes + candidates.rows.clamp(min=0)
        which, _ = present.nonzero(as_tuple=True)
        nodes = encoding.nodes.index_select(0, encoding.packed.row_of[padded[present]])
        mean = sum_by(nodes, which, len(padded)) / present.sum(1, keepdim=True).clamp(min=1)
        whole = self.whole(encoding.globals).index_select(0, candidates.graph)
        total = self.matched(mean) + whole + self.xfer(candidates.xfer)
        if self.change is not None:
            assert candidates.change is not None
            change = candidates.change
            total = total + self.change(torch.stack([change, magnitude(change), change.sign()], 1))
        return torch.relu(self.mix(torch.relu(total)))


def magnitude(change: Tensor) -> Tensor:
    """Return cost changes in % on a signed logarithmic scale that begins at 0.001 %; 0.15 % is 1."""
    return change.sign() * (1000 * change.abs()).log1p() / 5


class CandidateDistribution:
    """One categorical distribution over the M candidates of each observation and NO-OP, which is number M.

    Args:
        log_probs: (B, M + 1), normalised; minus infinity at what is illegal.
        matches: (B, M, 2 + P) of the observation: its first two columns are the candidate's action.
        action_space: ``Discrete(M + 1)`` (actions are candidates) or ``MultiDiscrete`` (substitution, location).
    """

    def __init__(self, log_probs: Tensor, matches: Tensor, action_space: spaces.Space) -> None:
        assert log_probs.shape == (len(matches), matches.shape[1] + 1)
        self.log_probs = log_probs
        self.pairs = None
        if isinstance(action_space, spaces.MultiDiscrete):
            self.noop = int(action_space.nvec[0]) - 1
            self.pairs = matches[:, :, :2].long()

    def sample(self) -> Tensor:
        """Draw an action for each observation."""
        return self._actions(torch.multinomial(self.log_probs.exp(), 1))

    def mode(self) -> Tensor:
        """Return the most probable action for each observation."""
        return self._actions(self.log_probs.argmax(1, keepdim=True))

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """Return the mode or a sample."""
        return self.mode() if deterministic else self.sample()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the exact log-probability (B,) of actions; minus infinity for an illegal one."""
        B, M = len(self.log_probs), self.log_probs.shape[1] - 1
        if self.pairs is None:
            return self.log_probs.gather(1, actions.long().view(B, 1))[:, 0]
        wanted = actions.long().view(B, 1, 2)
        same = (self.pairs == wanted).all(2) & self.log_probs[:, :M].isfinite()
        is_noop = wanted[:, 0, 0] == self.noop
        candidate = torch.where(is_noop, M, same.int().argmax(1))
        found = self.log_probs.gather(1, candidate[:, None])[:, 0]
        return found.masked_fill(~is_noop & ~same.any(1), -torch.inf)

    def entropy(self) -> Tensor:
        """Return the exact entropy (B,) in nats."""
        finite = self.log_probs.masked_fill(self.log_probs == -torch.inf, 0.0)
        return -(finite * self.log_probs.exp()).sum(1)

    def _actions(self, candidate: Tensor) -> Tensor:
        """Turn candidates (B, 1) into actions: (B,) numbers, or (B, 2) pairs with location 0 for NO-OP."""
        if self.pairs is None:
            return candidate[:, 0]
        noop = self.pairs.new_tensor([[[self.noop, 0]]]).expand(len(candidate), 1, 2)
        table = torch.cat([self.pairs, noop], 1)
        return table.gather(1, candidate[:, :, None].expand(-1, 1, 2))[:, 0]
