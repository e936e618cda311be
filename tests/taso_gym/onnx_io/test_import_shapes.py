"""What becomes of the sizes in a file, known, symbolic and open."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from model_texts import graph_of, op_names, parsed, run, weight_values

from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model, load, to_model
from taso_gym.onnx_io.convert import converted
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType


def output_type(graph: Graph, index: int = 0) -> TensorType:
    type_ = graph.type_of(graph.outputs[index])
    assert isinstance(type_, TensorType)
    return type_


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
    assert str(output_type(graph)) == "float[N, M, floor((8*A*B*C)/(M*N))]"


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ("zero, t, one", "int64[T]"),
        ("p, total, one", "int64[T]"),  # positions of new tokens after those that are past
        ("zero, total, one", "int64[T + P]"),
        ("one, t, one", "int64[y#0]"),  # nothing where there is one token: no symbol stands for that
        ("t, zero, minus", "int64[y#0]"),
        ("zero, t, two", "int64[y#0]"),
    ],
)
def test_a_range_has_as_many_numbers_as_it_counts(bounds: str, found: str) -> None:
    text = f"""g (float[T] x, float[P] z) => (y) {{
        s = Shape(x)  t = Squeeze(s)  v = Shape(z)  p = Squeeze(v)  total = Add(t, p)
        y = Range({bounds})
    }}"""
    constants = {"zero": np.array(0), "one": np.array(1), "two": np.array(2), "minus": np.array(-1)}
    graph = graph_of(text, **constants)
    assert str(output_type(graph)) == found
    assert str(output_type(from_model(to_model(graph)))) == found


def test_sizes_of_an_expand_are_chosen_as_torch_writes_it() -> None:
    """-1 stands for a size that stays, and becomes a 1; whether a size is that is known of symbols, too."""
    text = """g (float[N, 1, T] x) => (y) {
        s = Shape(x)  n = Slice(s, zero, one)  t = Slice(s, two, three)
        sizes = Concat <axis = 0> (n, eight, minus)  count = Shape(sizes)
        ones = ConstantOfShape <value = int64[1] {1}> (count)  kept = Mul(ones, minus)
        stays = Equal(sizes, kept)  chosen = Where(stays, ones, sizes)  y = Expand(x, chosen)
    }"""
    values = {"zero": 0, "one": 1, "two": 2, "three": 3, "eight": 8, "minus": -1}
    graph = graph_of(text, **{name: np.array([value]) for name, value in values.items()})
    assert op_names(graph) == ["Expand"] and str(output_type(graph)) == "float[N, 8, T]"


@pytest.mark.parametrize("size", ["N", "M"])
def test_a_choice_that_depends_on_sizes_stays_open(size: str) -> None:
    """N is at least 1, and may be 1; a condition stays one even where it is known, since it may be that of an If."""
    text = f"""g (float[N] x, float[M] z) => (y) {{
        s = Shape({"x" if size == "N" else "z"})  n = Shape(x)
        same = Equal(s, {"one" if size == "N" else "n"})  chosen = Where(same, minus, s)  y = Expand(w, chosen)
    }}"""
    graph = graph_of(text, one=np.array([1]), minus=np.array([7]), w=np.ones(1, np.float32))
    assert {"Equal", "Where", "[Expand]"} <= set(op_names(graph)) and str(output_type(graph)) == "float[y#0]"


def test_a_condition_that_is_known_stays_one() -> None:
    """onnxruntime inlines the branch of a constant one, and refuses what is in some."""
    text = "g (float[N] x) => (y) { s = Shape(x)  y = Equal(s, zero) }"
    assert op_names(graph_of(text, zero=np.array([0]))) == ["[Shape]", "Equal"]


def test_what_two_open_sizes_move_in_has_them() -> None:
    """No Reshape can state that by an attribute, but what comes out is known: heads as a batch, and apart again."""
    text = """g (float[N, 4, T, 8] x) => (y) {
        s = Shape(x)  t = Slice(s, two, four)  folded = Concat <axis = 0> (minus, t)
        r = Reshape(x, folded)  u = Transpose <perm = [0, 2, 1]> (r)
        n = Slice(s, zero, two)  apart = Concat <axis = 0> (n, eight, minus)  y = Reshape(u, apart)
    }"""
    values = {"zero": 0, "two": 2, "four": 4, "eight": 8, "minus": -1}
    graph = graph_of(text, **{name: np.array([value]) for name, value in values.items()})
    assert str(output_type(graph)) == "float[N, 4, 8, T]"
    assert "[4*N, 8, T]" in "".join(str(n.sig) for _, n in graph.operators())


def test_a_negative_size_is_an_unknown_one() -> None:
    model = parsed("g (float[7, 3] x) => (float[7, 3] y) { y = Relu(x) }")
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    graph = from_model(model)
    assert output_type(graph).shape == (symbol("x#0"), 3)
    assert to_model(graph).graph.input[0].type.tensor_type.shape.dim[0].dim_value == -1


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


def test_names_that_an_earlier_inference_made_up_say_nothing(tmp_path: Path) -> None:
    """onnx's version converter leaves them behind; values that inference leaves open are called the same now."""
    text = """g (int64[3] x) => (y) {
        s = Shape(x)  n = Squeeze(s)  m = Max(n, one)  r = Range(zero, m, one)  y = Add(x, r)
    }"""
    path = tmp_path / "model.onnx"
    onnx.save(parsed(text, zero=np.array(0), one=np.array(1)), path)
    assert op_names(from_model(converted(path, 23))) == op_names(load(path)) == ["Add"]


