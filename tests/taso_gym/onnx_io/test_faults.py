"""Files that are no models: each ends in one clear error, or is read right."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fault_models import whole
from hypothesis import example, given
from hypothesis import strategies as st
from model_texts import op_names, parsed, run
from onnx import ModelProto, TensorProto, helper

from taso_gym.equivalence import validate
from taso_gym.errors import EquivalenceError, ModelError
from taso_gym.graph import check
from taso_gym.onnx_io import from_model, load, save, to_model
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.tensor import TensorType


def loads_or_raises(data: bytes, folder: Path) -> None:
    """Load bytes; a graph that comes out is sound, and what it is saved as is one, too."""
    path = folder / "model.onnx"
    path.write_bytes(data)
    try:
        graph = load(path)
    except ModelError:
        return
    check(graph)
    save(graph, folder / "saved.onnx")


def test_truncated_files(tmp_path: Path) -> None:
    data = whole().SerializeToString()
    load_path = tmp_path / "model.onnx"
    load_path.write_bytes(data)
    assert "Conv" in op_names(load(load_path))
    for end in range(0, len(data), 20):
        loads_or_raises(data[:end], tmp_path)
    for end in range(0, 1000, 100):
        load_path.write_bytes(data[:end])
        with pytest.raises(ModelError):
            load(load_path)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=4))
@example([(0, 0)])
def test_flipped_bits(tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]) -> None:
    data = bytearray(whole().SerializeToString())
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
    loads_or_raises(bytes(data), tmp_path_factory.mktemp("flipped"))


@pytest.mark.parametrize(
    "content", [b"", b"not a model", b"\x00" * 100, b"\x08\x09", b"\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"]
)
def test_other_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError, match="expected an ONNX model"):
        load(tmp_path / "model.onnx")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a file, found none at .*model\.onnx: No such file"):
        load(tmp_path / "model.onnx")
    with pytest.raises(ModelError):
        load(tmp_path)


def simple(nodes: str = "y = Relu(x)", **weights: object) -> ModelProto:
    return parsed(f"g (float[2, 3] x) => (float[2, 3] y) {{ {nodes} }}", **weights)


def ir_version(model: ModelProto, version: int) -> None:
    model.ir_version = version


def opset(model: ModelProto, version: int) -> None:
    model.opset_import[0].version = version


def tensor(model: ModelProto, **fields: object) -> None:
    model.graph.initializer.append(TensorProto(name="w", **fields))


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
FAULTS: list[tuple[str, Callable[[ModelProto], object], str]] = [
    ("y = Relu(x)", lambda m: ir_version(m, 99), "expected an IR version from 1 to"),
    ("y = Relu(x)", lambda m: ir_version(m, 0), "IR version .* found 0"),
    ("y = Relu(x)", lambda m: opset(m, 999), "opset 1 to .* of domain 'ai.onnx', found 999"),
    ("y = Relu(x)", lambda m: opset(m, 0), "found 0"),
    ("y = Relu(x)", lambda m: m.opset_import.add(domain="other", version=1 << 31), "domain 'other', found 21474"),
    ("y = Relu(x)", lambda m: m.ClearField("opset_import"), "opset import for the domain of Relu 'y'"),
    ("y = other.F(x)", lambda m: None, "opset import for the domain of other.F 'y'"),
    ("y = Relu(a)\na = Neg(b)\nb = Neg(a)", lambda m: None, "without cycles, found one through or before"),
    ("y = Relu(y)", lambda m: None, "cycles"),
    ("y = Relu(nothing)", lambda m: None, "inputs of Relu 'y' to be defined, found no 'nothing'"),
    ("y = If (c) <then_branch = t () => (float p) { p = Neg(q) }, else_branch = e () => (float p) { p = Neg(q) }>",
     lambda m: m.graph.initializer.append(helper.make_tensor("c", TensorProto.BOOL, [], [True])), "found no 'q'"),
    ("a = Relu(x)", lambda m: None, "graph output 'y' to be defined"),
    ("y = Relu(x)\ny = Neg(x)", lambda m: None, "defined once, found 'y' again in Neg 'y'"),
    ("x = Relu(x)", lambda m: None, "defined once, found 'x' again"),
    ("y = Relu(x, x)", lambda m: None, "expected Relu 'y' as its schema says"),
    ("y = Relu <alpha = 1>(x)", lambda m: None, "Unrecognized attribute: alpha"),
    ("y = Softmax <axis = 1.5>(x)", lambda m: None, "Mismatched attribute type"),
    ("y = Softmax <axis = 7>(x)", lambda m: None, "types and shapes that fit"),
    ("y = Transpose <perm = [0, 0]>(x)", lambda m: None, "types and shapes that fit"),
    ("y, z = Split <num_outputs = 2147483647>(x)", lambda m: None, "from 2 to 65536, found 2147483647 in Split"),
    ("y, z = Split <num_outputs = 1>(x)", lambda m: None, "num_outputs from 2 to 65536, found 1 in Split"),
    ("y = Conv(x)", lambda m: None, "expected Conv 'y' as its schema says"),
    ("y = Relu(x)", lambda m: m.graph.node[0].ClearField("op_type"), "found a node without one"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[5], float_data=[0.0] * 5), "Incompatible dimensions"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=INT64, dims=[3], int64_data=[0] * 3), "inconsistent type"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[3], raw_data=b"123"), "expected 12 bytes .* found 3"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[3], float_data=[1.0]), "expected 3 values .* found 1"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[1], int64_data=[1]), "expected 1 values .* found 0"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[-3]), "dimensions of 0 or more"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[2**62, 2**62]), "expected 2126764793255865396646"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=99, dims=[1]), "element type of ONNX, found number 99"),
    ("y = Add(x, w)", lambda m: tensor(m, dims=[1]), "element type of ONNX, found number 0"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=TensorProto.STRING, dims=[1], raw_data=b"a"), "found raw data"),
    ("y = Add(x, w)", lambda m: [tensor(m, data_type=FLOAT, float_data=[1.0]) for _ in range(2)], "'w' twice"),
    ("y = Relu(x)", lambda m: m.graph.input.append(m.graph.input[0]), "found 'x' twice"),
    ("y = Relu(x)", lambda m: m.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", INT64, [2, 3])),
     "graph output 'y': expected int64 as declared, found float"),
    ("y = Relu(x)", lambda m: m.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("y", FLOAT, None)),
     "expected sequence_type as declared"),
    ("y = Add(x, w)", lambda m: tensor(m, data_type=FLOAT, dims=[1], segment=TensorProto.Segment()), "a segment"),
    ("y = Constant()", lambda m: None, "expected one value in Constant 'y', found 0"),
    ("y = Constant <value = float {1.0}, value_int = 2>()", lambda m: None, "found 2"),
    ("y = Constant <other = 2>()", lambda m: None, "found the attribute 'other'"),
    ("y = Constant <value_float = 2.0>()", lambda m: m.graph.node[0].attribute[0].ClearField("type"),
     "expected value_float of type FLOAT in Constant 'y', found UNDEFINED"),
    ("y = Constant <value_int = 2>()", lambda m: setattr(m.graph.node[0].attribute[0], "name", "value_string"),
     "expected value_string of type STRING in Constant 'y', found INT"),
    ("y = Constant <value_int = 2>()", lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "a"),
     "found a reference to 'a' outside a function"),
    ("y = Relu(x)", lambda m: m.ClearField("graph"), "with a graph, found none"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "spoil", "message"), FAULTS, ids=[f[2] for f in FAULTS])
def test_faults(nodes: str, spoil: Callable[[ModelProto], object], message: str) -> None:
    model = simple(nodes)
    spoil(model)
    with pytest.raises(ModelError, match=message):
        from_model(model)


@pytest.mark.parametrize("shape", [[3, 2], [2], [2, 4], [-7, 3], [1 << 62, 3]])
def test_a_declared_output_shape_that_contradicts_is_kept_and_the_result_is_right(shape: list[int]) -> None:
    """As in onnxruntime, which says so and goes by the shapes that it finds."""
    model = simple("a = Mul(x, two)\n b = Mul(a, two)\n y = Neg(b)", two=np.float32(2))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, shape))
    graph = from_model(model)
    type_ = graph.type_of(graph.outputs[0])
    assert isinstance(type_, TensorType)
    assert type_.shape == (2, 3)
    state = RewriteState(graph, RuleSet.load("default"))
    state = state.apply(next(match for matches in state.matches for match in matches))
    saved = to_model(state.graph)
    assert validate(model, saved).ok
    (y,) = run(saved, x=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(y, np.full((2, 3), -4, np.float32))


@pytest.mark.parametrize("size", [-1, -(1 << 63), 1 << 40, (1 << 63) - 1])
def test_negative_and_huge_dimensions(size: int) -> None:
    """A negative size is none, as in onnxruntime; a huge one is kept, and no such input is drawn."""
    model = simple("y = Relu(x)")
    for info in (model.graph.input[0], model.graph.output[0]):
        info.type.tensor_type.shape.dim[0].dim_value = size
    graph = from_model(model)
    check(graph)
    assert from_model(to_model(graph)) == graph
    if size < 0:
        assert validate(model, graph).ok
    else:
        with pytest.raises(EquivalenceError, match=f"at most .* elements, found {3 * size} in 'x'"):
            validate(model, graph)


@pytest.mark.parametrize("size", [1 << 30, (1 << 63) - 1])
@pytest.mark.parametrize("inner", [False, True])
def test_long_vectors_take_no_memory(size: int, inner: bool) -> None:
    """ONNX's propagation of shape data would make an entry for each of their elements."""
    nodes = "y = Add(x, x)"
    if inner:
        branches = [f"{b}_branch = {b} () => (float[{size}] {b}y) {{ {b}y = Add(x, x) }}" for b in ("then", "else")]
        nodes = f"y = If (c) <{', '.join(branches)}>"
    model = parsed(f"g (float[{size}] x, bool c) => (y) {{ {nodes} }}")
    assert from_model(to_model(from_model(model))) == from_model(model)


