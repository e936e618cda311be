"""The encoder of T5-small (Raffel et al. 2019, arXiv 1910.10683), as Hugging Face's ``T5EncoderModel`` builds it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taso_gym.graph import Graph
from taso_gym.models.layers import RESIDUAL, SPREAD
from taso_gym.models.transformer import TransformerNet

EPSILON = 1e-6
VOCABULARY, BUCKETS, MAX_DISTANCE = 32128, 32, 128


def t5_encoder(
    batch: int = 1,
    sequence: int = 128,
    layers: int = 6,
    hidden: int = 512,
    heads: int = 8,
    vocabulary: int = VOCABULARY,
    seed: int = 0,
) -> Graph:
    """Encoder of T5-small with the shared embedding, 35,330,816 parameters (``T5EncoderModel`` of ``t5-small``).

    The count follows from the published configuration: 32128·512 of the embedding, 6 (4·512·512 + 2·512·2048 + 2·512)
    of the layers, 32·8 of the relative positions, 512 of the last normalisation.

    No biases, no means in the normalisations, no scale in the scores; one bias by relative position for all layers.
    Inputs ``input_ids``, ``attention_mask`` int64 ``[batch, sequence]``; output ``last_hidden_state``
    ``[batch, sequence, hidden]``.
    """
    net = TransformerNet(seed, hidden, heads)
    tokens, mask = (net.input(name, (batch, sequence), "int64") for name in ("input_ids", "attention_mask"))
    x = net.embedding(tokens, "shared", vocabulary, 1.0)
    bias = net.add(_position_bias(net, sequence), net.padding_mask(mask))
    for layer in range(layers):
        x = _layer(net, x, bias, f"encoder.block.{layer}.layer")
    return net.build(last_hidden_state=_rms_norm(net, x, "encoder.final_layer_norm"))


def _rms_norm(net: TransformerNet, x: int, name: str) -> int:
    """Add x / √(mean(x^2) + ε) times a scale (Zhang & Sennrich 2019, arXiv 1910.07467), spelled out."""
    mean = net.op("ReduceMean", net.op("Pow", x, net.scalar(2.0)), axes=(-1,), keepdims=1)
    root = net.op("Sqrt", net.add(mean, net.scalar(EPSILON)))
    scale = net.weight(f"{name}.weight", (net.hidden,), SPREAD, mean=1.0)
    return net.multiply(scale, net.op("Div", x, root))


def _layer(net: TransformerNet, x: int, bias: int, name: str) -> int:
    y = _rms_norm(net, x, f"{name}.0.layer_norm")
    # The missing 1 / √D of the scores is in the scale that queries are initialised with.
    q = net.linear(y, f"{name}.0.SelfAttention.q", net.hidden, bias=False, gain=net.heads / net.hidden)
    k, v = (net.linear(y, f"{name}.0.SelfAttention.{part}", net.hidden, bias=False) for part in "kv")
    scores = net.add(net.op("MatMul", net.split_heads(q), net.split_heads(k, keys=True)), bias)
    attended = net.attend(scores, net.split_heads(v))
    x = net.add(x, net.linear(attended, f"{name}.0.SelfAttention.o", net.hidden, bias=False, gain=RESIDUAL))
    y = net.linear(_rms_norm(net, x, f"{name}.1.layer_norm"), f"{name}.1.DenseReluDense.wi", 4 * net.hidden, bias=False)
    y = net.linear(net.op("Relu", y), f"{name}.1.DenseReluDense.wo", net.hidden, bias=False, gain=RESIDUAL)
    return net.add(x, y)


def _position_bias(net: TransformerNet, sequence: int) -> int:
    """Add the learned bias of scores by distance ``[1, heads, sequence, sequence]``; it depends on no input."""
    buckets = net.constant("relative_position_buckets", relative_buckets(sequence))
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    biases = net.op("Gather", net.weight(name, (BUCKETS, net.heads), 0.5), buckets, axis=0)
    return net.op("Unsqueeze", net.op("Transpose", biases, perm=(2, 0, 1)), axes=(0,))


def relative_buckets(sequence: int) -> NDArray[np.int64]:
    """Return the bucket of each (query, key) pair, ``[sequence, sequence]``.

    Half of the buckets are for keys after the query; of each half, 8 are exact distances and 8 grow by a constant
    factor up to distance 128 (the paper's section 2.1).
    """
    positions = np.arange(sequence)
    distance = positions[None, :] - positions[:, None]
    half, exact = BUCKETS // 2, BUCKETS // 4
    steps = np.log(np.maximum(np.abs(distance), 1) / exact) / np.log(MAX_DISTANCE / exact) * (half - exact)
    far = np.minimum(exact + steps.astype(np.int64), half - 1)
    near = np.abs(distance)
    return np.where(distance > 0, half, 0) + np.where(near < exact, near, far)
