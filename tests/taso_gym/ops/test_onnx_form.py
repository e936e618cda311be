import numpy as np
import pytest
from onnx import NodeProto, helper

from taso_gym.errors import ModelError, TypeInferenceError
from taso_gym.ops import MICROSOFT, OPERATORS
from taso_gym.ops.onnx_form import conforms, from_onnx, to_onnx
from taso_gym.signature import signature
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType, dtype_code

N, T = symbol("N"), symbol("T")


def sig(name: str, *shapes: tuple, **attrs):
    return signature(OPERATORS["", name], attrs, [TensorType("float", s) for s in shapes])


def test_an_operator_without_an_entry_stays_opaque() -> None:
    assert from_onnx(helper.make_node("NonZero", ["x"], ["y"]), [None], 13) is None


def test_a_node_of_an_older_meaning_stays_opaque() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    assert from_onnx(node, [None], 12) is None
    assert from_onnx(node, [None], 13) is not None


def test_an_attribute_that_the_entry_doesnt_know_stays_opaque() -> None:
    assert from_onnx(helper.make_node("Relu", ["x"], ["y"], consumed_inputs=[0]), [None], 13) is None


def test_a_shape_that_isnt_constant_stays_opaque() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    assert from_onnx(node, [None, None], 13) is None
    found = from_onnx(node, [None, np.array([2, -1])], 13)
    assert found is not None
    assert (found.attrs, found.operands) == ({"shape": (2, -1)}, (0,))


def test_axes_are_read_where_the_opset_has_them() -> None:
    old = from_onnx(helper.make_node("ReduceSum", ["x"], ["y"], axes=[1]), [None], 11)
    new = from_onnx(helper.make_node("ReduceSum", ["x", "a"], ["y"]), [None, np.array([1])], 13)
    assert old is not None and new is not None
    assert old.attrs == new.attrs == {"axes": (1,)}


def test_a_missing_bound_is_none() -> None:
    node = helper.make_node("Clip", ["x", "", "hi"], ["y"])
    found = from_onnx(node, [None, None, np.array(6, np.float32)], 13)
    assert found is not None and found.attrs == {"max": 6.0}


def test_a_split_without_sizes_counts_its_outputs() -> None:
    found = from_onnx(helper.make_node("Split", ["x"], ["a", "b", "c"]), [None], 13)
    assert found is not None
    assert signature(found.op, found.attrs, [TensorType("float", (6, 2))]).attr("split") == (2, 2, 2)


def test_other_spellings_of_the_standard_domain_are_known() -> None:
    assert from_onnx(helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx"), [None], 13) is not None


def test_defaults_are_left_out() -> None:
    node, constants = to_onnx(sig("Gemm", (2, 3), (3, 4)), 13)
    assert not node.attribute and not constants


def test_symbolic_sizes_become_zero_and_minus_one() -> None:
    assert to_onnx(sig("Reshape", (N, T, 8), shape=[0, 0, 2, 4]), 13).constants[1].tolist() == [0, 0, 2, 4]
    assert to_onnx(sig("Reshape", (N, T, 8), shape=[-1, 8]), 13).constants[1].tolist() == [-1, 8]
    assert to_onnx(sig("Expand", (N, 1), shape=[3, 1, 4]), 13).constants[1].tolist() == [3, 1, 4]


def test_a_shape_that_no_file_can_state_is_refused() -> None:
    with pytest.raises(TypeInferenceError, match="at most one symbolic size"):
        sig("Reshape", (N, T), shape=(T, N))


def test_an_opset_before_the_operator_is_refused() -> None:
    with pytest.raises(ModelError, match="opset 20 or later for Gelu, found 13"):
        to_onnx(sig("Gelu", (2,)), 13)


def test_the_domain_is_kept() -> None:
    gelu = signature(OPERATORS[MICROSOFT, "Gelu"], {}, [TensorType("float", (2,))])
    assert to_onnx(gelu, 1).node.domain == MICROSOFT


@pytest.mark.parametrize(
    ("name", "dtypes", "shapes", "opset", "wanted"),
    [
        ("Gemm", "float float", [(2, 3), (3, 4)], 11, True),
        ("Gemm", "float float", [(2, 3), (3, 4)], 10, False),
        ("Equal", "float float", [(2,), (2,)], 7, False),
        ("Equal", "float float", [(2,), (2,)], 11, True),
        ("Pow", "float int64", [(2,), (2,)], 7, False),
        ("Pow", "float int64", [(2,), (2,)], 12, True),
        ("Max", "float float float", [(2,), (2,), (2,)], 8, True),
        ("Gelu", "float", [(2,)], 19, False),
        ("Relu", "string", [(2,)], 14, False),
    ],
)
def test_operands_conform_to_the_opset(name: str, dtypes: str, shapes: list, opset: int, wanted: bool) -> None:
    types = [TensorType(d, s) for d, s in zip(dtypes.split(), shapes, strict=True)]
    assert conforms(signature(OPERATORS["", name], {}, types), opset) is wanted


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize("name", ["BiasGelu", "FastGelu", "FusedGemm", "QuickGelu", "SkipLayerNormalization"])
def test_operators_of_microsoft_conform_where_onnxruntime_has_a_kernel(name: str, dtype: str) -> None:
    shapes = {
        "BiasGelu": [(2, 4), (4,)],
        "FastGelu": [(2, 4)],
        "FusedGemm": [(2, 4), (4, 3)],
        "QuickGelu": [(2, 4)],
        "SkipLayerNormalization": [(1, 2, 4), (1, 2, 4), (4,)],
    }
    types = [TensorType(dtype, shape) for shape in shapes[name]]
    attrs = {"activation": "Relu"} if name == "FusedGemm" else {}
    sig = signature(OPERATORS[MICROSOFT, name], attrs, types)
    made = to_onnx(sig, 17)
    infos = [helper.make_tensor_value_info(n, dtype_code(dtype), t.shape) for n, t in zip("abc", types, strict=False)]
    node = NodeProto()
    node.CopyFrom(made.node)
    del node.input[:], node.output[:]
    node.input.extend("abc"[: len(types)])
    node.output.append("y")
    outputs = [helper.make_tensor_value_info("y", dtype_code(dtype), None)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(helper.make_graph([node], "g", infos, outputs), opset_imports=opsets, ir_version=8)
    ort = pytest.importorskip("onnxruntime")
    try:
        ort.InferenceSession(model.SerializeToString())
        runs = True
    except Exception:  # onnxruntime's exceptions share no base class
        runs = False
    assert conforms(sig, 17) is runs
