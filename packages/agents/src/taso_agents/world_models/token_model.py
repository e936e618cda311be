"""World model whose latent is a set of tokens, one for each thing that can be done, and whose transition edits it.

The dissertation's latent is one vector of 32 numbers for a graph; which location is which gets lost in it. Here the
encoder embeds every candidate by its matched nodes, as the policies of this package do, and a step is predicted by what
it does to each: does it stay, how does it change, how many new ones come behind it. The same small network answers for
all candidates, so a step of data teaches what happens to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from taso_agents.data.episodes import Dataset
from taso_agents.networks.candidates import CandidateEmbedding, Candidates, Observation, magnitude
from taso_agents.networks.encoder import GraphEncoder, box
from taso_agents.world_models.base import Memory, Memoryless
from taso_agents.world_models.token_rewards import bins_of, check_rewards
from taso_agents.world_models.token_transition import Step, TokenTransition
from taso_agents.world_models.tokens import Edits, TokenLayout, lay_out


@dataclass(frozen=True)
class TokenSettings:
    """Sizes of a token world model.

    Attributes:
        tokens: most tokens M; candidates beyond them don't exist for the model. `taso_agents.dreams.train` replaces 0
            by a quarter more than the start graph's.
        width: numbers D of a token, without its reward.
        transition: units of the network that predicts steps.
        most_new: most tokens that come behind one.
        places: rows of nodes that are told apart.
        bins: values that rewards are distributed over.
        encoder: width of the graph encoder.
        rounds: its rounds of message passing.
    """

    tokens: int = 0
    width: int = 32
    transition: int = 96
    most_new: int = 4
    places: int = 2048
    bins: int = 128
    encoder: int = 32
    rounds: int = 3

    @property
    def latent(self) -> int:
        """Length of the latent: M tokens of D numbers and a reward each."""
        return self.tokens * (self.width + 1)

    @property
    def hidden(self) -> int:
        """Length of the memory, which stays 0: tokens say all that there is to know."""
        return 1


class TokenPrediction(NamedTuple):
    """A step and what follows from it, in the leading dimensions of what was asked.

    Attributes:
        step: of all graphs in a row.
        reward: (...) in units of ``reward_scale``.
        end: (...) logit that no substitution is left afterwards.
    """

    step: Step
    reward: Tensor
    end: Tensor


class TokenWorldModel(Memoryless):
    """Predicts the environment step by step as edits of tokens; what `WorldModel` offers, it offers.

    Args:
        observation_space: of the real environment.
        action_space: its ``MultiDiscrete([N + 1, L])``.
        settings: sizes.
    """

    kind: ClassVar[str] = "tokens"
    has_gradients: ClassVar[bool] = True
    Settings: ClassVar[Any] = TokenSettings
    values: Tensor

    def __init__(
        self, observation_space: spaces.Dict, action_space: spaces.MultiDiscrete, settings: TokenSettings | None = None
    ) -> None:
        s = settings or TokenSettings(tokens=128)
        super().__init__(action_space, s)
        assert s.tokens > 0
        assert box(observation_space, "xfer_mask").shape == (self.xfers + 1,)
        D = s.width
        self.encoder = GraphEncoder(observation_space, s.encoder, s.rounds)
        self.places = nn.Embedding(s.places, s.encoder)
        self.embed = CandidateEmbedding(s.encoder, self.xfers, sees_costs=False)
        self.to_token = nn.Linear(s.encoder, D)
        self.transition = TokenTransition(self.xfers, D, s.transition, s.most_new)
        self.value = nn.Sequential(nn.Linear(D, s.transition), nn.ReLU(), nn.Linear(s.transition, s.bins))
        self.value_rule = nn.Embedding(self.xfers, s.bins)
        self.register_buffer("values", torch.linspace(-1, 1, s.bins))

    def tokens_of(self, latent: Tensor) -> Tensor:
        """Return the tokens (..., M, D) of latents (..., Z)."""
        return latent.unflatten(-1, (self.settings.tokens, -1))[..., :-1]

    def fitting(self, counts: Tensor) -> Tensor:
        """Return how many tokens (B, S) stand for numbers of locations (B, N): of seen rules, as far as they fit."""
        ends = counts[:, self.seen].cumsum(1).clamp(max=self.settings.tokens)
        return ends.diff(dim=1, prepend=ends.new_zeros(len(ends), 1))

    def lay_out(self, counts: Tensor) -> TokenLayout:
        """Lay out the tokens of numbers of locations (B, N)."""
        return lay_out(self.fitting(counts), self.settings.tokens)

    def encode_tokens(self, observation: Observation) -> tuple[Tensor, TokenLayout]:
        """Return the tokens (B, M, D) of observations, zero where there is none, and their layout."""
        node_mask = observation["node_mask"].bool()
        if "places" in observation:
            places = observation["places"][node_mask]
        else:
            places = node_mask.nonzero()[:, 1]
        encoding = self.encoder.encode(observation, self.places(places % self.settings.places))
        candidates = all_candidates(observation)
        embedded = functional.layer_norm(self.to_token(self.embed(encoding, candidates)), (self.settings.width,))
        number = torch.bincount(candidates.graph * self.xfers + candidates.xfer, minlength=len(node_mask) * self.xfers)
        layout = self.lay_out(number.view(-1, self.xfers))
        kept = self.seen[candidates.xfer]
        graph, embedded = candidates.graph[kept], embedded[kept]
        first = torch.bincount(graph, minlength=len(node_mask)).cumsum(0)
        slot = torch.arange(len(graph)) - functional.pad(first, (1, 0))[graph]
        fits = slot < self.settings.tokens
        tokens = embedded.new_zeros(len(node_mask), self.settings.tokens, self.settings.width)
        tokens = tokens.index_put((graph[fits], slot[fits]), embedded[fits])
        return tokens, layout

    def encode(self, observation: Observation) -> Tensor:
        """Return the latents (B, Z) of observations."""
        return self.as_latent(*self.encode_tokens(observation))

    def as_latent(self, tokens: Tensor, layout: TokenLayout) -> Tensor:
        """Return tokens (B, M, D) with their rewards as latents (B, Z)."""
        rewards = tokens.new_zeros(layout.valid.shape)
        rewards[layout.valid] = magnitude(self.expected(self.value_logits(tokens, layout)))
        return torch.cat([tokens, rewards[..., None]], -1).flatten(1)

    def value_logits(self, tokens: Tensor, layout: TokenLayout) -> Tensor:
        """Return the logits (C, bins) of the rewards of all tokens in a row."""
        rule = self.seen.nonzero()[:, 0][layout.rule[layout.valid]]
        return self.value(tokens[layout.valid]) + self.value_rule(rule)

    def expected(self, logits: Tensor) -> Tensor:
        """Return the mean (...) of a distribution of rewards (..., bins) in %."""
        return logits.softmax(-1) @ self.values

    def chosen_token(self, layout: TokenLayout, counts: Tensor, xfer: Tensor, location: Tensor) -> Tensor:
        """Return the number of the token (B,) that an action is about; -1 if there is none."""
        rank = (self.seen.cumsum(0) - 1)[xfer.clamp(max=self.xfers - 1)].clamp(min=0)
        number = layout.starts.gather(1, rank[:, None])[:, 0] + location
        offered = self.fitting(counts).gather(1, rank[:, None])[:, 0]
        legal = (xfer < self.xfers) & self.seen[xfer.clamp(max=self.xfers - 1)] & (location < offered)
        return torch.where(legal, number, -1)

    def forward(
        self,
        latent: Tensor,
        counts: Tensor,
        xfer: Tensor,
        location: Tensor,
        memory: Memory | None = None,  # noqa: ARG002
    ) -> tuple[TokenPrediction, Tensor, Memory]:
        """Predict steps, each by itself: a latent says all that there is to know.

        Args:
            latent: (B, T, Z) before each action.
            counts: (B, T, N) before each action.
            xfer: (B, T) substitutions.
            location: (B, T) their locations.
            memory: zeros, as they are returned.
        """
        shape = xfer.shape
        flat_counts = counts.flatten(0, 1)
        layout, tokens = self.lay_out(flat_counts), self.tokens_of(latent.flatten(0, 1))
        chosen = self.chosen_token(layout, flat_counts, xfer.flatten(), location.flatten())
        step = self.transition(tokens, layout, chosen, self.seen)
        reward = self._reward(tokens, chosen, xfer.flatten())
        gone = torch.where(layout.item_token >= 0, functional.logsigmoid(-step.stays), 0.0)
        gone = gone + step.new.log_softmax(1)[:, 0]
        none = torch.zeros(len(tokens)).index_add_(0, layout.item_graph, gone).clamp(max=-1e-6)
        end = none - torch.log(-torch.expm1(none))
        hidden = latent.new_zeros(*shape, 1)
        after = self.initial_memory(shape[0])
        return TokenPrediction(step, reward.view(shape), end.view(shape)), hidden, after

    def _reward(self, tokens: Tensor, chosen: Tensor, xfer: Tensor) -> Tensor:
        acted = tokens[torch.arange(len(tokens)), chosen.clamp(min=0)]
        rule = xfer.clamp(max=self.xfers - 1)
        return self.expected(self.value(acted) + self.value_rule(rule)) * (chosen >= 0) / self.reward_scale

    def rewards(self, latent: Tensor, counts: Tensor, xfer: Tensor, location: Tensor, memory: Memory) -> Tensor:  # noqa: ARG002
        """Return the rewards (B,) of single actions, in units of ``reward_scale``."""
        chosen = self.chosen_token(self.lay_out(counts), counts, xfer, location)
        return self._reward(self.tokens_of(latent), chosen, xfer)

    def follow(
        self, prediction: TokenPrediction, counts: Tensor, temperature: float, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw next latents (..., Z) and numbers of locations (..., N); τ divides all logits, 0 takes the mode."""
        step = prediction.step
        if temperature == 0:
            stays, new = step.stays > 0, step.new.argmax(1)
        else:
            chance = torch.rand(step.stays.shape, generator=generator)
            stays = chance < (step.stays / temperature).sigmoid()
            new = torch.multinomial((step.new / temperature).softmax(1), 1, generator=generator)[:, 0]
        tokens, found = self.transition.carry_out(step, Edits(stays & (step.layout.item_token >= 0), new))
        layout = lay_out(found.counts, self.settings.tokens)
        following = torch.zeros_like(counts.flatten(0, -2))
        following[:, self.seen] = found.counts
        return (
            self.as_latent(tokens, layout).view(*counts.shape[:-1], -1),
            following.clamp(max=self.locations).view(counts.shape),
        )

    def prepare(self, dataset: Dataset) -> None:
        """Take note of what occurs in the data: substitutions, and at the first time rewards.

        Raises:
            OptionError: rewards aren't the cost changes that the data show, so they can't be learned from them.
        """
        check_rewards(dataset)
        if not self.seen.any():
            changes = np.concatenate([graph.changes for graph in dataset.store.graphs])
            self.values.copy_(bins_of(changes, self.settings.bins))
        self.seen |= dataset.seen()

    def policy_arguments(self) -> dict[str, Any]:
        """Return what a controller of its dreams has to know."""
        return {"tokens": self.settings.tokens}

    def shown(self, counts: Tensor) -> Tensor:
        """Return the numbers of locations (B, N) that a controller is offered: those that there are tokens for."""
        found = torch.zeros_like(counts)
        found[:, self.seen] = self.fitting(counts)
        return found


def all_candidates(observation: Observation) -> Candidates:
    """Return the candidates of a batch of observations; ``match_mask`` alone says which there are."""
    matches, legal = observation["matches"].long(), observation["match_mask"].bool()
    graph, slot = legal.nonzero(as_tuple=True)
    return Candidates(legal, graph, matches[graph, slot, 0], matches[graph, slot, 2:], None)
