"""What goes into a last Softmax is compared."""

import numpy as np
import pytest
from model_texts import graph_of, op_names, parsed

from taso_gym.equivalence import validate
from taso_gym.equivalence.logits import logits_of
from taso_gym.graph import check

F32 = np.float32


SATURATED = "g (float[4, 3] x) => (y, r) { z = MatMul(x, w)  y = {softmax} <axis = 1> (z)  r = Relu(x) }"


@pytest.mark.parametrize("opset", [11, 20])
@pytest.mark.parametrize(("wrong", "ok"), [(1.0, True), (1.01, False)])
def test_logits_before_a_last_softmax_are_compared(opset: int, wrong: float, ok: bool) -> None:
    text = SATURATED.replace("{softmax}", "Softmax")
    weight = np.diag([1e4, 2e4, 3e4]).astype(F32)
    other = weight * F32(wrong)
    report = validate(parsed(text, opset=opset, w=weight), parsed(text, opset=opset, w=other))
    assert report.ok is ok
    assert [o.name for o in report.outputs] == ["y", "r", "logits of y"]
    assert report.outputs[0].ok, "the probabilities alone show nothing"


def test_a_given_tolerance_is_that_of_logits_too() -> None:
    text = SATURATED.replace("{softmax}", "Softmax")
    models = [parsed(text, w=np.diag([1e4, 2e4, factor * 3e4]).astype(F32)) for factor in (1, 1.01)]
    assert not validate(*models).ok
    assert validate(*models, tolerance=0.1).ok


def test_a_constant_added_to_all_logits_is_no_difference() -> None:
    text = "g (float[4, 3] x) => (y) { z = Add(x, c)  y = Softmax(z) }"
    report = validate(parsed(text, c=F32(0)), parsed(text, c=F32(1)))
    assert report.ok
    assert len(report.outputs) == 2


def test_a_softmax_in_one_model_only_has_no_logits() -> None:
    two = parsed(SATURATED.replace("{softmax}", "Softmax"), w=np.eye(3, dtype=F32))
    one = parsed(SATURATED.replace("{softmax} <axis = 1> (z)", "Identity(z)"), w=np.eye(3, dtype=F32))
    assert [o.name for o in validate(two, one).outputs] == ["y", "r"]


def test_a_softmax_that_is_read_inside_stays() -> None:
    graph = graph_of("g (float[4, 3] x) => (y, z) { y = Softmax(x)  z = Relu(y) }")
    logits = logits_of(graph, graph)
    assert logits and logits.outputs == {"y"}
    check(logits.first)
    assert sorted(op_names(logits.first)) == ["LogSoftmax", "Relu", "Softmax"]
    assert validate(logits.first, logits.second).ok


def test_a_softmax_that_a_subgraph_reads_stays() -> None:
    """By its name, which LogSoftmax in its place would need for the output."""
    text = """g (float[2, 3] x, bool c) => (p, y) {
        p = Softmax(x)
        y = If(c) <then_branch = t () => (float[2, 3] a) { a = Exp(p) },
                   else_branch = e () => (float[2, 3] b) { b = Neg(p) }>
    }"""
    graph = graph_of(text)
    assert logits_of(graph, graph) is None
    assert validate(parsed(text), parsed(text)).ok
