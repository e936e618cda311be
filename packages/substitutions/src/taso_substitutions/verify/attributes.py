"""Drawing attributes of operators that fit what is known of the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taso_gym.ops.interpolation import COORDINATES, resized
from taso_substitutions.verify.draw import Draw, Unfit

Attribute = Callable[[Draw, tuple[int, ...], Mapping[str, Any]], Any]
"""Draws an attribute from the first operand's shape and the call's facts: attributes so far, the operands' shapes (None
where they aren't known yet), number of outputs."""


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


def _joint(draw: Draw, shape: tuple[int, ...], facts: Mapping[str, Any]) -> int:
    """Return an axis along which the operands that are known can be joined."""
    others = [s for s in facts["operands"] if s is not None]
    axes = range(len(shape))
    return draw.pick([a for a in axes if len({(len(s), s[:a], s[a + 1 :]) for s in others}) < 2])


def _group(draw: Draw, shape: tuple[int, ...], facts: Mapping[str, Any]) -> int:
    """Return a divisor of the channels: what the kernel says, where it is known."""
    kernel = facts["operands"][1]
    if len(shape) < 3 or (kernel is not None and len(kernel) != len(shape)):
        raise Unfit("no image and kernel of one rank")
    return shape[1] // kernel[1] if kernel is not None else _divisor(draw, shape, facts)


def _divisor(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> int:
    """Return a divisor of the channels."""
    if len(shape) < 3:
        raise Unfit("no image")
    return draw.pick([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])


def _scales(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[float, ...]:
    """Return scales of which those of the last one or two axes change a size."""
    last = draw.pick((1, 2))
    drawn = [draw.pick([f for f in SCALES if resized(n, f) not in (0, n)]) for n in shape[-last:]]
    return (*(1.0,) * (len(shape) - len(drawn)), *drawn)


def _sizes(draw: Draw, shape: tuple[int, ...], _facts: Mapping[str, Any]) -> tuple[int, ...]:
    last = draw.pick((1, 2))
    return (*shape[:-last], *(draw.integer(1, 9) for _ in shape[-last:]))


def _extra(draw: Draw, _shape: tuple[int, ...], facts: Mapping[str, Any]) -> tuple[int, ...]:
    """Return output_padding, which has to be smaller than a stride."""
    return tuple(draw.pick((0, 0, stride - 1)) for stride in facts["strides"])


SCALES = (2.0, 2.0, 3.0, 1.5, 0.75, 0.5, 1.3)
"""Of a Resize."""
NORMALISATIONS = ("LayerNormalization", "RMSNormalization")
REDUCTIONS = tuple(f"Reduce{name}" for name in ("Sum", "Mean", "Max", "Min", "Prod", "L2", "SumSquare"))

ATTRIBUTES: Mapping[tuple[str, str], Attribute] = {
    **{(op, "axis"): _axis for op in ("Split", "Softmax", "LogSoftmax", "Gather", *NORMALISATIONS)},
    ("Concat", "axis"): _joint,
    **{(op, "axes"): _reduced for op in REDUCTIONS},
    **{(op, "keepdims"): _one_of(0, 1) for op in REDUCTIONS},
    **{(op, "group"): _group for op in ("Conv", "ms.FusedConv")},
    **{
        (op, name): value
        for op in ("Conv", "ConvTranspose", "ms.FusedConv", "MaxPool", "AveragePool")
        for name, value in {
            "strides": _per_axis(1, 1, 2, 3),
            "pads": _per_axis(0, 0, 1, 2, twice=True),
            "dilations": _per_axis(1, 1, 1, 2),
        }.items()
    },
    ("ConvTranspose", "group"): _divisor,
    ("ConvTranspose", "output_padding"): _extra,
    **{(op, "kernel_shape"): _per_axis(1, 2, 3) for op in ("MaxPool", "AveragePool")},
    **{(op, "ceil_mode"): _one_of(0, 0, 1) for op in ("MaxPool", "AveragePool")},
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
    ("ms.QuickGelu", "alpha"): _one_of(1.702, 1.0, -0.5),
    ("AveragePool", "count_include_pad"): _one_of(0, 1),
    ("Clip", "min"): _one_of(-2.0, -1.0, 0.0, 0.5),
    ("Clip", "max"): _one_of(-0.5, 0.0, 1.0, 6.0),
    ("DepthToSpace", "blocksize"): _one_of(2, 2, 3),
    ("DepthToSpace", "mode"): _one_of("DCR", "CRD"),
    ("Selu", "alpha"): _one_of(1.67, 1.0, -0.5),
    ("Selu", "gamma"): _one_of(1.05, 1.0, -0.5),
    ("Elu", "alpha"): _one_of(1.0, 0.3, 2.0, -0.5),
    ("Expand", "shape"): _expanded,
    ("Flatten", "axis"): lambda draw, shape, _facts: draw.integer(0, len(shape)),
    ("Gelu", "approximate"): _one_of("none", "tanh"),
    ("HardSigmoid", "alpha"): _one_of(0.2, 1.0, -0.5),
    ("HardSigmoid", "beta"): _one_of(0.5, 0.0),
    ("LeakyRelu", "alpha"): _one_of(0.01, 0.3, 1.0, 0.0, 2.0, -0.5),
    ("LRN", "alpha"): _one_of(0.5, 2.0),
    ("LRN", "beta"): _one_of(0.75, 0.5, 1.0),
    ("LRN", "bias"): _one_of(1.0, 2.0),
    ("LRN", "size"): _one_of(1, 2, 3, 4, 5),
    ("Pad", "mode"): _one_of("constant", "constant", "edge"),
    ("Pad", "constant_value"): _one_of(0.0, 0.0, -1.0, 2.0),
    ("Pad", "pads"): lambda draw, shape, _facts: tuple(draw.pick((0, 0, 1, 2, -1)) for _ in shape * 2),
    ("Resize", "scales"): _scales,
    ("Resize", "sizes"): _sizes,
    ("Resize", "mode"): _one_of("linear", "cubic"),
    ("Resize", "cubic_coeff_a"): lambda draw, _shape, facts: draw.pick(
        (-0.75, -0.5) if facts["mode"] == "cubic" else (-0.75,)
    ),
    ("Resize", "coordinate_transformation_mode"): _one_of(*COORDINATES),
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
"""(operator, attribute) -> how to draw it. Later ones may read earlier ones in ``facts``."""

MEANINGLESS = frozenset(
    {("Reshape", "allowzero"), ("LayerNormalization", "stash_type"), ("RMSNormalization", "stash_type")}
)
"""Those that change no result over the reals at sizes of at least 1: ``**k`` may stand for them undrawn."""

ORDER: Mapping[str, Sequence[str]] = {
    op: [name for other, name in ATTRIBUTES if other == op] for op in dict.fromkeys(op for op, _ in ATTRIBUTES)
}
"""Operator -> its attributes in that order."""
