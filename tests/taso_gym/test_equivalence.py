"""Equal models are found equal, others are told apart, and rounding is told from errors."""

import math
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from model_texts import graph_of, op_names, parsed

from taso_gym.builder import GraphBuilder
from taso_gym.equivalence import check_site, subject, validate, validation
from taso_gym.equivalence.child import run_in_child
from taso_gym.equivalence.compare import compare
from taso_gym.equivalence.draw import ROUNDS, InputKind, bind_sizes, draw, input_kinds
from taso_gym.equivalence.logits import logits_of
from taso_gym.equivalence.runtime import run_model
from taso_gym.equivalence.site import site_of
from taso_gym.errors import EquivalenceError, MissingPackageError, OptionError
from taso_gym.graph import Graph, check, producer_of
from taso_gym.onnx_io import from_model
from taso_gym.onnx_io.types import UNKNOWN
from taso_gym.tensor import TensorType, symbol
from taso_gym.weights import array_weight, literal

F32, F64 = np.float32, np.float64


@pytest.mark.parametrize(
    ("a", "b", "ok"),
    [
        (F32([1, 2]), F32([1, 2]), True),
        (F32([1, 200]), F32([1.01, 200]), True),
        (F32([1, 200]), F32([1.1, 200]), False),
        (F32([0, 0]), F32([0, 0]), True),
        (F32([0, 0]), F32([0, 1e-3]), False),
        (F32([1, 2]), F64([1, 2]), False),
        (F32([1, 2]), F32([[1, 2]]), False),
        (F32([1, np.nan, np.inf]), F32([1, np.nan, np.inf]), True),
        (F32([1, np.nan, np.inf]), F32([1, np.nan, -np.inf]), False),
        (F32([1, np.nan]), F32([1, 2]), False),
        (F32([]), F32([]), True),
        (np.float16([1]), np.float16([1.004]), True),
        (F64([1]), F64([1 + 1e-6]), False),
        (np.int64([1, 2]), np.int64([1, 2]), True),
        (np.int64([10**9]), np.int64([10**9 + 1]), False),
        (np.array([True]), np.array([False]), False),
        (np.array(["a"], object), np.array(["a"], object), True),
        (np.array(["a"], object), np.array(["b"], object), False),
        ([F32([1])], [F32([1])], True),
        ([F32([1])], [F32([1]), F32([1])], False),
        ([F32([1])], F32([1]), False),
        (None, None, True),
        (None, F32([1]), False),
    ],
)
def test_comparing_values(a: object, b: object, ok: bool) -> None:
    assert compare(a, b).ok is ok


def test_the_error_is_relative_to_the_largest_magnitude() -> None:
    found = compare(F32([0, -4]), F32([1, -4]))
    assert (found.relative, found.absolute, found.tolerance) == (0.25, 1.0, 1e-4)
    assert compare(np.int64([1, 2, 3]), np.int64([1, 2, 4])).note == "1 of 3 elements differ"
    assert math.isinf(compare(F32([1]), F32([np.nan])).relative)


def test_a_comparison_of_nothing_finite_says_so() -> None:
    model = parsed("g (float[2] x) => (y) { y = Mul(x, w) }", w=F32(np.nan))
    report = validate(model, model)
    assert report.ok
    assert "nothing finite" in str(report)


def test_inputs_are_drawn_for_what_they_are() -> None:
    text = """g (int64[N, S] ids, int64[N, S] mask, int64[N] unbounded, bool[N] flag, float[N, 3, H, H] image,
               string[N] s) => (y, z, u, f, i, t) {
        flat = Reshape(ids, minus)
        y = Gather(table, flat)
        z = Cast <to = 1>(mask)
        u = Neg(unbounded)
        f = Not(flag)
        i = Relu(image)
        t = Identity(s)
    }"""
    graph = graph_of(text, table=np.ones((7, 2), F32), minus=np.array([-1]))
    kinds = {k.name: k for k in input_kinds(graph)}
    assert (kinds["ids"].bound, kinds["mask"].is_mask, kinds["unbounded"].bound) == (7, True, None)
    sizes = bind_sizes([k.type for k in kinds.values()], ROUNDS[0][1], {"N": 20, "S": 40})
    assert sizes == {"N": 20, "S": 40, "H": 96}
    rng = np.random.default_rng(0)
    drawn = {name: draw(kind, sizes, rng, binary=False) for name, kind in kinds.items()}
    assert set(drawn["ids"].reshape(-1)) == set(range(7))
    assert set(drawn["mask"].reshape(-1)) == {0, 1}
    assert drawn["unbounded"].min() < 0
    assert drawn["flag"].dtype == bool
    assert drawn["image"].shape == (20, 3, 96, 96)
    assert isinstance(drawn["s"][0], str)