def test_dims_bind_symbols_for_costs_only(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parsed("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"), path)
    graph = load(path, dims={"batch": 4})
    assert graph.info.dims == {"batch": 4}
    assert graph == load(path)
    assert to_model(graph) == to_model(load(path))
    with pytest.raises(OptionError, match="among batch, found 'seq'"):
        load(path, dims={"seq": 4})


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (5, "expected a mapping from names to sizes as dims, found 5"),
        ({5: 5}, "expected a mapping from names to sizes as dims, found {5: 5}"),
        ({"batch": "4"}, "expected size of 'batch' to be a whole number from 1 on, found '4'"),
        ({"batch": 0}, "expected size of 'batch' to be a whole number from 1 on, found 0"),
        ({"b": 1}, "expected a dimension of the model's inputs among batch, found 'b'"),
    ],
)
def test_dims_of_wrong_kinds_are_named(tmp_path: Path, dims: Any, message: str) -> None:
    model = parsed("g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }")
    onnx.save(model, tmp_path / "model.onnx")
    for source in (model, tmp_path / "model.onnx"):
        with pytest.raises(OptionError, match=message):
            load(source, dims=dims)


def test_a_model_of_fixed_sizes_has_no_dimension_to_set() -> None:
    with pytest.raises(OptionError, match=r"inputs \(there is none, as all sizes are fixed\), found 'batch'"):
        load(parsed("g (float[2, 3] x) => (y) { y = Relu(x) }"), dims={"batch": 1})


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", "float[N, 3, 8, 8]"),
        ('<keep_aspect_ratio_policy = "stretch">', "float[N, 3, 8, 8]"),
        ('<keep_aspect_ratio_policy = "not_larger">', "float[r#0, r#1, r#2, r#3]"),
    ],
)
def test_sizes_that_are_computed_are_those_of_what_is_resized(attributes: str, expected: str) -> None:
    """As torch writes interpolation to the height and width of another image, with a batch of any size."""
    text = f"""g (float[N, 3, 4, 4] x, float[N, 3, 8, 8] z) => (y) {{
        e = Shape(z)  k = Slice(e, two, four)  c = Cast <to = 7>(k)
        s = Shape(x)  l = Slice(s, zero, two)  t = Concat <axis = 0>(l, c)
        r = Resize {attributes}(x, , , t)  y = Relu(r)
    }}"""
    graph = graph_of(text, zero=np.array([0]), two=np.array([2]), four=np.array([4]))
    assert str(output_type(graph)) == expected


def test_what_is_left_of_the_elements_is_a_size() -> None:
    """As torch writes attention with a mask: no constant shape says what this Reshape does, so it stays opaque."""
    text = """g (float[N, 2, S, 8] x, float[N, 2, S, S] mask) => (y) {
        t = Shape <start = 2>(x)  p = Concat <axis = 0>(rest, t)  r = Reshape(x, p)
        k = Transpose <perm = [0, 2, 1]>(r)
        f = Shape <start = 0, end = 2>(x)  e = Shape <start = 2, end = 3>(x)
        q = Concat <axis = 0>(f, rest, e)  b = Reshape(k, q)
        a = MatMul(x, b)  y = Add(a, mask)
    }"""
    graph = graph_of(text, rest=np.array([-1]))
    assert str(output_type(graph)) == "float[N, 2, S, S]"
    assert op_names(graph)[-2:] == ["MatMul", "Add"]


