"""Small built-in networks, random inputs for them, and running what they are exported to."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from taso_gym import models
from taso_gym.graph import Graph
from taso_gym.onnx_io import to_model
from taso_gym.tensor import TensorType

TRANSFORMER = {"layers": 2, "hidden": 64, "heads": 2}
SMALL: Mapping[str, Mapping[str, int]] = {
    "AlexNet": {"image": 67},
    "BERT": {**TRANSFORMER, "sequence": 8, "vocabulary": 50},
    "GPT2": {**TRANSFORMER, "sequence": 8, "vocabulary": 50},
    "InceptionV3": {"image": 75},
    "NasRNN": {"hidden": 64},
    "T5Encoder": {**TRANSFORMER, "sequence": 8, "vocabulary": 50},
    "TasoBERT": {"layers": 2, "hidden": 64, "sequence": 16, "heads": 4},
    "TransformerTransducer": {**TRANSFORMER, "label_layers": 1, "sequence": 8, "labels": 3},
    "VGG19": {"image": 32},
    "ViT-B16": {**TRANSFORMER, "image": 32},
}
"""Arguments that make a network quick to run; others take an image of 64."""


def small(name: str, **arguments: int) -> Graph:
    """Build a network at a size that is quick to run."""
    return models.build(name, **{**SMALL.get(name, {"image": 64}), **arguments})


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw inputs: normal numbers, tokens, masks of ones."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    for value in graph.info.inputs:
        leaf = graph.leaves[value]
        assert isinstance(leaf.type, TensorType)
        if leaf.type.dtype == "float":
            drawn[leaf.name] = rng.standard_normal(leaf.type.shape, dtype=np.float32)
        elif leaf.name == "attention_mask":
            drawn[leaf.name] = np.ones(leaf.type.shape, np.int64)
        else:
            drawn[leaf.name] = rng.integers(0, 2 if leaf.name == "token_type_ids" else 29, leaf.type.shape)
    return drawn


def session(graph: Graph) -> Any:
    """Export a graph, check the model, and load it into onnxruntime as it stands, without optimisations."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    model = to_model(graph)
    onnx.checker.check_model(model, full_check=True)
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