def test_text_that_is_no_text() -> None:
    data = simple("y = Relu(x)").SerializeToString().replace(b"Relu", b"R\xff\xfe\xfd")
    with pytest.raises(ModelError, match=r"expected UTF-8 in NodeProto\.op_type"):
        from_model(ModelProto.FromString(data))


def test_a_node_that_only_python_can_read() -> None:
    """An unknown group with a field of number 0."""
    model = simple("y = Relu(x)")
    model.graph.node[0].MergeFromString(b"s\x05abcdt")
    with pytest.raises(ModelError, match="expected a model that ONNX itself can read"):
        from_model(model)


def test_an_initializer_that_contradicts_the_input_of_its_name() -> None:
    model = parsed("g (float[2, 3] x, float[4] w) => (float[2, 3] y) { y = Add(x, w) }", w=np.ones(3, np.float32))
    with pytest.raises(ModelError, match=r"initializer 'w': expected float\[4\] as the graph input of that name"):
        from_model(model)


def test_a_function_that_calls_itself() -> None:
    body = '<domain: "my", opset_import: ["" : 20, "my" : 1]> F (x) => (y) { y = my.F(x) }'
    with pytest.raises(ModelError, match=r"functions that don't call themselves, found that my.F does"):
        from_model(parsed("g (float[3] x) => (y) { y = my.F(x) }", more=body))


