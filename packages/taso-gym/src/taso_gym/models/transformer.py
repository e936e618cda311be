"""Layers that the transformers share: linear layers, heads, attention, activations as exporters spell them out."""

from __future__ import annotations

import math

import numpy as np

from taso_gym.errors import OptionError
from taso_gym.models.layers import SPREAD, Net
from taso_gym.tensor import dtype_code

MASKED = -1e4
"""What is added to the score of a position that isn't to be attended to; its weight underflows to 0 in float32."""


class TransformerNet(Net):
    """A transformer under construction; hidden states are ``[B, T, F]``."""

    def __init__(self, seed: int, hidden: int, heads: int) -> None:
        """Begin an empty network.

        Raises:
            OptionError: the hidden size isn't a multiple of the number of heads.
        """
        if hidden % heads:
            raise OptionError(f"expected a hidden size that is a multiple of {heads} heads, found {hidden}")
        super().__init__(seed)
        self.hidden, self.heads = hidden, heads

    def add(self, a: int, b: int) -> int:
        """Add a sum."""
        return self.op("Add", a, b)

    def multiply(self, a: int, b: int) -> int:
        """Add an element-wise product."""
        return self.op("Mul", a, b)

    def linear(self, x: int, name: str, features: int, *, bias: bool = True, gain: float = 1.0) -> int:
        """Add a linear layer ``[..., F] -> [..., features]`` as MatMul and Add."""
        inputs = self.shape(x)[-1]
        y = self.op("MatMul", x, self.weight(f"{name}.weight", (inputs, features), math.sqrt(gain / inputs)))
        return self.add(y, self.weight(f"{name}.bias", (features,), SPREAD)) if bias else y

    def embedding(self, tokens: int, name: str, count: int, std: float) -> int:
        """Add a look-up of integer tokens ``[...] -> [..., hidden]``."""
        return self.op("Gather", self.weight(f"{name}.weight", (count, self.hidden), std), tokens, axis=0)

    def layer_norm(self, x: int, name: str, epsilon: float) -> int:
        """Add a layer normalisation over the last axis."""
        shape = self.shape(x)[-1:]
        scale = self.weight(f"{name}.weight", shape, SPREAD, mean=1.0)
        return self.op("LayerNormalization", x, scale, self.weight(f"{name}.bias", shape, SPREAD), epsilon=epsilon)

    def gelu(self, x: int) -> int:
        """Add the exact GELU (Hendrycks & Gimpel 2016, arXiv 1606.08415), spelled out: x (1 + erf(x / √2)) / 2."""
        erf = self.op("Erf", self.op("Div", x, self.scalar(math.sqrt(2))))
        return self.multiply(self.multiply(x, self.add(erf, self.scalar(1.0))), self.scalar(0.5))

    def gelu_tanh(self, x: int) -> int:
        """Add GELU's tanh form, spelled out: x (1 + tanh(√(2/π) (x + 0.044715 x^3))) / 2."""
        cubic = self.multiply(self.op("Pow", x, self.scalar(3.0)), self.scalar(0.044715))
        tanh = self.op("Tanh", self.multiply(self.add(x, cubic), self.scalar(math.sqrt(2 / math.pi))))
        return self.multiply(self.multiply(x, self.scalar(0.5)), self.add(tanh, self.scalar(1.0)))

    def split_heads(self, x: int, *, keys: bool = False) -> int:
        """Add ``[B, T, heads * D] -> [B, heads, T, D]``, or ``[B, heads, D, T]`` for keys."""
        B, T, F = self.shape(x)
        parts = self.op("Reshape", x, shape=(B, T, self.heads, F // self.heads))
        return self.op("Transpose", parts, perm=(0, 2, 3, 1) if keys else (0, 2, 1, 3))

    def merge_heads(self, x: int) -> int:
        """Add ``[B, heads, T, D] -> [B, T, heads * D]``."""
        B, H, T, D = self.shape(x)
        return self.op("Reshape", self.op("Transpose", x, perm=(0, 2, 1, 3)), shape=(B, T, H * D))

    def scaled_scores(self, q: int, k: int) -> int:
        """Add q k / √D ``[B, heads, T, T]`` (Vaswani et al. 2017, arXiv 1706.03762, eq. 1)."""
        return self.op("Div", self.op("MatMul", q, k), self.scalar(math.sqrt(self.shape(q)[-1])))

    def attend(self, scores: int, v: int) -> int:
        """Add the softmax of masked scores and the weighted sum of values, heads merged: ``[B, T, heads * D]``."""
        return self.merge_heads(self.op("MatMul", self.op("Softmax", scores, axis=-1), v))

    def padding_mask(self, mask: int) -> int:
        """Turn an ``attention_mask`` ``[B, T]`` int64 of 1 and 0 into what is added to scores ``[B, 1, 1, T]``."""
        wide = self.op("Cast", self.op("Unsqueeze", mask, axes=(1, 2)), to=dtype_code("float"))
        return self.multiply(self.op("Sub", self.scalar(1.0), wide), self.scalar(MASKED))

    def causal_scores(self, scores: int) -> int:
        """Replace the scores of later positions, so that position t attends to 0 ... t."""
        T = self.shape(scores)[-1]
        visible = self.constant("causal_mask", np.tril(np.ones((1, 1, T, T), dtype=bool)))
        return self.op("Where", visible, scores, self.scalar(MASKED))


def check_positions(sequence: int, positions: int) -> None:
    """Raise OptionError for a sequence that is longer than the learned positions."""
    if sequence > positions:
        raise OptionError(f"expected a sequence of at most {positions} positions, found {sequence}")
