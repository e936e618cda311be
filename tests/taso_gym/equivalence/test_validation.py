"""Equal models are found equal, others are told apart, and rounding is told from errors."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from model_texts import graph_of, parsed

from taso_gym.equivalence import subject, validate, validation
from taso_gym.equivalence.child import run_in_child
from taso_gym.equivalence.compare import compare
from taso_gym.equivalence.drawn import Draw
from taso_gym.equivalence.logits import Logits
from taso_gym.equivalence.runtime import run_model
from taso_gym.equivalence.validation import report_on
from taso_gym.errors import CostError, EquivalenceError, MissingPackageError, OptionError
from taso_gym.onnx_io import from_model
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

F32 = np.float32


def test_a_model_is_equal_to_itself() -> None:
    model = parsed("g (float[N, 4] x) => (y, s) { y = MatMul(x, w)\n s = Shape(x) }", w=F32(0.1) * np.eye(4, dtype=F32))
    report = validate(model, from_model(model))
    assert report.ok
    assert report.max_relative_error == 0
    assert report.draws == ("N=1", "N=2", "N=3")
    assert report.basis == "float64 reference"
    assert report.outputs[0].reference is not None
    text = str(report)
    assert "│ y" in text
    assert text.splitlines()[-1] == "equal: largest relative error 0.0e+00 over 3 draws"


def test_sizes_that_depend_on_values_are_known_to_the_reference() -> None:
    """How many rows are left is a symbol of the model's own, which is in the shape that they are given."""
    text = """g (float[N, 4] x, bool[N] kept) => (y) {
        rows = Compress <axis = 0>(x, kept)  s = Shape <start = 0, end = 1>(rows)
        p = Concat <axis = 0>(s, two, two)  r = Reshape(rows, p)  y = Relu(r)
    }"""
    model = parsed(text, two=np.array([2]))
    assert any("rows#0" in str(node.sig) for _, node in from_model(model).operators() if node.sig.op.key == "Reshape")
    assert validate(model, model, tolerance=1e-6).basis == "float64 reference"


def test_inputs_that_give_nothing_finite_are_drawn_again() -> None:
    """One negative number makes all of the sum NaN, and any two NaN are equal; of 0 and 1 there is something to see."""
    root = (
        "g (int64[N, 16] n) => (y) {{ m = Mul(n, one) f = Cast <to = 1>(m) s = {}(f) y = ReduceSum <keepdims = 0>(s) }}"
    )
    model, other = (parsed(root.format(op), one=np.array(1)) for op in ("Sqrt", "Log"))
    report = validate(model, model)
    assert report.ok
    assert "nothing finite" not in str(report)
    assert not validate(model, other).ok
    empty = validate(other, other)  # the logarithm of 0 is infinite whatever is drawn
    assert empty.ok
    assert "nothing finite" in str(empty)


def test_another_model_is_not() -> None:
    w = np.ones((4, 4), F32)
    text = "g (float[3, 4] x) => (y, z) { y = Relu(x)\n z = MatMul(x, w) }"
    report = validate(parsed(text, w=w), parsed(text, w=w * F32(1.001)))
    assert not report.ok
    assert [o.ok for o in report.outputs] == [True, False]
    assert report.max_relative_error == pytest.approx(1e-3, rel=0.01)
    assert str(report).splitlines()[-1].startswith("different: output 'z': relative error 1.0e-03 above 0.0001")
    assert validate(parsed(text, w=w), parsed(text, w=w * F32(1.001)), tolerance=1e-2).ok


def test_an_output_that_does_not_depend_on_the_inputs_is_named() -> None:
    """With a head of zeros any two bodies look equal; the rewritten parts are compared then."""
    text = "g (float[3, 4] x) => (y, z) {{ h = {}(x)\n y = MatMul(h, head)\n z = Neg(x) }}"
    good, bad = (parsed(text.format(body), head=np.zeros((4, 2), F32)) for body in ("Relu", "Abs"))
    report = validate(good, bad)
    assert report.ok and [o.is_constant for o in report.outputs] == [True, False]
    assert report.verdict.endswith("over 3 draws; the same for all of them, which says little: 'y'")
    assert "constant" in str(report)
    state = RewriteState(from_model(good), RuleSet(parse_rules("false: Relu(x) => Abs(x)")))
    ((match,),) = state.matches
    assert not validate(good, bad, rewritten=(state.graph, state.child_graph(match))).ok
    assert "little" not in validate(good, good, inputs=[{"x": np.ones((3, 4), F32)}]).verdict


