"""What a saved file keeps, and what it computes beforehand."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from model_texts import graph_of, op_names, parsed, run, weight_values
from onnx import TensorProto, helper, numpy_helper

from taso_gym.builder import GraphBuilder
from taso_gym.errors import ModelError, OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model, load, save, to_model
from taso_gym.signature import OpaqueOperator
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight, array_weight, literal

FLOAT = TensorType("float", (2, 3))


def with_everything() -> onnx.ModelProto:
    """Return a model that says all that a file can say besides its nodes."""
    model = parsed("g (float[N, 3] b, float[?, 3] a) => (float[N, 3] y, z) { y = Relu(a)\n z = my.F(b) }",
                   more='<domain: "my", opset_import: ["" : 20]> F (x) => (y) { y = Neg(x) }',
                   scale=np.float32(1))  # fmt: skip
    model.producer_name, model.producer_version, model.domain = "someone", "1.2", "net.example"
    model.model_version, model.doc_string, model.graph.doc_string = 7, "text", "more text"
    model.metadata_props.add(key="author", value="me")
    model.graph.metadata_props.add(key="kind", value="graph")
    model.graph.input[0].doc_string = "first"
    model.graph.value_info.append(helper.make_tensor_value_info("nothing", TensorProto.FLOAT, [1]))
    annotation = model.graph.quantization_annotation.add(tensor_name="y")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    training = model.training_info.add()
    training.algorithm.CopyFrom(helper.make_graph([helper.make_node("Neg", ["rate"], ["r"])], "none", [], []))
    training.update_binding.add(key="scale", value="r")
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.1), "rate"))
    return model


def test_all_that_a_file_says_besides_its_nodes_is_kept() -> None:
    model = with_everything()
    saved = to_model(from_model(model))
    onnx.checker.check_model(saved)
    assert saved.graph.output[0] == model.graph.output[0]
    assert saved.graph.output[1].type.tensor_type.elem_type == TensorProto.FLOAT  # was missing
    for field in ("node", "output", "value_info"):
        saved.graph.ClearField(field)
        model.graph.ClearField(field)
    assert saved == model


def test_a_model_in_memory_is_loaded_as_its_file_is(tmp_path: Path) -> None:
    model = parsed("g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }")
    onnx.save(model, tmp_path / "model.onnx")
    assert load(model, {"N": 2}).hash == load(tmp_path / "model.onnx", {"N": 2}).hash


@pytest.mark.parametrize("source", [3, "a\0b.onnx"])
def test_what_is_neither_file_nor_model_is_named(source: Any) -> None:
    with pytest.raises(OptionError, match="expected the path of a model or a ModelProto, found "):
        load(source)


@pytest.mark.parametrize("wrong", [None, 5, "model.onnx"])
def test_what_is_no_graph_and_no_place_is_named(wrong: Any, tmp_path: Path) -> None:
    graph = graph_of("g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }")
    for act in (to_model, partial(save, path=tmp_path / "out.onnx")):
        with pytest.raises(OptionError, match=f"expected a Graph as graph, found {wrong!r}"):
            act(wrong)
    with pytest.raises(OptionError, match=r"expected a ModelProto \(`load` takes a path, too\) as model, found "):
        from_model(wrong)
    with pytest.raises(OptionError, match="expected the path of a file to write, found "):
        save(graph, wrong if wrong != "model.onnx" else b"model.onnx")


def test_shapes_that_outputs_lack_are_filled_in() -> None:
    model = parsed("g (float[N, 3] x) => (float y) { y = Relu(x) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    dims = to_model(from_model(model)).graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["N", 3]


def test_value_infos_of_values_that_stay_are_kept() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { a = my.F(x)\n b = Relu(a)\n c = Relu(a)\n y = Add(b, c) }")
    model.graph.value_info.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "abc")
    graph = from_model(model)
    assert op_names(graph) == ["[F]", "Relu", "Add"]
    assert [i.name for i in to_model(graph).graph.value_info] == ["a", "b"]


def test_types_of_operators_outside_the_standard_are_declared() -> None:
    """No reader's shape inference knows the operator; open dimensions that the file doesn't name stay open."""
    text = "g (float[N, ?, 4] x) => (y) { h = com.microsoft.FusedMatMul <alpha = 2.0> (x, w)\n y = Relu(h) }"
    (info,) = to_model(graph_of(text, w=np.ones((4, 5), np.float32))).graph.value_info
    assert info.name == "h"
    assert info.type.tensor_type.elem_type == TensorProto.FLOAT
    assert [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim] == ["N", 0, 5]


def constant_graph(values: np.ndarray) -> Graph:
    """Return x + (transposed weights, doubled), where the second operand depends on no input."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", values.T.shape))
    w = builder.weight("w", *array_weight(values))
    two = builder.weight("two", *literal(2.0, "float"))
    doubled = builder.add("Mul", builder.add("Transpose", w, perm=(1, 0)), two)
    builder.output("y", builder.add("Add", x, doubled))
    return builder.build()


