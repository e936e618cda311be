"""What becomes of the weights and constants of a file."""

from typing import Any

import numpy as np
import onnx
import pytest
from model_texts import graph_of, op_names, parsed, run, weight_values
from onnx import TensorProto, helper, numpy_helper

from taso_gym.errors import ModelError
from taso_gym.onnx_io import from_model, to_model
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.weights import FilledWeight


def test_an_initializer_that_is_an_input_is_no_constant() -> None:
    text = "g (float[3] x, float[3] w) => (float[3] y) { v = Neg(w)\n y = Add(x, v) }"
    model = parsed(text, w=np.ones(3, np.float32))
    graph = from_model(model)
    assert op_names(graph) == ["Neg", "Add"]
    assert not any(leaf.weight for leaf in graph.leaves.values())
    saved = to_model(graph)
    assert [i.name for i in saved.graph.input] == ["x", "w"]
    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert run(saved, x=zero)[0].tolist() == [-1, -1, -1]
    assert run(saved, x=zero, w=2 * one)[0].tolist() == [-2, -2, -2]
    other = parsed(text, w=2 * one)
    assert from_model(other) != graph


def test_before_ir_4_an_initializer_is_a_constant_though_it_is_an_input() -> None:
    text = "g (float[3] x, float[3] w, float[3] unused) => (float[3] y) { v = Neg(w)\n y = Add(x, v) }"
    model = parsed(text, ir=3, opset=8, w=np.ones(3, np.float32), unused=np.ones(3, np.float32))
    graph = from_model(model)
    assert op_names(graph) == ["Add"]
    saved = to_model(graph)
    onnx.checker.check_model(saved)
    assert [i.name for i in saved.graph.input] == ["x"]
    assert [n.op_type for n in saved.graph.node] == ["Constant", "Add"]
    assert from_model(saved) == graph


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("value_float = 2.5", np.float32(2.5)),
        ("value_floats = [1.0, 2.0]", np.array([1, 2], np.float32)),
        ("value_int = 3", np.int64(3)),
        ("value_ints = [3, 4]", np.array([3, 4])),
        ('value_string = "a"', np.array("a", object)),
        ('value_strings = ["a", "b"]', np.array(["a", "b"], object)),
        ("value = int8[2] {1, -1}", np.array([1, -1], np.int8)),
        ("value = string[1] {\"ü\"}", np.array(["ü"], object)),
    ],
)  # fmt: skip
def test_constant_nodes_are_weights(attribute: str, expected: np.ndarray) -> None:
    graph = graph_of(f"g () => (y) {{ y = Constant <{attribute}>() }}")
    (found,) = weight_values(graph).values()
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_a_large_constant_of_shape_takes_no_memory_and_stays_what_it_is() -> None:
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.5])
    model = parsed("g (float[1000000] x) => (y) { w = ConstantOfShape(shape)\n y = MatMul(x, w) }",
                   shape=np.array([1000000, 1000000]))  # fmt: skip
    model.graph.node[0].attribute.append(helper.make_attribute("value", value))
    graph = from_model(model)
    (leaf,) = (leaf for leaf in graph.leaves.values() if leaf.weight)
    assert isinstance(leaf.weight, FilledWeight)
    assert leaf.weight.splat == 0.5
    assert leaf.weight.array().shape == (1000000, 1000000)
    saved = to_model(graph)
    assert sorted(n.op_type for n in saved.graph.node) == ["ConstantOfShape", "MatMul"]
    assert from_model(saved) == graph


def test_sparse_constants() -> None:
    values = helper.make_tensor("", TensorProto.FLOAT, [1], [3.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1])), [4])
    model = parsed("g () => (y) { y = Constant() }")
    model.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    graph = from_model(model)
    assert weight_values(graph)["y"].tolist() == [0, 3, 0, 0]
    assert from_model(to_model(graph)) == graph


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("r = Range(zero, five, two)\n y = Add(x, r)", ["Add"]),
        ("n = NonZero(shape)\n m = Squeeze(n)\n y = Add(x, m)", ["Add"]),
        ("i = Gather(shape, five)\n y = Add(x, i)", ["Gather", "Add"]),  # out of range: the runtime says so
        ("s = SequenceConstruct(shape)\n a = SequenceAt(s, zero)\n y = Add(x, a)", 2 * ["[seq]"] + ["Add"]),
        ("r = RandomNormal <shape = [3]>()\n c = Cast <to = 7>(r)\n y = Add(x, c)", ["[RandomNormal]", "Cast", "Add"]),
    ],
)
def test_computing_constants(nodes: str, left: list[str]) -> None:
    constants = {"zero": np.int64(0), "five": np.int64(5), "two": np.int64(2), "shape": np.array([2, 3, 4])}
    graph = graph_of(f"g (int64[3] x) => (y) {{ {nodes} }}", **constants)
    assert [n.replace("SequenceConstruct", "seq").replace("SequenceAt", "seq") for n in op_names(graph)] == left


