import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from normal_values import evaluated

from taso_gym.ops.floating import NUMPY

Shape = tuple[int, ...]
SEEDS = range(6)

# name -> (function of a module and its inputs, letters of the shapes of the inputs)
PRIMITIVES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "arithmetic": (lambda xp, x, y: x * y - x + 2 * y, ["ab", "ab"]),
    "broadcasting": (lambda xp, x, y: x * y + x, ["ab", "b"]),
    "matmul": (lambda xp, x, y: xp.matmul(x, y), ["ab", "bc"]),
    "matmul-batched": (lambda xp, x, y: xp.matmul(x, y), ["eab", "ebc"]),
    "matmul-twice": (lambda xp, x, y: xp.matmul(xp.matmul(x, y), y), ["ab", "bb"]),
    "matmul-vectors": (lambda xp, x, y: xp.matmul(x, y), ["b", "b"]),
    "einsum": (lambda xp, x, y: xp.einsum("aib,ic->bca", x, y), ["eab", "ac"]),
    "sum": (lambda xp, x: xp.reduce("sum", x, [0, 2], False), ["abc"]),
    "sum-keeps": (lambda xp, x: xp.reduce("sum", x * x, [1], True), ["abc"]),
    "max": (lambda xp, x: xp.reduce("max", x, [1], False), ["abc"]),
    "min-of-two": (lambda xp, x, y: xp.minimum(x, y) + xp.maximum(x, y, x + y), ["ab", "ab"]),
    "transpose": (lambda xp, x: xp.transpose(x, (2, 0, 1)), ["abc"]),
    "concatenate": (lambda xp, x, y: xp.concatenate([x, y, x], 1), ["ab", "ac"]),
    "concatenate-sum": (lambda xp, x, y: xp.reduce("sum", xp.concatenate([x, y], 1), [1], False), ["ab", "ac"]),
    "slice": (lambda xp, x: x[:, 1:2], ["ab"]),
    "slice-strided": (lambda xp, x: x[1::2], ["ba"]),
    "index": (lambda xp, x: x[1], ["ba"]),
    "new-axis": (lambda xp, x: x[:, None] * x[None, :], ["a"]),
    "pad": (lambda xp, x: xp.pad(x, [(1, 2), (0, 1)], 3), ["ab"]),
    "pad-twice": (lambda xp, x: xp.pad(xp.pad(x, [(1, 0)], 3), [(2, 1)], 5), ["a"]),
    "pad-slice": (lambda xp, x: xp.pad(x, [(2, 1)], 7)[1:], ["a"]),
    "windows": (lambda xp, x: (lambda p: p[:-2] + 10 * p[1:-1] + 100 * p[2:])(xp.pad(x, [(1, 1)])), ["b"]),
    "maxima of padded windows": (lambda xp, x: (lambda p: xp.maximum(p[:-2], p[1:-1], p[2:]))(
        xp.pad(x * 1.0, [(1, 1)], -math.inf)), ["b"]),
    "flatten": (lambda xp, x: xp.reshape(x, (x.shape[0] * x.shape[1], x.shape[2])), ["abc"]),
    "unflatten": (lambda xp, x, y: xp.reshape(xp.matmul(xp.reshape(x, (x.shape[0] * x.shape[1], x.shape[2])), y),
                                              (x.shape[0], x.shape[1], y.shape[1])), ["abc", "ce"]),
    "heads": (lambda xp, x: xp.transpose(xp.reshape(x, (x.shape[0], 2, x.shape[1] // 2)), (1, 0, 2)), ["aD"]),
    "repeat": (lambda xp, x: xp.broadcast_to(x, (3, *x.shape)), ["ab"]),
    "take": (lambda xp, x, i: xp.take(x, i, 1) * 2, ["abc", "ib"]),
    "take-twice": (lambda xp, x, i: xp.take(xp.take(x, i, 0), i, 1), ["bb", "ib"]),
    "where": (lambda xp, x, y: xp.where(xp.less(x, y), x, y + 1), ["ab", "ab"]),
}  # fmt: skip


def inputs(letters: list[str], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = {c: int(rng.integers(2 if c in "bD" else 1, 5)) for c in "abceD"}
    sizes["D"] *= 2
    arrays: dict[str, Any] = {}
    for number, names in enumerate(letters):
        shape = tuple(sizes[c] for c in names.removeprefix("i"))
        index = names.startswith("i")
        values = rng.integers(0, min(sizes[c] for c in "b"), shape) if index else rng.integers(-9, 10, shape)
        arrays["xyzw"[number]] = values
    return arrays


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_index_forms_have_the_values_that_numpy_computes(name: str, seed: int) -> None:
    f, letters = PRIMITIVES[name]
    arrays = inputs(letters, seed)
    assert np.array_equal(evaluated(f, arrays), f(NUMPY, *arrays.values()))
