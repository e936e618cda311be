"""com.microsoft: fused operators of onnxruntime, in the forms that its CPU provider runs.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from typing import Any

from taso_gym.ops.activations import gelu, hard_sigmoid, leaky_relu, relu, sigmoid
from taso_gym.ops.convolution import conv, conv_attrs, conv_flops, conv_type, export_conv
from taso_gym.ops.elementwise import clip, tanh
from taso_gym.ops.linear import gemm, gemm_attrs, gemm_flops, gemm_type, matmul_shape, scaled
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.normalization import layer_normalization
from taso_gym.ops.operator import MICROSOFT, Attrs, Types, operator
from taso_gym.ops.shapes import broadcasts_to, expect, float_as_first, one_dtype, optional, per_element, shape, tensor
from taso_gym.symbolic import Dim, Shape, product
from taso_gym.tensor import TensorType

ACTIVATIONS: dict[str, tuple[float, ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": (0.01,),
    "HardSigmoid": (0.2, 0.5),
}
"""Fused activations and the defaults of their parameters: those of the operators of these names."""
ACTIVATION_FLOPS = {"Relu": 1, "Tanh": 1, "Sigmoid": 3, "LeakyRelu": 2, "HardSigmoid": 4, "Clip": 2}
"""Operations per element, as of these operators."""


def activated(xp: ArrayModule, x: Array, name: str, params: tuple[float, ...]) -> Array:
    """Apply a fused activation."""
    simple = {"Relu": relu, "Tanh": tanh, "Sigmoid": sigmoid}
    if name in simple:
        return simple[name](xp, x)
    if name == "LeakyRelu":
        return leaky_relu(xp, x, alpha=params[0])
    if name == "Clip":
        return clip(xp, x, min=params[0], max=params[1])
    return hard_sigmoid(xp, x, alpha=params[0], beta=params[1])


def fused_conv_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """As Conv; parameters that are left out are written out."""
    name, params = attrs["activation"], tuple(attrs["activation_params"] or ())
    wanted = 2 if name == "Clip" else len(ACTIVATIONS.get(name, ()))
    expect(name in ACTIVATIONS or name == "Clip", f"an activation among {[*ACTIVATIONS, 'Clip']}", name)
    expect(len(params) == wanted, f"{wanted} activation_params for {name}", params)
    return conv_attrs(attrs, types) | {"activation_params": params}


def fused_conv_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """As Conv; Z has the result's type."""
    (result,) = conv_type(types, attrs)
    if z := optional(types, 3):
        expect(z.shape == result.shape, f"a sum operand of shape {result.shape}", z)
    return (result,)


