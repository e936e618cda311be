"""The built-in networks: real architectures, whose weights are determined by a seed and drawn when they are needed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from math import prod
from typing import NamedTuple

from taso_gym.checks import check_count, check_kind
from taso_gym.errors import OptionError, TypeInferenceError
from taso_gym.graph import Graph
from taso_gym.models.splits import is_generated
from taso_gym.weights import GeneratedWeight

__all__ = ["NETWORKS", "Network", "build", "parameters"]


class Network(NamedTuple):
    """A row of `NETWORKS`.

    Attributes:
        function: import string of the function that builds it.
        parameters: trainable parameters with its default arguments; the source is in the function's docstring.
    """

    function: str
    parameters: int


NETWORKS = {
    "AlexNet": Network("taso_gym.models.vgg:alexnet", 60_965_224),
    "BERT": Network("taso_gym.models.bert:bert", 109_482_240),
    "DenseNet121": Network("taso_gym.models.densenet:densenet121", 7_978_856),
    "EfficientNetB0": Network("taso_gym.models.mobilenet:efficientnet_b0", 5_288_548),
    "GPT2": Network("taso_gym.models.gpt2:gpt2", 124_439_808),
    "GoogLeNet": Network("taso_gym.models.googlenet:googlenet", 6_998_552),
    "InceptionV3": Network("taso_gym.models.inception:inception_v3", 23_834_568),
    "MobileNetV3": Network("taso_gym.models.mobilenet:mobilenet_v3", 5_483_032),
    "NasNetA": Network("taso_gym.models.nasnet:nasnet_mobile", 5_289_978),
    "NasNetALarge": Network("taso_gym.models.nasnet:nasnet_large", 88_753_150),
    "NasRNN": Network("taso_gym.models.taso:nas_rnn", 4_194_304),
    "ResNeXt50": Network("taso_gym.models.resnet:resnext50", 25_028_904),
    "ResNet18": Network("taso_gym.models.resnet:resnet18", 11_689_512),
    "ResNet50": Network("taso_gym.models.resnet:resnet50", 25_557_032),
    "SqueezeNet1.1": Network("taso_gym.models.squeezenet:squeezenet", 1_235_496),
    "T5Encoder": Network("taso_gym.models.t5:t5_encoder", 35_330_816),
    "TasoBERT": Network("taso_gym.models.taso:taso_bert", 33_554_432),
    "TransformerTransducer": Network("taso_gym.models.transducer:transformer_transducer", 69_087_773),
    "VGG19": Network("taso_gym.models.vgg:vgg19", 143_667_240),
    "ViT-B16": Network("taso_gym.models.vit:vit_b16", 86_567_656),
    "YOLOv8n": Network("taso_gym.models.yolo:yolov8n", 3_157_184),
}
"""Name -> what builds it, and its size."""


@cache
def _function(name: str) -> Callable[..., Graph]:
    if name not in NETWORKS:
        raise OptionError(f"expected a network out of {', '.join(NETWORKS)}, found {name!r}")
    module, function = NETWORKS[name].function.split(":")
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
        check_count(f"{key} of {name}", value, 0 if key == "seed" else 1)
    arguments = {key: int(value) for key, value in arguments.items()}
    try:
        graph = function(**arguments)
    except (TypeInferenceError, MemoryError, OverflowError, ValueError) as error:  # the last: NumPy's, of large arrays
        raise OptionError(f"expected sizes that {name} can be built with, found {arguments}: {error}") from error
    identity = repr((name, sorted({**defaults, **arguments}.items())))
    info = replace(graph.info, digest=blake2b(identity.encode(), digest_size=16).hexdigest())
    return Graph(graph.nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, info)


def parameters(graph: Graph) -> int:
    """Count the trainable parameters of a built-in network: its generated weights without running statistics.

    Raises:
        OptionError: it is no graph.
    """
    check_kind("graph", graph, (Graph,), "a Graph")
    statistics = {
        value for _, node in graph.operators() if node.sig.op.key == "BatchNormalization" for value in node.inputs[3:5]
    }
    return sum(
        prod(leaf.weight.shape)
        for value, leaf in graph.leaves.items()
        if isinstance(leaf.weight, GeneratedWeight) and value not in statistics
    )