@pytest.mark.parametrize(
    ("node", "other"),
    [
        ("y = NonMaxSuppression(x, x, most, half, high)", "y = NonMaxSuppression(x, x, most, none, high)"),
        ("h = Neg(x)  y = Compress(h, never)", "h = Abs(x)  y = Compress(h, never)"),
        ("h = Greater(x, high)  y = NonZero(h)", "h = Less(high, x)  y = NonZero(h)"),
        ("h = Mul(x, none)  y = ArgMax(h)", "h = Mul(none, x)  y = ArgMax(h)"),
        ("h = Abs(x)  y = GreaterOrEqual(h, none)", "h = Neg(x)  g = Abs(h)  y = GreaterOrEqual(g, none)"),
    ],
)
def test_an_output_that_is_always_empty_or_the_same_numbers_is_named(node: str, other: str) -> None:
    weights: dict[str, Any] = {"most": 3, "half": F32([0.5]), "high": F32([1e3]), "none": F32([0]), "never": [False]}
    first, second = (parsed(f"g (float[1, 4, 4] x) => (y, z) {{ {n}  z = Neg(x) }}", **weights) for n in (node, other))
    report = validate(first, second)
    assert report.ok and [o.is_constant for o in report.outputs] == [True, False]
    assert "says little: 'y'" in report.verdict


def test_an_output_that_no_input_reaches_is_compared_whole() -> None:
    text = "g (float[2, 3] x) => (y, s, c) { y = Relu(x)  s = Shape(x)  c = Identity(w) }"
    model = parsed(text, w=np.ones(2, F32))
    report = validate(model, model)
    assert report.ok and not any(o.is_constant for o in report.outputs) and "little" not in report.verdict
    assert not validate(model, parsed(text, w=np.zeros(2, F32))).ok


def test_inputs_that_give_nothing_are_drawn_again() -> None:
    """Of 0 and 1 the largest is below 2, and not below 1."""
    text = "g (int64[16, 16] n) => (y) {{ a = Abs(n)  m = ReduceMax(a)  c = Less(m, {})  y = NonZero(c) }}"
    good, bad = (parsed(text.format(bound), one=np.array(1), two=np.array(2)) for bound in ("two", "one"))
    assert validate(good, good).ok
    assert not validate(good, bad).ok


def test_rounding_is_told_from_errors() -> None:
    """1e4 + x - 1e4 loses four digits in either order of its terms; 2x loses none, and is wrong."""
    text = "g (float[50] x) => (y) { a = Add(x, big)\n b = Sub(a, big)\n y = Mul(b, one) }"
    loses = parsed(text, big=F32(1e4), one=F32(1))
    other = parsed(
        "g (float[50] x) => (y) { a = Sub(x, big)\n b = Add(a, big)\n y = Mul(b, one) }", big=F32(7777), one=F32(1)
    )
    report = validate(loses, other, tolerance=1e-4)
    assert report.max_relative_error > 1e-4
    assert report.ok
    assert report.outputs[0].is_rounding
    assert "rounding" in str(report)
    wrong = parsed(text, big=F32(1e4), one=F32(1.01))
    assert not validate(loses, wrong).ok


def masked(factor: float, fill: float = -1e9) -> onnx.ModelProto:
    """Return logits, of which some are masked: what is added to the fill is rounded away in float32 only."""
    text = "g (float[2, 8] x) => (y) { s = Sigmoid(x)\n t = Mul(s, k)\n y = Add(t, m) }"
    return parsed(text, k=F32(factor), m=F32([0, 0, 0, 0, 0, fill, fill, fill]))


