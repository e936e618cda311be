import ml_dtypes
import numpy as np
import pytest

from taso_gym.errors import MissingPackageError
from taso_gym.ops import FLOAT64, NUMPY, OPERATORS, evaluate
from taso_gym.ops.floating import cupy_module
from taso_gym.symbolic import symbol

UNARY = [
    "Neg",
    "Exp",
    "Sqrt",
    "Erf",
    "Sigmoid",
    "Gelu",
    "LeakyRelu",
    "Elu",
    "HardSwish",
    "Mish",
    "Softplus",
    "Reciprocal",
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_element_types_are_kept(name: str, dtype: type) -> None:
    op = OPERATORS["", name]
    x = np.array([0.5, 1, 2]).astype(dtype)
    (found,) = evaluate(op, op.normalize(dict(op.defaults), []), [x])
    (wanted,) = evaluate(op, op.normalize(dict(op.defaults), []), [x], FLOAT64)
    assert found.dtype == dtype
    assert wanted.dtype == np.float64
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=float(4 * ml_dtypes.finfo(dtype).eps))


def test_erf_is_accurate() -> None:
    values = np.array([-6, -0.5, 0, 1e-9, 0.3, 2.5])
    known = [-1.0, -0.5204998778130465, 0, 1.1283791670955126e-09, 0.3286267594591274, 0.999593047982555]
    np.testing.assert_allclose(NUMPY.erf(values), known, rtol=1e-14)


def test_an_infinity_is_the_extreme_integer() -> None:
    assert NUMPY.constant(-np.inf, np.zeros(1, np.int8)) == -128
    assert NUMPY.constant(np.inf, np.zeros(1, np.uint8)) == 255


def test_a_row_of_minus_infinities_has_softmax_zero_in_attention_and_none_by_itself() -> None:
    row = np.full((1, 3), -np.inf)
    with np.errstate(invalid="ignore"):
        powers = NUMPY.exp(NUMPY.shift_max(row, 1))
    assert (NUMPY.ratio(powers, NUMPY.sum(powers, [1])) == 0).all()
    assert np.isnan(evaluate(OPERATORS["", "Softmax"], {"axis": 1}, [row])[0]).all()


def test_division_of_integers_truncates() -> None:
    assert NUMPY.divide(np.array([-7, 7, 7, -8]), np.array([2, -2, 2, 2])).tolist() == [-3, -3, 3, -4]
    least = np.iinfo(np.int32).min
    assert NUMPY.divide(np.array([least, least], np.int32), np.array([2, -2], np.int32)).tolist() == [-(2**30), 2**30]
    assert NUMPY.divide(np.array([7], np.uint8), np.array([2], np.uint8)).tolist() == [3]


def test_symbols_in_attributes_are_bound() -> None:
    attrs = {"shape": (symbol("N"), 2), "allowzero": 0}
    assert evaluate(OPERATORS["", "Reshape"], attrs, [np.zeros(6)], dims={"N": 3})[0].shape == (3, 2)


def test_cupy_that_is_missing_is_named() -> None:
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(MissingPackageError, match="gpu"):
            cupy_module()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("ReduceSum", np.ones((4096, 2)), 4096),
        ("ReduceMean", np.full((1000, 2), 100), 100),
        ("ReduceL2", np.full((4, 2), 300), 600),
        ("ReduceSumSquare", np.full((64, 2), 1 / 64), 1 / 64),
    ],
)
def test_types_of_two_bytes_are_summed_in_four(dtype: type, name: str, values: np.ndarray, expected: float) -> None:
    attrs = {"axes": (0,), "keepdims": 0, "noop_with_empty_axes": 0}
    (found,) = evaluate(OPERATORS["", name], attrs, [values.astype(dtype)])
    assert found.dtype == dtype and found.tolist() == [expected] * 2


def test_a_power_has_the_type_of_its_base() -> None:
    (found,) = evaluate(OPERATORS["", "Pow"], {}, [np.float32([2, 3]), np.array([2], ml_dtypes.bfloat16)])
    assert found.dtype == np.float32 and found.tolist() == [4, 9]


def test_of_no_numbers_the_largest_is_the_least_there_is() -> None:
    """As ONNX says of ReduceMax and ReduceMin since opset 20; a Softmax of none is none."""
    for name, dtype, wanted in [
        ("ReduceMax", np.float32, -np.inf),
        ("ReduceMin", np.float32, np.inf),
        ("ReduceMax", np.int8, -128),
        ("ReduceMin", np.bool_, True),
    ]:
        op = OPERATORS["", name]
        (found,) = evaluate(op, dict(op.defaults) | {"axes": (1,), "keepdims": 0}, [np.zeros((2, 0), dtype)])
        assert found.dtype == dtype and found.tolist() == [wanted] * 2
    softmax = OPERATORS["", "Softmax"]
    assert evaluate(softmax, {"axis": 1}, [np.zeros((2, 0), np.float32)])[0].shape == (2, 0)
