"""Layers that the built-in networks share, and the scales of their weights.

Weights are drawn as trained networks have them, so that activations stay near 1 through 50 layers and more without a
real training: He's scale (He et al. 2015, arXiv 1502.01852, eq. 10) for weights; scales, shifts and running statistics
of normalisations near but never at 1 and 0; a smaller scale at the end of each residual branch (Goyal et al. 2017,
arXiv 1706.02677, section 5.1, start from 0 there), so that a sum of branches doesn't grow. Nothing is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, producer_of, value_of
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight, array_weight, literal

OPSET = 20
SPREAD = 0.1
"""Standard deviation of biases, and of scales and running statistics around what they would be without training."""
RESIDUAL = 0.4
"""Scale of a residual branch's last normalisation."""
AFTER_RELU, AFTER_SILU, AFTER_LINEAR = 2.0, 2.8, 1.0
"""1 / E[f(z)^2] of a standard normal z: what the weights' variance makes up for (SiLU: 0.356; HardSwish: 0.37)."""


class Net:
    """A network under construction: a `GraphBuilder` with named, generated weights.

    Values are the builder's integers. ``name`` is the layer's name in the reference implementation where there is one;
    it keys the weights' random streams.
    """

    def __init__(self, seed: int) -> None:
        """Begin an empty network whose weights are keyed with ``seed``."""
        self.builder, self._seed = GraphBuilder({"": OPSET}), seed
        self._constants: dict[object, int] = {}

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float") -> int:
        """Add a graph input."""
        return self.builder.input(name, TensorType(dtype, shape))

    def op(self, op_type: str, *inputs: int | None, **attrs: Any) -> int:
        """Add an operator and return its first output."""
        return self.builder.add(op_type, *inputs, **attrs)

    def build(self, **outputs: int) -> Graph:
        """Return the graph with these outputs, in this order."""
        for name, value in outputs.items():
            self.builder.output(name, value)
        return self.builder.build()

    def shape(self, value: int) -> tuple[int, ...]:
        """Return the shape of a value; built-in networks have no symbols in theirs."""
        shape = self.builder.shape_of(value)
        assert all(isinstance(d, int) for d in shape), f"{shape} has symbols"
        return shape  # pyright: ignore[reportReturnType]

    def weight(
        self, name: str, shape: tuple[int, ...], std: float, *, mean: float = 0.0, positive: bool = False
    ) -> int:
        """Add a trainable weight, or with ``positive`` a running variance."""
        weight = GeneratedWeight(self._seed, name, "float", shape, mean, std, positive)
        return self.builder.weight(name, TensorType("float", shape), weight)

    def scalar(self, value: float, dtype: str = "float") -> int:
        """Return a constant of no dimensions; equal ones are one leaf."""
        key = (value, dtype)
        if key not in self._constants:
            self._constants[key] = self.builder.weight(f"constant.{len(self._constants)}", *literal(value, dtype))
        return self._constants[key]

    def constant(self, name: str, values: NDArray[Any]) -> int:
        """Return a constant that isn't trained (positions, masks); equal ones are one leaf."""
        type_, weight = array_weight(np.ascontiguousarray(values))
        if weight.digest not in self._constants:
            self._constants[weight.digest] = self.builder.weight(name, type_, weight)
        return self._constants[weight.digest]

    def conv(
        self,
        x: int,
        name: str,
        channels: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        pad: int | tuple[int, int] | None = None,
        *,
        group: int = 1,
        bias: bool = False,
        gain: float = AFTER_RELU,
    ) -> int:
        """Add a convolution ``[B, C, H, W] -> [B, channels, H', W']``; without ``pad``, "same" for odd kernels."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        pad = (kernel[0] // 2, kernel[1] // 2) if pad is None else pad
        pads = (pad, pad) if isinstance(pad, int) else pad
        shape = (channels, self.shape(x)[1] // group, *kernel)
        weight = self.weight(f"{name}.weight", shape, math.sqrt(gain / math.prod(shape[1:])))
        shift = self.weight(f"{name}.bias", (channels,), SPREAD) if bias else None
        return self.op("Conv", x, weight, shift, strides=(stride, stride), pads=pads * 2, group=group)

    def batch_norm(self, x: int, name: str, epsilon: float = 1e-5, scale: float = 1.0) -> int:
        """Add a batch normalisation over the channels of ``[B, C, H, W]``, in inference mode."""
        shape = (self.shape(x)[1],)
        return self.op(
            "BatchNormalization",
            x,
            self.weight(f"{name}.weight", shape, SPREAD * scale, mean=scale),
            self.weight(f"{name}.bias", shape, SPREAD),
            self.weight(f"{name}.running_mean", shape, SPREAD),
            self.weight(f"{name}.running_var", shape, SPREAD, mean=1.0, positive=True),
            epsilon=epsilon,
        )

    def gemm(self, x: int, name: str, features: int, gain: float = AFTER_LINEAR) -> int:
        """Add a linear layer with bias ``[B, F] -> [B, features]`` as a Gemm with PyTorch's transposed weight."""
        inputs = self.shape(x)[1]
        weight = self.weight(f"{name}.weight", (features, inputs), math.sqrt(gain / inputs))
        return self.op("Gemm", x, weight, self.weight(f"{name}.bias", (features,), SPREAD), transB=1)

    def max_pool(self, x: int, kernel: int, stride: int, pad: int = 0, *, ceil: bool = False) -> int:
        """Add a maximum pooling; with ``ceil``, windows that begin inside the image may end outside of it."""
        return self.op(
            "MaxPool", x, kernel_shape=(kernel,) * 2, strides=(stride,) * 2, pads=(pad,) * 4, ceil_mode=int(ceil)
        )

    def average_pool(self, x: int, kernel: int, stride: int, pad: int = 0, *, count_pad: bool = False) -> int:
        """Add an average pooling; with ``count_pad``, padding counts as zeros."""
        return self.op(
            "AveragePool",
            x,
            kernel_shape=(kernel,) * 2,
            strides=(stride,) * 2,
            pads=(pad,) * 4,
            count_include_pad=int(count_pad),
        )

    def silu(self, x: int) -> int:
        """Add x * sigmoid(x)."""
        return self.op("Mul", x, self.op("Sigmoid", x))

    def concat(self, values: Sequence[int], axis: int = 1) -> int:
        """Add a concatenation."""
        return self.op("Concat", *values, axis=axis)

    def split(self, x: int, sizes: Sequence[int], axis: int) -> tuple[int, ...]:
        """Add a split into parts of these sizes."""
        node_id = producer_of(self.op("Split", x, axis=axis, split=tuple(sizes)))
        return tuple(value_of(node_id, i) for i in range(len(sizes)))

    def pooled_logits(self, x: int, name: str, classes: int, gain: float = AFTER_LINEAR) -> int:
        """Add global average pooling and a linear layer: ``[B, C, H, W] -> [B, classes]``."""
        return self.gemm(self.op("Flatten", self.op("GlobalAveragePool", x)), name, classes, gain)
