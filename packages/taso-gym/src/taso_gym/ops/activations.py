"""Activations: functions of one element, with parameters."""

from __future__ import annotations

import math
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator
from taso_gym.ops.shapes import (
    broadcasts_to,
    float_as_first,
    one_dtype,
    per_element,
    same_as_first,
    shape,
    tensor,
    with_axis,
)
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType


@operator("Relu", since=6, infer=same_as_first)
def relu(xp: ArrayModule, x: Array) -> Array:
    """max(x, 0)."""
    return xp.maximum(x, xp.constant(0, x))


@operator("LeakyRelu", since=6, infer=float_as_first, flops=per_element(2))
def leaky_relu(xp: ArrayModule, x: Array, *, alpha: float = 0.01) -> Array:
    """max(x, 0) + alpha min(x, 0)."""
    zero = xp.constant(0, x)
    return xp.maximum(x, zero) + xp.minimum(x, zero) * alpha


def prelu_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type, to which the slope broadcasts."""
    one_dtype(types)
    broadcasts_to(shape(types, 1), shape(types, 0))
    return (tensor(types, 0),)


@operator("PRelu", since=7, infer=prelu_type, flops=per_element(2))
def prelu(xp: ArrayModule, x: Array, slope: Array) -> Array:
    """max(x, 0) + slope min(x, 0)."""
    zero = xp.constant(0, x)
    return xp.maximum(x, zero) + xp.minimum(x, zero) * slope


@operator("Elu", since=6, infer=float_as_first, flops=per_element(4))
def elu(xp: ArrayModule, x: Array, *, alpha: float = 1.0) -> Array:
    """max(x, 0) + alpha (exp(min(x, 0)) - 1)."""
    zero = xp.constant(0, x)
    return xp.maximum(x, zero) + (xp.exp(xp.minimum(x, zero)) - 1) * alpha


SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
"""ONNX defaults: https://onnx.ai/onnx/operators/onnx__Selu.html."""


@operator("Selu", since=6, infer=float_as_first, flops=per_element(5))
def selu(xp: ArrayModule, x: Array, *, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Array:
    """gamma (max(x, 0) + alpha (exp(min(x, 0)) - 1))."""
    return elu(xp, x, alpha=alpha) * gamma


@operator("Sigmoid", since=6, infer=float_as_first, flops=per_element(3))
def sigmoid(xp: ArrayModule, x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (xp.exp(-x) + 1)


@operator("HardSigmoid", since=6, infer=float_as_first, flops=per_element(4))
def hard_sigmoid(xp: ArrayModule, x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """max(0, min(1, alpha x + beta))."""
    return xp.maximum(xp.constant(0, x), xp.minimum(xp.constant(1, x), x * alpha + beta))


@operator("HardSwish", since=14, infer=float_as_first, flops=per_element(5))
def hard_swish(xp: ArrayModule, x: Array) -> Array:
    """x max(0, min(1, x / 6 + 1/2))."""
    return x * hard_sigmoid(xp, x, alpha=1 / 6, beta=0.5)


@operator("Softplus", since=1, infer=float_as_first, flops=per_element(3))
def softplus(xp: ArrayModule, x: Array) -> Array:
    """log(1 + exp(x))."""
    return xp.logaddexp(x, xp.constant(0, x))


@operator("Mish", since=18, infer=float_as_first, flops=per_element(5))
def mish(xp: ArrayModule, x: Array) -> Array:
    """x tanh(softplus(x)) (Misra, arXiv 1908.08681)."""
    return x * xp.tanh(softplus(xp, x))


def gelu_attrs(attrs: dict[str, Any], _types: Types) -> dict[str, Any]:
    """Check the kind of approximation."""
    if attrs["approximate"] not in ("none", "tanh"):
        raise TypeInferenceError(f"expected approximate to be 'none' or 'tanh', found {attrs['approximate']!r}")
    return attrs


def gelu_flops(_types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """Five operations per element, nine by tanh."""
    return product(outputs[0].shape or ()) * (5 if attrs["approximate"] == "none" else 9)


@operator("Gelu", since=20, infer=float_as_first, normalize=gelu_attrs, flops=gelu_flops)
def gelu(xp: ArrayModule, x: Array, *, approximate: str = "none") -> Array:
    """x Φ(x), exactly or by tanh (Hendrycks and Gimpel, arXiv 1606.08415)."""
    if approximate == "none":
        return x * 0.5 * (xp.erf(x / math.sqrt(2)) + 1)
    return x * 0.5 * (xp.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


@operator("Softmax", since=13, infer=float_as_first, normalize=with_axis, flops=per_element(5))
def softmax(xp: ArrayModule, x: Array, *, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along an axis."""
    powers = xp.exp(xp.shift_max(x, axis))
    return powers / xp.sum(powers, [axis])


@operator("LogSoftmax", since=13, infer=float_as_first, normalize=with_axis, flops=per_element(5))
def log_softmax(xp: ArrayModule, x: Array, *, axis: int = -1) -> Array:
    """log(softmax(x)) along an axis."""
    shifted = xp.shift_max(x, axis)
    return shifted - xp.log(xp.sum(xp.exp(shifted), [axis]))
