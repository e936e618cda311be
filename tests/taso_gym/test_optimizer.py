from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import taso_gym
from taso_gym import cost, models
from taso_gym.errors import OptionError
from taso_gym.search import Budget

STEPS = Budget(steps=2000)


@pytest.fixture(scope="module")
def graph() -> taso_gym.Graph:
    return models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)


@pytest.fixture
def open_batch(tmp_path):
    """The path of Relu(x) + Relu(x) with a dynamic batch."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 64]) for n in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "r"], ["y"])]
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), ir_version=8), path)
    return path


def test_result_is_cheaper_and_equal(graph):
    result = taso_gym.optimize(graph, "greedy", budget=STEPS)
    assert result.after.time_ps < result.before.time_ps
    assert result.improvement_percent > 0
    assert result.validate().ok


def test_changes_of_the_applied_rules_sum_up_to_the_improvement(graph):
    result = taso_gym.optimize(graph, "greedy", budget=STEPS)
    saved_ms = result.before.time_ms - result.after.time_ms
    assert sum(a.change_ms for a in result.applied) == pytest.approx(-saved_ms)
    assert sum(result.rule_counts().values()) == len(result.applied)


def test_a_saved_result_equals_the_original(graph, tmp_path):
    taso_gym.optimize(graph, "greedy", budget=STEPS).save(tmp_path / "fast.onnx")
    assert taso_gym.validate(graph, tmp_path / "fast.onnx").ok


def test_a_cost_model_stands_for_its_name(graph):
    by_name, itself = (
        taso_gym.optimize(graph, "greedy", cost=c, budget=STEPS) for c in ("roofline", cost.load("roofline"))
    )
    assert itself.after == by_name.after


def test_dims_are_for_costing_only(open_batch, tmp_path):
    small, large = (taso_gym.optimize(open_batch, "greedy", dims={"batch": n}, budget=STEPS) for n in (1, 1000))
    assert large.before.time_ps > small.before.time_ps
    large.save(tmp_path / "out.onnx")
    (x,) = onnx.load(tmp_path / "out.onnx").graph.input
    assert x.type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_model_in_memory_is_optimised_as_its_file(open_batch):
    model = onnx.load(open_batch)
    of_file, in_memory = (taso_gym.optimize(m, "greedy", budget=STEPS) for m in (open_batch, model))
    assert in_memory.graph == of_file.graph and in_memory.after == of_file.after


def test_unknown_dim_is_refused(open_batch):
    with pytest.raises(OptionError, match="expected a dimension of the model's inputs"):
        taso_gym.optimize(open_batch, dims={"bach": 4})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 5}, "expected the path of a model or a ModelProto, found 5"),
        ({"model": bytes(10**6)}, r"expected the path of a model or a ModelProto, found .{,200}$"),
        ({"search": 5}, "expected a name as search, found 5"),
        ({"budget": "x"}, "expected seconds or a Budget as budget, found 'x'"),
        ({"budget": None}, "expected seconds or a Budget as budget, found None"),
        ({"budget": (1, 2)}, r"expected a Budget, found \(1, 2\)"),
        ({"budget": Budget("5")}, "expected a budget of 0 or more .*seconds='5'"),
        ({"seed": "x"}, "expected a seed of 0 or more, found 'x'"),
        ({"objective": 5}, "expected a sum of quantities or an Objective as objective, found 5"),
        ({"checkpoint": 5}, "expected a path as checkpoint, found 5"),
        ({"portable": "false"}, "expected True or False as portable, found 'false'"),
        ({"finalists": 0.5}, r"expected True or False as finalists, found 0\.5"),
        ({"dims": {"batch": 1.5}}, "expected size of 'batch' to be a whole number from 0 on, found 1.5"),
    ],
)
def test_an_argument_of_another_type_is_named(graph, arguments, message):
    with pytest.raises(OptionError, match=message):
        taso_gym.optimize(**{"model": graph, **arguments})
