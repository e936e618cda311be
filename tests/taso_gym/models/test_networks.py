"""Every built-in network is the published one: counts, shapes, invariants, and what the exported model computes."""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from math import prod

import numpy as np
import pytest
from network_runs import random_inputs, session, small

from taso_gym import models
from taso_gym.errors import OptionError
from taso_gym.graph import Graph, check, producer_of
from taso_gym.onnx_io import from_model, to_model
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight

NAMES = list(models.NETWORKS)
HEAVY = ("AlexNet", "InceptionV3", "NasNetALarge", "ResNeXt50", "ResNet50", "VGG19")
"""Networks with large weights at any size; what is tested without them is tested on others of their operators."""

OUTPUTS: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "BERT": ((1, 128, 768), (1, 768)),
    "GPT2": ((1, 128, 50257),),
    "NasRNN": ((1, 512),),
    "T5Encoder": ((1, 128, 512),),
    "TasoBERT": ((1, 64, 1024),) * 9,
    "TransformerTransducer": ((1, 128, 32, 29),),
    "YOLOv8n": ((1, 84, 8400),),
}
"""Shapes of the outputs by default; the others' is (1, 1000)."""

GIGA_MULTIPLY_ADDS: Mapping[str, float] = {
    # torchvision, ``*_Weights.meta["_ops"]``
    "DenseNet121": 2.834,
    "EfficientNetB0": 0.386,
    "InceptionV3": 5.713,
    "MobileNetV3": 0.217,
    "ResNeXt50": 4.230,
    "ResNet18": 1.814,
    "ResNet50": 4.089,
    "SqueezeNet1.1": 0.349,
    "VGG19": 19.632,
    "ViT-B16": 17.564,
    # NASNet's paper, tables 2 and 3; Ultralytics' table, 8.7 with multiplications and additions counted apart
    "NasNetA": 0.564,
    "NasNetALarge": 23.8,
    "YOLOv8n": 4.37,
}
"""Published 10^9 multiply-adds of convolutions and products; strides and paddings show in them, not in the weights."""


def multiply_adds(graph: Graph) -> int:
    """Count those of the convolutions and matrix products that depend on an input."""
    total = 0
    for _, node in graph.operators():
        if node.sig.op.key in ("Conv", "Gemm", "MatMul") and not node.sig.const:
            first, second, *_ = (t.shape for t in node.sig.inputs if isinstance(t, TensorType) and t.shape)
            terms = prod(second[1:]) if node.sig.op.key == "Conv" else first[-1]
            total += prod(node.sig.outputs[0].shape) * terms
    return total


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_published_count(name: str) -> None:
    assert models.parameters(models.build(name)) == models.NETWORKS[name].parameters


@pytest.mark.parametrize("name", GIGA_MULTIPLY_ADDS)
def test_work_is_the_published_one(name: str) -> None:
    assert multiply_adds(models.build(name)) / 1e9 == pytest.approx(GIGA_MULTIPLY_ADDS[name], rel=3e-3)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_have_the_published_shape(name: str) -> None:
    graph = models.build(name)
    types = [graph.type_of(value) for value in graph.outputs]
    assert [t.shape for t in types if isinstance(t, TensorType)] == list(OUTPUTS.get(name, ((1, 1000),)))


