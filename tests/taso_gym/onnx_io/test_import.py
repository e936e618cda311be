"""What becomes of the nodes of a file."""

import numpy as np
import pytest
from model_texts import graph_of, op_names, parsed, run

from taso_gym.builder import GraphBuilder
from taso_gym.onnx_io import from_model, to_model
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.signature import OpaqueOperator
from taso_gym.tensor import OtherType, TensorType


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


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_pads_of_dilated_pools_that_onnxruntime_makes_another_way_stay_its_own(pool: str) -> None:
    attributes = 'auto_pad = "SAME_UPPER", dilations = [2, 2], kernel_shape = [3, 3]'
    model = parsed(f"g (float[1, 1, 8, 8] x) => (y) {{ y = {pool} <{attributes}> (x) }}")
    graph = from_model(model)
    assert op_names(graph) == [f"[{pool}]"]
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    np.testing.assert_array_equal(run(to_model(graph), x=x)[0], run(model, x=x)[0])


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


def test_files_before_opset_imports() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { y = Relu(x) }", ir=2)
    del model.opset_import[:]
    graph = from_model(model)
    assert graph.info.opsets == {"": 1}
    assert op_names(graph) == ["[Relu]"]
    assert not to_model(graph).opset_import


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


def test_nodes_that_come_in_the_wrong_order_are_sorted() -> None:
    model = parsed("g (float[3] x) => (float[3] y) { y = Neg(a)\n a = Relu(x) }")
    assert op_names(from_model(model)) == ["Relu", "Neg"]


@pytest.mark.parametrize(("node", "merged"), [("Mul", True), ("Max", True), ("Sub", False), ("MatMul", False)])
def test_equal_nodes_are_merged_in_either_order_of_operands(node: str, merged: bool) -> None:
    text = f"g (float[3, 3] x, float[3, 3] y) => (p, q) {{ p = {node}(x, y)\n r = {node}(y, x)\n q = Relu(r) }}"
    assert len(graph_of(text)) == (2 if merged else 3)


@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_equal_nodes_are_shared_in_either_order_of_operands(name: str) -> None:
    b = GraphBuilder({"": 20})
    x, y = (b.input(n, TensorType("float", (3,))) for n in "xy")
    b.output("p", b.add("Relu", b.add(name, x, y)))
    b.output("q", b.add("Exp", b.add(name, y, x)))
    state = RewriteState(b.build(), RuleSet.load("default"))
    (match,) = state.matches[[rule.name for rule in state.rules].index(f"share-{name.lower()}")]
    assert len(state.apply(match).graph) == len(state.graph) - 1


def test_the_standard_domain_may_be_spelt_out() -> None:
    model = parsed("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].domain = "ai.onnx"
    assert op_names(from_model(model)) == ["Relu"]


@pytest.mark.parametrize("end", [2**31 - 1, 2**63 - 1, 2**31 - 2, 2**63 - 2, -(2**31)])
@pytest.mark.parametrize(("start", "step"), [(3, -1), (-1, -2), (9, -3), (0, -1), (1, 1)])
def test_slices_end_where_onnxruntime_ends_them(start: int, end: int, step: int) -> None:
    """Backward, the largest end is element 0, and the next smaller one is beyond the start: nothing is picked."""
    bounds = {"starts": [start], "ends": [end], "axes": [0], "steps": [step]}
    text = "g (float[4] x) => (y) { y = Slice(x, starts, ends, axes, steps) }"
    for dtype in (np.int64,) if end > 2**31 else (np.int64, np.int32):
        model = parsed(text, **{name: np.array(values, dtype) for name, values in bounds.items()})
        graph, x = from_model(model), np.arange(4, dtype=np.float32)
        (before,), (found,) = run(model, x=x), run(to_model(graph), x=x)
        assert found.tolist() == before.tolist()
        assert graph.type_of(graph.outputs[0]).shape == before.shape
