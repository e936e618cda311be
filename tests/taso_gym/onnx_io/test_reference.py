"""Operators that the table doesn't know, run in ONNX's reference."""

import numpy as np
import pytest
from model_texts import graph_of, parsed

from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.equivalence import validate

LOOP = """g (float[2, 3] {outer}, float[2, 3] z) => (y) {{
    y = Loop(n, c, z) <body = b (int64 i, bool go, float[2, 3] sum) => (bool on, float[2, 3] more) {{
        on = Identity(go)
        more = Add(sum, {outer})
    }}>
}}"""


@pytest.mark.parametrize("outer", ["x", "input2", "value0", "value2", "value3"])
def test_what_a_subgraph_reads_is_no_operand(outer: str, tmp_path: object) -> None:
    """Whatever it is called; operands and results have names of their own while they are computed."""
    model = parsed(LOOP.format(outer=outer), n=np.int64(3), c=np.bool_(True))
    report = validate(model, model)
    assert report.basis == "float64 reference" and max(report.outputs[0].reference) < 1e-6
    graph = graph_of(LOOP.format(outer=outer), n=np.int64(3), c=np.bool_(True))
    (sig,) = (node.sig for _, node in graph.operators())
    assert OnnxRuntimeCost(cache=f"{tmp_path}/cache").runs_alone(sig)


def test_a_subgraph_may_mix_its_own_weights_with_results_in_float64() -> None:
    branch = "{0} () => (float[2] {0}2) {{ {0}1 = Constant<value = float[2] {{1.5, 2.5}}>() {0}2 = {1}(r, {0}1) }}"
    text = f"""g (float[2] x, bool c) => (y) {{
        r = Relu(x)
        y = If(c) <then_branch = {branch.format("a", "Add")}, else_branch = {branch.format("b", "Mul")}>
    }}"""
    assert validate(parsed(text), parsed(text)).basis == "float64 reference"
