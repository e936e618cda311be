"""Each operator of the table: its body over index forms says the elements that its body over numbers computes."""

import math
from typing import Any

import numpy as np
import pytest
from normal_values import FUNCTIONS, Numbers
from operator_samples import SAMPLES, Sample

from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.floating import FLOAT64
from taso_substitutions.verify.normal.attributes import fix_needed, run_body
from taso_substitutions.verify.normal.axes import UnprovableError
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.sizes import Refined, Sizes
from taso_substitutions.verify.prover import fix_or_raise

LARGEST = 64
"""Elements of all operands, so that adding them up one by one takes no time."""
WINDOWS = [
    Sample("Conv", ((1, 2, 4, 3), (3, 2, 2, 2), (3,)), {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
    Sample("Conv", ((1, 2, 5, 3), (2, 1, 2, 2)), {"group": 2, "dilations": [2, 1]}),
    Sample("Conv", ((1, 4, 3, 2), (4, 2, 1, 2), (4,)), {"group": 2, "pads": [0, 1, 0, 0]}),
    Sample("Conv", ((2, 1, 7), (2, 1, 3), (2,)), {"pads": [2, 1], "strides": [3]}),
    Sample("ms.FusedConv", ((1, 2, 4, 3), (2, 2, 2, 2), (2,)), {"pads": [1, 0, 0, 1], "activation": "Relu"}),
    *(
        Sample(op, ((1, 2, 5, 4),), {"kernel_shape": [3, 2], **attrs})
        for op in ("MaxPool", "AveragePool")
        for attrs in (
            {},
            {"pads": [1, 1, 1, 0], "strides": [2, 1]},
            {"dilations": [2, 1], "strides": [1, 2]},
            {"ceil_mode": 1, "strides": [2, 3]},
        )
    ),
    Sample("AveragePool", ((1, 2, 5, 4),), {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "count_include_pad": 1}),
    Sample("GlobalAveragePool", ((2, 2, 3, 2),)),
    Sample("GlobalMaxPool", ((2, 2, 3, 2),)),
    Sample("BatchNormalization", ((2, 3, 2, 2), (3,), (3,), (3,), (3,)), low=0.5),
]
"""Operators on windows, whose samples elsewhere are larger."""
MORE: dict[str, Any] = {
    name: getattr(math, name) for name in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos", "pow")
}
MORE |= {"ceil": math.ceil, "floor": math.floor, "sign": np.sign, "inv": lambda a: 1 / a if a else 0}


ROUNDING = {"Cast", "Div", "ReduceMean"}
"""Operators that round whole numbers, where index forms are about real ones."""


def compared(sample: Sample) -> bool:
    arrays = [a for a in sample.arrays() if a is not None]
    rounds = sample.key in ROUNDING and (sample.key == "Cast" or any(a.dtype.kind in "iu" for a in arrays))
    return not rounds and sum(a.size for a in arrays) <= LARGEST


def operands(sample: Sample) -> dict[str, Any]:
    """Return operands by name; real numbers of double precision."""
    present = {f"x{i}": a for i, a in enumerate(sample.arrays()) if a is not None}
    return {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in present.items()}


def by_index_forms(sample: Sample, given: dict[str, Any]) -> list[Any] | None:
    """Return the elements of an operator's results by its index forms; None where it has none for these sizes."""
    sizes = Sizes()
    attrs = {**sample.op.defaults, **dict(sample.signature.attrs)}
    while True:
        xp = IndexModule(sizes)
        try:
            tensors = {n: xp.variable(n, [sizes.fresh(f"{n}.{i}", d) for i, d in enumerate(a.shape)])
                       for n, a in given.items()}  # fmt: skip
            args = [tensors.get(f"x{i}") for i in range(len(sample.operands))]
            fix_needed(sample.op, list(tensors.values()), attrs)
            return [Numbers(sizes, tensors, given).array(x) for x in run_body(sample.op, xp, args, attrs)]
        except Refined:
            continue
        except UnprovableError as error:
            try:
                fix_or_raise(sizes, error)
            except UnprovableError:
                return None


@pytest.mark.parametrize("sample", [s for s in [*SAMPLES, *WINDOWS] if compared(s)], ids=str)
def test_index_forms_of_an_operator_are_what_its_body_computes(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in MORE.items():
        monkeypatch.setitem(FUNCTIONS, name, function)
    given = operands(sample)
    found = by_index_forms(sample, given)
    if found is None:
        pytest.skip("no index form")
    args = [given.get(f"x{i}") for i in range(len(sample.operands))]
    wanted = evaluate(sample.op, dict(sample.signature.attrs), args, FLOAT64)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), np.asarray(b, np.float64), rtol=1e-9, atol=1e-9)
