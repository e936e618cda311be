"""The body of every operator against onnxruntime, onnx.reference and exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from operator_models import assert_close, exported_model, feeds, run_onnxruntime, stated_model
from operator_samples import SAMPLES, Sample

from taso_gym.ops import FLOAT64, NUMPY, OPERATORS, evaluate
from taso_gym.ops.modular import MERSENNE_31, ModularModule
from taso_gym.signature import Signature

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=str)

REFERENCE_DEFECTS: dict[str, tuple[str, Callable[[Signature], bool]]] = {
    "LRN": ("sums the squares of as many channels as there are samples", lambda _: True),
    "LpNormalization": ("takes no absolute values for p = 1", lambda sig: sig.attr("p") == 1),
    "Pad": ("doesn't cut by negative pads", lambda sig: min(sig.attr("pads")) < 0),
    "Resize": (
        "counts with parts of elements where size * scale isn't whole",
        lambda sig: sig.attr("coordinate_transformation_mode") == "align_corners",
    ),
    "ConvTranspose": ("takes the channels of all groups as one's", lambda sig: sig.attr("group") > 1),
    "GlobalMaxPool": ("reduces two axes, whatever the rank", lambda sig: len(sig.outputs[0].shape) != 4),
}
"""What onnx.reference 1.23 gets wrong; the specification and onnxruntime agree with our bodies."""

ALGEBRAIC = {
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Neg",
    "Reciprocal",
    "Sum",
    "And",
    "Or",
    "Not",
    "Where",
    "MatMul",
    "Gemm",
    "Einsum",
    "Conv",
    "ConvTranspose",
    "AveragePool",
    "GlobalAveragePool",
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceSumSquare",
    "Identity",
    "Concat",
    "Split",
    "Slice",
    "Transpose",
    "Gather",
    "Pad",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Expand",
    "Tile",
    "DepthToSpace",
    "SpaceToDepth",
    "Resize",
    "ms.FusedMatMul",
}
"""Operators whose samples need nothing but the arithmetic of a field; Clip's don't either where no bound is given."""


def with_reference() -> list[Any]:
    """Return samples of ONNX's operators; where the reference is known to be wrong, it must stay so."""
    params: list[Any] = []
    for sample in SAMPLES:
        reason, applies = REFERENCE_DEFECTS.get(sample.key, ("", lambda _: False))
        marks = [pytest.mark.xfail(reason=f"onnx.reference {reason}", strict=True)] if applies(sample.signature) else []
        if not sample.op.domain:
            params.append(pytest.param(sample, id=str(sample), marks=marks))
    return params


def run(sample: Sample, xp: Any = NUMPY) -> tuple[Any, ...]:
    sig = sample.signature
    return evaluate(sample.op, dict(sig.attrs), sample.arrays()[: len(sig.inputs)], xp)


def test_every_operator_has_a_sample() -> None:
    assert {s.op.key for s in SAMPLES} == {op.key for op in OPERATORS.values()}


@pytest.mark.parametrize("model_of", [stated_model, exported_model])
@every_sample
def test_body_equals_onnxruntime(sample: Sample, model_of: Callable[[Sample], onnx.ModelProto]) -> None:
    """As the sample states it, so that the normal form is checked, and as it is written back."""
    outputs = run_onnxruntime(model_of(sample), feeds(sample))
    for found, wanted in zip(run(sample), outputs, strict=True):
        assert found.dtype == wanted.dtype
        assert_close(found, wanted)


@pytest.mark.parametrize("sample", with_reference())
def test_float64_body_equals_the_reference(sample: Sample) -> None:
    with np.errstate(all="ignore"):
        outputs = ReferenceEvaluator(stated_model(sample)).run(None, feeds(sample))
    for found, wanted in zip(run(sample, FLOAT64), outputs, strict=True):  # type: ignore[arg-type]
        assert_close(found, wanted)


class NotAlgebraicError(Exception):
    """A function other than + - * / was asked for."""


class FieldModule(ModularModule):
    """Integers modulo a prime, without the opaque functions."""

    def _hash(self, name: str, values: Any) -> Any:
        if name.endswith("inf"):
            return super()._hash(name, values)
        raise NotAlgebraicError(name)


def whole(sample: Sample) -> list[Any]:
    """Draw operands that are integers from 1 to 9; truth values and indices stay."""
    rng = np.random.default_rng(0)
    kept = {"Gather": {1}}.get(sample.key, set())
    return [
        a if a is None or a.dtype == bool or i in kept else np.asarray(rng.integers(1, 10, a.shape))
        for i, a in enumerate(sample.arrays())
    ]


def fractions(values: Any) -> Any:
    """Return numbers as fractions, in an object array."""
    return np.vectorize(lambda v: Fraction(v.item() if isinstance(v, np.generic) else v), otypes=[object])(values)


def reduced(values: Any, p: int) -> Any:
    """Return numbers modulo p."""
    flat = [v.numerator * pow(v.denominator, -1, p) % p for v in fractions(values).flat] if values.size else []
    return np.array(flat, object).reshape(values.shape)


@pytest.mark.parametrize("prime", [MERSENNE_31, 2**61 - 1])
@every_sample
def test_modular_result_is_the_exact_one_reduced(sample: Sample, prime: int) -> None:
    attrs, arrays = dict(sample.signature.attrs), whole(sample)
    try:
        results = evaluate(sample.op, attrs, arrays, FieldModule(prime))
    except NotAlgebraicError:
        assert sample.key not in ALGEBRAIC
        return
    assert sample.key in ALGEBRAIC or (sample.key == "Clip" and not sample.attrs)
    kept = {"Gather": {1}}.get(sample.key, set())
    operands = [a if a is None or a.dtype == bool or i in kept else fractions(a) for i, a in enumerate(arrays)]
    for found, wanted in zip(results, evaluate(sample.op, attrs, operands), strict=True):
        np.testing.assert_array_equal(found.values.astype(object), reduced(np.asarray(wanted), prime))