def test_constants_are_computed() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    saved = to_model(constant_graph(values))
    assert [n.op_type for n in saved.graph.node] == ["Add"]
    (tensor,) = saved.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), 2 * values.T)


def test_large_constants_are_computed_too() -> None:
    saved = to_model(constant_graph(np.ones((1000, 1000), np.float32)))
    assert [n.op_type for n in saved.graph.node] == ["Add"]


def test_large_constants_of_drawn_weights_are_computed_too() -> None:
    # Left as an operator, onnxruntime's PadFusion would take the padding of the kernel for one of the image.
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (1, 256, 4, 4)))
    kernel = GeneratedWeight(0, "w", "float", (256, 256, 1, 1))
    w = builder.weight("w", TensorType("float", kernel.shape), kernel)
    padded = builder.add("Pad", w, pads=(0, 0, 1, 1, 0, 0, 1, 1))
    builder.output("y", builder.add("Conv", x, padded, pads=(1, 1, 1, 1), strides=(2, 2)))
    assert [n.op_type for n in to_model(builder.build()).graph.node] == ["Conv"]


def test_a_constant_much_larger_than_its_operands_stays_an_operator() -> None:
    graph = graph_of("g (float[4000, 4000] x) => (y) { a = Expand(w, s)\n y = Add(x, a) }",
                     w=np.ones((1, 1), np.float32), s=np.array([4000, 4000]))  # fmt: skip
    assert op_names(graph) == ["Expand", "Add"]
    assert [n.op_type for n in to_model(graph).graph.node] == ["Expand", "Add"]


def test_constants_keep_their_element_type() -> None:
    import ml_dtypes

    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        graph = graph_of("g () => (y) { a = Exp(w)\n y = Identity(a) }", w=np.ones(3, dtype))
        (tensor,) = to_model(graph).graph.initializer
        assert numpy_helper.to_array(tensor).dtype == dtype


def test_what_nothing_uses_is_left_out() -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", FLOAT)
    builder.weight("unused", *literal(1.0, "float", (2, 3)))
    builder.output("y", builder.add("Relu", x))
    assert not to_model(builder.build()).graph.initializer


def test_a_graph_made_in_python_becomes_a_valid_model() -> None:
    builder = GraphBuilder({"": 20, "com.microsoft": 1})
    x = builder.input("x", TensorType("float", (symbol("N"), 4)))
    weight = GeneratedWeight(0, "w", "float", (4, 4))
    w = builder.weight("w", TensorType("float", (4, 4)), weight)
    builder.output("y", builder.add("MatMul", x, w))
    builder.output("z", builder.add("Relu", x, name="z"))
    model = to_model(builder.build())
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 9
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), weight.array())


def test_the_domain_of_a_new_operator_is_imported() -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", FLOAT)
    builder.output("y", builder.add("QuickGelu", x, domain="com.microsoft"))
    model = to_model(builder.build())
    assert {o.domain: o.version for o in model.opset_import} == {"": 20, "com.microsoft": 1}


def test_an_operator_that_the_opset_lacks_is_an_error() -> None:
    builder = GraphBuilder({"": 17})
    builder.output("y", builder.add("Gelu", builder.input("x", FLOAT)))
    with pytest.raises(ModelError, match="expected opset 20 or later for Gelu, found 17"):
        to_model(builder.build())


