"""What becomes of the nodes, weights and types of a file."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from model_texts import graph_of, op_names, parsed, run, weight_values
from onnx import TensorProto, helper, numpy_helper

from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model, load, to_model
from taso_gym.onnx_io.sparse import SparseWeight
from taso_gym.signature import OpaqueOperator
from taso_gym.tensor import OtherType, TensorType, symbol
from taso_gym.weights import FilledWeight


def output_type(graph: Graph, index: int = 0) -> TensorType:
    type_ = graph.type_of(graph.outputs[index])
    assert isinstance(type_, TensorType)
    return type_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[3] x) => (float[3] y) { y = Relu(x) }", ["Relu"]),
        ("g (float[3] x) => (float[3] y) { y = ImageScaler <scale = 2.0>(x) }", ["[ImageScaler]"]),  # no longer ONNX
        ("g (float[3] x) => (float[3] y) { y = my.Relu(x) }", ["[Relu]"]),
        ("g (float[3] x) => (float[3] y) { a = Identity(x)\n y = Identity(a) }", []),
        ("g (float[3] x) => (float[3] y) { a = Relu(x)\n b = Relu(x)\n y = Add(a, b) }", ["Relu", "Add"]),
        ("g (float[3] x) => (float[3] y) { a = Neg(x)\n y = Relu(x) }", ["Relu"]),
        ("g (float[3] x) => (float[3] y) { a = Dropout(x)\n y = Relu(a) }", ["Relu"]),
        ("g (float[3] x) => (float[3] y, bool[3] m) { y, m = Dropout(x) }", ["[Dropout]"]),
        ("g (float[3] x, bool t) => (float[3] y) { y = Dropout(x, , t) }", ["[Dropout]"]),
        ("g (float[2, 3] x) => (int64[2] y) { y = Shape(x) }", []),
        ("g (float[2, 3] x) => (int64[2] y) { a = Shape(x)\n b = Add(a, a)\n y = Identity(b) }", []),
        ("g (float[3] x) => (float[3] y) { a = Bernoulli(x)\n y = Relu(x) }", ["[Bernoulli]", "Relu"]),
        ("g (float[3] x) => (float[3] y) { y = Elu <alpha: float = 2.0>(x) }", ["Elu"]),
    ],
)
def test_nodes(text: str, expected: list[str]) -> None:
    assert op_names(graph_of(text)) == expected


BRANCHES = """If (c) <then_branch = t () => (float[2, 2] p) {{ p = {}(x) }},
                       else_branch = e () => (float[2, 2] q) {{ q = Neg(x) }}>"""


@pytest.mark.parametrize(
    ("node", "merged"),
    [
        ("Relu(x)", True),
        ("Det(x)", True),
        ("Bernoulli(x)", False),
        ("Multinomial <sample_size = 3>(x)", False),
        ("Dropout(x, half, true)", False),
        ("my.F(x)", False),
        ("my.Pure(x)", True),
        ("my.Random(x)", False),
        ("my.Calls(x)", False),
        ("com.microsoft.Unheard(x)", False),
        (BRANCHES.format("Relu"), True),
        (BRANCHES.format("Bernoulli"), False),
    ],
)
def test_equal_nodes_are_merged_where_they_are_deterministic(node: str, merged: bool) -> None:
    head = '<domain: "my", opset_import: ["" : 20, "my" : 1]>'
    functions = f"""
        {head} Pure (x) => (y) {{ y = Neg(x) }}
        {head} Random (x) => (y) {{ y = Bernoulli(x) }}
        {head} Calls (x) => (y) {{ y = my.Random(x) }}
    """
    text = f"g (float[2, 2] x, bool c) => (y) {{ a = {node}\n b = {node}\n y = my.G(a, b) }}"
    graph = graph_of(text, more=functions, half=np.float32(0.5), true=np.array(True))
    assert len(graph) == (2 if merged else 3)


def test_a_function_goes_before_the_operator_of_its_name() -> None:
    text = "g (float[3] x) => (float[3] y) { y = Relu(x) }"
    model = parsed(text, more='<domain: "my", opset_import: ["" : 20]> Relu (x) => (y) { y = Neg(x) }')
    model.functions[0].domain = ""
    graph = from_model(model)
    assert op_names(graph) == ["[Relu]"]
    assert to_model(graph).functions == model.functions


def test_the_digest_sees_into_functions_and_opsets() -> None:
    text = "g (float[3] x) => (float[3] y) { y = my.F(x) }"
    bodies = [f'<domain: "my", opset_import: ["" : 20]> F (x) => (y) {{ y = {op}(x) }}' for op in ("Neg", "Abs")]
    assert graph_of(text, more=bodies[0]) != graph_of(text, more=bodies[1])
    hardmax = "g (float[2, 3] x) => (y) { y = Hardmax(x) }"
    assert graph_of(hardmax, opset=11) != graph_of(hardmax, opset=13)


def test_the_meaning_of_old_opsets_is_kept_in_opaque_nodes() -> None:
    text = "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax(x) }"
    assert op_names(graph_of(text, opset=12)) == ["[Softmax]"]
    assert op_names(graph_of(text, opset=13)) == ["Softmax"]


@pytest.mark.parametrize(
    ("node", "opset", "trains"),
    [
        ("y, a, b = BatchNormalization <training_mode = 1>(x, s, s, s, s)", 20, True),
        ("y, a, b, c, d = BatchNormalization(x, s, s, s, s)", 9, True),
        ("y = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1]>(x, s, s, s, s)", 1, True),
        ("y = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1>(x, s, s, s, s)", 1, False),
        ("y = Dropout(x)", 6, True),
        ("y, m = Dropout <is_test = 1>(x)", 6, False),
        ("y, m = Dropout(x)", 10, False),
        ("y, m = Dropout(x, , s)", 13, True),
        ("y, m = Dropout(x, , no)", 13, False),
    ],
)
def test_training_is_left_alone(node: str, opset: int, trains: bool) -> None:
    text = f"g (float[2, 3] x) => (y{', m' if ' m' in node else ''}) {{ {node} }}"
    s = np.array(True) if "Dropout" in node else np.ones(3, np.float32)
    model = parsed(text, opset=opset, s=s, no=np.array(False))
    (node_,) = (n for _, n in from_model(model).operators())
    assert isinstance(node_.sig.op, OpaqueOperator)
    assert node_.sig.op.pure is not trains


def test_shapes_over_symbols_become_attributes() -> None:
    text = """g (float[batch, seq, 12] x) => (y) {
        s = Shape(x)
        b = Gather(s, zero)
        t = Gather(s, one)
        u = Unsqueeze(b, axes)
        v = Unsqueeze(t, axes)
        shape = Concat <axis = 0>(u, v, heads)
        a = Reshape(x, shape)
        y = Transpose <perm = [0, 2, 1, 3]>(a)
    }"""
    constants = {"zero": np.int64(0), "one": np.int64(1), "axes": np.array([0]), "heads": np.array([3, -1])}
    graph = graph_of(text, **constants)
    assert op_names(graph) == ["Reshape", "Transpose"]
    assert output_type(graph).shape == (symbol("batch"), 3, symbol("seq"), 4)
    x = np.arange(2 * 5 * 12, dtype=np.float32).reshape(2, 5, 12)
    expected, found = (run(model, x=x)[0] for model in (parsed(text, **constants), to_model(graph)))
    np.testing.assert_array_equal(found, expected)


def test_static_sizes_within_an_open_shape_are_constants() -> None:
    text = """g (float[batch, 64] x) => (float z) {
        s = Shape(x)
        d = Gather(s, one)
        f = Cast <to = 1>(d)
        z = Sqrt(f)
    }"""
    graph = graph_of(text, one=np.int64(1))
    assert op_names(graph) == []
    assert [v.item() for v in weight_values(graph).values()] == [8.0]


def test_open_dimensions() -> None:
    """Named ones keep their names, others are named by value and axis, and equal unknown ones are known to be equal."""
    text = "g (float[N, ?, 3] x) => (y, z) { y = NonZero(x)\n t = Transpose(y)\n z = Cast <to = 1>(t) }"
    graph = graph_of(text)
    (x,) = graph.info.inputs
    assert str(graph.type_of(x)) == "float[N, x#1, 3]"
    assert str(output_type(graph)) == "int64[3, y#1]"
    assert str(output_type(graph, 1)) == "float[y#1, 3]"


def test_what_is_reshaped_has_the_sizes_that_are_asked_for() -> None:
    """Even where nobody can show that they fit, and ONNX doesn't know what comes out of com.microsoft."""
    text = """g (float[N, M, 4] x, float[A, B, C, 8] u) => (y) {
        v = com.microsoft.FusedMatMul <alpha = 2.0> (u, w)
        sizes = Shape <end = 2> (x)  shape = Concat <axis = 0> (sizes, rest)
        r = Reshape(v, shape)  y = Relu(r)
    }"""
    graph = graph_of(text, w=np.ones((8, 8), np.float32), rest=np.array([-1]))
    assert op_names(graph) == ["ms.FusedMatMul", "[Shape]", "Concat", "[Reshape]", "Relu"]
    assert str(output_type(graph)) == "float[N, M, r#2]"


