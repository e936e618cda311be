"""Signatures are interned: one for each meaning."""

import pickle

import numpy as np
import pytest
from model_texts import graph_of, parsed, run

from taso_gym.onnx_io import to_model
from taso_gym.ops import OPERATORS
from taso_gym.signature import signature
from taso_gym.tensor import TensorType


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_zeros_of_both_signs_are_two_attributes(first):
    x = TensorType("float", (2, 3))
    one, other = (signature(OPERATORS["", "LeakyRelu"], {"alpha": alpha}, [x]) for alpha in (first, -first))
    assert one is not other and one.hash != other.hash
    assert [str(sig.attr("alpha")) for sig in (one, other)] == [str(first), str(-first)]
    assert pickle.loads(pickle.dumps(one)) is one and pickle.loads(pickle.dumps(other)) is other  # noqa: S301


def test_import_and_save_keep_the_signs_of_zeros():
    text = "g (float[2] x) => (float[2] y, float[2] z) { y = LeakyRelu<alpha=0.0>(x)\n z = LeakyRelu<alpha=-0.0>(x) }"
    x = np.array([-1, 1], np.float32)
    before, after = run(parsed(text), x=x), run(to_model(graph_of(text)), x=x)
    for a, b in zip(before, after, strict=True):
        assert np.array_equal(np.signbit(a), np.signbit(b))