def test_new_names_avoid_those_in_subgraphs() -> None:
    """An outer value called like an inner one would be read in its place."""
    text = """g (float[3] x, bool c) => (float[3] y) {
        a = Neg(x)
        b = Relu(a)
        y = If (c) <then_branch = t () => (float[3] p) { Neg_3 = Relu(b)\n p = Neg(Neg_3) },
                    else_branch = e () => (float[3] q) { q = Neg(b) }>
    }"""
    graph = graph_of(text)
    ((node_id, node),) = ((i, n) for i, n in graph.operators() if n.sig.op.name == "Neg")
    assert node_id == 3
    nameless = Graph(
        {**graph.nodes, 3: node._replace(names=(None,))},
        graph.uses,
        graph.leaves,
        graph.next_id,
        graph.hash,
        graph.info,
    )
    assert to_model(nameless).graph.node[0].output[0] == "Neg_3_1"


def test_two_values_can_not_have_one_name() -> None:
    builder = GraphBuilder({"": 20})
    x = builder.input("x", FLOAT)
    builder.output("y", builder.add("Relu", x))
    builder.output("y", builder.add("Neg", x))
    with pytest.raises(ModelError, match="the name 'y' for one value"):
        to_model(builder.build())


@pytest.mark.parametrize(("op", "expected"), [("Relu", [["y"]]), ("my.F", [["hidden"], ["y"]])])
def test_outputs_have_their_names(op: str, expected: list[list[str]]) -> None:
    """An opaque node's value keeps its own besides: its open dimensions are named after it."""
    nodes = to_model(graph_of(f"g (float[3] x) => (y) {{ hidden = {op}(x)\n y = Identity(hidden) }}")).graph.node
    assert [list(n.output) for n in nodes] == expected
    assert [n.name for n in nodes] == [names[0] for names in expected]


def test_equal_attributes_share_a_constant() -> None:
    graph = graph_of("g (float[2, 3] x) => (y, z) { y = ReduceSum(x, a)\n z = ReduceMax(x, a) }", a=np.array([0]))
    assert not weight_values(graph)
    assert len(to_model(graph).graph.initializer) == 1


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    builder = GraphBuilder({"": 17})
    builder.output("y", builder.add("Gelu", builder.input("x", FLOAT)))
    graph = builder.build()
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")
    with pytest.raises(ModelError):
        save(graph, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    assert path.read_bytes() == b"before"
    with pytest.raises(OptionError, match="expected a folder"):
        save(graph_of("g (float x) => (float y) { y = Relu(x) }"), tmp_path / "none" / "model.onnx")


def test_a_file_can_be_saved_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parsed("g (float[200] x) => (y) { y = MatMul(x, w) }", w=np.ones((200, 200), np.float32)), path)
    graph = load(path)
    save(graph, path)
    save(graph, path)
    assert load(path) == graph
    assert run(onnx.load(path), x=np.ones(200, np.float32))[0].tolist() == [200.0] * 200


