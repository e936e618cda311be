"""Operators that stay opaque, of names that the table has too, beside what onnxruntime keeps in blocks."""

import numpy as np
import pytest
from model_texts import graph_of, op_names

from taso_gym.cost.dims import bind_dims
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.env import TasoGraphEnv

W = {"w": np.ones((16, 16, 3, 3), np.float32)}
OPEN = {
    "[Conv]": 'a = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w) y = Relu(a)',
    "[Concat]": "a = Slice(x, z, d) b = Relu(a) y = Concat <axis = 1> (b, x)",
    "[Resize]": 'a = Relu(x) y = Resize <mode = "linear"> (a, r, t)',
    "[MaxPool]": 'a = Relu(x) y = MaxPool <auto_pad = "SAME_UPPER", strides = [2, 2], kernel_shape = [3, 3]> (a)',
}


@pytest.mark.parametrize("name", OPEN)
def test_they_cost_what_they_take_and_break_nothing(name: str, tmp_path) -> None:
    weights = W | {"t": np.float32([1, 1, 2, 2]), "r": np.zeros(0, np.float32), "z": np.zeros(4, np.int64)}
    text = f"g (float[n, 16, h, k] x, int64[4] d) => (y) {{ {OPEN[name]} }}"
    graph = graph_of(text, opset=11, **{k: v for k, v in weights.items() if k in OPEN[name].partition("(")[2]})
    assert name in op_names(graph)
    dims = {"n": 1, "h": 8, "k": 8}
    cost = OnnxRuntimeCost("cpu", bind_dims(graph, dims), cache=tmp_path / "cache.sqlite", start=graph)
    assert cost.graph(graph).time_ps > 0
    TasoGraphEnv(graph, cost=cost, dims=dims).reset(seed=0)