@pytest.mark.parametrize("fill", [-1e4, -1e9, -3e38])
@pytest.mark.parametrize("factor", [1.5, -3])
def test_wrong_logits_beside_a_mask_are_no_rounding(fill: float, factor: float) -> None:
    report = validate(masked(1, fill), masked(factor, fill))
    assert not report.ok and not report.outputs[0].is_rounding
    assert report.max_relative_error == pytest.approx(abs(factor - 1), rel=1e-4)
    assert validate(masked(1, fill), masked(1, fill)).ok


def test_logits_beside_a_mask_may_round() -> None:
    text = "g (float[50] x, float[50] mask) => (y) {{ a = {}\n b = {}\n t = Mul(b, one)\n y = Add(t, mask) }}"
    loses = parsed(text.format("Add(x, big)", "Sub(a, big)"), big=F32(1e4), one=F32(1))
    other = parsed(text.format("Sub(x, big)", "Add(a, big)"), big=F32(7777), one=F32(1))
    feeds = {"x": np.linspace(-1, 1, 50, dtype=F32), "mask": np.repeat(F32([0, -1e9]), 25)}
    report = validate(loses, other, inputs=[feeds])
    assert report.max_relative_error > 1e-4
    assert report.ok and report.outputs[0].is_rounding


def test_what_the_reference_can_not_compute_is_said() -> None:
    model = parsed("g (float[3, 3] x) => (y) { y = com.microsoft.Inverse(x) }")
    report = validate(model, model)
    assert report.ok
    assert report.basis.startswith("float32 only: expected a deterministic operator")


def test_large_models_are_compared_in_float32_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 10)
    model = parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.full(4, 0.1, F32))
    assert validate(model, model).basis == "float32 only: weights of 16 bytes"


def test_models_of_much_work_are_computed_in_float64_only_where_outputs_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.full(4, 0.1, F32))
    monkeypatch.setattr(validation, "MOST_FLOPS", 4)
    assert validate(model, model).basis == "float64 reference"
    monkeypatch.setattr(validation, "MOST_FLOPS", 3)
    assert validate(model, model).basis == "float32 only: 0 GFLOP"
    report = validate(model, parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.full(4, 0.2, F32)))
    assert report.basis == "float64 reference" and report.outputs[0].reference and not report.ok


def test_one_sample_of_a_batch_is_computed_in_float64_where_no_outputs_differ() -> None:
    model = parsed("g (float[3, 4] x) => (float[3, 4] y) { y = Mul(x, w) }", w=np.full(4, 0.1, F32))
    report = validate(model, model)
    assert report.ok and report.basis == "float64 reference of one sample"
    assert report.outputs[0].reference and 0 < report.outputs[0].reference[0] < 1e-7
    mixed = parsed(
        "g (float[3, 4] x) => (float[3, 4] y) { a = Mul(x, w)\n y = Softmax <axis = 0> (a) }", w=np.ones(4, F32)
    )
    assert validate(mixed, mixed).basis == "float64 reference"
    other = parsed(
        "g (float[3, 4] x) => (float[3, 4] y) { y = Mul(x, w) }", w=np.full((3, 4), [[0.1]] * 2 + [[0.2]], F32)
    )
    report = validate(model, other)
    assert not report.ok and report.basis == "float64 reference"
    assert report.outputs[0].reference and report.outputs[0].reference[1] > 0.1


def test_a_reference_of_fewer_rows_excuses_nothing() -> None:
    """As an operator gives whose rows depend on the values."""
    with ExitStack() as stack:
        first = subject.subject(parsed("g (float[4] x) => (float[4] y) { y = Relu(x) }"), stack)
        drawn = [Draw({}, {"x": np.ones(4, F32)}, [np.ones(4, F32)])]
        report = report_on(first, drawn, [[np.float32([1, 1, 9, 9])]], ("",), lambda _: [np.ones(2)])
    assert not report.ok and report.basis == "float64 reference"


def test_large_models_run_in_processes_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subject, "CHILD_BYTES", 10)
    model = parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.ones(4, F32))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    assert validate(path, from_model(model)).ok
    assert not validate(path, parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.zeros(4, F32))).ok


