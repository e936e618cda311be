"""Actor-critic policies over the substitutions that an observation offers; never an illegal action.

Both embed the graph with a `GraphEncoder` and each candidate by its matched nodes, so they know a location by what is
there and not by its number, and the order of candidates doesn't matter. They differ in how they normalise:

* `AutoregressivePolicy`: p(xfer) · p(location | xfer), each exactly masked.
* `PointerPolicy`: one softmax over all candidates and NO-OP; the sum over a substitution's candidates is its p(xfer).

The masks are read from the observation: the policies serve `MaskablePPO` of sb3-contrib, plain `PPO`, and
``model.predict(observation)`` alike, on the environment's own action space and on `CandidateAction`'s.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from taso_agents.networks.candidates import (
    CandidateDistribution,
    CandidateEmbedding,
    Candidates,
    Observation,
    find_candidates,
    magnitude,
)
from taso_agents.networks.encoder import Encoding, GraphEncoder, box, sum_by
from taso_gym.errors import OptionError

Parts = tuple[Encoding, Candidates, Tensor]
"""The graphs, their candidates, and the candidates' embeddings (C, H)."""


class CandidatePolicy(MaskableActorCriticPolicy):
    """What both policies share: encoder, candidates, value.

    Args:
        observation_space: the environment's ``Dict``.
        action_space: ``MultiDiscrete([N + 1, L])``, or ``Discrete(max_matches + 1)`` of `CandidateAction`.
        lr_schedule: learning rate as a function of the remaining progress.
        hidden: width of all embeddings.
        rounds: rounds of message passing.
        noop_bias: what is added to NO-OP's logit at the start: it ends the episode, so it should be rare at first.
        greed: weight of a shown cost change in a candidate's score at the start, where the policy is then greedy with
            some noise; trained like the rest. 0 begins with no opinion.
        use_sde: accepted since Stable-Baselines3 passes it; there is no continuous action to explore with it.
        kwargs: those of sb3-contrib's policy: optimizer_class, optimizer_kwargs.

    Raises:
        OptionError: another action space.
    """

    name: ClassVar[str]
    features_extractor: GraphEncoder

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        hidden: int = 64,
        rounds: int = 3,
        noop_bias: float = -3.0,
        greed: float = 2.0,
        use_sde: bool = False,
        **kwargs: Any,
    ) -> None:
        assert not use_sde
        self.hidden, self.rounds, self.noop_bias, self.initial_greed = hidden, rounds, noop_bias, greed
        kwargs.update(features_extractor_class=GraphEncoder, net_arch=[])
        kwargs["features_extractor_kwargs"] = {"hidden": hidden, "rounds": rounds}
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        assert isinstance(self.observation_space, spaces.Dict)
        self.xfers = box(self.observation_space, "xfer_mask").shape[0] - 1
        self._check_actions(box(self.observation_space, "match_mask").shape[0])
        sees_costs = "cost_changes" in self.observation_space.spaces
        self.embed_candidates = CandidateEmbedding(self.hidden, self.xfers, sees_costs=sees_costs)
        self.greed = nn.Parameter(torch.tensor(float(self.initial_greed))) if sees_costs else None
        self.value_net = nn.Sequential(
            nn.Linear(2 * self.hidden + 1, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1)
        )
        self.build_heads()
        arguments: dict[str, Any] = {"lr": lr_schedule(1.0), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **arguments)

    def _check_actions(self, candidates: int) -> None:
        """Raise OptionError for actions that are neither (substitution, location) nor numbers of candidates."""
        space = self.action_space
        pairs = isinstance(space, spaces.MultiDiscrete) and space.shape == (2,) and space.nvec[0] == self.xfers + 1
        if not pairs and not (isinstance(space, spaces.Discrete) and space.n == candidates + 1):
            raise OptionError(
                f"expected actions (substitution, location) of {self.xfers} substitutions, or of CandidateAction, "
                f"Discrete({candidates + 1}), found {space}"
            )

    def build_heads(self) -> None:
        """Make the layers that `log_probs` uses."""
        raise NotImplementedError

    def log_probs(self, encoding: Encoding, candidates: Candidates, embedded: Tensor) -> Tensor:
        """Return the log-probabilities (B, M + 1) of all candidates, given their embeddings (C, H), and of NO-OP."""
        raise NotImplementedError

    def greedy_scores(self, candidates: Candidates) -> Tensor:
        """Return what cost changes, if they are shown, add to the scores of candidates (C,)."""
        if self.greed is None:
            return torch.zeros(len(candidates.xfer), device=candidates.xfer.device)
        assert candidates.change is not None
        return -self.greed * magnitude(candidates.change)

    def _embed(self, observation: Observation, action_masks: np.ndarray | Tensor | None = None) -> Parts:
        encoding = self.features_extractor.encode(observation)
        masks = None if action_masks is None else torch.as_tensor(action_masks, device=encoding.globals.device)
        candidates = find_candidates(observation, masks, isinstance(self.action_space, spaces.Discrete))
        return encoding, candidates, self.embed_candidates(encoding, candidates)

    def _value(self, encoding: Encoding, candidates: Candidates, embedded: Tensor) -> Tensor:
        """Value (B, 1) of what the graph is and of what can be done to it."""
        count = candidates.legal.sum(1, keepdim=True)
        mean = sum_by(embedded, candidates.graph, len(count)) / count.clamp(min=1)
        return self.value_net(torch.cat([encoding.globals, mean, count.float().log1p()], 1))

    def _distribution(
        self, observation: Observation, parts: tuple[Encoding, Candidates, Tensor]
    ) -> CandidateDistribution:
        return CandidateDistribution(self.log_probs(*parts), observation["matches"], self.action_space)

    def forward(
        self, obs: Observation, deterministic: bool = False, action_masks: np.ndarray | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions, values (B, 1) and log-probabilities (B,)."""
        parts = self._embed(obs, action_masks)
        distribution = self._distribution(obs, parts)
        actions = distribution.get_actions(deterministic)
        return actions, self._value(*parts), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Observation, actions: Tensor, action_masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return values (B, 1), log-probabilities (B,) and entropies (B,)."""
        parts = self._embed(obs, action_masks)
        distribution = self._distribution(obs, parts)
        return self._value(*parts), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Observation, action_masks: np.ndarray | None = None) -> CandidateDistribution:
        """Return the distribution over actions."""
        return self._distribution(obs, self._embed(obs, action_masks))

    def predict_values(self, obs: Observation) -> Tensor:
        """Return the values (B, 1)."""
        return self._value(*self._embed(obs))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        for key in ("net_arch", "features_extractor_class", "features_extractor_kwargs"):
            data.pop(key)
        return {**data, **self.arguments}

    @property
    def arguments(self) -> dict[str, float]:
        """What distinguishes it from another policy of its class."""
        return {"hidden": self.hidden, "rounds": self.rounds, "noop_bias": self.noop_bias, "greed": self.initial_greed}