def test_saved_and_converted_models_are_the_same(tmp_path: Path) -> None:
    graph = from_model(with_everything())
    save(graph, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == to_model(graph)


def test_a_weight_that_is_spoken_of_keeps_its_name_as_an_output_too() -> None:
    model = parsed("g (float[2] x) => (y, z) { y = Identity(w)  z = Relu(x) }", w=np.ones(2, np.float32))
    model.graph.quantization_annotation.add(tensor_name="w")
    saved = to_model(from_model(model)).graph
    assert {"w"} <= {i.name for i in saved.initializer} and [o.name for o in saved.output] == ["y", "z"]


@pytest.mark.parametrize(("dims", "said"), [([0, 3], [0, 3]), ([2, 0], [-1]), ([2, 0], [2, 0]), ([0, 6], [0, 2, 3])])
def test_a_size_of_zero_is_written_before_there_was_an_attribute_for_it(dims: list[int], said: list[int]) -> None:
    """Reshape has ``allowzero`` since opset 14."""
    text = f"g (float{dims} x) => (y) {{ y = Reshape(x, s) }}"
    model = parsed(text, opset=13, s=np.array(said))
    saved = to_model(from_model(model))
    assert [numpy_helper.to_array(w).tolist() for w in saved.graph.initializer] == [said]
    (found,) = run(saved, x=np.zeros(dims, np.float32))
    assert found.shape == run(model, x=np.zeros(dims, np.float32))[0].shape


def test_a_size_of_zero_that_no_opset_below_14_can_say_is_refused() -> None:
    b = GraphBuilder({"": 13})
    b.output("y", b.add("Reshape", b.input("x", TensorType("float", (0, 3))), shape=(0, 0), allowzero=1))
    with pytest.raises(ModelError, match="expected an opset in which Reshape has the attribute 'allowzero', found 13"):
        to_model(b.build())


@pytest.mark.parametrize("kind", ["string", "complex64"])
def test_a_pad_of_no_numbers_is_kept(kind: str) -> None:
    graph = from_model(parsed(f"g ({kind}[1] x) => ({kind}[3] y) {{ y = Pad(x, p) }}", opset=13, p=np.array([1, 1])))
    ((_, pad),) = graph.operators()
    assert isinstance(pad.sig.op, OpaqueOperator)
    assert [node.op_type for node in to_model(graph).graph.node] == ["Pad"]


ZIPMAPS = """g (float[1, 2] x) => (y, z) {
    y = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (x)
    z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (x)
}"""
BRANCHES = """g (float[2] x, bool c) => (float[2] y) {
    a = SequenceEmpty()  b = SequenceEmpty()
    y = If (c) <then_branch = t () => (p) { s = SequenceInsert(a, x)  p = SequenceAt(s, i) },
                else_branch = e () => (q) { s = SequenceInsert(b, x)  q = SequenceAt(s, i) }>
}"""


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("g (float[4] x) => (y, z) { y = SplitToSequence(x)  z = SplitToSequence(x) }", 11),
        ("g (float[4] x) => (y, z) { y = Optional(x)  z = Optional(x) }", 15),
        ("g (float[4] x) => (int4[4] y, int4[4] z) { y = Cast <to = 22> (x)  z = Cast <to = 22> (x) }", 21),
        (ZIPMAPS, 13),
        (BRANCHES, 11),
    ],
)
def test_equal_values_that_no_identity_takes_are_computed_twice(text: str, opset: int) -> None:
    """They need two names, and there is no other way to give a value a second one."""
    model = parsed(text, opset=opset, i=np.array(0))
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    saved = to_model(from_model(model))
    assert [n.op_type for n in saved.graph.node] == [n.op_type for n in model.graph.node]
    onnx.shape_inference.infer_shapes(saved, check_type=True, strict_mode=True)


def test_new_names_avoid_those_of_which_the_file_says_a_type() -> None:
    """The Identity isn't written, but the type of its output may be, and is another than the new value's."""
    text = """g (float[4] x, int64[2] k) => (float[4] y, int64[2] z) <int64[2] Neg_3> {
        a = Neg(x)  y = Relu(a)  Neg_3 = Identity(k)  z = Add(Neg_3, Neg_3)
    }"""
    graph = from_model(parsed(text))
    ((node_id, node),) = ((i, n) for i, n in graph.operators() if n.sig.op.name == "Neg")
    assert node_id == 3
    nodes = {**graph.nodes, 3: node._replace(names=(None,))}
    saved = to_model(Graph(nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, graph.info))
    assert saved.graph.node[0].output[0] == "Neg_3_1"
    onnx.shape_inference.infer_shapes(saved, check_type=True, strict_mode=True)


def test_annotations_of_values_that_are_gone_are_dropped() -> None:
    text = "g (float[2] x) => (float[2] y) { same = Identity(x)  sum = Add(same, w)  y = Relu(sum) }"
    model = parsed(text, w=np.ones(2, np.float32))
    for name in ("x", "same", "sum", "w", "y"):
        model.graph.quantization_annotation.add(tensor_name=name)
    saved = to_model(from_model(model))
    assert [a.tensor_name for a in saved.graph.quantization_annotation] == ["x", "sum", "w", "y"]
