"""Drawing sizes, shapes and attribute values, small and uneven, so that a rule that is wrong anywhere shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

SIZES = (1, 2, 3, 4, 5, 7)
"""Sizes of axes: 1, which broadcasts, and mostly coprime ones."""
HIGHEST = 6
"""Rank of the largest shapes."""
MAX_ELEMENTS = 3000
"""Of one tensor; larger ones are cut down."""


class Unfit(Exception):  # noqa: N818 - no error of the user's: this draw fits nothing, the next one may
    """A draw for which there is no continuation."""


class Draw:
    """Draws from a generator; sizes that were drawn before come again often, so that operands fit each other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.seen: list[int] = []
        self.shapes: list[tuple[int, ...]] = []

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        if not items:
            raise Unfit("nothing to pick from")
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        if high < low:
            raise Unfit(f"no integer from {low} to {high}")
        return int(self.rng.integers(low, high + 1))

    def size(self) -> int:
        """Return the size of an axis."""
        found = self.pick(self.seen) if self.seen and self.chance(0.3) else self.pick(SIZES)
        self.seen.append(found)
        return found

    def shape(self, low: int = 1, high: int | None = None) -> tuple[int, ...]:
        """Return a shape whose rank is from low to high; by default mostly to 4, now and then to 6."""
        high = (HIGHEST if self.chance(0.1) else max(low, 4)) if high is None else high
        while True:
            shape = tuple(self.size() for _ in range(self.integer(low, high)))
            if math.prod(shape) <= MAX_ELEMENTS:
                return shape

    def familiar(self, low: int = 1) -> tuple[int, ...]:
        """Return a new shape, or one that a tensor has already, sometimes with another size at one axis."""
        if not self.shapes or self.chance(0.4):
            return self.shape(low)
        shape = list(self.pick(self.shapes))
        if shape and self.chance(0.5):
            shape[self.integer(0, len(shape) - 1)] = self.size()
        return tuple(shape)

    def subset(self, items: Sequence[int], least: int = 1) -> tuple[int, ...]:
        """Return some of the items, in order."""
        if len(items) < least:
            raise Unfit("too few items")
        count = self.integer(least, len(items)) if self.chance(0.3) else least
        return tuple(sorted(self.rng.choice(list(items), count, replace=False).tolist())) if count else ()

    def parts(self, total: int, count: int) -> tuple[int, ...]:
        """Return ``count`` positive sizes that add up to ``total``."""
        if total < count:
            raise Unfit(f"{total} can't be cut into {count} parts")
        cuts = sorted(self.rng.choice(range(1, total), count - 1, replace=False).tolist()) if count > 1 else []
        return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts with another: the same, a scalar, one axis of it, …, or a larger one."""
        how = self.integer(0, 8)
        if how <= 1:
            return shape
        if how == 2:
            return (1,) * self.integer(0, len(shape) + 1)
        if how == 3:
            return shape[-1:]
        if how == 4:
            axis = 1 if len(shape) > 1 else 0
            kept = tuple(1 if i != axis else self.size() if d == 1 else d for i, d in enumerate(shape))
            return kept[self.integer(0, axis) :] if shape else ()
        if how == 5:
            return (
                (*self.shape(1, 1), *shape)
                if len(shape) < 4 and self.chance(0.5)
                else tuple(self.size() if d == 1 else d for d in shape)
            )
        if how == 6:
            return (1, *shape) if len(shape) < 5 else shape
        cut = shape[self.integer(0, len(shape)) :]
        return tuple(1 if self.chance(0.4) else d for d in cut)

    def regrouped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return another shape of as many elements: axes split and neighbours merged."""
        axes: list[int] = []
        for d in shape:
            divisors = [k for k in range(2, d) if d % k == 0]
            first = self.pick(divisors) if divisors and self.chance(0.5) else d
            axes += [first, d // first] if first != d else [d]
        merged: list[int] = []
        for d in axes:
            if merged and self.chance(0.4):
                merged[-1] *= d
            else:
                merged.append(d)
        if len(merged) < 5 and self.chance(0.2):
            merged.insert(self.integer(0, len(merged)), 1)
        return tuple(merged)


Attribute = Callable[["Draw", tuple[int, ...], Mapping[str, Any]], Any]
"""Draws an attribute from the first operand's shape and the call's facts (attributes so far, number of outputs)."""


def _axis(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> int:
    return draw.integer(0, len(shape) - 1)


def _one_of(*values: Any) -> Attribute:
    return lambda draw, _shape, _facts: draw.pick(values)


def _per_axis(*values: int, twice: bool = False) -> Attribute:
    def drawn(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
        if len(shape) < 3:
            raise Unfit("no spatial axes")
        return tuple(draw.pick(values) for _ in range((len(shape) - 2) * (2 if twice else 1)))

    return drawn


def _perm(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(draw.rng.permutation(len(shape)).tolist())


def _split(draw: Draw, shape: tuple[int, ...], facts: Mapping[str, Any]) -> tuple[int, ...]:
    if not -len(shape) <= facts["axis"] < len(shape):
        raise Unfit("no such axis")
    return draw.parts(shape[facts["axis"]], facts["outputs"])


def _expanded(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    grown = tuple(draw.size() if d == 1 else d for d in shape)
    return (draw.size(), *grown) if len(shape) < 4 and draw.chance(0.5) else grown


def _reduced(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    return draw.subset(range(len(shape)))


def _slice_axes(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    return draw.subset(range(len(shape)), 1 if draw.chance(0.9) else 0)


def _starts(draw: Draw, shape: tuple[int, ...], facts: Mapping[str, Any]) -> tuple[int, ...]:
    if any(not -len(shape) <= axis < len(shape) for axis in facts["axes"]):
        raise Unfit("no such axis")
    return tuple(0 if draw.chance(0.4) else draw.integer(0, shape[a] - 1) for a in facts["axes"])


def _ends(draw: Draw, shape: tuple[int, ...], facts: Mapping[str, Any]) -> tuple[int, ...]:
    if len(facts["axes"]) != len(facts["starts"]):
        raise Unfit("not one start for each axis")
    if any(not -len(shape) <= axis < len(shape) for axis in facts["axes"]):
        raise Unfit("no such axis")
    spans = zip(facts["axes"], facts["starts"], strict=True)
    return tuple(shape[a] if draw.chance(0.4) else draw.integer(s + 1, shape[a]) for a, s in spans)


def _steps(draw: Draw, _shape: tuple[int, ...], facts: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(1 if draw.chance(0.8) else 2 for _ in facts["axes"])


def _squeezed(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    return draw.subset([i for i, d in enumerate(shape) if d == 1])


def _unsqueezed(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    return draw.subset(range(len(shape) + 1))


def _group(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> int:
    return draw.pick([g for g in range(1, shape[1] + 1) if shape[1] % g == 0] if len(shape) > 2 else [])


NORMALISATIONS = ("LayerNormalization", "RMSNormalization")

ATTRIBUTES: Mapping[tuple[str, str], Attribute] = {
    **{(op, "axis"): _axis for op in ("Concat", "Split", "Softmax", "LogSoftmax", "Gather", *NORMALISATIONS)},
    **{(op, "axes"): _reduced for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")},
    **{(op, "keepdims"): _one_of(0, 1) for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")},
    **{
        (op, name): value
        for op in ("Conv", "ms.FusedConv", "MaxPool", "AveragePool")
        for name, value in {
            "strides": _per_axis(1, 1, 2, 3),
            "pads": _per_axis(0, 0, 1, 2, twice=True),
            "dilations": _per_axis(1, 1, 1, 2),
        }.items()
    },
    **{(op, "kernel_shape"): _per_axis(1, 2, 3) for op in ("MaxPool", "AveragePool")},
    **{(op, "ceil_mode"): _one_of(0, 0, 1) for op in ("MaxPool", "AveragePool")},
    **{(op, "group"): _group for op in ("Conv", "ms.FusedConv")},
    **{(op, name): _one_of(0, 1) for op in ("Gemm", "ms.FusedGemm", "ms.FusedMatMul") for name in ("transA", "transB")},
    **{(op, name): _one_of(1.0, 0.5, -2.0) for op in ("Gemm", "ms.FusedGemm") for name in ("alpha", "beta")},
    **{
        (op, "epsilon"): _one_of(1e-5, 1e-3, 0.5)
        for op in ("BatchNormalization", "InstanceNormalization", "ms.SkipLayerNormalization", *NORMALISATIONS)
    },
    **{(op, "activation"): _one_of("Relu", "Sigmoid", "Tanh") for op in ("ms.FusedConv", "ms.FusedGemm")},
    ("ms.FusedMatMul", "alpha"): _one_of(1.0, 0.5, -2.0),
    ("ms.MultiHeadAttention", "num_heads"): _one_of(1, 2, 3),
    ("ms.MultiHeadAttention", "scale"): _one_of(1.0, 0.5, 0.25),
    ("AveragePool", "count_include_pad"): _one_of(0, 1),
    ("Clip", "min"): _one_of(-2.0, -1.0, 0.0, 0.5),
    ("Clip", "max"): _one_of(-0.5, 0.0, 1.0, 6.0),
    ("DepthToSpace", "blocksize"): _one_of(2, 2, 3),
    ("DepthToSpace", "mode"): _one_of("DCR", "CRD"),
    ("Elu", "alpha"): _one_of(1.0, 0.3, 2.0),
    ("Expand", "shape"): _expanded,
    ("Flatten", "axis"): lambda draw, shape, _facts: draw.integer(0, len(shape)),
    ("Gelu", "approximate"): _one_of("none", "tanh"),
    ("LeakyRelu", "alpha"): _one_of(0.01, 0.3, 1.0, 0.0, 2.0),
    ("LRN", "alpha"): _one_of(0.5, 2.0),
    ("LRN", "beta"): _one_of(0.75, 0.5, 1.0),
    ("LRN", "bias"): _one_of(1.0, 2.0),
    ("LRN", "size"): _one_of(1, 2, 3, 4, 5),
    ("Pad", "pads"): lambda draw, shape, _facts: tuple(draw.pick((0, 0, 1, 2, -1)) for _ in shape * 2),
    ("Reshape", "shape"): lambda draw, shape, _facts: draw.regrouped(shape),
    ("Slice", "axes"): _slice_axes,
    ("Slice", "starts"): _starts,
    ("Slice", "ends"): _ends,
    ("Slice", "steps"): _steps,
    ("Split", "split"): _split,
    ("Squeeze", "axes"): _squeezed,
    ("Transpose", "perm"): _perm,
    ("Unsqueeze", "axes"): _unsqueezed,
}
"""(operator, attribute) -> how to draw it; others keep their default. Later ones may read earlier ones in ``facts``."""

ORDER: Mapping[str, Sequence[str]] = {
    op: [name for other, name in ATTRIBUTES if other == op] for op in dict.fromkeys(op for op, _ in ATTRIBUTES)
}
"""Operator -> its attributes in that order."""
