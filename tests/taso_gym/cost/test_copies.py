"""A node several times in one model: each copy is run, and the model gives what it gave."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from taso_gym.cost.copies import copied
from taso_gym.cost.runtime import Runtime

pytest.importorskip("onnxruntime")


def halves() -> bytes:
    """A node with two outputs of which one is left out, and an operand twice."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [n]) for name, n in (("x", 4), ("y", 2)))
    node = helper.make_node("Split", ["x"], ["y", "z"], "split", num_outputs=2)
    graph = helper.make_graph([node], "halves", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


def test_all_copies_are_executed(tmp_path: Path) -> None:
    runtime, value = Runtime("cpu", 1), np.arange(4, dtype=np.float32)
    session = runtime.open(copied(halves(), 3), optimise=False, profile=tmp_path / "trace")
    [found] = session.run(None, {"x": value})
    np.testing.assert_array_equal(found, value[:2])
    events = json.loads(Path(session.end_profiling()).read_text())
    assert sum(event["name"].endswith("kernel_time") for event in events) == 4


def test_names_stay_apart() -> None:
    content = copied(halves(), 2).content
    assert isinstance(content, bytes)
    nodes = ModelProto.FromString(content).graph.node
    outputs = [name for node in nodes for name in node.output]
    assert len(set(outputs)) == len(outputs) == 6 and {tuple(node.input) for node in nodes} == {("x",)}