def test_sparse_initializers() -> None:
    model = parsed("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, w) }")
    for indices in ([0, 4], [[0, 0], [1, 1]]):
        values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
        places = numpy_helper.from_array(np.array(indices))
        del model.graph.sparse_initializer[:]
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
        graph = from_model(model)
        (leaf,) = (leaf for leaf in graph.leaves.values() if leaf.weight)
        assert isinstance(leaf.weight, SparseWeight)
        assert leaf.weight.array().tolist() == [[1, 0, 0], [0, 2, 0]]
        saved = to_model(graph)
        assert saved.graph.sparse_initializer == model.graph.sparse_initializer
        assert from_model(saved) == graph


@pytest.mark.parametrize("op_type", ["Identity", "Dropout"])
def test_a_sparse_initializer_that_is_an_output_passes_a_node(op_type: str) -> None:
    """onnxruntime doesn't know it as an output by itself."""
    model = parsed(f"g (float[3] x) => (float[3] y, float[3] z) {{ y = {op_type}(w)\n z = Neg(x) }}")
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [5.0])
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1])), [3])
    )
    x = np.ones(3, np.float32)
    assert run(to_model(from_model(model)), x=x)[0].tolist() == run(model, x=x)[0].tolist() == [0, 5, 0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "uint4", "float4_e2m1fn", "int2", "complex64"])
def test_weights_of_every_element_type(dtype: str) -> None:
    import ml_dtypes

    values = np.arange(5).astype(getattr(ml_dtypes, dtype, dtype))
    model = parsed("g () => (w) { }", opset=28, ir=13, w=values)
    graph = from_model(model)
    assert weight_values(graph)["w"].tolist() == values.tolist()
    again = from_model(to_model(graph))
    assert weight_values(again)["w"].tolist() == values.tolist()
    assert again == graph


def test_strings_that_are_no_text_survive() -> None:
    model = parsed("g () => (w) { }")
    model.graph.initializer.add(name="w", data_type=TensorProto.STRING, dims=[2], string_data=[b"\xff\xfe", b"ok"])
    saved = to_model(from_model(model))
    assert list(saved.graph.initializer[0].string_data) == [b"\xff\xfe", b"ok"]


def test_equal_initializers_are_one() -> None:
    text = "g (float[1] x) => (y, z) { y = Add(x, a)\n z = Add(x, b) }"
    one = np.ones(1, np.float32)
    assert op_names(graph_of(text, a=one, b=one)) == ["Add"]
    assert op_names(graph_of(text, a=one, b=one[0])) == ["Add", "Add"]


def test_a_cast_to_text_is_left_to_onnxruntime() -> None:
    """It writes 1 for 1.0, where NumPy writes 1.0."""
    model = parsed("g (string[1] x) => (y, z) { y = Cast <to = 8> (c)\n z = Identity(x) }", c=np.float32([1, 2.5]))
    graph = from_model(model)
    assert op_names(graph) == ["[Cast]"]
    feeds = {"x": np.array(["a"], object)}
    assert run(to_model(graph), **feeds)[0].tolist() == run(model, **feeds)[0].tolist() == ["1", "2.5"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("name", ["ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare"])
def test_constants_are_reduced_as_onnxruntime_does_it(name: str, dtype: type) -> None:
    text = f"g (float[1] x) => (y, z) {{ y = {name} <keepdims = 0> (c)\n z = Neg(x) }}"
    model = parsed(text, c=np.full((2048, 2), 0.125, dtype))
    graph = from_model(model)
    assert op_names(graph) == ["Neg"]
    x = np.ones(1, np.float32)
    assert run(to_model(graph), x=x)[0] == pytest.approx(run(model, x=x)[0])


@pytest.mark.parametrize("part", ["values", "indices"])
def test_sparse_data_in_another_file_are_refused(part: str) -> None:
    model = parsed("g (float[4] x) => (float[4] y) { y = Add(x, w) }")
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1])), [4])
    getattr(sparse, part).data_location = TensorProto.EXTERNAL
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(
        ModelError, match="sparse initializer 'w': expected positions and values in the model, found ext"
    ):
        from_model(model)


