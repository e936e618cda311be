"""GPT-2 small (Radford et al. 2019), as Hugging Face's ``GPT2LMHeadModel`` builds it."""

from __future__ import annotations

import numpy as np

from taso_gym.graph import Graph
from taso_gym.models.layers import RESIDUAL
from taso_gym.models.transformer import TransformerNet, check_positions

EPSILON = 1e-5
VOCABULARY, POSITIONS = 50257, 1024


def gpt2(
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = VOCABULARY,
    seed: int = 0,
) -> Graph:
    """GPT-2 small, 124,439,808 parameters (Hugging Face ``gpt2``), the output layer tied to the token embedding.

    The paper's 117 M is an error that its authors corrected to 124 M. GELU is its tanh form, spelled out.
    Input ``input_ids`` int64 ``[batch, sequence]``, output ``logits`` ``[batch, sequence, vocabulary]``.

    Raises:
        OptionError: the sequence is longer than the 1024 positions.
    """
    check_positions(sequence, POSITIONS)
    net = TransformerNet(seed, hidden, heads)
    tokens = net.input("input_ids", (batch, sequence), "int64")
    positions = net.constant("position_ids", np.arange(sequence, dtype=np.int64)[None])
    # One leaf for both uses of the tied weight; its scale is the output layer's, so that logits are near 1.
    tied = net.weight("wte.weight", (vocabulary, hidden), hidden**-0.5)
    x = net.op("Gather", tied, tokens, axis=0)
    x = net.add(x, net.embedding(positions, "wpe", POSITIONS, 0.3 * hidden**-0.5))
    for layer in range(layers):
        x = _layer(net, x, f"h.{layer}")
    x = net.layer_norm(x, "ln_f", EPSILON)
    return net.build(logits=net.op("MatMul", x, net.op("Transpose", tied, perm=(1, 0))))


def _layer(net: TransformerNet, x: int, name: str) -> int:
    y = net.linear(net.layer_norm(x, f"{name}.ln_1", EPSILON), f"{name}.attn.c_attn", 3 * net.hidden)
    q, k, v = net.split(y, (net.hidden,) * 3, axis=2)
    scores = net.causal_scores(net.scaled_scores(net.split_heads(q), net.split_heads(k, keys=True)))
    y = net.linear(net.attend(scores, net.split_heads(v)), f"{name}.attn.c_proj", net.hidden, gain=RESIDUAL)
    x = net.add(y, x)
    y = net.gelu_tanh(net.linear(net.layer_norm(x, f"{name}.ln_2", EPSILON), f"{name}.mlp.c_fc", 4 * net.hidden))
    return net.add(x, net.linear(y, f"{name}.mlp.c_proj", net.hidden, gain=RESIDUAL))
