"""The built-in networks: real architectures, whose weights are determined by a seed and drawn when they are needed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from math import prod

from taso_gym.errors import OptionError, TypeInferenceError
from taso_gym.graph import Graph
from taso_gym.models.splits import is_generated
from taso_gym.weights import GeneratedWeight

__all__ = ["NETWORKS", "PARAMETERS", "build", "parameters"]

NETWORKS: dict[str, str] = {
    "AlexNet": "taso_gym.models.vgg:alexnet",
    "BERT": "taso_gym.models.bert:bert",
    "DenseNet121": "taso_gym.models.densenet:densenet121",
    "EfficientNetB0": "taso_gym.models.mobilenet:efficientnet_b0",
    "GPT2": "taso_gym.models.gpt2:gpt2",
    "GoogLeNet": "taso_gym.models.googlenet:googlenet",
    "InceptionV3": "taso_gym.models.inception:inception_v3",
    "MobileNetV3": "taso_gym.models.mobilenet:mobilenet_v3",
    "NasNetA": "taso_gym.models.nasnet:nasnet_mobile",
    "NasNetALarge": "taso_gym.models.nasnet:nasnet_large",
    "NasRNN": "taso_gym.models.taso:nas_rnn",
    "ResNeXt50": "taso_gym.models.resnet:resnext50",
    "ResNet18": "taso_gym.models.resnet:resnet18",
    "ResNet50": "taso_gym.models.resnet:resnet50",
    "SqueezeNet1.1": "taso_gym.models.squeezenet:squeezenet",
    "T5Encoder": "taso_gym.models.t5:t5_encoder",
    "TasoBERT": "taso_gym.models.taso:taso_bert",
    "TransformerTransducer": "taso_gym.models.transducer:transformer_transducer",
    "VGG19": "taso_gym.models.vgg:vgg19",
    "ViT-B16": "taso_gym.models.vit:vit_b16",
    "YOLOv8n": "taso_gym.models.yolo:yolov8n",
}
"""Name -> import string of the function that builds it."""

PARAMETERS: dict[str, int] = {
    "AlexNet": 60_965_224,
    "BERT": 109_482_240,
    "DenseNet121": 7_978_856,
    "EfficientNetB0": 5_288_548,
    "GPT2": 124_439_808,
    "GoogLeNet": 6_998_552,
    "InceptionV3": 23_834_568,
    "MobileNetV3": 5_483_032,
    "NasNetA": 5_289_978,
    "NasNetALarge": 88_753_150,
    "NasRNN": 4_194_304,
    "ResNeXt50": 25_028_904,
    "ResNet18": 11_689_512,
    "ResNet50": 25_557_032,
    "SqueezeNet1.1": 1_235_496,
    "T5Encoder": 35_330_816,
    "TasoBERT": 33_554_432,
    "TransformerTransducer": 69_087_773,
    "VGG19": 143_667_240,
    "ViT-B16": 86_567_656,
    "YOLOv8n": 3_157_184,
}
"""Trainable parameters of each network with its default arguments; the source is in its function's docstring."""


@cache
def _function(name: str) -> Callable[..., Graph]:
    if name not in NETWORKS:
        raise OptionError(f"expected a network out of {', '.join(NETWORKS)}, found {name!r}")
    module, function = NETWORKS[name].split(":")
    return getattr(importlib.import_module(module), function)


def _generated(name: str, arguments: Mapping[str, int]) -> Graph:
    if arguments:
        raise OptionError(f"expected no arguments for {name}, found {', '.join(arguments)}")
    from taso_gym.models import generated

    return generated.planted(name).start


def build(name: str, **arguments: int) -> Graph:
    """Build a network of `NETWORKS`; ``arguments`` are those of its function, whole numbers all.

    A name such as ``generated/linear/17`` is that of a generated graph (`taso_gym.models.generated`); it has no
    arguments.

    Raises:
        OptionError: the name or an argument is unknown, or the network can't be built with the arguments' values.
    """
    if is_generated(name):
        return _generated(name, arguments)
    function = _function(name)
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    for key, value in arguments.items():
        if key not in defaults:
            raise OptionError(f"expected arguments of {name} out of {', '.join(defaults)}, found {key!r}")
        least = 0 if key == "seed" else 1
        if type(value) is not int or value < least:
            raise OptionError(f"expected {key} of {name} to be a whole number from {least} on, found {value!r}")
    try:
        graph = function(**arguments)
    except TypeInferenceError as error:
        raise OptionError(f"expected sizes that {name} can be built with, found {arguments}: {error}") from error
    identity = repr((name, sorted({**defaults, **arguments}.items())))
    info = replace(graph.info, digest=blake2b(identity.encode(), digest_size=16).hexdigest())
    return Graph(graph.nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, info)


def parameters(graph: Graph) -> int:
    """Count the trainable parameters of a built-in network: its generated weights without running statistics."""
    statistics = {
        value for _, node in graph.operators() if node.sig.op.key == "BatchNormalization" for value in node.inputs[3:5]
    }
    return sum(
        prod(leaf.weight.shape)
        for value, leaf in graph.leaves.items()
        if isinstance(leaf.weight, GeneratedWeight) and value not in statistics
    )
