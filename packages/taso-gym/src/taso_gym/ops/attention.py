"""ONNX's Attention (opset 23), and what com.microsoft's forms share with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, operator, shortest
from taso_gym.ops.shapes import broadcasts_to, exact_groups, expect, one_dtype, optional, shape, tensor
from taso_gym.symbolic import Dim, Shape, product
from taso_gym.tensor import TensorType


def scaled_dot_product(
    xp: ArrayModule,
    q: Array,
    k: Array,
    v: Array,
    scale: float,
    *biases: Array,
    causal: bool = False,
    softcap: float = 0.0,
) -> Array:
    """softmax(scale Q Kᵀ + biases) V over (batch, heads, tokens, size) (Vaswani et al., arXiv 1706.03762, eq. 1).

    K and V may have fewer heads, each of which serves a group of those of Q (Ainslie et al., arXiv 2305.13245). A row
    of which every score is -inf gives 0.
    """
    (n, heads, length, _), (kv_heads, total) = q.shape, k.shape[1:3]
    grouped = xp.reshape(q, (n, kv_heads, heads // kv_heads * length, q.shape[3]))
    scores = xp.matmul(grouped, xp.transpose(k, (0, 1, 3, 2))) * scale
    scores = xp.reshape(scores, (n, heads, length, total))
    if softcap:
        scores = xp.tanh(scores / softcap) * softcap
    for bias in biases:
        scores = scores + bias
    if causal:
        seen = xp.asarray(np.tril(np.ones((length, total), bool)))
        scores = xp.where(seen, scores, xp.constant(-math.inf, scores))
    powers = xp.exp(xp.shift_max(scores, 3))
    weights = xp.ratio(powers, xp.sum(powers, [3]))
    weights = xp.reshape(weights, (n, kv_heads, heads // kv_heads * length, total))
    return xp.reshape(xp.matmul(weights, v), (n, heads, length, v.shape[3]))


def split_heads(xp: ArrayModule, x: Array, heads: int) -> Array:
    """Turn (batch, tokens, heads * size) into (batch, heads, tokens, size)."""
    n, length, width = x.shape
    return xp.transpose(xp.reshape(x, (n, length, heads, width // heads)), (0, 2, 1, 3))


def join_heads(xp: ArrayModule, x: Array) -> Array:
    """Turn (batch, heads, tokens, size) into (batch, tokens, heads * size)."""
    n, heads, length, size = x.shape
    return xp.reshape(xp.transpose(x, (0, 2, 1, 3)), (n, length, heads * size))


def attention_flops(batch: Dim, heads: Dim, length: Dim, total: Dim, size: Dim, v_size: Dim) -> Dim:
    """Both products, and six operations per score for scaling and softmax."""
    return product((batch, heads, length, total)) * ((size + v_size) * 2 + 6)


def heads_of(types: Types, index: int, heads: int | None) -> Shape:
    """Return (batch, heads, tokens, size) of an operand of 4 axes, or of 3 with its heads side by side."""
    dims = shape(types, index)
    if len(dims) == 4:
        return dims
    expect(len(dims) == 3 and bool(heads), f"4 axes, or 3 and a number of heads, as input {index}", dims)
    return (dims[0], heads or 1, dims[1], exact_groups(dims[2], heads or 1))


def default_scale(scale: float | None, size: Dim) -> float:
    """Return the given scale, or 1 / sqrt(head size)."""
    if scale:
        return scale
    if not isinstance(size, int) or size <= 0:
        raise TypeInferenceError(f"expected a static head size, or a scale, found {size}")
    return shortest(1 / math.sqrt(size))


def attention_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the scale out; the number of heads is an operand's size where it has 4 axes.

    ``mask_is_bool`` isn't ONNX's: it tells the body, which doesn't see types, the mask's.
    """
    mask = optional(types, 3)
    size = heads_of(types, 0, attrs["q_num_heads"])[3]
    heads = {"q_num_heads": None, "kv_num_heads": None} if len(shape(types, 0)) == 4 else {}
    kept = {k: v for k, v in attrs.items() if k != "qk_matmul_output_mode"}
    is_bool = int(mask is not None and mask.dtype == "bool")
    scale = default_scale(None, size) if attrs["scale"] is None else attrs["scale"]  # 0 is one
    return kept | {"scale": scale, "mask_is_bool": is_bool} | heads


def export_attention(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """The mask's type isn't an attribute of ONNX."""
    return attrs | {"mask_is_bool": None}


def attention_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """As Q, with the head size of V."""
    q, k, v = (heads_of(types, i, attrs["q_num_heads" if i == 0 else "kv_num_heads"]) for i in range(3))
    rank = len(shape(types, 0))
    expect(all(len(shape(types, i)) == rank for i in (1, 2)), "Q, K and V of one rank", types)
    expect(q[0] == k[0] == v[0] and k[1:3] == v[1:3] and q[3] == k[3], "Q, K and V that fit", f"{q}, {k} and {v}")
    if isinstance(k[1], int):
        exact_groups(q[1], k[1])
    else:
        expect(q[1] == k[1], f"{q[1]} heads of K", k[1])
    if mask := optional(types, 3):
        broadcasts_to(shape(types, 3), (*q[:3], k[2]))
        expect(shape(types, 3)[-1:] == (k[2],), f"a mask for {k[2]} keys, as a shorter one isn't repeated", mask)
        expect(mask.dtype in ("bool", tensor(types, 0).dtype), "a mask of bool or of Q's element type", mask)
    dims = (*q[:3], v[3]) if rank == 4 else (q[0], q[2], q[1] * v[3])
    return (TensorType(one_dtype(types[:3]), dims),)


def onnx_attention_flops(types: Types, _outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """See `attention_flops`."""
    q, k, v = (heads_of(types, i, attrs["q_num_heads" if i == 0 else "kv_num_heads"]) for i in range(3))
    return attention_flops(q[0], q[1], q[2], k[2], q[3], v[3])


@operator(
    "Attention",
    since=23,
    infer=attention_type,
    normalize=attention_attrs,
    export=export_attention,
    flops=onnx_attention_flops,
)
def attention(
    xp: ArrayModule,
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    mask_is_bool: int = 0,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Array:
    """softmax(scale Q Kᵀ + mask) V, without past keys; a mask of truth values is -inf where false."""
    assert scale is not None
    if q_num_heads and kv_num_heads:
        q, k, v = split_heads(xp, q, q_num_heads), split_heads(xp, k, kv_num_heads), split_heads(xp, v, kv_num_heads)
    if mask_is_bool:
        attn_mask = xp.where(attn_mask, xp.constant(0, q), xp.constant(-math.inf, q))
    biases = [] if attn_mask is None else [attn_mask]
    result = scaled_dot_product(xp, q, k, v, scale, *biases, causal=bool(is_causal), softcap=softcap)
    return join_heads(xp, result) if q_num_heads else result
