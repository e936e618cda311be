"""com.microsoft's Attention and MultiHeadAttention, in the forms that onnxruntime's CPU provider runs."""

from __future__ import annotations

from typing import Any

from taso_gym.ops.attention import attention_flops, default_scale, heads_of, join_heads, scaled_dot_product, split_heads
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import MICROSOFT, Attrs, Types, operator
from taso_gym.ops.shapes import broadcasts_to, exact_groups, expect, one_dtype, optional, shape
from taso_gym.symbolic import Dim, Shape, total
from taso_gym.tensor import TensorType

MASK_VALUE = -10000.0
"""Default of ``mask_filter_value``: added to the score of a key that isn't attended to."""


def mask_bias(xp: ArrayModule, mask: Array, value: float, like: Array) -> Array:
    """Turn a mask (batch, keys) of 0 and 1 into scores to add, (batch, 1, 1, keys)."""
    hidden = xp.equal(mask, xp.constant(0, mask))
    return xp.where(hidden, xp.constant(value, like), xp.constant(0, like))[:, None, None, :]


def check_mask(types: Types, index: int, batch: Dim, keys: Dim) -> None:
    """Raise unless an optional mask is int32 (batch, keys)."""
    if mask := optional(types, index):
        expect(mask.shape == (batch, keys) and mask.dtype == "int32", f"an int32 mask {(batch, keys)}", mask)


def check_bias(types: Types, index: int, scores: Shape) -> None:
    """Raise unless an optional attention bias broadcasts to the scores, in its first two axes only."""
    if optional(types, index):
        dims = shape(types, index)
        expect(len(dims) == 4 and dims[2:] == scores[2:], f"an attention bias {scores}", dims)
        broadcasts_to(dims, scores)


def mha_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the scale out; without a mask its value means nothing."""
    size = heads_of(types, 0, attrs["num_heads"])[3]
    mask = {} if optional(types, 4) else {"mask_filter_value": MASK_VALUE}
    return attrs | mask | {"scale": default_scale(attrs["scale"], size)}


def mha_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, tokens of the query, width of the value)."""
    expect(all(len(shape(types, i)) == 3 for i in range(3)), "query, key and value of rank 3", types)
    q, k, v = (heads_of(types, i, attrs["num_heads"]) for i in range(3))
    expect(q[0] == k[0] == v[0] and q[3] == k[3] and k[2] == v[2], "query, key and value that fit", f"{q}, {k}, {v}")
    width = total(shape(types, i)[2] for i in range(3))
    if optional(types, 3):
        expect(shape(types, 3) == (width,), f"a bias of {width}", shape(types, 3))
    seen = (
        not attrs["unidirectional"] or q[2] == k[2] or (isinstance(q[2], int) and isinstance(k[2], int) and q[2] > k[2])
    )
    expect(seen, "as many queries as keys (of fewer, the last sees all keys in onnxruntime)", f"{q[2]} and {k[2]}")
    check_mask(types, 4, q[0], k[2])
    check_bias(types, 5, (*q[:3], k[2]))
    one_dtype([t for i, t in enumerate(types) if i != 4])
    return (TensorType(one_dtype(types[:3]), (q[0], q[2], shape(types, 2)[2])),)


def mha_flops(types: Types, _outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """See `attention_flops`."""
    q, k, v = (heads_of(types, i, attrs["num_heads"]) for i in range(3))
    return attention_flops(q[0], q[1], q[2], k[2], q[3], v[3])


@operator("MultiHeadAttention", domain=MICROSOFT, infer=mha_type, normalize=mha_attrs, flops=mha_flops)
def multi_head_attention(
    xp: ArrayModule,
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = MASK_VALUE,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Array:
    """Attention over heads that lie side by side in the last axis, without past keys."""
    assert scale is not None
    if bias is not None:
        ends = query.shape[2], query.shape[2] + key.shape[2]
        query, key, value = query + bias[: ends[0]], key + bias[ends[0] : ends[1]], value + bias[ends[1] :]
    q, k, v = (split_heads(xp, x, num_heads) for x in (query, key, value))
    biases = [] if attention_bias is None else [attention_bias]
    if key_padding_mask is not None:
        biases.append(mask_bias(xp, key_padding_mask, mask_filter_value, q))
    return join_heads(xp, scaled_dot_product(xp, q, k, v, scale, *biases, causal=bool(unidirectional)))


def ms_attention_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write the scale and the widths out; rotary embeddings and shared buffers aren't modelled."""
    expect(not attrs["do_rotary"] and not attrs["past_present_share_buffer"], "attention without a past", attrs)
    expect(len(shape(types, 1)) == 2, "a matrix of weights", shape(types, 1))
    widths = attrs["qkv_hidden_sizes"] or (exact_groups(shape(types, 1)[1], 3),) * 3
    expect(len(widths) == 3, "three qkv_hidden_sizes", widths)
    mask = {} if optional(types, 3) else {"mask_filter_value": MASK_VALUE}
    dropped = ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
    kept = {k: v for k, v in attrs.items() if k not in dropped}
    size = exact_groups(widths[0], attrs["num_heads"])
    return kept | mask | {"scale": default_scale(attrs["scale"], size), "qkv_hidden_sizes": tuple(widths)}


def ms_attention_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """(batch, tokens, width of the value)."""
    x, w, widths = shape(types, 0), shape(types, 1), attrs["qkv_hidden_sizes"]
    expect(len(x) == 3 and w == (x[2], sum(widths)) and widths[0] == widths[1], "operands that fit", types)
    exact_groups(widths[2], attrs["num_heads"])
    expect(shape(types, 2) == (w[1],), f"a bias of {w[1]}", shape(types, 2))
    check_mask(types, 3, x[0], x[1])
    check_bias(types, 5, (x[0], attrs["num_heads"], x[1], x[1]))
    expect(optional(types, 4) is None, "attention without a past", types)
    return (TensorType(one_dtype([t for i, t in enumerate(types) if i != 3]), (*x[:2], widths[2])),)


def ms_attention_flops(types: Types, _outputs: tuple[TensorType, ...], attrs: Attrs) -> Dim:
    """The projection, and `attention_flops`."""
    (batch, length, width), sizes, heads = shape(types, 0), attrs["qkv_hidden_sizes"], attrs["num_heads"]
    projection = batch * length * width * sum(sizes) * 2
    return projection + attention_flops(batch, heads, length, length, sizes[0] // heads, sizes[2] // heads)


@operator(
    "Attention", domain=MICROSOFT, infer=ms_attention_type, normalize=ms_attention_attrs, flops=ms_attention_flops
)
def ms_attention(
    xp: ArrayModule,
    x: Array,
    weights: Array,
    bias: Array,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = MASK_VALUE,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: tuple[int, ...] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Array:
    """MultiHeadAttention of three projections of one tensor; onnxruntime 1.31 crashes without a bias."""
    assert qkv_hidden_sizes is not None
    projected = xp.matmul(x, weights) + bias
    ends = qkv_hidden_sizes[0], qkv_hidden_sizes[0] + qkv_hidden_sizes[1]
    return multi_head_attention(
        xp,
        projected[..., : ends[0]],
        projected[..., ends[0] : ends[1]],
        projected[..., ends[1] :],
        key_padding_mask=mask_index,
        attention_bias=attention_bias,
        num_heads=num_heads,
        mask_filter_value=mask_filter_value,
        scale=scale,
        unidirectional=unidirectional,
    )
