"""World model whose latent is the graph itself, and which remembers what happened in which surroundings.

A rewrite changes a few nodes, by what is close to them, and the same surroundings come again and again in a network. So
nothing is fitted by gradients: `Lessons` counts what rewrites did to graphs, what they saved, and which substitutions
matched at nodes in which surroundings, and a dream applies that to a graph of its own. The graph is kept here; what a
policy sees of it is a token for each candidate.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from taso_agents.data.episodes import Dataset
from taso_agents.networks.candidates import Observation, magnitude
from taso_agents.networks.encoder import box
from taso_agents.world_models.base import Memory, Memoryless
from taso_agents.world_models.graph.lesson_file import read_lessons, write_lessons
from taso_agents.world_models.graph.lessons import Lessons
from taso_agents.world_models.graph.memory import NUMBER_SCALE, GraphMemory
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph
from taso_agents.world_models.token_rewards import check_rewards

POLICY_WIDTH = 32
"""Units of the controller, which looks at hundreds of tokens."""


@dataclass(frozen=True)
class GraphSettings:
    """Sizes of a graph world model.

    Attributes:
        tokens: most candidates M that a policy sees. `taso_agents.dreams.train` replaces 0 by a quarter more than the
            start graph's.
        width: numbers D that stand for the surroundings of a candidate, drawn by chance for each kind of them.
        see_costs: learn what every candidate would save, which the data say; False: of the steps taken only. Where none
            was like it, but what the rewrite does is known, the run times in the features of nodes say it either way.
        hope: what a rewrite is thought to save in % of which nothing is known, if only taken steps teach rewards: it is
            tried, then (R-max, Brafman and Tennenholtz 2002).
    """

    tokens: int = 0
    width: int = 8
    see_costs: bool = True
    hope: float = 0.5

    @property
    def latent(self) -> int:
        """Length of the latent: M tokens of D numbers and a reward each, and the number of the graph."""
        return self.tokens * (self.width + 1) + 1

    @property
    def hidden(self) -> int:
        """Length of the memory, which stays 0: a graph says all that there is to know."""
        return 1


class GraphPrediction:
    """Steps, which are carried out when it is asked what they lead to.

    Attributes:
        numbers, places: (...) of each graph, and of the candidate in it; -1 if there is none.
        reward: (...) in units of ``reward_scale``.
    """

    def __init__(self, model: GraphWorldModel, numbers: Tensor, places: Tensor, reward: Tensor) -> None:
        self.model, self.numbers, self.places, self.reward = model, numbers, places, reward

    @property
    def end(self) -> Tensor:
        """Logits (...) that no substitution is left afterwards: large ones, for it is or it isn't."""
        pairs = zip(self.numbers.flatten().tolist(), self.places.flatten().tolist(), strict=True)
        graphs = self.model.graphs
        left = [len(graphs.state(graphs.following(*pair)).candidates) for pair in pairs]
        return torch.tensor([10.0 if count == 0 else -10.0 for count in left]).view(self.numbers.shape)