def test_a_large_model_is_run_as_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as it is written back: what both would get wrong couldn't be seen."""
    monkeypatch.setattr(subject, "FILE_BYTES", 10)
    model = parsed("g (float[4] x) => (y) { d = Dropout(x)\n y = Mul(d, w) }", w=np.ones(4, F32))
    with ExitStack() as stack:
        content = subject.subject(model, stack).content
        assert isinstance(content, Path) and onnx.load(content) == model
    assert not content.exists()


def test_rewritten_parts_of_much_work_are_not_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 1)
    graph = from_model(parsed("g (float[4] x) => (y) { a = Mul(x, w)\n y = Relu(a) }", w=np.full(4, 0.1, F32)))
    state = RewriteState(graph, RuleSet(parse_rules("max: Relu(x) => Max(x, 0)")))
    child = state.child_graph(state.matches[0][0])
    assert validate(graph, child, rewritten=(graph, child)).basis.startswith("float64 reference of the rewritten parts")
    monkeypatch.setattr(validation, "MOST_FLOPS", 7)
    basis = validate(graph, child, rewritten=(graph, child)).basis
    assert basis == "float32 only: weights of 16 bytes; nor the rewritten parts together: 0 GFLOP"


def test_equal_rewritten_parts_excuse_no_logits_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 1)
    graph = from_model(parsed("g (float[4, 3] x) => (y) { z = Mul(x, w)\n y = Softmax(z) }", w=np.full(3, 0.1, F32)))
    failing = from_model(parsed("g (float[4, 3] x) => (y) { z = Gather(x, i)\n y = Relu(z) }", i=np.int64([9])))
    logits = Logits(graph, failing, frozenset({"y"}))
    monkeypatch.setattr(validation, "logits_of", lambda _, second: None if second is failing else logits)
    report = validate(graph, graph, rewritten=(graph, graph))
    assert "it doesn't run" in report.failure and not report.ok
    assert report.basis.startswith("float64 reference of the rewritten parts")


def test_a_child_gives_what_the_process_itself_gives(tmp_path: Path) -> None:
    text = """g (bfloat16[2] x, seq(float[2]) s, string[2] t) => (y, u, v) {
        y = Identity(x)
        u = Identity(s)
        v = Identity(t)
    }"""
    text_plain = text.replace("bfloat16[2]", "float16[2]")
    path = tmp_path / "model.onnx"
    onnx.save(parsed(text_plain), path)
    feeds = {"x": np.float16([1, 2]), "s": [F32([1, 2])], "t": np.array(["a", "ü"], object)}
    (here,), (there,) = run_model(path, [feeds]), run_in_child(path, [feeds])
    assert not isinstance(here, str)
    assert all(compare(a, b).ok for a, b in zip(here, there, strict=True))
    assert run_in_child(path, [{}]) == run_model(path, [{}])


def test_no_room_for_temporary_files_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(subject, "FILE_BYTES", -1)
    model = parsed("g (float[2] x) => (y) { y = Relu(x) }")
    with pytest.raises(CostError, match=r"expected room for a model in .*none, found"):
        run_in_child(tmp_path / "model.onnx", [{}])
    with pytest.raises(CostError, match=r"expected room for a model in .*none, found"):
        validate(model, model)


def test_element_types_that_numpy_lacks() -> None:
    import ml_dtypes

    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        name = "bfloat16" if dtype is ml_dtypes.bfloat16 else "float8e4m3fn"
        model = parsed(f"g ({name}[3] x) => ({name}[3] y) {{ y = Identity(x) }}")
        x = np.array([1, 2, -3], dtype)
        ((y,),) = run_model(model.SerializeToString(), [{"x": x}])
        assert y.dtype == dtype
        assert y.tolist() == x.tolist()


def test_models_with_other_interfaces_are_not_compared() -> None:
    a = parsed("g (float[4] x) => (y) { y = Relu(x) }")
    for text in ("g (float[4] z) => (y) { y = Relu(z) }", "g (double[4] x) => (y) { y = Relu(x) }"):
        with pytest.raises(EquivalenceError, match="expected models with the same inputs"):
            validate(a, parsed(text))
    with pytest.raises(EquivalenceError, match="expected models with the same outputs"):
        validate(a, parsed("g (float[4] x) => (z) { z = Relu(x) }"))


