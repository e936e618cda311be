"""The kinds of world models: one row each; tests, dreams and reports work with every row."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from taso_gym.errors import OptionError


class Kind(NamedTuple):
    """Import strings of what belongs to a kind.

    Attributes:
        model: the class; `taso_agents.world_models.mdn_rnn.WorldModel` says what it offers.
        encoder_epoch: one pass of the first phase of `taso_agents.world_models.fit.fit`, which trains the encoder; none
            for a kind that learns without gradients.
        policy: the controller that plays its dreams.
        fit: what it is fitted with other than by default: fields of `taso_agents.world_models.fit.FitSettings`.
    """

    model: str
    encoder_epoch: str
    policy: str = "taso_agents.policies.latent_policy:LatentPolicy"
    fit: Mapping[str, Any] = MappingProxyType({})


WORLD_MODELS = {
    "mdn": Kind("taso_agents.world_models.mdn_rnn:WorldModel", "taso_agents.world_models.fit:single_step_epoch"),
    "discrete": Kind(
        "taso_agents.world_models.discrete:DiscreteWorldModel", "taso_agents.world_models.discrete_fit:window_epoch"
    ),
    "tokens": Kind(
        "taso_agents.world_models.token_model:TokenWorldModel",
        "taso_agents.world_models.token_fit:window_epoch",
        "taso_agents.policies.token_policy:TokenPolicy",
        {"encoder_epochs": 6, "learning_rate": 2e-3},
    ),
    "graph": Kind(
        "taso_agents.world_models.graph.model:GraphWorldModel", "", "taso_agents.policies.token_policy:TokenPolicy"
    ),
}
"""Name -> kind."""


def world_model(kind: str) -> Any:
    """Return the class of a kind; its ``Settings`` are what it is made with.

    Raises:
        OptionError: there is no such kind.
    """
    if kind not in WORLD_MODELS:
        raise OptionError(f"expected a world model of {', '.join(WORLD_MODELS)}, found {kind!r}")
    return _imported(WORLD_MODELS[kind].model)


def encoder_epoch(kind: str) -> Any:
    """Return the function that trains a kind's encoder for one epoch."""
    return _imported(WORLD_MODELS[kind].encoder_epoch)


def policy(kind: str) -> Any:
    """Return the class of the controller that plays a kind's dreams."""
    return _imported(WORLD_MODELS[kind].policy)


def kind_of(settings: Any) -> Any:
    """Return the class of world models whose settings these are."""
    return next(cls for cls in map(world_model, WORLD_MODELS) if type(settings) is cls.Settings)


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