@pytest.mark.parametrize("name", NAMES)
def test_invariants_hold(name: str) -> None:
    check(models.build(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_leaf_and_node_reaches_an_output(name: str) -> None:
    graph = models.build(name)
    reached, waiting = set[int](), list(graph.outputs)
    while waiting:
        value = waiting.pop()
        if value in reached:
            continue
        reached.add(value)
        if value not in graph.leaves:
            waiting.extend(v for v in graph.nodes[producer_of(value)].inputs if v is not None)
    assert reached >= set(graph.leaves)
    assert {producer_of(v) for v in reached if v not in graph.leaves} == {i for i, _ in graph.operators()}


@pytest.mark.parametrize("name", NAMES)
def test_no_two_operators_compute_the_same(name: str) -> None:
    graph = small(name)
    seen = [(node.sig, node.inputs) for _, node in graph.operators()]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_leaves_are_distinct(name: str) -> None:
    names = [leaf.name for leaf in models.build(name).leaves.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", NAMES)
def test_two_builds_are_equal_and_another_seed_differs(name: str) -> None:
    first, second, other = small(name), small(name), small(name, seed=1)
    assert (first.canonical_digest(), first.info.digest) == (second.canonical_digest(), second.info.digest)
    assert first.canonical_digest() != other.canonical_digest()
    assert first.info.digest != other.info.digest


def test_digests_are_the_same_in_another_process() -> None:
    code = "from taso_gym import models\nfor n in models.NETWORKS: print(n, models.build(n).canonical_digest())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = "".join(f"{n} {models.build(n).canonical_digest()}\n" for n in NAMES)
    assert result.stdout == here


@pytest.mark.parametrize("name", NAMES)
def test_batch_is_the_first_dimension_of_every_output(name: str) -> None:
    graph = small(name, batch=3)
    types = [graph.type_of(value) for value in graph.outputs]
    assert {t.shape[0] for t in types if isinstance(t, TensorType) and t.shape} == {3}


@pytest.mark.parametrize("name", [n for n in NAMES if n != "NasNetALarge"])
def test_exported_model_runs_at_a_usual_scale_and_reads_its_inputs(name: str) -> None:
    graph = small(name)
    runner = session(graph)
    first, second = (runner.run(None, random_inputs(graph, seed)) for seed in (0, 1))
    for a, b in zip(first, second, strict=True):
        assert np.isfinite(a).all()
        assert 0.01 < a.std() < 1e3
        assert np.abs(a - b).max() > 0.01 * a.std()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in HEAVY])
def test_export_and_import_leave_the_operators_as_they_are(name: str) -> None:
    graph = small(name)
    again = from_model(to_model(graph))
    assert work_of(again) == work_of(graph)


def work_of(graph: Graph) -> Counter[object]:
    """Return the signatures of the operators that depend on an input; import folds the others."""
    return Counter(node.sig for _, node in graph.operators() if not node.sig.const)


@pytest.mark.parametrize("name", NAMES)
def test_no_trained_weight_is_a_constant(name: str) -> None:
    weights = [leaf.weight for leaf in small(name).leaves.values() if isinstance(leaf.weight, GeneratedWeight)]
    assert weights and all(w.std > 0 for w in weights)
    assert all(prod(w.shape) for w in weights)


def test_unknown_network_is_refused_with_the_choices() -> None:
    with pytest.raises(OptionError, match=r"ResNet18.*'ResNet-18'"):
        models.build("ResNet-18")


def test_unknown_argument_is_refused_with_the_choices() -> None:
    with pytest.raises(OptionError, match=r"batch, sequence.*'image'"):
        models.build("BERT", image=224)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "1"])
def test_argument_that_is_no_positive_number_is_refused(value: int) -> None:
    with pytest.raises(OptionError, match="whole number from 1"):
        models.build("ResNet18", batch=value)


def test_numbers_of_numpy_build_the_same() -> None:
    made = [models.build("SqueezeNet1.1", batch=batch) for batch in (2, np.int64(2))]
    assert made[0].info.digest == made[1].info.digest


@pytest.mark.parametrize(("name", "image"), [("InceptionV3", 32), ("AlexNet", 20), ("YOLOv8n", 100), ("ViT-B16", 8)])
def test_image_that_is_too_small_is_refused(name: str, image: int) -> None:
    with pytest.raises(OptionError, match=f"{name}.*{image}"):
        models.build(name, image=image)


@pytest.mark.parametrize(("name", "most"), [("BERT", 512), ("GPT2", 1024)])
def test_sequence_that_is_longer_than_the_positions_is_refused(name: str, most: int) -> None:
    assert len(models.build(name, layers=1, sequence=most)) > 30
    with pytest.raises(OptionError, match=f"at most {most} positions, found {most + 1}"):
        models.build(name, layers=1, sequence=most + 1)


@pytest.mark.parametrize("sequence", [10**18, 10**30])
@pytest.mark.parametrize("name", ["T5Encoder", "TransformerTransducer"])
def test_sequence_that_no_array_holds_is_refused(name: str, sequence: int) -> None:
    with pytest.raises(OptionError, match=f"sizes that {name} can be built with, found .*{sequence}"):
        models.build(name, sequence=sequence)


def test_sequence_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(OptionError, match=r"T5Encoder.*1000000.*Unable to allocate 7.28 TiB"):
        models.build("T5Encoder", sequence=10**6)


def test_hidden_size_that_the_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(OptionError, match="multiple of 12 heads, found 100"):
        models.build("BERT", hidden=100)
