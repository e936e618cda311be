import inspect
from typing import Any

import numpy as np
import pytest

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import MICROSOFT, OPERATORS
from taso_gym.ops.operator import kind_of, shortest
from taso_gym.signature import signature
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

X = TensorType("float", (2, 3))
N = symbol("N")


def sig(name: str, types: list[TensorType], **attrs: object):
    return signature(OPERATORS["", name], attrs, types)


def test_a_float_of_a_file_is_the_number_that_its_author_wrote() -> None:
    assert shortest(float(np.float32(1e-5))) == 1e-5
    assert sig("LeakyRelu", [X], alpha=float(np.float32(0.1))) is sig("LeakyRelu", [X], alpha=0.1)


def test_an_integer_where_a_float_belongs_is_one() -> None:
    assert repr(sig("Elu", [X], alpha=2).attr("alpha")) == "2.0"


@pytest.mark.parametrize(("key", "name"), [(key, name) for key, op in OPERATORS.items() for name in op.defaults])
def test_each_attribute_of_an_operator_has_a_kind(key: tuple[str, str], name: str) -> None:
    op = OPERATORS[key]
    parameters = inspect.signature(op.body).parameters
    sample = {"number": 1, "string": "", "list": ()}
    kinds = {n: kind_of(parameters[n].annotation).removeprefix("whole ") for n in op.defaults}
    given = {n: sample[kind.partition(" of ")[0]] for n, kind in kinds.items()}
    with pytest.raises(TypeInferenceError, match=rf"expected {name} to be a [a-z ]+, found b'bytes'"):
        op.normalize({**given, name: b"bytes"}, [X] * op.min_inputs)


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        ("Concat", {}, "expected the attribute 'axis' of Concat, found none"),
        ("Softmax", {"axis": "last"}, "expected axis to be a whole number, found 'last'"),
        ("Softmax", {"axis": 2}, "expected an axis in"),
        ("BatchNormalization", {"training_mode": 1}, "expected BatchNormalization for inference"),
        ("Gelu", {"approximate": "sigmoid"}, "approximate"),
        ("Transpose", {"perm": 3}, "expected perm to be a list of whole numbers, found 3"),
        ("Transpose", {"perm": (0, "one")}, "expected perm to be a list of whole numbers, found"),
        ("Transpose", {"perm": (0.5, 1)}, "expected perm to be a list of whole numbers, found"),
        ("Concat", {"axis": 1.5}, "expected axis to be a whole number, found 1.5"),
        ("Reshape", {"shape": N}, "expected shape to be a list of whole numbers, found N"),
        ("Clip", {"min": "a"}, "expected min to be a number, found 'a'"),
        ("Clip", {"max": (1.0,)}, "expected max to be a number, found"),
    ],
)
def test_wrong_attributes_are_named(name: str, attrs: dict[str, object], message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        sig(name, [X, *[TensorType("float", (3,))] * (OPERATORS["", name].min_inputs - 1)], **attrs)


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("Add", [(2, 3), (2,)], {}),
        ("Add", [(N,), (2,)], {}),
        ("MatMul", [(2, 3), (2, 3)], {}),
        ("MatMul", [(), (3,)], {}),
        ("Gemm", [(2, 3), (3, 4), (3,)], {}),
        ("Conv", [(1, 4, 5, 5), (2, 3, 3, 3)], {}),
        ("Conv", [(1, 4, 5, 5), (3, 2, 3, 3)], {"group": 2}),
        ("Conv", [(1, 4, 5, 5), (2, 4, 6, 3)], {}),
        ("MaxPool", [(1, 2, 5, 5)], {"kernel_shape": [3, 3], "pads": [3, 0, 0, 0]}),
        ("Concat", [(2, 3), (3, 3)], {"axis": 1}),
        ("Split", [(2, 3)], {"axis": 1, "split": [1, 1]}),
        ("Reshape", [(2, 3)], {"shape": [4, -1]}),
        ("Transpose", [(2, 3)], {"perm": [0, 0]}),
        ("Squeeze", [(2, 3)], {"axes": [0]}),
        ("Expand", [(2, 3)], {"shape": [4, 3]}),
        ("PRelu", [(3,), (2, 3)], {}),
        ("Einsum", [(2, 3), (2, 3)], {"equation": "ij,jk->ik"}),
        ("LayerNormalization", [(2, 3), (2,)], {}),
        ("GroupNormalization", [(2, 3, 4), (3,), (3,)], {"num_groups": 2}),
        ("Slice", [(N, 3)], {"starts": [1], "ends": [5]}),
        ("Attention", [(2, 4, 3, 6), (2, 3, 5, 6), (2, 3, 5, 6)], {}),
        ("Attention", [(2, 4, 3, 6), (2, 4, 5, 6), (2, 4, 5, 6), (3, 1)], {}),
        ("Einsum", [(2, 3)], {"equation": "...i->i"}),
        ("Split", [(2, 3)], {"axis": 1, "num_outputs": 10**9}),
        ("Elu", [(2, 3)], {"alpha": 10**400}),
    ],
)
def test_operands_that_dont_fit_are_refused(name: str, shapes: list[tuple], attrs: dict[str, object]) -> None:
    with pytest.raises(TypeInferenceError, match="expected"):
        sig(name, [TensorType("float", s) for s in shapes], **attrs)