def test_a_model_that_does_not_run() -> None:
    runs = parsed("g (float[2, 4] x, int64[1] i) => (y) { y = Squeeze(x, i) }")
    with pytest.raises(EquivalenceError, match="inputs that the first model runs on, found none among 12 drawn ones"):
        validate(runs, runs)
    a = parsed(
        "g (float[4] x) => (y) { y = my.F(x) }",
        more='<domain: "my", opset_import: ["" : 20]> F (x) => (y) { y = Neg(x) }',
    )
    report = validate(a, parsed("g (float[4] x) => (y) { y = my.F(x) }"))
    assert not report.ok
    assert str(report).splitlines()[-1].startswith("different: the second model: it doesn't run")


def test_given_inputs() -> None:
    model = parsed("g (float[2, 4] x, int64[1] i) => (y) { y = ReduceSum <keepdims = 0>(x, i) }")
    report = validate(model, model, inputs=[{"x": np.ones((2, 4), F32), "i": np.array([1])}])
    assert report.ok
    assert report.draws == ("",)
    assert validate(model, model, inputs=[{"x": [[1, 2, 3, 4], [5.5, 6, 7, 8]], "i": [1]}]).ok
    with pytest.raises(EquivalenceError, match=r"expected a tensor for input 'x', found \[\[1\], \[2, 3\]\]: "):
        validate(model, model, inputs=[{"x": [[1], [2, 3]], "i": [1]}])
    with pytest.raises(EquivalenceError, match="on the given inputs"):
        validate(model, model, inputs=[{}])
    with pytest.raises(OptionError, match="at least one draw"):
        validate(model, model, draws=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": 5}, "expected a Graph, ModelProto or path as model, found 5"),
        ({"inputs": 5}, "expected for each draw a mapping from input names to values, found 5"),
        ({"inputs": {"x": [1.0]}}, "expected for each draw a mapping from input names to values, found {'x': "),
        ({"draws": None}, "expected a whole number as draws, found None"),
        ({"draws": 1.5}, "expected a whole number as draws, found 1.5"),
        ({"seed": "x"}, "expected a seed of 0 or more, found 'x'"),
        ({"tolerance": "x"}, "expected a finite number as tolerance, found 'x'"),
        ({"dims": 5}, "expected a mapping from names to sizes as dims, found 5"),
    ],
)
def test_arguments_of_wrong_kinds_are_named(arguments: dict[str, Any], message: str) -> None:
    graph = graph_of("g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }")
    with pytest.raises(OptionError, match=message):
        validate(**{"a": graph, "b": graph, **arguments})


def test_drawn_inputs_that_do_not_fit_are_tamed() -> None:
    """Indices that nothing bounds: 3 and -3 are out of range, 0 and 1 are not."""
    model = parsed(
        "g (float[2] x, int64[5] i) => (y) { y = ScatterElements(z, i, u)\n z = Neg(x)\n u = Cast <to = 1>(i) }"
    )
    assert validate(model, model).ok


def test_without_onnxruntime_the_error_names_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model = parsed("g (float[4] x) => (y) { y = Relu(x) }")
    with pytest.raises(MissingPackageError, match=r"taso-gym\[cpu\].*taso-gym\[gpu\]"):
        validate(model, model)


def test_sizes_of_given_inputs_are_known_to_the_reference() -> None:
    """No value but the input itself has N by itself, and the shape that it is given needs it."""
    text = """g (float[N, 4, 2] x) => (y) {
        s = Shape <start = 0, end = 1>(x)  p = Concat <axis = 0>(s, eight)  r = Reshape(x, p)  y = Relu(r)
    }"""
    model = parsed(text, eight=np.array([8]))
    report = validate(model, model, inputs=[{"x": np.ones((3, 4, 2), F32)}])
    assert report.basis == "float64 reference"


def test_a_reference_that_memory_is_short_for_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What onnxruntime computes in float32 may not fit in float64."""

    def short(*_: object, **__: object) -> None:
        raise MemoryError

    graph = from_model(parsed("g (float[4] x) => (float[4] y) { y = Exp(x) }"))
    monkeypatch.setattr(validation, "run_graph", short)
    report = validate(graph, graph)
    assert report.ok and "memory is short" in report.basis
