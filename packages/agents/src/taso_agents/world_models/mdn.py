"""Mixture density network (Bishop 1994): a mixture of diagonal Gaussians over the next latent."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

MIN_LOG_STD, MAX_LOG_STD = -4.0, 2.0
"""Transitions are deterministic, so without a floor the likelihood would grow without bound."""


class LatentDistribution(Protocol):
    """What a model expects of the next latent."""

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm (...) of the probability or density of latents (..., Z)."""
        ...

    def sample(self, temperature: float, generator: torch.Generator | None = None) -> Tensor:
        """Draw (..., Z); at temperature 0 the most probable."""
        ...


class Mixture(NamedTuple):
    """A batch of mixtures of K Gaussians over Z dimensions.

    Attributes:
        logits: (..., K) unnormalised log-weights.
        means, log_stds: (..., K, Z).
    """

    logits: Tensor
    means: Tensor
    log_stds: Tensor

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density (...) of values (..., Z)."""
        scaled = (value.unsqueeze(-2) - self.means) * (-self.log_stds).exp()
        of_each = -0.5 * scaled.square().sum(-1) - self.log_stds.sum(-1)
        constant = 0.5 * math.log(2 * math.pi) * value.shape[-1]
        return (self.logits.log_softmax(-1) + of_each).logsumexp(-1) - constant

    def sample(self, temperature: float, generator: torch.Generator | None = None) -> Tensor:
        """Draw (..., Z): τ divides the logits of the components and multiplies their variances (Ha & Schmidhuber 2018).

        At temperature 0 it is the mean of the most probable component.
        """
        if temperature == 0:
            return _pick(self.means, self.logits.argmax(-1))
        weights = (self.logits / temperature).softmax(-1)
        flat = torch.multinomial(weights.flatten(0, -2), 1, generator=generator)
        component = flat.view(weights.shape[:-1])
        mean, std = _pick(self.means, component), _pick(self.log_stds, component).exp()
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        return mean + noise * std * math.sqrt(temperature)


def _pick(values: Tensor, component: Tensor) -> Tensor:
    """Take from values (..., K, Z) the component (...) of each."""
    index = component[..., None, None].expand(*component.shape, 1, values.shape[-1])
    return values.gather(-2, index).squeeze(-2)


class MixtureHead(nn.Module):
    """Reads a mixture off a hidden state (..., H)."""

    def __init__(self, hidden: int, latent: int, components: int) -> None:
        super().__init__()
        self.latent, self.components = latent, components
        self.layer = nn.Linear(hidden, components * (2 * latent + 1))

    def forward(self, hidden: Tensor) -> Mixture:
        """Return the mixture of each hidden state."""
        K, Z = self.components, self.latent
        logits, means, log_stds = self.layer(hidden).split([K, K * Z, K * Z], -1)
        shape = (*hidden.shape[:-1], K, Z)
        return Mixture(logits, means.reshape(shape), log_stds.reshape(shape).clamp(MIN_LOG_STD, MAX_LOG_STD))