@pytest.mark.parametrize(("queries", "fits"), [(3, False), (5, True), (7, True), (N, False)])
def test_fewer_queries_than_keys_are_no_triangle_in_onnxruntime(queries: Any, fits: bool) -> None:
    types = [TensorType("float", (2, tokens, 8)) for tokens in (queries, 5, 5)]
    attrs = {"num_heads": 2, "unidirectional": 1}
    if fits:
        assert signature(OPERATORS[MICROSOFT, "MultiHeadAttention"], attrs, types).outputs
    else:
        with pytest.raises(TypeInferenceError, match="expected as many queries as keys"):
            signature(OPERATORS[MICROSOFT, "MultiHeadAttention"], attrs, types)


def test_mixed_element_types_are_refused() -> None:
    with pytest.raises(TypeInferenceError, match="one element type"):
        sig("Add", [X, TensorType("double", (2, 3))])


def test_attributes_that_mean_the_same_are_the_same() -> None:
    assert sig("Transpose", [X]) is sig("Transpose", [X], perm=[1, 0])
    assert sig("Softmax", [X]) is sig("Softmax", [X], axis=1)
    assert sig("Slice", [X], starts=[0], ends=[2], axes=[0]) is sig("Slice", [X], starts=[0], ends=[9], axes=[-1])
    assert sig("Gemm", [X, TensorType("float", (3, 4))], beta=0.5) is sig("Gemm", [X, TensorType("float", (3, 4))])
    matrices = [TensorType("float", (2, 3)), TensorType("float", (3, 4))]
    assert sig("Einsum", matrices, equation="xy,yz->xz") is sig("Einsum", matrices, equation="ij, jk")


def test_automatic_pads_are_written_out() -> None:
    x, w = TensorType("float", (N, 3, N, 9)), TensorType("float", (4, 3, 3, 4))
    assert sig("Conv", [x, w], auto_pad="SAME_UPPER").attr("pads") == (1, 1, 1, 2)
    assert sig("Conv", [x, w], auto_pad="SAME_LOWER").attr("pads") == (1, 2, 1, 1)
    with pytest.raises(TypeInferenceError, match="static sizes for auto_pad"):
        sig("Conv", [x, w], auto_pad="SAME_UPPER", strides=[2, 2])


def test_sizes_over_symbols() -> None:
    x = TensorType("float", (N, 12, 768))
    assert sig("Reshape", [x], shape=[0, -1, 12, 64]).outputs[0].shape == (N, 12, 12, 64)
    assert sig("Reshape", [x], shape=[-1, 768]).outputs[0].shape == (N * 12, 768)
    assert sig("Concat", [x, x], axis=0).outputs[0].shape == (N * 2, 12, 768)
    assert [t.shape for t in sig("Split", [x._replace(shape=(N * 2, 3))], num_outputs=2).outputs] == [(N, 3), (N, 3)]


def test_an_unknown_quotient_is_a_symbol_that_binds() -> None:
    out = sig("Reshape", [TensorType("float", (N, 3))], shape=[-1, 2]).outputs[0]
    assert out.bind({"N": 4}).shape == (6, 2)


def test_a_kernel_without_elements_is_refused() -> None:
    image, kernel = TensorType("float", (1, 2, 5, 5)), TensorType("float", (4, 2, 0, 3))
    with pytest.raises(TypeInferenceError, match="expected a kernel with elements"):
        sig("Conv", [image, kernel])
    with pytest.raises(TypeInferenceError, match="expected a kernel with elements"):
        sig("MaxPool", [image], kernel_shape=[3, 0])
