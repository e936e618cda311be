import pytest
from onnx import parser

from taso_gym import validate
from taso_gym.errors import EquivalenceError


def test_what_ends_the_process_ends_one_of_its_own() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        stft (float[1, 128, 1] signal, int64 step, int64 length) => (float[1, n, m, 2] y) {
            y = STFT(signal, step, , length)
        }"""
    )  # a step of 0 is drawn
    with pytest.raises(EquivalenceError, match="process ended with -8"):
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
