"""DenseNet-121 (Huang et al. 2016, arXiv 1608.06993), as torchvision builds it."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import Net

GROWTH, BOTTLENECK = 32, 4


def densenet121(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """DenseNet-121, 7,978,856 parameters (torchvision, ``DenseNet121_Weights.meta["num_params"]``).

    Input ``input`` ``[batch, 3, image, image]``, output ``logits`` ``[batch, classes]``.
    """
    net = Net(seed)
    x = net.conv(net.input("input", (batch, 3, image, image)), "features.conv0", 2 * GROWTH, 7, 2)
    x = net.max_pool(_norm_relu(net, x, "features.norm0"), 3, 2, 1)
    for block, layers in enumerate((6, 12, 24, 16), start=1):
        if block > 1:
            x = _transition(net, x, f"features.transition{block - 1}")
        for layer in range(1, layers + 1):
            x = net.concat([x, _dense_layer(net, x, f"features.denseblock{block}.denselayer{layer}")])
    return net.build(logits=net.pooled_logits(_norm_relu(net, x, "features.norm5"), "classifier", classes))


def _norm_relu(net: Net, x: int, name: str) -> int:
    return net.op("Relu", net.batch_norm(x, name))


def _dense_layer(net: Net, x: int, name: str) -> int:
    x = net.conv(_norm_relu(net, x, f"{name}.norm1"), f"{name}.conv1", BOTTLENECK * GROWTH)
    return net.conv(_norm_relu(net, x, f"{name}.norm2"), f"{name}.conv2", GROWTH, 3, gain=1.0)


def _transition(net: Net, x: int, name: str) -> int:
    x = net.conv(_norm_relu(net, x, f"{name}.norm"), f"{name}.conv", net.shape(x)[1] // 2)
    return net.average_pool(x, 2, 2)