def test_a_pad_of_negative_zeros_keeps_their_sign() -> None:
    text = "g (float[2] x) => (y, z) { p = Pad(x, pads, zero)  q = Pad(x, pads)  y = Reciprocal(p)  z = Reciprocal(q) }"
    graph = graph_of(text, pads=np.array([1, 0]), zero=np.float32(-0.0))
    assert op_names(graph)[:2] == ["Pad", "Pad"]
    found = run(to_model(graph), x=np.ones(2, np.float32))
    assert [values.tolist() for values in found] == [[-np.inf, 1, 1], [np.inf, 1, 1]]


LEFT: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("OneHot(i, three, v)", {"i": [2], "three": 3, "v": np.float32([-1e9, 0.1])}, [[-1e9, -1e9, 0.1]]),
    ("GatherElements <axis = 0>(a, i)", {"a": np.arange(64).reshape(64, 1), "i": np.zeros((64, 1), int)}, 64 * [[0]]),
    ("Cast <to = 9>(a)", {"a": np.array(["0", "1", "2"], object)}, [0, 1, 1]),
    ("CastLike(a, b)", {"a": np.array(["0", "1", "2"], object), "b": np.bool_(1)}, [0, 1, 1]),
    ("Cast <to = 22>(a)", {"a": np.float32([1.5, 2.75])}, [2, 3]),
    ("Squeeze(a, axes)", {"a": [[4, 5]], "axes": np.zeros(0, int)}, [4, 5]),
    ("NonZero(a)", {"a": np.float32(3)}, [[0]]),
    ("ReduceMean(a)", {"a": np.zeros((0, 3), np.float32)}, [[0]]),
    ("Range(a, b, d)", {n: np.float32(v) for n, v in zip("abd", (0, 1e3, 0.1), strict=True)}, []),
]
"""What onnx's reference computes otherwise than onnxruntime; the last has 10,000 numbers, and is only compared."""


@pytest.mark.parametrize(("node", "constants", "expected"), LEFT)
def test_what_onnxruntime_computes_otherwise_is_left_to_it(
    node: str, constants: dict[str, Any], expected: list[Any]
) -> None:
    model = parsed(f"g (float[1] x) => (y) {{ k = {node} c = Cast <to = 1>(k) y = Mul(c, x) }}", opset=21, **constants)
    graph = from_model(model)
    assert len(op_names(graph)) == 3
    x = np.ones(1, np.float32)
    (found,), (before,) = run(to_model(graph), x=x), run(model, x=x)
    assert found.tolist() == before.tolist()
    assert not expected or found.tolist() == np.float32(expected).tolist()


@pytest.mark.parametrize(
    ("values", "is_sorted"), [(np.float32([np.nan, 1, 3, np.nan, 2]), 1), (np.int64([4, 4, 4]), 0)]
)
def test_an_order_of_onnxruntimes_own_is_left_to_it(values: Any, is_sorted: int) -> None:
    text = f"g (float[1] x) => (y) {{ k, i = TopK <sorted = {is_sorted}>(a, n) c = Cast <to = 1>(i) y = Mul(c, x) }}"
    model = parsed(text, a=values, n=np.int64([3]))
    graph = from_model(model)
    assert op_names(graph)[0] == "[TopK]"
    x = np.ones(1, np.float32)
    np.testing.assert_array_equal(run(to_model(graph), x=x)[0], run(model, x=x)[0])


LARGE = [2**31 - 1, 1, 5]
INTEGERS: list[tuple[str, dict[str, Any]]] = [
    ("ReduceSum(a)", {"a": np.int32(LARGE)}),
    ("ReduceMean(a)", {"a": np.int32(LARGE)}),
    ("ReduceProd(a)", {"a": np.int32(LARGE)}),
    ("ReduceSumSquare(a)", {"a": np.int32(LARGE)}),
    ("ReduceL2(a)", {"a": np.int32(LARGE)}),
    ("ReduceSum(a)", {"a": np.int64([2**62, 2**62, 3])}),
    ("ReduceSum(a)", {"a": np.int64([-(2**63), 2**62])}),
    ("ReduceProd(a)", {"a": np.full(400, 9)}),
    ("Pow(a, b)", {"a": np.int64([3]), "b": np.int64([35])}),
    ("Pow(a, b)", {"a": np.int32([2]), "b": np.float32([31])}),
]