def test_a_symbol_that_is_called_a_sum_is_one() -> None:
    types = [TensorType("float", (symbol("past"), symbol("past + 1"), symbol("new"), symbol("past + new")))]
    sizes = bind_sizes(list(types), ROUNDS[0][0], {"past": 3, "new": 4})
    assert sizes == {"past": 3, "past + 1": 4, "new": 4, "past + new": 7}


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


def test_another_model_is_not() -> None:
    w = np.ones((4, 4), F32)
    text = "g (float[3, 4] x) => (y, z) { y = Relu(x)\n z = MatMul(x, w) }"
    report = validate(parsed(text, w=w), parsed(text, w=w * F32(1.001)))
    assert not report.ok
    assert [o.ok for o in report.outputs] == [True, False]
    assert report.max_relative_error == pytest.approx(1e-3, rel=0.01)
    assert str(report).splitlines()[-1].startswith("different: output 'z': relative error 1.0e-03 above 0.0001")
    assert validate(parsed(text, w=w), parsed(text, w=w * F32(1.001)), tolerance=1e-2).ok


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


def test_what_the_reference_can_not_compute_is_said() -> None:
    model = parsed("g (float[3, 3] x) => (y) { y = com.microsoft.Inverse(x) }")
    report = validate(model, model)
    assert report.ok
    assert report.basis.startswith("float32 only: expected a deterministic operator")


def test_large_models_are_compared_in_float32_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 10)
    model = parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.full(4, 0.1, F32))
    assert validate(model, model).basis == "float32 only: weights of 16 bytes"


def test_large_models_run_in_processes_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subject, "CHILD_BYTES", 10)
    model = parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.ones(4, F32))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    assert validate(path, from_model(model)).ok
    assert not validate(path, parsed("g (float[4] x) => (y) { y = Add(x, w) }", w=np.zeros(4, F32))).ok


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
    with pytest.raises(EquivalenceError, match="on the given inputs"):
        validate(model, model, inputs=[{}])
    with pytest.raises(OptionError, match="at least one draw"):
        validate(model, model, draws=0)


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


def product(*, halves: float | None = None) -> Graph:
    """Return Relu(x a) b, or with b as the sum of two halves; what is in both has the same ids."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (symbol("N"), 4)))
    a = builder.weight("a", *array_weight(np.arange(16, dtype=F32).reshape(4, 4)))
    b = builder.weight("b", *array_weight(np.full((4, 4), 2, F32)))
    relu = builder.add("Relu", builder.add("MatMul", x, a))
    if halves is None:
        builder.output("y", builder.add("MatMul", relu, b))
    else:
        skip_ids(builder, 1)
        half = builder.weight("half", *array_weight(np.full((4, 4), halves, F32)))
        builder.output("y", builder.add("Add", *(builder.add("MatMul", relu, half) for _ in range(2))))
    return builder.build()


def skip_ids(builder: GraphBuilder, count: int) -> None:
    """Leave out ids as a rewrite does, which never uses one again."""
    for _ in range(count):
        builder._take_id()


def test_a_site_is_what_differs() -> None:
    before, after = product(), product(halves=1.0)
    site = site_of(before, after)
    relu = next(i for i, n in before.operators() if n.sig.op.name == "Relu")
    assert [producer_of(v) for v in site.inputs] == [relu]
    assert site.outputs == ((before.outputs[0], after.outputs[0]),)


def test_sites_are_compared_in_float64() -> None:
    report = check_site(product(), product(halves=1.0))
    assert report.ok
    assert report.max_relative_error < 1e-14
    assert report.draws == ("N=1", "N=2")
    wrong = check_site(product(), product(halves=1.0001))
    assert not wrong.ok
    assert 1e-5 < wrong.max_relative_error < 1e-3
    assert check_site(product(), product(halves=1.0001), tolerance=1e-3).ok


def test_rewritten_parts_are_computed_where_the_whole_can_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of 1e-5 is within the tolerance of float32 results, but not of a part in float64."""
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 10)
    monkeypatch.setattr(validation, "exact_magnitude", lambda *_: None)
    before, after, wrong = product(), product(halves=1.0), product(halves=1.00001)
    assert validate(before, after).is_float32_only
    report = validate(before, after, rewritten=(before, after))
    assert report.ok
    assert report.basis.startswith("float64 reference of the rewritten parts: largest relative error")
    assert validate(before, wrong).ok
    report = validate(before, wrong, rewritten=(before, wrong))
    assert not report.ok
    assert "different: the second model: in a rewritten part, different: output" in report.verdict


