import numpy as np
import pytest
from model_texts import parsed
from onnx import ModelProto, numpy_helper, parser

from taso_gym import validate
from taso_gym.equivalence import Baseline
from taso_gym.errors import EquivalenceError
from taso_gym.onnx_io import from_model

STFT = parser.parse_model(
    """<ir_version: 8, opset_import: ["": 17]>
    stft (float[1, 128, 1] signal, int64 step, int64 length) => (float[1, n, m, 2] y) {
        y = STFT(signal, step, , length)
    }"""
)
"""A step of 0 is drawn for it."""


def test_what_ends_the_process_ends_one_of_its_own() -> None:
    with pytest.raises(EquivalenceError, match="process ended with -8"):
        validate(STFT, STFT)


def test_a_loop_that_leaves_out_a_result_is_run_in_a_process_of_its_own() -> None:
    """As onnxruntime 1.31 is ended by it."""
    body = "b (int64 i, bool go, float[2] sum) => (bool on, float[2] more, float[2] scan) { on = Identity(go) "
    body += "more = Add(sum, sum) scan = Neg(sum) }"
    model = parsed(f"g (float[2] x) => (scans) {{ , scans = Loop(n, , x) <body = {body}> }}", n=np.int64(3))
    with pytest.raises(EquivalenceError, match="process ended with -11"):
        validate(model, model)


def test_what_ends_the_process_differs_from_what_does_not() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        cut (float[1, 128, 1] signal, int64 step, int64 length) => (float[1, n, m, 2] y) <int64[4] s = {1, 8, 8, 2}> {
            y = Reshape(signal, s)
        }"""
    )
    assert Baseline(from_model(model)).differs(from_model(STFT))
    assert "different: the second model: it doesn't run: its process ended with -8" in validate(model, STFT).verdict


def product(*steps: str) -> ModelProto:
    """Return a model of a product after steps from x to t; onnxruntime 1.31 ends the process at some."""
    text = "product (float16[2, 5, 16] x) => (float[5, 2, 4] y) { " + " ".join(steps) + " y = MatMul(t, w) }"
    return parsed(text, w=np.ones((16, 4), np.float32))


def test_a_second_model_that_ends_its_process_does_not_run() -> None:
    cast_first = product("c = Cast <to = 1>(x)", "t = Transpose <perm = [1, 0, 2]>(c)")
    cast_last = product("c = Transpose <perm = [1, 0, 2]>(x)", "t = Cast <to = 1>(c)")
    report = validate(cast_first, cast_last)
    assert not report.ok
    assert "it doesn't run" in str(report)
    assert Baseline(from_model(cast_first)).differs(from_model(cast_last))
    with pytest.raises(EquivalenceError, match="process ended with -11"):
        validate(cast_last, cast_first)


def test_a_cast_of_onnxruntime_counts_as_one_of_the_model() -> None:
    text = """g (float16[2, 5, 16] x) => (float16[5, 2, 4] y) {
        t = Transpose <perm = [1, 0, 2]>(x)  y = MatMul(t, w)
    }"""
    model = parsed(text, w=np.ones((16, 4), np.float16))
    with pytest.raises(EquivalenceError, match="process ended with -11"):
        validate(model, model)


def test_a_fixed_step_is_compared() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        stft (float[1, 128, 1] signal) => (float[1, n, m, 2] y) <int64 step = {16}, int64 length = {32}> {
            y = STFT(signal, step, , length)
        }"""
    )
    assert validate(model, model).ok


def test_text_without_axes_is_compared() -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]>
        words (string first, string second) => (string both) { both = StringConcat(first, second) }"""
    )
    assert validate(model, model).ok


def scaled(inputs: str, *, ir: int = 9, w: float = 2.0, body: str = "y = Mul(x, w)") -> ModelProto:
    return parsed(f"g (float[4] x{inputs}) => (float[4] y) {{ {body} }}", ir=ir, w=np.full(1, w, np.float32))


def test_inputs_with_a_default_belong_to_the_interface() -> None:
    """Who gives w to the first could not give it to a second that has it as a constant, or has another type there."""
    own, constant = scaled(", float[1] w"), scaled("")
    message = "expected models with the same inputs with a default, found w: float and none"
    with pytest.raises(EquivalenceError, match=message):
        validate(own, constant)
    with pytest.raises(EquivalenceError, match=message):
        Baseline(from_model(own)).differs(from_model(constant))
    assert validate(constant, own).ok
    with pytest.raises(EquivalenceError, match="expected models with the same inputs, found x: float and w: float, x"):
        validate(own, parsed("g (float[4] x, float[1] w) => (float[4] y) { y = Mul(x, w) }"))


def test_initializers_of_old_files_are_no_inputs() -> None:
    """Before IR version 4 all of them had to be listed."""
    old = scaled(", float[1] w", ir=3)
    assert validate(old, scaled("")).ok and validate(scaled(""), old).ok
    assert validate(old, from_model(old)).ok


@pytest.mark.parametrize(("default", "shown"), [(2.0, "Mul(x, two)"), (0.0, "Mul(x, zero)"), (0.3, "Mul(x, third)")])
def test_defaults_are_overridden_once(default: float, shown: str) -> None:
    own = scaled(", float[1] w", w=default)
    ignores = scaled(", float[1] w", w=default, body=f"y = {shown}")
    name = shown.split(", ")[1][:-1]
    ignores.graph.initializer.append(numpy_helper.from_array(np.full(1, default, np.float32), name))
    assert validate(own, own).ok and validate(own, from_model(own)).ok
    assert not validate(own, ignores).ok
    assert Baseline(from_model(own)).differs(from_model(ignores))
    assert validate(own, ignores, inputs=[{"x": np.ones(4, np.float32)}]).ok
    given = {"x": np.ones(4, np.float32), "w": np.full(1, 7, np.float32)}
    assert not validate(own, ignores, inputs=[given]).ok