def test_a_negative_size_is_an_unknown_one() -> None:
    model = parsed("g (float[7, 3] x) => (float[7, 3] y) { y = Relu(x) }")
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    graph = from_model(model)
    assert output_type(graph).shape == (symbol("x#0"), 3)
    assert to_model(graph).graph.input[0].type.tensor_type.shape.dim[0].dim_value == -1


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


def test_files_before_opset_imports() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { y = Relu(x) }", ir=2)
    del model.opset_import[:]
    graph = from_model(model)
    assert graph.info.opsets == {"": 1}
    assert op_names(graph) == ["[Relu]"]
    assert not to_model(graph).opset_import


def test_names_of_open_dimensions_avoid_those_of_the_file() -> None:
    model = parsed("g (float[D, ?] x) => (y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "x#1"
    assert str(output_type(from_model(model))) == "float[x#1, x##1]"


def test_sequences_of_open_sizes_are_the_same_every_time() -> None:
    """Shape inference numbers unknown sizes; the numbers don't get into types."""
    text = """g (float[3] x) => (y, z) {
        n = NonZero(x)
        y = NonZero(n)
        t = SequenceConstruct(n)
        z = SequenceLength(t)
    }"""
    assert "unk__" not in "".join(str(n.sig) for _, n in graph_of(text).operators())


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


def test_names_that_subgraphs_read_are_restored() -> None:
    text = """g (float[3] x, bool c) => (float[3] y) {
        a = Relu(x)
        b = Identity(a)
        d = Identity(k)
        y = If (c) <then_branch = t () => (float[3] p) { p = Add(b, d) },
                    else_branch = e () => (float[3] q) { q = Add(a, k) }>
    }"""
    weights = {"k": np.ones(3, np.float32)}
    graph = graph_of(text, **weights)
    assert op_names(graph) == ["Relu", "[If]"]
    feeds = {"x": np.array([-1, 2, 3], np.float32), "c": np.array(True)}
    assert run(to_model(graph), **feeds)[0].tolist() == run(parsed(text, **weights), **feeds)[0].tolist() == [1, 3, 4]


def test_absent_inputs_and_outputs_stay_absent() -> None:
    text = "g (float[5, 1, 2] x, float[1, 1, 4] h) => (z) { , z = RNN <hidden_size = 4>(x, w, r, , , h) }"
    weights = {"w": np.ones((1, 4, 2), np.float32), "r": np.ones((1, 4, 4), np.float32)}
    node = to_model(graph_of(text, **weights)).graph.node[-1]
    assert list(node.input) == ["x", "w", "r", "", "", "h"]
    assert list(node.output) == ["", "z"]


def test_sequences_and_optionals_are_carried_along() -> None:
    text = """g (seq(float[3]) s, float[3] x) => (seq(float[3]) t, optional(float[3]) o) {
        t = SequenceInsert(s, x)
        o = Optional(x)
    }"""
    graph = graph_of(text)
    assert all(isinstance(graph.type_of(v), OtherType) for v in graph.outputs)
    assert to_model(graph).graph.output == parsed(text).graph.output


def test_inputs_may_be_outputs_and_outputs_may_repeat() -> None:
    outputs = "float[3] x, float[3] y, float[3] y, float[3] z, float[3] w"
    graph = graph_of(f"g (float[3] x) => ({outputs}) {{ y = Relu(x)\n z = Identity(y) }}", w=np.ones(3, np.float32))
    found = run(to_model(graph), x=np.array([-1, 0, 1], np.float32))
    assert [f.tolist() for f in found] == [[-1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 1, 1]]


def test_more_outputs_than_a_byte_counts() -> None:
    names = [f"y{i}" for i in range(700)]
    nodes = "\n".join(f"{name} = Elu <alpha: float = {i}.0>(x)" for i, name in enumerate(names))
    text = f"g (float[3] x) => ({', '.join(f'float[3] {n}' for n in names)}, float[2100] all) {{ {nodes}\n"
    graph = graph_of(text + f"all = Concat <axis = 0>({', '.join(names)}) }}")
    assert len(graph) == 701
    assert len(graph.outputs) == 701


def test_node_names_may_repeat() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { a = Relu(x)\n y = Neg(a) }")
    for node in model.graph.node:
        node.name = "node"
    assert op_names(from_model(model)) == ["Relu", "Neg"]


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


def test_nodes_that_come_in_the_wrong_order_are_sorted() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { y = Neg(a)\n a = Relu(x) }")
    assert op_names(from_model(model)) == ["Relu", "Neg"]


def test_dims_bind_symbols_for_costs_only(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parsed("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"), path)
    graph = load(path, dims={"batch": 4})
    assert graph.info.dims == {"batch": 4}
    assert graph == load(path)
    assert to_model(graph) == to_model(load(path))
    with pytest.raises(OptionError, match=r"\['batch'\], found 'seq'"):
        load(path, dims={"seq": 4})


def test_equal_initializers_are_one() -> None:
    text = "g (float[1] x) => (y, z) { y = Add(x, a)\n z = Add(x, b) }"
    one = np.ones(1, np.float32)
    assert op_names(graph_of(text, a=one, b=one)) == ["Add"]
    assert op_names(graph_of(text, a=one, b=one[0])) == ["Add", "Add"]


@pytest.mark.parametrize(
    "node", ["y = Gemm(h, w)", "r = Reshape(h, shape) y = Relu(r)", "s = Shape(h) y = Expand(x, s)"]
)
def test_an_operand_of_unknown_type_is_no_contradiction(node: str) -> None:
    """Nothing says what my.F gives, and ONNX takes some operators on such an operand for wrong."""
    text = f"g (float[N, 4] x) => (float[N, 4] y) {{ h = my.F(x) {node} }}"
    graph = graph_of(text, w=np.ones((4, 4), np.float32), shape=np.array([-1, 4]))
    assert all(name.startswith("[") for name in op_names(graph))