class GraphWorldModel(Memoryless):
    """Predicts the environment step by step as rewrites of a remembered graph; what `WorldModel` offers, it offers.

    Args:
        observation_space: of the real environment.
        action_space: its ``MultiDiscrete([N + 1, L])``.
        settings: sizes.
    """

    kind: ClassVar[str] = "graph"
    has_gradients: ClassVar[bool] = False
    Settings: ClassVar[Any] = GraphSettings

    def __init__(
        self, observation_space: spaces.Dict, action_space: spaces.MultiDiscrete, settings: GraphSettings | None = None
    ) -> None:
        super().__init__(action_space, settings or GraphSettings(tokens=640))
        assert self.settings.tokens > 0
        widths = [box(observation_space, key).shape[1] for key in ("nodes", "edge_features")]
        self.learned = Counter[str]()
        self._take_up(Lessons(Kinds(*widths)), None)

    def prepare(self, dataset: Dataset) -> None:
        """Learn from the episodes that are new; from equal ones as often as they are there.

        Raises:
            OptionError: rewards aren't the cost changes that the data show, so they can't be learned from them.
        """
        check_rewards(dataset)
        if not self.learned:
            self.encode(dataset.store.batch(dataset.episodes[0].graphs[:1]))
        lessons = self.graphs.lessons
        met = Counter[str]()
        for episode, digest in zip(dataset.episodes, dataset.digests(), strict=True):
            met[digest] += 1
            if met[digest] > self.learned[digest]:
                self.learned[digest] += 1
                lessons.learn(dataset.store, episode, self.settings.see_costs)
        lessons.settle()
        self.seen |= dataset.seen()
        self.graphs.forget_dreams()

    def encode(self, observation: Observation) -> Tensor:
        """Return the latents (B, Z) of observations with ``ids`` (see `taso_agents.environment.real_env.with_ids`)."""
        rows = range(len(observation["nodes"]))
        numbers = [self.graphs.enter({key: part[b].numpy() for key, part in observation.items()}) for b in rows]
        return self.latents(numbers)

    def latents(self, numbers: list[int]) -> Tensor:
        """Return the latents (B, Z) of graphs by their numbers."""
        M, D = self.settings.tokens, self.settings.width
        found = np.zeros((len(numbers), self.settings.latent), np.float32)
        for row, number in zip(found, numbers, strict=True):
            state = self.graphs.state(number)
            candidates = state.candidates[:M]
            tokens = row[:-1].reshape(M, D + 1)[: len(candidates)]
            tokens[:, :D] = self.graphs.looks(candidates)
            tokens[:, D] = [c.reward for c in candidates]
            row[-1] = number * NUMBER_SCALE
        latent = torch.from_numpy(found)
        rewards = latent[:, :-1].unflatten(1, (M, D + 1))[..., -1]
        rewards.copy_(magnitude(rewards))
        return latent

    def numbers_of(self, latent: Tensor) -> Tensor:
        """Return the numbers (...) of the graphs of latents (..., Z)."""
        return (latent[..., -1] / NUMBER_SCALE).round().long()

    def forward(
        self,
        latent: Tensor,
        counts: Tensor,
        xfer: Tensor,
        location: Tensor,
        memory: Memory | None = None,  # noqa: ARG002
    ) -> tuple[GraphPrediction, Tensor, Memory]:
        """Predict steps, each by itself.

        Args:
            latent: (B, T, Z) before each action.
            counts: (B, T, N); the graph says them too.
            xfer: (B, T) substitutions.
            location: (B, T) their locations.
            memory: zeros, as they are returned.
        """
        numbers = self.numbers_of(latent)
        places, rewards = self._chosen(numbers.flatten(), xfer.flatten(), location.flatten())
        prediction = GraphPrediction(self, numbers, places.view(xfer.shape), rewards.view(xfer.shape))
        return prediction, latent.new_zeros(*xfer.shape, 1), self.initial_memory(len(counts))

    def rewards(self, latent: Tensor, counts: Tensor, xfer: Tensor, location: Tensor, memory: Memory) -> Tensor:  # noqa: ARG002
        """Return the rewards (B,) of single actions, in units of ``reward_scale``."""
        return self._chosen(self.numbers_of(latent), xfer, location)[1]

    def follow(
        self, prediction: GraphPrediction, counts: Tensor, temperature: float, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return next latents (..., Z) and numbers of locations (..., N); τ divides the logarithms of counted cases."""
        flat = prediction.numbers.flatten(), prediction.places.flatten()
        seeds = torch.randint(2**62, (len(flat[0]),), generator=generator) if temperature else torch.zeros_like(flat[0])
        steps = zip(*(part.tolist() for part in (*flat, seeds)), strict=True)
        numbers = [self.graphs.following(number, place, temperature, seed) for number, place, seed in steps]
        following = np.zeros((len(numbers), self.xfers), np.int64)
        for row, number in zip(following, numbers, strict=True):
            row += np.bincount([c.rule for c in self.graphs.state(number).candidates], minlength=self.xfers)
        found = torch.from_numpy(following).clamp(max=self.locations).view(counts.shape)
        return self.latents(numbers).view(*counts.shape[:-1], -1), found

    def policy_arguments(self) -> dict[str, Any]:
        """Return what a controller of its dreams has to know."""
        return {"tokens": self.settings.tokens, "width": POLICY_WIDTH}

    def shown(self, counts: Tensor) -> Tensor:
        """Return the numbers of locations (B, N) that a controller is offered: those that there are tokens for."""
        ends = counts.cumsum(1).clamp(max=self.settings.tokens)
        return ends.diff(dim=1, prepend=ends.new_zeros(len(ends), 1))

    def shown_latent(self, latent: Tensor) -> Tensor:
        """Return what a controller sees of latents (B, Z): all but the number of the graph, which counts dreams."""
        return torch.cat([latent[:, :-1], torch.zeros_like(latent[:, -1:])], 1)

    def get_extra_state(self) -> Tensor:
        """Return all that was learned, and the graph that episodes begin with, as bytes."""
        return write_lessons(self.graphs.lessons, self.learned, self.graphs.start)

    def set_extra_state(self, state: Tensor) -> None:
        """Take up what `get_extra_state` returned."""
        lessons, self.learned, start = read_lessons(state, self.graphs.lessons.kinds)
        self._take_up(lessons, start)

    def _take_up(self, lessons: Lessons, start: SeenGraph | None) -> None:
        lessons.hope = 0.0 if self.settings.see_costs else self.settings.hope
        self.graphs = GraphMemory(lessons, self.settings.width, start)

    def _chosen(self, numbers: Tensor, xfer: Tensor, location: Tensor) -> tuple[Tensor, Tensor]:
        """Return the places (B,) of actions among the candidates of graphs, and their rewards (B,)."""
        self.graphs.make_room(len(numbers))
        places, rewards = torch.full_like(numbers, -1), torch.zeros(len(numbers))
        for row, (number, rule, at) in enumerate(zip(numbers.tolist(), xfer.tolist(), location.tolist(), strict=True)):
            candidates = self.graphs.state(number).candidates
            own = [i for i, c in enumerate(candidates) if c.rule == rule]
            if at < len(own):
                places[row], rewards[row] = own[at], candidates[own[at]].reward
        return places, rewards / self.reward_scale
