"""ViT-B/16 (Dosovitskiy et al. 2020, arXiv 2010.11929), as torchvision builds it."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_LINEAR, RESIDUAL
from taso_gym.models.transformer import TransformerNet

EPSILON = 1e-6
PATCH = 16


def vit_b16(
    batch: int = 1,
    image: int = 224,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    classes: int = 1000,
    seed: int = 0,
) -> Graph:
    """ViT-B/16, 86,567,656 parameters at image size 224 (torchvision, ``ViT_B_16_Weights.meta["num_params"]``).

    Queries, keys and values come from one packed product, normalisation comes first. The position embedding has a row
    for each patch.
    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = TransformerNet(seed, hidden, heads)
    x = net.input("input", (batch, 3, image, image))
    x = net.conv(x, "conv_proj", hidden, PATCH, PATCH, 0, bias=True, gain=AFTER_LINEAR)
    patches = net.shape(x)[2] * net.shape(x)[3]
    x = net.op("Transpose", net.op("Reshape", x, shape=(batch, hidden, patches)), perm=(0, 2, 1))
    first = net.weight("class_token", (1, 1, hidden), 0.3)
    if batch > 1:
        first = net.op("Expand", first, shape=(batch, 1, hidden))
    x = net.concat([first, x], axis=1)
    x = net.add(x, net.weight("encoder.pos_embedding", (1, patches + 1, hidden), 0.3))
    for layer in range(layers):
        x = _layer(net, x, f"encoder.layers.{layer}")
    x = net.op("Gather", net.layer_norm(x, "encoder.ln", EPSILON), net.scalar(0, "int64"), axis=1)
    return net.build(logits=net.gemm(x, "heads.head", classes))


def _layer(net: TransformerNet, x: int, name: str) -> int:
    y = net.linear(net.layer_norm(x, f"{name}.ln_1", EPSILON), f"{name}.self_attention.in_proj", 3 * net.hidden)
    q, k, v = net.split(y, (net.hidden,) * 3, axis=2)
    scores = net.scaled_scores(net.split_heads(q), net.split_heads(k, keys=True))
    y = net.linear(net.attend(scores, net.split_heads(v)), f"{name}.self_attention.out_proj", net.hidden, gain=RESIDUAL)
    x = net.add(y, x)
    y = net.gelu(net.linear(net.layer_norm(x, f"{name}.ln_2", EPSILON), f"{name}.mlp.0", 4 * net.hidden))
    return net.add(x, net.linear(y, f"{name}.mlp.3", net.hidden, gain=RESIDUAL))
