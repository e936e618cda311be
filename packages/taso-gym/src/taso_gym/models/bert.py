"""BERT-base (Devlin et al. 2018, arXiv 1810.04805), as exporters write Hugging Face's ``BertModel``."""

from __future__ import annotations

import numpy as np

from taso_gym.graph import Graph
from taso_gym.models.transformer import TransformerNet, check_positions

EPSILON = 1e-12
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2


def bert(
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    vocabulary: int = VOCABULARY,
    seed: int = 0,
) -> Graph:
    """BERT-base uncased with its pooler, 109,482,240 parameters (Hugging Face ``bert-base-uncased``, ``BertModel``).

    GELU is spelled out and every bias is an Add of its own, so that fusing them is left to substitutions.
    Inputs ``input_ids``, ``attention_mask`` (1: a token, 0: padding), ``token_type_ids``, int64 ``[batch, sequence]``;
    outputs ``last_hidden_state`` ``[batch, sequence, hidden]``, ``pooler_output`` ``[batch, hidden]``.

    Raises:
        OptionError: the sequence is longer than the 512 positions.
    """
    check_positions(sequence, POSITIONS)
    net = TransformerNet(seed, hidden, heads)
    tokens, mask, types = (
        net.input(name, (batch, sequence), "int64") for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    positions = net.constant("position_ids", np.arange(sequence, dtype=np.int64)[None])
    x = net.add(
        net.embedding(tokens, "embeddings.word_embeddings", vocabulary, 1.0),
        net.embedding(types, "embeddings.token_type_embeddings", TYPES, 0.3),
    )
    x = net.add(x, net.embedding(positions, "embeddings.position_embeddings", POSITIONS, 0.3))
    x = net.layer_norm(x, "embeddings.LayerNorm", EPSILON)
    bias = net.padding_mask(mask)
    for layer in range(layers):
        x = _layer(net, x, bias, f"encoder.layer.{layer}")
    first = net.op("Gather", x, net.scalar(0, "int64"), axis=1)
    return net.build(last_hidden_state=x, pooler_output=net.op("Tanh", net.gemm(first, "pooler.dense", hidden)))


def _layer(net: TransformerNet, x: int, bias: int, name: str) -> int:
    """Add a layer: attention and a feed-forward network, each with a residual and a normalisation after it."""
    q, k, v = (net.linear(x, f"{name}.attention.self.{part}", net.hidden) for part in ("query", "key", "value"))
    scores = net.scaled_scores(net.split_heads(q), net.split_heads(k, keys=True))
    attended = net.attend(net.add(scores, bias), net.split_heads(v))
    attended = net.linear(attended, f"{name}.attention.output.dense", net.hidden)
    x = net.layer_norm(net.add(attended, x), f"{name}.attention.output.LayerNorm", EPSILON)
    widened = net.gelu(net.linear(x, f"{name}.intermediate.dense", 4 * net.hidden))
    narrowed = net.linear(widened, f"{name}.output.dense", net.hidden)
    return net.layer_norm(net.add(narrowed, x), f"{name}.output.LayerNorm", EPSILON)