def fused_conv_flops(types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """As Conv, per element those of the activation, and one for the sum."""
    extra = ACTIVATION_FLOPS[attrs["activation"]] + (optional(types, 3) is not None)
    return conv_flops(types, outputs, attrs) + product(outputs[0].shape or ()) * extra


def export_fused_conv(attrs: dict[str, Any], types: Types, out: tuple[TensorType, ...], opset: int) -> dict[str, Any]:
    """No parameters are left out."""
    return export_conv(attrs, types, out, opset) | {"activation_params": attrs["activation_params"] or None}


@operator(
    "FusedConv",
    domain=MICROSOFT,
    infer=fused_conv_type,
    normalize=fused_conv_attrs,
    export=export_fused_conv,
    flops=fused_conv_flops,
)
def fused_conv(
    xp: ArrayModule,
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    *,
    activation: str,
    activation_params: tuple[float, ...] | None = None,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """activation(Conv(x, w, b) + z)."""
    result = conv(xp, x, w, b, dilations=dilations, group=group, pads=pads, strides=strides)
    return activated(xp, result if z is None else result + z, activation, activation_params or ())


def fused_gemm_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """As Gemm; parameters that the activation doesn't have are left out."""
    name = attrs["activation"]
    expect(name in ACTIVATIONS, f"an activation among {list(ACTIVATIONS)}", name)
    given = [attrs[k] for k in ("activation_alpha", "activation_beta")]
    params = [default if p is None else p for p, default in zip(given, ACTIVATIONS[name], strict=False)] + [None, None]
    named = {"activation_alpha": params[0], "activation_beta": params[1], "activation_gamma": None}
    return gemm_attrs(attrs, types) | named


def fused_gemm_flops(types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """As Gemm, and per element those of the activation."""
    return gemm_flops(types, outputs, attrs) + product(outputs[0].shape or ()) * ACTIVATION_FLOPS[attrs["activation"]]


@operator("FusedGemm", domain=MICROSOFT, infer=gemm_type, normalize=fused_gemm_attrs, flops=fused_gemm_flops)
def fused_gemm(
    xp: ArrayModule,
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """activation(Gemm(a, b, c))."""
    result = gemm(xp, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    params = tuple(p for p in (activation_alpha, activation_beta) if p is not None)
    return activated(xp, result, activation, params)


def fused_matmul_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Transposed batches aren't modelled."""
    expect(not attrs["transBatchA"] and not attrs["transBatchB"], "batches as they are", "transBatchA or transBatchB")
    expect(min(len(shape(types, 0)), len(shape(types, 1))) >= 2, "operands of rank 2 or more", types)
    return {k: attrs[k] for k in ("alpha", "transA", "transB")}


def swapped(dims: Shape, swap: int) -> Shape:
    """Return a shape with its last two sizes exchanged on request."""
    return (*dims[:-2], dims[-1], dims[-2]) if swap else dims


def fused_matmul_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """Batched matrix product of the transposed operands."""
    a, b = swapped(shape(types, 0), attrs["transA"]), swapped(shape(types, 1), attrs["transB"])
    return (TensorType(one_dtype(types), matmul_shape(a, b)),)


def fused_matmul_flops(types: Types, outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """Two per term of each sum; one per element for a factor other than 1."""
    inner = swapped(shape(types, 0), attrs["transA"])[-1]
    return product(outputs[0].shape or ()) * (inner * 2 + (attrs["alpha"] != 1))


@operator(
    "FusedMatMul", domain=MICROSOFT, infer=fused_matmul_type, normalize=fused_matmul_attrs, flops=fused_matmul_flops
)
def fused_matmul(
    xp: ArrayModule,
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """Alpha A B, with the last two axes of A and B exchanged on request."""
    x, y = (
        xp.transpose(m, swapped(tuple(range(len(m.shape))), swap))  # pyright: ignore[reportArgumentType]
        for m, swap in ((a, transA), (b, transB))
    )
    return scaled(xp, xp.matmul(x, y), alpha)


@operator("Gelu", domain=MICROSOFT, infer=float_as_first, flops=per_element(5))
def ms_gelu(xp: ArrayModule, x: Array) -> Array:
    """x Φ(x)."""
    return gelu(xp, x)


def bias_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type; a bias is a vector over its last axis."""
    if optional(types, 1):
        expect(shape(types, 1) == shape(types, 0)[-1:], f"a bias of shape {shape(types, 0)[-1:]}", shape(types, 1))
    one_dtype(types)
    return (tensor(types, 0),)


@operator("BiasGelu", domain=MICROSOFT, infer=bias_type, flops=per_element(6))
def bias_gelu(xp: ArrayModule, a: Array, b: Array) -> Array:
    """gelu(a + b), exactly."""
    return gelu(xp, a + b)


def fast_gelu_flops(types: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """As Gelu by tanh, and one per element for a bias."""
    return product(outputs[0].shape or ()) * (9 + (optional(types, 1) is not None))


@operator("FastGelu", domain=MICROSOFT, infer=bias_type, flops=fast_gelu_flops)
def fast_gelu(xp: ArrayModule, x: Array, bias: Array | None = None) -> Array:
    """gelu(x + bias), by tanh."""
    return gelu(xp, x if bias is None else x + bias, approximate="tanh")


@operator("QuickGelu", domain=MICROSOFT, infer=float_as_first, flops=per_element(5))
def quick_gelu(xp: ArrayModule, x: Array, *, alpha: float = 1.702) -> Array:
    """x sigmoid(alpha x)."""
    return x * sigmoid(xp, x * alpha)


def skip_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's type; skip broadcasts to it, the others are vectors over its last axis."""
    dims = shape(types, 0)
    expect(len(dims) in (2, 3), "data of rank 2 or 3", dims)
    broadcasts_to(shape(types, 1), dims)
    for i in range(2, len(types)):
        if types[i] is not None:
            expect(shape(types, i) == dims[-1:], f"a vector of {dims[-1]} as input {i}", shape(types, i))
    return (TensorType(one_dtype(types), dims),)


@operator("SkipLayerNormalization", domain=MICROSOFT, infer=skip_type, flops=per_element(10))
def skip_layer_normalization(
    xp: ArrayModule,
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
) -> Array:
    """LayerNormalization(x + skip + bias) over the last axis."""
    total = x + skip if bias is None else x + skip + bias
    return layer_normalization(xp, total, gamma, beta, axis=len(x.shape) - 1, epsilon=epsilon)
