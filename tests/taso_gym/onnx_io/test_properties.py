"""For any graph: loaded and saved, it has the same digest and gives the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from model_texts import graph_of, parsed, run

from taso_gym.onnx_io import to_model

UNARY = ("Relu", "Neg", "Identity", "Dropout", "Abs", "Transpose", "Softmax", "Elu <alpha: float = 0.5>")
BINARY = ("Add", "Mul", "Max", "Sub", "my.Pair")
PAIR = '<domain: "my", opset_import: ["" : 20]> Pair (a, b) => (c) { d = Neg(b)\n c = Add(a, d) }'


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a graph over square matrices, with constants and subgraphs."""
    names = ["x", "w", "v"]
    nodes: list[str] = []
    for i in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("unary", "binary", "if", "reshape")))
        a, b = (draw(st.sampled_from(names)) for _ in range(2))
        if kind == "unary":
            op = draw(st.sampled_from(UNARY))
            op, _, attributes = op.partition(" ")
            nodes.append(f"n{i} = {op} {attributes}({a})")
        elif kind == "binary":
            nodes.append(f"n{i} = {draw(st.sampled_from(BINARY))}({a}, {b})")
        elif kind == "if":
            branches = f"then_branch = t () => (float[3, 3] p{i}) {{ p{i} = Add({a}, {b}) }}, "
            branches += f"else_branch = e () => (float[3, 3] q{i}) {{ q{i} = Neg({a}) }}"
            nodes.append(f"n{i} = If (c) <{branches}>")
        else:
            nodes.append(f"s{i} = Shape({a})\n n{i} = Reshape({b}, s{i})")
        names.append(f"n{i}")
    outputs = draw(st.lists(st.sampled_from(names[3:]), min_size=1, max_size=3, unique=True))
    listed = ", ".join(f"float[3, 3] {name}" for name in outputs)
    body = "\n ".join(nodes)
    return f"g (float[3, 3] x, bool c) => ({listed}) {{ {body} }}"


@given(texts())
def test_any_graph_survives(text: str) -> None:
    weights = {"w": np.arange(9, dtype=np.float32).reshape(3, 3), "v": np.eye(3, dtype=np.float32)}
    graph = graph_of(text, more=PAIR, **weights)
    feeds = {"x": np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3), "c": np.array(True)}
    saved = to_model(graph)
    for found, expected in zip(run(saved, **feeds), run(parsed(text, more=PAIR, **weights), **feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