@pytest.mark.parametrize(("node", "constants"), INTEGERS)
def test_large_integers_are_left_to_onnxruntime(node: str, constants: dict[str, Any]) -> None:
    """It computes in double, and what is too large for the type becomes the largest that it has."""
    model = parsed(f"g (float[1] x) => (y, z) {{ y = {node}\n z = Neg(x) }}", **constants)
    graph, x = from_model(model), np.ones(1, np.float32)
    assert op_names(graph)[0] in ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceL2", "Pow")
    assert run(to_model(graph), x=x)[0].tolist() == run(model, x=x)[0].tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("node", ["Sum(a)", "Mean(a)", "Prod(a)", "SumSquare(a)", "L2(a)", "Pow(a, b)"])
def test_small_integers_are_computed(node: str, dtype: type) -> None:
    """The product is that of a shape, all of whose numbers are exact in double."""
    name = node if node.startswith("Pow") else f"Reduce{node}"
    model = parsed(f"g (float[1] x) => (y, z) {{ y = {name}\n z = Neg(x) }}", a=dtype([-3, 224, 224]), b=dtype([2]))
    graph, x = from_model(model), np.ones(1, np.float32)
    assert op_names(graph) == ["Neg"]
    assert run(to_model(graph), x=x)[0].tolist() == run(model, x=x)[0].tolist()


INFINITE = np.float32([-np.inf, np.inf, np.nan, 2])


@pytest.mark.parametrize(
    ("node", "opset", "values", "left"),
    [
        ("Clip <max = 1.0>(a)", 9, INFINITE, True),
        ("Clip <min = 0.0>(a)", 9, INFINITE, True),
        ("Clip <min = 0.0>(a)", 9, INFINITE[3:], False),
        ("Clip <min = -1.0, max = 1.0>(a)", 9, INFINITE, False),
        ("Clip(a, , one)", 13, INFINITE, True),
        ("Clip(a, one)", 20, INFINITE, True),
        ("Clip(a, one)", 20, INFINITE[3:], False),
        ("Clip(a, one, one)", 20, INFINITE, False),
        ("Clip(a, nan, one)", 20, INFINITE[3:], True),
        ("Clip(a, one, nan)", 20, INFINITE[3:], True),
    ],
)
def test_bounds_that_onnxruntime_has_of_its_own_are_left_to_it(node: str, opset: int, values: Any, left: bool) -> None:
    """An absent one is the largest finite number, whatever the opset, and NaN is none."""
    bounds = {"one": np.float32(1), "nan": np.float32(np.nan)}
    model = parsed(f"g (float[1] x) => (y, z) {{ y = {node}\n z = Neg(x) }}", opset=opset, a=values, **bounds)
    graph, x = from_model(model), np.ones(1, np.float32)
    assert op_names(graph) == ["Clip", "Neg"][not left :]
    np.testing.assert_array_equal(run(to_model(graph), x=x)[0], run(model, x=x)[0])


def test_what_broadcasts_by_an_attribute_is_left() -> None:
    """Before opset 7; the reference adds along the last axis, whichever is stated."""
    text = "g (float[2, 2] x) => (y) { c = Add <broadcast = 1, axis = 0>(a, b) y = Mul(c, x) }"
    weights = {"a": np.zeros((2, 2), np.float32), "b": np.float32([1, 2])}
    assert op_names(from_model(parsed(text, opset=6, ir=4, **weights))) == ["[Add]", "[Mul]"]


@pytest.mark.parametrize(
    ("node", "sizes"),
    [
        ("Gather(c, three)", [2**36]),
        ("ReduceSum <keepdims = 0>(c)", [2**40, 2**40]),
        ("ReduceMax <keepdims = 0>(c)", [2**27]),
        ("NonZero(c)", [2**36]),
        ("Reshape(x, c)", [2**33]),
        ("Expand(x, c)", [2**33]),
        ("ReduceSum(x, c)", [2**33]),
        ("ConstantOfShape(c)", [2**33]),
    ],
)
def test_a_constant_that_no_memory_holds_is_no_operand_of_what_is_computed(node: str, sizes: list[int]) -> None:
    text = f"g (float[1] x) => (y) {{ c = ConstantOfShape <value = int64[1] {{1}}>(sizes) y = {node} }}"
    graph = graph_of(text, three=np.array([3]), sizes=np.array(sizes))
    assert len(op_names(graph)) == 1
    assert to_model(graph).graph.node[0].op_type == "ConstantOfShape"


def test_part_of_a_constant_that_takes_no_memory_is_computed() -> None:
    text = "g (float[3] x) => (y) { c = ConstantOfShape(sizes) p = Slice(c, zero, three) y = Add(x, p) }"
    assert op_names(graph_of(text, sizes=np.array([10**6]), zero=np.array([0]), three=np.array([3]))) == ["Add"]
