"""Inputs are drawn for what they are."""

import numpy as np
import pytest
from model_texts import graph_of

from taso_gym.equivalence.draw import ROUNDS, InputKind, bind_sizes, draw, draw_defaults, input_kinds
from taso_gym.errors import EquivalenceError
from taso_gym.onnx_io.types import UNKNOWN
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

F32 = np.float32


def test_inputs_are_drawn_for_what_they_are() -> None:
    text = """g (int64[N, S] ids, int64[N, S] mask, int64[N] unbounded, bool[N] flag, float[N, 3, H, H] image,
               string[N] s) => (y, z, u, f, i, t) {
        flat = Reshape(ids, minus)
        y = Gather(table, flat)
        z = Cast <to = 1>(mask)
        u = Neg(unbounded)
        f = Not(flag)
        i = Relu(image)
        t = Identity(s)
    }"""
    graph = graph_of(text, table=np.ones((7, 2), F32), minus=np.array([-1]))
    kinds = {k.name: k for k in input_kinds(graph)}
    assert (kinds["ids"].bound, kinds["mask"].is_mask, kinds["unbounded"].bound) == (7, True, None)
    sizes = bind_sizes([k.type for k in kinds.values()], ROUNDS[0][1], {"N": 20, "S": 40})
    assert sizes == {"N": 20, "S": 40, "H": 96}
    rng = np.random.default_rng(0)
    drawn = {name: draw(kind, sizes, rng, binary=False) for name, kind in kinds.items()}
    assert set(drawn["ids"].reshape(-1)) == set(range(7))
    assert set(drawn["mask"].reshape(-1)) == {0, 1}
    assert drawn["unbounded"].min() < 0
    assert drawn["flag"].dtype == bool
    assert drawn["image"].shape == (20, 3, 96, 96)
    assert isinstance(drawn["s"][0], str)


def test_a_symbol_that_is_called_a_sum_is_one() -> None:
    types = [TensorType("float", (symbol("past"), symbol("past + 1"), symbol("new"), symbol("past + new")))]
    sizes = bind_sizes(list(types), ROUNDS[0][0], {"past": 3, "new": 4})
    assert sizes == {"past": 3, "past + 1": 4, "new": 4, "past + new": 7}


def test_an_input_of_unknown_kind() -> None:
    with pytest.raises(EquivalenceError, match="tensor or sequence as input 'x', found an unknown type"):
        draw(InputKind("x", UNKNOWN), {}, np.random.default_rng(0), binary=False)


def test_defaults_are_overridden_by_parts_of_themselves() -> None:
    """Integers, often axes and shapes, are left as they are."""
    text = """g (float[2] x, float[2] w, float[2] z, int64[1] axes) => (y) {
        a = Mul(x, w)  b = Add(a, z)  y = ReduceSum(b, axes)
    }"""
    graph = graph_of(text, w=F32([-8, 4]), z=np.zeros(2, F32), axes=np.array([0]))
    found = draw_defaults(graph, np.random.default_rng(0))
    assert found.keys() == {"w", "z"} and found["w"].dtype == F32
    assert -8 <= found["w"][0] <= -4 and 2 <= found["w"][1] <= 4
    assert (found["z"] >= 0.5).all()
