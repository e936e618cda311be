"""Quantised models: what quantises is carried along whole, and no rule moves a value across it."""

import random
from collections import Counter

import numpy as np
import pytest
from model_texts import parsed
from onnx import ModelProto

from taso_gym.equivalence import validate
from taso_gym.graph import Graph, check
from taso_gym.onnx_io import from_model, to_model
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import OpaqueOperator

QUANTISING = (
    "QuantizeLinear",
    "DequantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "DynamicQuantizeLinear",
    "MatMulInteger",
)
QDQ = """g (float[1, 4, 8, 8] x) => (y, v) {
    t = Transpose <perm = [0, 2, 3, 1]>(x)
    q = QuantizeLinear(t, scale, zero)
    d = DequantizeLinear(q, scale, zero)
    u = Transpose <perm = [0, 3, 1, 2]>(d)
    a = Relu(u)
    b = Relu(a)
    w = DequantizeLinear(kernel, scale, zero)
    c = Conv <pads = [1, 1, 1, 1]>(b, w)
    e = QuantizeLinear(c, large, zero)
    f = QLinearConv <pads = [1, 1, 1, 1]>(e, large, zero, kernel, scale, zero, large, zero)
    h = DequantizeLinear(f, large, zero)
    i = Neg(h)
    j = Neg(i)
    y = Add(j, j)
    m, n, o = DynamicQuantizeLinear(x)
    p = Cast <to = 6>(m)
    v = Cast <to = 1>(p)
}"""


def model() -> ModelProto:
    kernel = np.random.default_rng(0).integers(-9, 9, (4, 4, 3, 3), np.int8)
    return parsed(QDQ, kernel=kernel, scale=np.float32(0.03), large=np.float32(0.2), zero=np.int8(0))


def quantising(graph: Graph) -> Counter[tuple[str, tuple[object, ...]]]:
    """Count what quantises, with the types that it works on."""
    nodes = (node for _, node in graph.operators() if node.sig.op.name in QUANTISING)
    return Counter((node.sig.op.name, node.sig.inputs) for node in nodes)


def test_what_quantises_is_carried_along() -> None:
    graph = from_model(model())
    assert sum(quantising(graph).values()) == 7
    assert all(isinstance(n.sig.op, OpaqueOperator) for _, n in graph.operators() if n.sig.op.name in QUANTISING)
    assert validate(model(), graph).ok


@pytest.mark.parametrize("seed", range(3))
def test_nothing_moves_across_it(seed: int) -> None:
    graph = from_model(model())
    state, rng = RewriteState(graph, RuleSet.load("default")), random.Random(seed)
    for _ in range(50):
        state = state.apply(rng.choice([match for matches in state.matches for match in matches]))
        assert quantising(state.graph) == quantising(graph)
    check(state.graph)
    assert validate(model(), to_model(state.graph)).ok


def test_no_rule_names_an_operator_that_quantises() -> None:
    rules = RuleSet.load("default", numerics="fast")
    named = {name for rule in rules for name in QUANTISING if name in str(rule)}
    assert not named