def test_shapes_that_contradict_only_once_constants_are_known() -> None:
    text = """g (float[2, 3] x) => (y) {
        s = Shape(x)
        t = Add(s, s)
        a = ConstantOfShape(t)
        y = Add(x, a)
    }"""
    with pytest.raises(ModelError, match="types and shapes that fit"):
        from_model(parsed(text))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(value: float) -> None:
    model = simple("y = Mul(x, w)", w=np.array([value, 1, 2], np.float32))
    graph = from_model(model)
    assert from_model(to_model(graph)) == graph
    assert validate(model, graph).ok


@pytest.mark.parametrize("length", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("op", ["Relu", "Identity", "my.F"])
def test_long_chains(op: str, length: int) -> None:
    """Nothing is recursive."""
    domain, _, name = op.rpartition(".")
    nodes = [helper.make_node(name, [f"v{i}"], [f"v{i + 1}"], domain=domain) for i in range(length)]
    info = [helper.make_tensor_value_info(n, FLOAT, [3]) for n in ("v0", f"v{length}")]
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]
    model = helper.make_model(helper.make_graph(nodes, "chain", info[:1], info[1:]), opset_imports=imports)
    graph = from_model(model)
    assert len(graph) == (0 if op == "Identity" else length)
    assert len(to_model(graph).graph.node) == max(len(graph), 1)


