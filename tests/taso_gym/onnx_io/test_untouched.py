"""What rewriting leaves alone: random and training nodes, what can be overridden, captured values, open dimensions."""

import random
from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest
from model_texts import parsed, run

from taso_gym.graph import Graph, check
from taso_gym.onnx_io import from_model, to_model
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import OpaqueOperator

STEPS = 25
W = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


@cache
def rules() -> RuleSet:
    return RuleSet.load("default", numerics="fast")


def walked(model: onnx.ModelProto, seed: int) -> Graph:
    """Apply random legal substitutions; there is one at least."""
    start = from_model(model)
    state, rng = RewriteState(start, rules()), random.Random(seed)
    for _ in range(STEPS):
        if legal := [match for matches in state.matches for match in matches]:
            state = state.apply(rng.choice(legal))
    assert state.graph is not start
    check(state.graph)
    return state.graph


def impure(graph: Graph) -> Counter[str]:
    """Count the operators that don't always compute the same."""
    ops = (node.sig.op for _, node in graph.operators())
    return Counter(op.name for op in ops if isinstance(op, OpaqueOperator) and not op.pure)


@pytest.mark.parametrize("seed", range(3))
def test_random_and_training_nodes(seed: int) -> None:
    """Two draws of one distribution stay two, one of constants isn't computed, and one that nothing uses stays."""
    text = """g (float[4, 4] x) => (float[4, 4] y) {
        a = RandomNormalLike(x)  b = RandomNormalLike(x)  c = RandomUniformLike(w)  unused = Bernoulli(x)
        d = Dropout(x, half, yes)  e = Dropout(x, half, yes)
        n, mean, var = BatchNormalization <training_mode = 1>(x, v, v, v, v)
        p = MatMul(x, w)  q = MatMul(p, w)
        y = Sum(a, b, c, d, e, n, q)
    }"""
    model = parsed(text, w=W, v=np.ones(4, np.float32), half=np.float32(0.5), yes=np.array(True))
    expected = {
        "RandomNormalLike": 2, "RandomUniformLike": 1, "Bernoulli": 1, "Dropout": 2, "BatchNormalization": 1,
    }  # fmt: skip
    graph = walked(model, seed)
    assert impure(graph) == expected
    found = Counter(node.op_type for node in to_model(graph).graph.node)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("seed", range(3))
def test_an_initializer_that_can_be_overridden_is_never_taken_for_its_value(seed: int) -> None:
    """Its default 1 would make the product nothing, and the matrix would be folded into the next."""
    text = """g (float[4, 4] x, float one, float[4, 4] u) => (float[4, 4] y) {
        a = Mul(x, one)  v = Transpose(u)  b = MatMul(a, v)  c = MatMul(b, w)  y = Relu(c)
    }"""
    model = parsed(text, one=np.float32(1), u=W, w=W)
    saved = to_model(walked(model, seed))
    feeds = {"x": W + 1}
    for given in ({}, {"one": np.array(3, np.float32)}, {"u": W * 2}):
        (before,), (after,) = run(model, **feeds, **given), run(saved, **feeds, **given)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize("seed", range(3))
def test_values_that_subgraphs_read_may_be_replaced(seed: int) -> None:
    """A captured value keeps its name, whatever computes it now."""
    text = """g (float[4, 4] x, bool c) => (float[4, 4] y) {
        a = MatMul(x, w)  b = MatMul(a, w)  s = Add(b, b)
        y = If (c) <then_branch = t () => (float[4, 4] p) { p = Add(b, s) },
                    else_branch = e () => (float[4, 4] q) { q = Neg(a) }>
    }"""
    model = parsed(text, w=W)
    saved = to_model(walked(model, seed))
    for condition in (True, False):
        feeds = {"x": W + 1, "c": np.array(condition)}
        (before,), (after,) = run(model, **feeds), run(saved, **feeds)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize("seed", range(3))
def test_open_dimensions_stay_open_under_rewriting(seed: int) -> None:
    text = """g (float[N, T, 4] x) => (float[N, T, 4] y) {
        a = MatMul(x, w)  b = MatMul(x, v)  c = Relu(a)  d = Relu(b)  e = Mul(c, d)
        f = Transpose <perm = [0, 2, 1]>(e)  g = Transpose <perm = [0, 2, 1]>(f)  y = Add(g, x)
    }"""
    model = parsed(text, w=W, v=W + 1)
    saved = to_model(walked(model, seed))
    assert (saved.graph.input, saved.graph.output) == (model.graph.input, model.graph.output)
    for shape in ((1, 1, 4), (2, 3, 4), (5, 17, 4)):
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        (before,), (after,) = run(model, x=x), run(saved, x=x)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * np.abs(before).max())


def test_what_holds_only_for_one_size_is_not_applied() -> None:
    """A Reshape to [2, 6] does nothing to float[2, 6], but it does to float[N, 6]."""
    counts = []
    for first in ("2", "N"):
        text = f"g (float[{first}, 6] x) => (y) {{ a = Reshape(x, shape)  y = Relu(a) }}"
        graph = from_model(parsed(text, shape=np.array([2, 6])))
        state = RewriteState(graph, RuleSet.load("default"))
        names = [rule.name for rule in RuleSet.load("default")]
        counts.append(sum(len(m) for name, m in zip(names, state.matches, strict=True) if name == "reshape-identity"))
    assert counts == [1, 0]
