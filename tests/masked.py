"""Attention with and without a mask whose weights are denormal floats."""

from __future__ import annotations

import numpy as np

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph
from taso_gym.symbolic import Dim
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight

TOKENS, WIDTH = 6, 8


def masked_attention(dtype: str = "float", batch: Dim = 1, masked: int = 1, *, told: bool = False) -> Graph:
    """Blocks of attention, all but the first with a mask of -100 for half of the keys, and two operators too many.

    With ``told`` the last weights are a result, too.
    """
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType(dtype, (batch, TOKENS, WIDTH)))
    mask = np.zeros((TOKENS, TOKENS), dtype.replace("float", "float32").replace("double", "float64"))
    mask[:, ::2] = -100
    keys, mask = b.add("Transpose", x, perm=[0, 2, 1]), b.weight("mask", *array_weight(mask))
    value = b.add("MatMul", b.add("Softmax", b.add("MatMul", x, keys)), x)
    for _ in range(masked):
        weights = b.add("Softmax", b.add("Add", b.add("MatMul", value, keys), mask))
        value = b.add("MatMul", weights, x)
    for op in ("Neg", "Neg"):
        value = b.add(op, value)
    b.output("y", value)
    if told:
        b.output("weights", weights)
    return b.build()
