"""Transformer-Transducer (Zhang et al. 2020, arXiv 2002.02562): speech recognition by two encoders and their join."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taso_gym.graph import Graph
from taso_gym.models.layers import RESIDUAL, SPREAD
from taso_gym.models.transformer import TransformerNet

EPSILON = 1e-5
FEATURES = 512
"""Four stacked frames of 128 log-mel energies."""
SYMBOLS = 29
"""26 letters, space, apostrophe, blank: the characters of LibriSpeech."""


def transformer_transducer(
    batch: int = 1,
    sequence: int = 128,
    labels: int = 32,
    layers: int = 18,
    label_layers: int = 2,
    hidden: int = 512,
    heads: int = 8,
    seed: int = 0,
) -> Graph:
    """Transformer-Transducer with full attention, 18 audio and 2 label layers as in the paper, 69,087,773 parameters.

    No exact count is published. This one is (18 + 2) layers of 3,413,504 (5·512² of attention with relative positions,
    2·512 of their biases, 2·512·2048 + 2048 + 512 of the feed-forward network, 4·512 of normalisations), 512² + 512 of
    the features' projection, 29·512 of label embeddings, 2 (512² + 512) + 29·512 + 29 of the joint network, for the
    usual sizes of its implementations (hidden 512, feed-forward 2048, 8 heads) and characters as labels.

    Attention uses relative positions (Dai et al. 2019, arXiv 1901.02860, section 3.3); that of labels is causal. As in
    the paper, a residual starts from the normalised input.
    Inputs ``audio`` float ``[batch, sequence, 512]``, ``labels`` int64 ``[batch, labels]``; output ``logits``
    ``[batch, sequence, labels, 29]``.
    """
    net = TransformerNet(seed, hidden, heads)
    audio = net.linear(net.input("audio", (batch, sequence, FEATURES)), "audio_encoder.input", hidden)
    label = net.embedding(net.input("labels", (batch, labels), "int64"), "label_encoder.embedding", SYMBOLS, 1.0)
    for layer in range(layers):
        audio = _layer(net, audio, f"audio_encoder.layers.{layer}", causal=False)
    for layer in range(label_layers):
        label = _layer(net, label, f"label_encoder.layers.{layer}", causal=True)
    audio = net.op("Unsqueeze", net.linear(audio, "joint.audio", hidden), axes=(2,))
    label = net.op("Unsqueeze", net.linear(label, "joint.label", hidden), axes=(1,))
    joint = net.op("Tanh", net.add(audio, label))
    return net.build(logits=net.linear(joint, "joint.output", SYMBOLS, gain=2.0))


def _layer(net: TransformerNet, x: int, name: str, *, causal: bool) -> int:
    x = net.layer_norm(x, f"{name}.attention_norm", EPSILON)
    x = net.add(x, _attention(net, x, f"{name}.attention", causal=causal))
    x = net.layer_norm(x, f"{name}.feed_forward_norm", EPSILON)
    y = net.op("Relu", net.linear(x, f"{name}.feed_forward.0", 4 * net.hidden))
    return net.add(x, net.linear(y, f"{name}.feed_forward.1", net.hidden, gain=RESIDUAL))


def _attention(net: TransformerNet, x: int, name: str, *, causal: bool) -> int:
    """Add attention whose scores are ((q + u) k + (q + v) r) / √D, r being the projected distance of the pair."""
    q, k, v = (
        net.split_heads(net.linear(x, f"{name}.{part}", net.hidden, bias=False), keys=part == "key")
        for part in ("query", "key", "value")
    )
    T, D = net.shape(x)[1], net.hidden // net.heads
    u, w = (net.weight(f"{name}.{part}_bias", (net.heads, 1, D), SPREAD) for part in ("content", "position"))
    distances = net.constant(f"distances.{T}", sinusoids(T, net.hidden))
    r = net.op("Reshape", net.linear(distances, f"{name}.distance", net.hidden, bias=False), shape=(-1, net.heads, D))
    by_distance = net.op("MatMul", net.add(q, w), net.op("Transpose", r, perm=(1, 2, 0)))
    scores = net.add(net.op("MatMul", net.add(q, u), k), by_key(net, by_distance))
    scores = net.op("Div", scores, net.scalar(math.sqrt(D)))
    attended = net.attend(net.causal_scores(scores) if causal else scores, v)
    return net.linear(attended, f"{name}.output", net.hidden, bias=False, gain=RESIDUAL)


def by_key(net: TransformerNet, x: int) -> int:
    """Shift row t of scores by distance ``[B, heads, T, 2T - 1]`` so that columns are keys ``[B, heads, T, T]``.

    Column T - 1 - t + s of row t belongs to key s. With a column put before, rows are 2T long; read as rows of 2T - 1
    from element T on, each starts one column earlier than the one above (Dai et al., appendix B).
    """
    B, H, T, K = net.shape(x)
    x = net.op("Pad", x, pads=(0, 0, 0, 1, 0, 0, 0, 0))
    x = net.op("Reshape", x, shape=(B, H, K + 1, T))
    x = net.op("Slice", x, starts=(1,), ends=(K + 1,), axes=(2,), steps=(1,))
    x = net.op("Reshape", x, shape=(B, H, T, K))
    return net.op("Slice", x, starts=(0,), ends=(T,), axes=(3,), steps=(1,))


def sinusoids(length: int, hidden: int) -> NDArray[np.float32]:
    """Return sines and cosines of the distances length - 1 … 1 - length, ``[2 length - 1, hidden]`` (hidden even)."""
    frequencies = 1e4 ** -(np.arange(0, hidden, 2) / hidden)
    angles = np.arange(length - 1, -length, -1)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
