"""The controller over the tokens of a token world model: a score for each, whatever their order and number."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from taso_agents.networks.candidates import CandidateDistribution, Observation
from taso_agents.networks.encoder import box, sum_by
from taso_agents.policies.latent_policy import LatentPolicy, box_counts
from taso_agents.policies.pointer import shrink
from taso_agents.world_models.tokens import rules_of


class TokenParts(NamedTuple):
    """A batch of observations as tokens, C in all.

    Attributes:
        valid: (B, M) there is a token.
        pairs: (B, M, 2) substitution and location of each token.
        embedded: (C, H).
        reward: (C,) what acting on each brings at once, by the world model, on a logarithmic scale.
        whole: (B, H) of all tokens together.
    """

    valid: Tensor
    pairs: Tensor
    embedded: Tensor
    reward: Tensor
    whole: Tensor


class TokenPolicy(LatentPolicy):
    """One softmax over the scores of all tokens and NO-OP.

    Args:
        observation_space: of `LatentObservation` with a token world model, or of its dream.
        action_space: ``MultiDiscrete([N + 1, L])``.
        lr_schedule: learning rate as a function of the remaining progress.
        tokens: M, as in the world model's settings.
        greed: weight of the reward in a token's score at the start.
        kwargs: those of `LatentPolicy`.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        tokens: int,
        greed: float = 2.0,
        **kwargs: Any,
    ) -> None:
        self.tokens, self.initial_greed = tokens, greed
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert isinstance(self.observation_space, spaces.Dict)
        self.token_width = box(self.observation_space, "latent").shape[0] // self.tokens
        xfers, H = int(box_counts(self.action_space)[0]) - 1, self.width
        self.rule = nn.Embedding(xfers, H)
        self.embed = nn.Linear(self.token_width, H)
        self.of_whole = nn.Linear(H, H, bias=False)
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(H, H), nn.ReLU())
        self.score, self.score_noop = nn.Linear(H, 1), nn.Linear(H, 1)
        self.value = nn.Sequential(nn.Linear(H + 2, H), nn.ReLU(), nn.Linear(H, 1))
        self.greed = nn.Parameter(torch.tensor(float(self.initial_greed)))
        shrink(self.score, self.score_noop)
        arguments: dict[str, Any] = {"lr": lr_schedule(1.0), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **arguments)

    def _features(self, observation: Observation) -> Any:
        latent = observation["latent"].float()
        tokens = latent[:, : self.tokens * self.token_width].unflatten(1, (self.tokens, -1))
        valid, rule, starts = rules_of(observation["location_counts"][:, :-1].long(), self.tokens)
        graph, slot = valid.nonzero(as_tuple=True)
        location = torch.arange(self.tokens) - starts.gather(1, rule)
        seen = tokens[graph, slot]
        first = torch.relu(self.embed(seen) + self.rule(rule[graph, slot]))
        whole = sum_by(first, graph, len(valid)) / valid.sum(1, keepdim=True).clamp(min=1)
        embedded = self.mix(first + self.of_whole(whole)[graph])
        return TokenParts(valid, torch.stack([rule, location], 2), embedded, seen[:, -1], whole)

    def _distribution(self, observation: Observation, features: Any) -> Any:  # noqa: ARG002 - the base class's
        parts: TokenParts = features
        scores = self.score(parts.embedded)[:, 0] + self.greed * parts.reward
        lowest = torch.full(parts.valid.shape, -torch.inf)
        noop = self.score_noop(parts.whole) + self.noop_bias
        logits = torch.cat([lowest.masked_scatter(parts.valid, scores), noop], 1)
        return CandidateDistribution(logits.log_softmax(1), parts.pairs, self.action_space)

    def critic(self, parts: TokenParts) -> Tensor:
        """Return the values (B, 1)."""
        spread = torch.full(parts.valid.shape, -1.0).masked_scatter(parts.valid, parts.reward)
        gains = spread.clamp(min=0)
        best = torch.stack([gains.max(1).values, gains.sum(1) / 8], 1)
        return self.value(torch.cat([parts.whole, best], 1))