class PointerPolicy(CandidatePolicy):
    """One softmax over the scores of all candidates and NO-OP."""

    name = "pointer"

    def build_heads(self) -> None:
        """One score a candidate, one for NO-OP."""
        self.score = nn.Linear(self.hidden, 1)
        self.score_noop = nn.Linear(self.hidden, 1)
        shrink(self.score, self.score_noop)

    def log_probs(self, encoding: Encoding, candidates: Candidates, embedded: Tensor) -> Tensor:
        """Normalise over everything at once."""
        scores = candidates.spread(self.score(embedded)[:, 0] + self.greedy_scores(candidates), -torch.inf)
        noop = self.score_noop(encoding.globals) + self.noop_bias
        return torch.cat([scores, noop], 1).log_softmax(1)


class AutoregressivePolicy(CandidatePolicy):
    """First the substitution, then the location among those of this substitution.

    The logit of a substitution is read from the whole graph and from its candidates. The joint probabilities of all
    candidates are computed, so the mode is that of the pair, and the entropy is exact.
    """

    name = "autoregressive"

    def build_heads(self) -> None:
        """Logits of substitutions from the graph, and two scores a candidate: for its substitution and its location."""
        self.choose_xfer = nn.Linear(self.hidden, self.xfers + 1)
        self.score = nn.Linear(self.hidden, 2)
        shrink(self.choose_xfer, self.score)

    def log_probs(self, encoding: Encoding, candidates: Candidates, embedded: Tensor) -> Tensor:
        """Return log p(xfer) + log p(location | xfer)."""
        B, X = len(encoding.globals), self.xfers
        group = candidates.graph * X + candidates.xfer
        for_xfer, for_location = (self.score(embedded) + self.greedy_scores(candidates)[:, None]).unbind(1)
        legal = torch.bincount(group, minlength=B * X).view(B, X) > 0
        logits = self.choose_xfer(encoding.globals)
        offered = (logits[:, :X] + logsumexp_by(for_xfer, group, B * X).view(B, X)).masked_fill(~legal, -torch.inf)
        log_xfer = torch.cat([offered, logits[:, X:] + self.noop_bias], 1).log_softmax(1)
        log_location = for_location - logsumexp_by(for_location, group, B * X)[group]
        joint = log_xfer[:, :X].flatten()[group] + log_location
        return torch.cat([candidates.spread(joint, -torch.inf), log_xfer[:, X:]], 1)


def logsumexp_by(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Return the log-sum-exp of values (C,) that share an index, as (size,); meaningless where there are none."""
    top = values.new_zeros(size).scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    total = sum_by((values - top[index]).exp()[:, None], index, size)[:, 0]
    return total.clamp(min=torch.finfo(values.dtype).tiny).log() + top


def shrink(*layers: nn.Linear) -> None:
    """Make the last layers of a policy small, so that it starts near uniform (Andrychowicz et al. 2021, §3.2)."""
    for layer in layers:
        with torch.no_grad():
            layer.weight.mul_(0.01)
            layer.bias.zero_()
