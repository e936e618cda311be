"""Distributions over bins: independent categoricals as latents, and two-hot encoded numbers (Hafner et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Categoricals(NamedTuple):
    """A batch of G independent categorical distributions over C classes.

    Attributes:
        log_probs: (..., G, C), normalised.
    """

    log_probs: Tensor

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability (...) of one-hot latents (..., G·C)."""
        return (value.unflatten(-1, self.log_probs.shape[-2:]) * self.log_probs).sum((-2, -1))

    def sample(self, temperature: float, generator: torch.Generator | None = None) -> Tensor:
        """Draw one-hot latents (..., G·C); τ divides the logits, and at 0 each takes its most probable class."""
        if temperature == 0:
            return self.mode()
        weights = (self.log_probs / temperature).softmax(-1)
        drawn = torch.multinomial(weights.flatten(0, -2), 1, generator=generator).view(weights.shape[:-1])
        return self._one_hot(drawn)

    def mode(self) -> Tensor:
        """Return the most probable classes as one-hot latents (..., G·C)."""
        return self._one_hot(self.log_probs.argmax(-1))

    def straight_through(self) -> Tensor:
        """Draw one-hot latents whose gradient is that of the probabilities (Bengio et al. 2013)."""
        probs = self.log_probs.exp().flatten(-2)
        return self.sample(1.0) + probs - probs.detach()

    def detach(self) -> Categoricals:
        """Return the same distributions without gradient."""
        return Categoricals(self.log_probs.detach())

    def _one_hot(self, drawn: Tensor) -> Tensor:
        return functional.one_hot(drawn, self.log_probs.shape[-1]).float().flatten(-2)


def mixed_with_uniform(logits: Tensor, part: float) -> Categoricals:
    """Return categoricals of logits (..., G, C) of which a part is uniform, so that no class is ever impossible."""
    probs = (1 - part) * logits.softmax(-1) + part / logits.shape[-1]
    return Categoricals(probs.log())


def kl(p: Categoricals, q: Categoricals) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p ‖ q) in nats, summed over the categoricals, (...)."""
    return (p.log_probs.exp() * (p.log_probs - q.log_probs)).sum((-2, -1))


def balanced_kl(posterior: Categoricals, prior: Categoricals, free_nats: float) -> tuple[Tensor, Tensor]:
    """Return the two losses (...) of KL balancing (DreamerV3, equation 3), each flat below ``free_nats``.

    The first trains the prior towards the posterior, the second the posterior towards the prior.
    """
    dynamics, representation = kl(posterior.detach(), prior), kl(posterior, prior.detach())
    return dynamics.clamp(min=free_nats), representation.clamp(min=free_nats)


def symlog(x: Tensor) -> Tensor:
    """Return sign(x) · ln(1 + |x|)."""
    return x.sign() * x.abs().log1p()


def symexp(x: Tensor) -> Tensor:
    """Return the inverse of `symlog`."""
    return x.sign() * x.abs().expm1()


def two_hot(x: Tensor, bins: Tensor) -> Tensor:
    """Return weights (..., K) on the two bins (K,), ascending, that numbers (...) lie between, with x as their mean.

    Numbers beyond the outer bins count as these.
    """
    x = x.clamp(bins[0], bins[-1])
    above = torch.searchsorted(bins, x.contiguous()).clamp(1, len(bins) - 1)
    low, high = bins[above - 1], bins[above]
    share = ((x - low) / (high - low))[..., None]
    weights = torch.zeros(*x.shape, len(bins), device=x.device)
    return weights.scatter(-1, above[..., None] - 1, 1 - share).scatter(-1, above[..., None], share)
