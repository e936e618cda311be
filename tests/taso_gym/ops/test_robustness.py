"""Whatever operands and attributes an operator is given, it takes them or says why not."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from operator_samples import SAMPLES, Sample

from taso_gym.errors import TypeInferenceError
from taso_gym.signature import signature
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType

DIMS = [0, 1, 2, 3, 4, 6, symbol("N"), symbol("N") * 2]
DTYPES = ["float"] * 6 + ["int64", "int32", "bool", "float16", "string"]
BY_KEY = {key: [s for s in SAMPLES if s.key == key] for key in sorted({s.key for s in SAMPLES})}


def some_type(rng: random.Random) -> TensorType:
    return TensorType(rng.choice(DTYPES), tuple(rng.choices(DIMS, k=rng.randrange(6))))


def some_value(value: Any, rng: random.Random) -> Any:
    """Return a value of the same kind as one that an attribute has."""
    if isinstance(value, list):
        return [some_value(v, rng) for v in value] if rng.random() < 0.7 else value[: rng.randrange(4)] * 2
    return rng.choice([value, 0, -1, 1, 3, 99]) if isinstance(value, int) else value


@pytest.mark.parametrize("key", BY_KEY)
def test_anything_is_taken_or_refused(key: str) -> None:
    rng = random.Random(key)
    for _ in range(150):
        sample: Sample = rng.choice(BY_KEY[key])
        types = [t if rng.random() < 0.7 else some_type(rng) for t in sample.types]
        types = types[: rng.randrange(len(types) + 1)] if rng.random() < 0.1 else types
        stated = {k: v for k, v in sample.attrs.items() if rng.random() < 0.9}
        attrs = {k: some_value(v, rng) if rng.random() < 0.4 else v for k, v in stated.items()}
        with contextlib.suppress(TypeInferenceError):
            sig = signature(sample.op, attrs, types)
            assert signature(sample.op, dict(sig.attrs), sig.inputs) is sig
            assert sig.op.flops(sig.inputs, sig.outputs, dict(sig.attrs)) is not None  # type: ignore[union-attr, arg-type]