def test_wide_nodes() -> None:
    names = [f"x{i}" for i in range(500)]
    inputs = ", ".join(f"float[1] {n}" for n in names)
    graph = from_model(parsed(f"g ({inputs}) => (y) {{ y = Concat <axis = 0>({', '.join(names)}) }}"))
    assert len(next(n for _, n in graph.operators()).inputs) == 500
    too_many = ", ".join(["x"] * 70_000)
    with pytest.raises(ModelError, match="at most 65536 inputs and outputs of a node, found 70000 in Concat 'y'"):
        from_model(parsed(f"g (float[1] x) => (y) {{ y = Concat <axis = 0>({too_many}) }}"))


def test_a_function_may_be_told_into_how_many_parts_it_splits() -> None:
    function = (
        '<domain: "my", opset_import: ["" : 20]> F <n> (x) => (y, z) { y, z = Split <num_outputs: int = @n> (x) }'
    )
    model = parsed("g (float[4] x) => (y, z) { y, z = my.F <n = 2> (x) }", more=function)
    assert to_model(from_model(model)).functions == model.functions


def test_data_of_a_function_in_another_file_are_refused() -> None:
    nodes = "c = Constant <value = float[2] {1, 2}> ()  y = Add(x, c)"
    function = f'<domain: "my", opset_import: ["" : 20]> F (x) => (y) {{ {nodes} }}'
    model = parsed("g (float[2] x) => (y) { y = my.F(x) }", more=function)
    tensor = model.functions[0].node[0].attribute[0].t
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    with pytest.raises(ModelError, match="all data of function 'F' in it, found them in another file"):
        from_model(model)


@pytest.mark.parametrize("part", ["initialization", "algorithm"])
def test_data_of_a_training_graph_in_another_file_are_refused(part: str) -> None:
    model = simple()
    graph = getattr(model.training_info.add(), part)
    graph.name = "start"
    graph.initializer.add(name="w", data_location=TensorProto.EXTERNAL)
    with pytest.raises(ModelError, match="all data of the training graph 'start' in it, found them in another file"):
        from_model(model)


def test_a_split_of_another_domain_may_have_any_parts() -> None:
    graph = from_model(parsed("g (float[4] x) => (y, z) { y, z = my.Split <num_outputs = 1> (x) }"))
    assert op_names(graph) == ["[Split]"]


@pytest.mark.parametrize(
    "data", [b"", parsed("g (float[2] x) => (y) { y = Relu(none) }").SerializeToString()], ids=["empty", "undefined"]
)
def test_errors_of_a_file_say_which(data: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "some.onnx").write_bytes(data)
    with pytest.raises(ModelError, match=rf"^{path}: expected "):
        load(path)
