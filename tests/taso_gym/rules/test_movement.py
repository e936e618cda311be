"""Transposes that move the last axis and others: what is made of them, and that onnxruntime leaves it so."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from model_texts import graph_of, op_names

from taso_gym.graph import Graph
from taso_gym.onnx_io import save
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState, check


def rewritten(shape: list[int], perm: list[int], rule: str) -> Graph | None:
    """Return what a rule makes of a Transpose, or None where it doesn't apply."""
    text = f"g (float{shape} x) => (float{[shape[i] for i in perm]} y) {{ y = Transpose<perm = {perm}>(x) }}"
    rules = RuleSet.load()
    state = RewriteState(graph_of(text), rules)
    matches = state.matches[[r.name for r in rules].index(rule)]
    if not matches:
        return None
    child = state.apply(matches[0])
    check(child)
    return child.graph


@pytest.mark.parametrize(
    ("shape", "perm", "merged"),
    [
        ([1, 196, 3, 4, 32], [2, 0, 3, 4, 1], (1, 0)),
        ([1, 128, 12, 64], [0, 2, 3, 1], (1, 0)),
        ([2, 1, 3, 4, 5], [3, 4, 1, 0, 2], (1, 0)),
        ([2, 3, 1, 4], [3, 2, 1, 0], (2, 1, 0)),
    ],
)
def test_axes_that_move_together_are_one(shape: list[int], perm: list[int], merged: tuple[int, ...]) -> None:
    graph = rewritten(shape, perm, "transpose-merged")
    assert graph is not None and op_names(graph) == ["Reshape", "Transpose", "Reshape"]
    assert [dict(node.sig.attrs)["perm"] for _, node in graph.operators() if node.sig.op.key == "Transpose"] == [merged]


@pytest.mark.parametrize(
    ("rule", "shape", "perm"),
    [
        ("transpose-merged", [2, 3, 4], [0, 2, 1]),
        ("transpose-merged", [1, 3, 4, 5], [0, 2, 1, 3]),  # whole rows are copied
        ("transpose-last-axis-first", [2, 3, 4], [0, 2, 1]),
        ("transpose-last-axis-first", [2, 3, 4, 5], [0, 3, 1, 2]),  # one axis moves: the last one to the front
        ("transpose-last-axis-first", [2, 3, 4, 5], [0, 2, 3, 1]),  # and another one to the end
    ],
)
def test_what_onnxruntime_does_by_blocks_stays(rule: str, shape: list[int], perm: list[int]) -> None:
    assert rewritten(shape, perm, rule) is None


def test_onnxruntime_moves_the_last_axis_by_itself(tmp_path: Path) -> None:
    """It joins two Transposes, also through a Reshape; through a Flatten it doesn't."""
    graph = rewritten([4, 6, 5, 7], [1, 3, 0, 2], "transpose-last-axis-first")
    assert graph is not None
    save(graph, tmp_path / "steps.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "executed.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "steps.onnx", options, providers=["CPUExecutionProvider"])
    executed = [node.op_type for node in onnx.load(tmp_path / "executed.onnx").graph.node]
    assert executed.count("Transpose") == 2
    x = np.arange(840, dtype=np.float32).reshape(4, 6, 5, 7)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x.transpose(1, 3, 0, 2))