@pytest.mark.parametrize(
    "node",
    [
        "y = Gemm(h, w)",
        "r = Reshape(h, shape) y = Relu(r)",
        "s = Shape(h) y = Expand(x, s)",
        "y = BatchNormalization(h, v, v, v, v)",
        "y = QuantizeLinear(x, one, h)",
        'y = RegexFullMatch <pattern = "a">(h)',
        'y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_floats = [1.0]>(h)',
        'y = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a"]>(h)',
    ],
)
def test_an_operand_of_unknown_type_is_no_contradiction(node: str) -> None:
    """Nothing says what my.F gives, and ONNX takes some operators on such an operand for wrong, or ends the process."""
    text = f"g (float[N, 4] x) => (float[N, 4] y) {{ h = my.F(x) {node} }}"
    ones: dict[str, Any] = {n: np.ones(s, np.float32) for n, s in {"w": (4, 4), "v": (4,), "one": ()}.items()}
    model = parsed(text, shape=np.array([-1, 4]), **ones)
    model.opset_import.add(domain="ai.onnx.ml", version=2)
    graph = from_model(model)
    assert from_model(to_model(graph)) == graph
    assert all(name.startswith("[") for name in op_names(graph))


def test_sizes_without_an_axis_are_compared() -> None:
    """Of two scalars NumPy gives no array: a symbol, or a number where the symbols cancel."""
    text = """g (float[N, 4] x) => (y, z) {
        s = Shape(x)  n = Gather(s, zero)  y = Equal(n, one)  z = Equal(n, n)
    }"""
    graph = graph_of(text, zero=np.array(0), one=np.array(1))
    assert op_names(graph).count("Equal") == 2


def test_of_what_is_counted_there_may_be_none() -> None:
    text = """g (float[3] x) => (y) {
        found = NonZero(x)  s = Shape(found)  n = Slice(s, one, two)
        none = Equal(n, zero)  y = Where(none, seven, five)
    }"""
    values = {"zero": 0, "one": 1, "two": 2, "five": 5, "seven": 7}
    graph = graph_of(text, **{name: np.array([value]) for name, value in values.items()})
    for x, expected in (np.zeros(3, np.float32), 7), (np.ones(3, np.float32), 5):
        assert run(to_model(graph), x=x)[0] == [expected]


@pytest.mark.parametrize(
    ("nodes", "factor", "expected"),
    [
        ("p = Mul(s, k)", 2**62, 0),
        ("q = Mul(s, k) p = Add(q, k)", 2**62, 2**62),
        ("i = Cast <to = 6>(s) j = Cast <to = 6>(k) q = Mul(i, j) r = Mul(q, j) p = Cast <to = 7>(r)", 2**20, 0),
    ],
)
def test_sizes_that_leave_their_integers_wrap_when_it_runs(nodes: str, factor: int, expected: int) -> None:
    text = f"g (float[N, 4] x) => (y) {{ s = Shape(x) {nodes} y = Gather(p, one) }}"
    model = parsed(text, k=np.array([1, factor]), one=np.array(1))
    x = np.ones((3, 4), np.float32)
    assert run(to_model(from_model(model)), x=x)[0] == run(model, x=x)[0] == expected


def test_powers_of_sizes_are_unknown_from_some_on() -> None:
    """Of 40 squares the last would have 2^40 factors."""
    squares = " ".join(f"s{i + 1} = Mul(s{i}, s{i})" for i in range(40))
    graph = graph_of(f"g (float[N] x) => (y) {{ s0 = Shape(x) {squares} y = Expand(x, s40) }}")
    assert op_names(graph) == ["[Shape]", *["Mul"] * 40, "[Expand]"]


def test_what_is_reshaped_to_many_sums_stays_opaque() -> None:
    """The product of 30 sums has 2^30 terms."""
    dims = ", ".join(f"D{i}" for i in range(60))
    text = f"""g (float[{dims}] x) => (y) {{
        s = Shape(x)  a = Slice(s, zero, end, zero, two)  b = Slice(s, one, end, zero, two)
        c = Add(a, b)  y = Reshape(x, c)
    }}"""
    values = {"zero": 0, "one": 1, "two": 2, "end": 60}
    graph = graph_of(text, **{name: np.array([value]) for name, value in values.items()})
    assert op_names(graph)[-1] == "[Reshape]"


def test_a_dimension_that_is_called_by_a_number_is_not_that_number() -> None:
    text = "g (int64[3, 3] x, int64 depth) => (y) { h = OneHot(x, depth, v)  s = Shape(h)  y = Gather(s, zero) }"
    model = parsed(text, v=np.float32([0, 1]), zero=np.array(0))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "3"
    feeds = {"x": np.ones((5, 3), np.int64), "depth": np.array(4)}
    assert run(to_model(from_model(model)), **feeds)[0] == run(model, **feeds)[0] == 5
