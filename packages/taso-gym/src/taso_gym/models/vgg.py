"""Plain convolutions: VGG-19 (Simonyan & Zisserman 2014, arXiv 1409.1556) and AlexNet (Krizhevsky et al. 2012)."""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_RELU, Net

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


def vgg19(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Graph:
    """VGG-19, 143,667,240 parameters at image size 224 (torchvision, ``VGG19_Weights.meta["num_params"]``).

    The first linear layer reads all of the last feature map, as in the paper, so that it is smaller for smaller images;
    at 224 this is torchvision's network, whose adaptive pooling to 7x7 does nothing then.
    Input ``input`` ``[batch, 3, image, image]`` (image at least 32), output ``logits`` ``[batch, classes]``.
    """
    net = Net(seed)
    x, index = net.input("input", (batch, 3, image, image)), 0
    for channels, convolutions in _STAGES:
        for _ in range(convolutions):
            x = net.op("Relu", net.conv(x, f"features.{index}", channels, 3, bias=True))
            index += 2
        x, index = net.max_pool(x, 2, 2), index + 1
    return net.build(logits=_classifier(net, x, ("classifier.0", "classifier.3", "classifier.6"), classes))


def alexnet(batch: int = 1, image: int = 227, classes: int = 1000, seed: int = 0) -> Graph:
    """AlexNet with grouped convolutions and local response normalisation, 60,965,224 parameters at image size 227.

    The original network; the count is that of its Caffe model (BVLC ``bvlc_alexnet/deploy.prototxt``), whose order of
    ReLU, normalisation and pooling this has. (torchvision's ``alexnet`` is a later one without groups and LRN,
    61,100,840.) The first linear layer reads all of the last feature map.
    Input ``input`` ``[batch, 3, image, image]`` (image at least 67), output ``logits`` ``[batch, classes]``.
    """
    net = Net(seed)
    x = net.op("Relu", net.conv(net.input("input", (batch, 3, image, image)), "conv1", 96, 11, 4, 0, bias=True))
    x = net.max_pool(net.op("LRN", x, size=5, alpha=1e-4, beta=0.75), 3, 2)
    x = net.op("Relu", net.conv(x, "conv2", 256, 5, group=2, bias=True))
    x = net.max_pool(net.op("LRN", x, size=5, alpha=1e-4, beta=0.75), 3, 2)
    for name, channels, group in (("conv3", 384, 1), ("conv4", 384, 2), ("conv5", 256, 2)):
        x = net.op("Relu", net.conv(x, name, channels, 3, group=group, bias=True))
    return net.build(logits=_classifier(net, net.max_pool(x, 3, 2), ("fc6", "fc7", "fc8"), classes))


def _classifier(net: Net, x: int, names: tuple[str, str, str], classes: int) -> int:
    x = net.op("Flatten", x)
    for name in names[:2]:
        x = net.op("Relu", net.gemm(x, name, 4096, AFTER_RELU))
    return net.gemm(x, names[2], classes)
