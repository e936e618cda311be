"""What kinds of world models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import torch
from gymnasium import spaces
from torch import Tensor, nn

from taso_agents import checkpoint

Memory = tuple[Tensor, Tensor]
"""Hidden state (B, H) and cell state of the recurrent network; a network without cells has a cell state (B, 0)."""


class SavedModel(nn.Module):
    """A world model and its file; ``kind`` is its row in `taso_agents.world_models`.

    Attributes:
        settings: sizes.
        xfers, locations: N substitutions and L locations of the action space ``MultiDiscrete([N + 1, L])``.
        reward_scale: () unit of predicted rewards, in %.
        seen: (N,) which substitutions ever had a location in the data.
    """

    kind: ClassVar[str]
    reward_scale: Tensor
    seen: Tensor

    def __init__(self, action_space: spaces.MultiDiscrete, settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.xfers, self.locations = int(action_space.nvec[0]) - 1, int(action_space.nvec[1])
        self.register_buffer("reward_scale", torch.ones(()))
        self.register_buffer("seen", torch.zeros(self.xfers, dtype=torch.bool))

    def save(self, path: str | Path, taso: Mapping[str, Any], **parts: Any) -> None:
        """Write the model; ``taso`` holds the rule set's digest and `sizes_of` the environment.

        ``parts`` are more tensors and plain data to go with it.
        """
        assert {"rules", "sizes"} <= taso.keys()
        own = {"world_model": self.kind, "settings": asdict(self.settings), "weights": self.state_dict()}
        checkpoint.save(path, "world model", taso, **own, **parts)

    def shown_latent(self, latent: Tensor) -> Tensor:
        """Return what a controller sees of latents (B, Z): all."""
        return latent


class Memoryless(SavedModel):
    """A world model whose latent says all that there is to know."""

    has_memory: ClassVar[bool] = False

    def initial_memory(self, size: int) -> Memory:
        """Return the memory (B, 1) at any time."""
        zeros = torch.zeros(size, 1)
        return zeros, zeros