def test_a_site_where_nothing_differs() -> None:
    report = check_site(product(), product())
    assert report.ok
    assert not report.outputs


@pytest.mark.parametrize(("alpha", "ok"), [(1.0, True), (1.5, False)])
def test_a_value_may_be_replaced_by_one_that_it_was_computed_from(alpha: float, ok: bool) -> None:
    graphs: list[Graph] = []
    for removed in (False, True):
        builder = GraphBuilder({"": 20})
        x = builder.input("x", TensorType("float", (3,)))
        one = builder.weight("one", *literal(alpha, "float"))
        if removed:
            skip_ids(builder, 1)
        builder.output("y", builder.add("Relu", x if removed else builder.add("Mul", x, one)))
        graphs.append(builder.build())
    site = site_of(*graphs)
    assert site.inputs == graphs[0].info.inputs
    assert [y for _, y in site.outputs] == list(graphs[0].info.inputs)
    assert check_site(*graphs).ok is ok


def test_a_value_may_be_replaced_by_an_equal_one() -> None:
    """What takes its place is computed, too, where the site didn't read it before."""
    graphs: list[Graph] = []
    for merged in (False, True):
        builder = GraphBuilder({"": 20})
        x = builder.input("x", TensorType("float", (3,)))
        first = builder.add("Neg", x)
        if merged:
            skip_ids(builder, 1)
        second = first if merged else builder.add("Neg", x)
        builder.output("y", builder.add("Relu", first))
        builder.output("z", builder.add("Exp", second))
        graphs.append(builder.build())
    assert site_of(*graphs).inputs == graphs[0].info.inputs
    assert check_site(*graphs).ok


def test_an_input_of_unknown_kind() -> None:
    with pytest.raises(EquivalenceError, match="tensor or sequence as input 'x', found an unknown type"):
        draw(InputKind("x", UNKNOWN), {}, np.random.default_rng(0), binary=False)


SATURATED = "g (float[4, 3] x) => (y, r) { z = MatMul(x, w)  y = {softmax} <axis = 1> (z)  r = Relu(x) }"


@pytest.mark.parametrize("opset", [11, 20])
@pytest.mark.parametrize(("wrong", "ok"), [(1.0, True), (1.01, False)])
def test_logits_before_a_last_softmax_are_compared(opset: int, wrong: float, ok: bool) -> None:
    text = SATURATED.replace("{softmax}", "Softmax")
    weight = np.diag([1e4, 2e4, 3e4]).astype(F32)
    other = weight * F32(wrong)
    report = validate(parsed(text, opset=opset, w=weight), parsed(text, opset=opset, w=other))
    assert report.ok is ok
    assert [o.name for o in report.outputs] == ["y", "r", "logits of y"]
    assert report.outputs[0].ok, "the probabilities alone show nothing"


def test_a_given_tolerance_is_that_of_logits_too() -> None:
    text = SATURATED.replace("{softmax}", "Softmax")
    models = [parsed(text, w=np.diag([1e4, 2e4, factor * 3e4]).astype(F32)) for factor in (1, 1.01)]
    assert not validate(*models).ok
    assert validate(*models, tolerance=0.1).ok


def test_a_constant_added_to_all_logits_is_no_difference() -> None:
    text = "g (float[4, 3] x) => (y) { z = Add(x, c)  y = Softmax(z) }"
    report = validate(parsed(text, c=F32(0)), parsed(text, c=F32(1)))
    assert report.ok
    assert len(report.outputs) == 2


def test_a_softmax_in_one_model_only_has_no_logits() -> None:
    two = parsed(SATURATED.replace("{softmax}", "Softmax"), w=np.eye(3, dtype=F32))
    one = parsed(SATURATED.replace("{softmax} <axis = 1> (z)", "Identity(z)"), w=np.eye(3, dtype=F32))
    assert [o.name for o in validate(two, one).outputs] == ["y", "r"]


def test_a_softmax_that_is_read_inside_stays() -> None:
    graph = graph_of("g (float[4, 3] x) => (y, z) { y = Softmax(x)  z = Relu(y) }")
    logits = logits_of(graph, graph)
    assert logits and logits.outputs == {"y"}
    check(logits.first)
    assert sorted(op_names(logits.first)) == ["LogSoftmax", "Relu", "Softmax"]
    assert validate(logits.first, logits.second).ok
