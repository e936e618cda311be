"""Attention with and without a mask by which weights are denormal floats.

Where onnxruntime's exponential flushes to zero, as with AVX2, they are only what is divided by the sum of a row: a mask
of about -85 makes these, and denormals everywhere.
"""

from __future__ import annotations

import numpy as np

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph
from taso_gym.symbolic import Dim
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight

TOKENS, WIDTH = 6, 8
MASKED = -80, -83, -86


def masked_attention(dtype: str = "float", batch: Dim = 1, masked: int = 1, *, told: bool = False) -> Graph:
    """Blocks of attention, all but the first with a mask for half of the keys, and two operators too many.

    With ``told`` the last weights are a result, too.
    """
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType(dtype, (batch, TOKENS, WIDTH)))
    mask = np.zeros((TOKENS, TOKENS), dtype.replace("float", "float32").replace("double", "float64"))
    mask[:, ::2] = MASKED
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
