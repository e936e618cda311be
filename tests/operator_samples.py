"""Operands and attributes with which each operator of the table is tried; an operator without a sample fails a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from taso_gym.ops import MICROSOFT, OPERATORS, PREFIXES, Operator
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType, dtype_name

F, B, I32, I64 = "float", "bool", "int32", "int64"
Operand = tuple[int, ...] | tuple[str, tuple[int, ...]] | NDArray[Any] | None


@dataclass(frozen=True)
class Sample:
    """One application of an operator.

    Attributes:
        key: of the operator.
        operands: for each a shape, (element type, shape), an array, or None where it is absent.
        attrs: as a file states them.
        low, high: range of random floats.
    """

    key: str
    operands: tuple[Operand, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0

    def __str__(self) -> str:
        shapes = "x".join("_" if t is None else str(list(t.shape or ())).replace(" ", "") for t in self.types)
        return f"{self.key}-{shapes}-{','.join(f'{k}={v}' for k, v in self.attrs.items())}".replace(" ", "")

    @property
    def op(self) -> Operator:
        domain = MICROSOFT if self.key.startswith(PREFIXES[MICROSOFT]) else ""
        return OPERATORS[domain, self.key.removeprefix(PREFIXES[MICROSOFT] if domain else "")]

    @property
    def types(self) -> list[TensorType | None]:
        return [type_of(operand) for operand in self.operands]

    @property
    def signature(self) -> Signature:
        return signature(self.op, self.attrs, self.types)

    def arrays(self) -> list[NDArray[Any] | None]:
        """Draw the operands, the same each time."""
        rng = np.random.default_rng(crc32(str(self).encode()))
        return [
            draw(operand, t, rng, self.low, self.high) for operand, t in zip(self.operands, self.types, strict=True)
        ]


def type_of(operand: Operand) -> TensorType | None:
    """Return the type of an operand."""
    if operand is None:
        return None
    if isinstance(operand, np.ndarray):
        return TensorType(dtype_name(helper.np_dtype_to_tensor_dtype(operand.dtype)), operand.shape)
    if operand and isinstance(operand[0], str):
        return TensorType(operand[0], operand[1])  # type: ignore[arg-type]
    return TensorType(F, operand)  # type: ignore[arg-type]


def draw(operand: Operand, t: TensorType | None, rng: np.random.Generator, low: float, high: float) -> Any:
    """Return random values of a type; an array is returned as it is."""
    if t is None or isinstance(operand, np.ndarray):
        return operand
    if t.dtype == B:
        return np.asarray(rng.random(t.shape) < 0.5)
    if t.dtype in (I32, I64):
        return np.asarray(rng.integers(-9, 9, t.shape)).astype(t.dtype)
    return np.asarray(rng.random(t.shape) * (high - low) + low, np.float64 if t.dtype == "double" else np.float32)


def indices(*values: int, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Return an index operand."""
    return np.array(values, np.int64).reshape((len(values),) if shape is None else shape)


PAIRS: list[tuple[Operand, ...]] = [((2, 3, 4), (2, 3, 4)), ((2, 1, 4), (3, 1)), ((5,), (2, 1, 5)), ((), (3, 2))]
SHAPES: list[tuple[int, ...]] = [(2, 3, 4), (1, 5), ()]


def binary(key: str, *extra: tuple[Operand, ...], **kwargs: Any) -> list[Sample]:
    """Return samples of an element-wise operator of two operands."""
    return [Sample(key, pair, **kwargs) for pair in [*PAIRS, *extra]]


def unary(key: str, *attrs: dict[str, Any], **kwargs: Any) -> list[Sample]:
    """Return samples of an element-wise operator of one operand."""
    return [Sample(key, (dims,), a, **kwargs) for dims in SHAPES for a in [{}, *attrs]]


def typed(key: str, dtype: str, result: list[tuple[Operand, ...]] = PAIRS) -> list[Sample]:
    """Return samples of an operator of two operands of another element type than float."""
    return [Sample(key, tuple((dtype, dims) for dims in pair)) for pair in result]  # type: ignore[misc]


INTS = ((I64, (2, 3)), (I64, (3,)))
ELEMENTWISE = [
    *binary("Add", INTS),
    *binary("Sub", INTS),
    *binary("Mul", INTS),
    *binary("Div", low=0.5),
    Sample("Div", (np.array([7, -7, 7, -7, 6]), np.array([2, 2, -2, -2, 3]))),
    *binary("Pow", low=0.5),
    Sample("Pow", ((2, 3), np.array(3, np.float32))),
    Sample("Pow", ((2, 3), np.array([2], np.int64))),
    *binary("Equal", INTS),
    *binary("Less", INTS),
    *binary("Greater", INTS),
    *typed("And", B),
    *typed("Or", B),
    Sample("Not", ((B, (2, 3)),)),
    Sample("IsNaN", ((2, 3),)),
    *[
        Sample(key, operands)
        for key in ("Sum", "Max", "Min")
        for operands in [((2, 3),), ((2, 1), (3,), (2, 3)), ((4,), ())]
    ],
    *[s for key in ("Neg", "Abs", "Sign", "Exp", "Erf", "Tanh", "Sin", "Cos", "Floor", "Ceil") for s in unary(key)],
    *[s for key in ("Reciprocal", "Sqrt", "Log") for s in unary(key, low=0.1)],
    Sample("Neg", ((I32, (3,)),)),
    Sample("Abs", ((I64, (3,)),)),
    *unary("Clip", {"min": -0.5, "max": 0.75}, {"max": 1.0}, {"min": 0.1}),
    Sample("Clip", ((I32, (7,)),), {"min": -3, "max": 4}),
    Sample("Where", ((B, (2, 3)), (2, 3), (2, 3))),
    Sample("Where", ((B, (3,)), (2, 1), ())),
    Sample("Where", ((B, (2, 1)), (I64, (3,)), (I64, (1, 3)))),
    Sample("Cast", ((2, 3),), {"to": 7}),
    Sample("Cast", ((I64, (2, 3)),), {"to": 1}),
    Sample("Cast", ((B, (2, 3)),), {"to": 1}),
    Sample("Cast", ((2, 3),), {"to": 9}),
    Sample("Cast", ((2, 3),), {"to": 10}),
]
ACTIVATIONS = [
    *unary("Relu"),
    *unary("LeakyRelu", {"alpha": 0.3}),
    Sample("PRelu", ((2, 3, 4), (3, 1))),
    Sample("PRelu", ((2, 3, 4), (1,))),
    Sample("PRelu", ((2, 3), (2, 3))),
    *unary("Elu", {"alpha": 0.7}),
    *unary("Selu", {"alpha": 1.5, "gamma": 1.25}),
    *unary("Sigmoid"),
    *unary("Sigmoid", low=-200, high=200),
    *unary("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    *unary("HardSwish", low=-5, high=5),
    *unary("Softplus"),
    *unary("Softplus", low=-60, high=60),
    *unary("Mish"),
    *unary("Gelu", {"approximate": "tanh"}),
    *[
        Sample(key, (dims,), {"axis": axis}, high=20)
        for key in ("Softmax", "LogSoftmax")
        for dims, axis in [((2, 3), -1), ((2, 3, 4), 1), ((1, 5, 1), 0), ((2, 3, 4), -2)]
    ],
]
LINEAR = [
    *[
        Sample("MatMul", pair)
        for pair in [
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3, 1)),
            ((2, 1, 2, 3), (4, 3, 5)),
            ((3,), (2, 3, 4)),
            ((1, 3), (3,)),
            ((4,), (4,)),
        ]
    ],
    Sample("Gemm", ((2, 3), (3, 4))),
    Sample("Gemm", ((3, 2), (3, 4), (4,)), {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    Sample("Gemm", ((2, 3), (4, 3), (2, 1)), {"transB": 1}),
    Sample("Gemm", ((3, 2), (1, 3), ()), {"transA": 1, "transB": 1}),
    Sample("Einsum", ((2, 3), (3, 4)), {"equation": "ij, jk -> ki"}),
    Sample("Einsum", ((2, 3, 4, 5), (2, 3, 6, 5)), {"equation": "bhid,bhjd->bhij"}),
    Sample("Einsum", ((2, 3, 4), (4, 5)), {"equation": "...i,ij"}),
    Sample("Einsum", ((3, 3),), {"equation": "ii"}),
    Sample("Einsum", ((2, 3), (3, 4), (4, 5)), {"equation": "ab,bc,cd->ad"}),
]
CONVOLUTIONS = [
    Sample("Conv", ((2, 3, 5, 7), (4, 3, 3, 2))),
    Sample("Conv", ((2, 3, 5, 7), (4, 3, 3, 2), (4,)), {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
    Sample("Conv", ((1, 4, 9, 8), (6, 2, 3, 3)), {"group": 2, "dilations": [2, 1], "pads": [1, 1, 1, 1]}),
    Sample("Conv", ((2, 4, 6, 6), (8, 1, 3, 3), (8,)), {"group": 4, "pads": [1, 1, 1, 1]}),
    Sample("Conv", ((1, 2, 8, 7), (3, 2, 3, 2)), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Sample("Conv", ((1, 2, 8, 7), (3, 2, 2, 4)), {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 4]}),
    Sample("Conv", ((1, 2, 8, 7), (3, 2, 2, 4)), {"auto_pad": "VALID"}),
    Sample("Conv", ((1, 3, 1, 1), (2, 3, 1, 1))),
    Sample("Conv", ((2, 3, 9), (4, 3, 3), (4,)), {"pads": [2, 1], "strides": [2]}),
    Sample("Conv", ((1, 2, 4, 5, 3), (3, 2, 2, 1, 3)), {"pads": [0, 0, 1, 1, 0, 1]}),
    Sample(
        "ConvTranspose",
        ((2, 3, 5, 4), (3, 2, 3, 2), (2,)),
        {"strides": [2, 1], "pads": [1, 0, 0, 1], "output_padding": [1, 0]},
    ),
    Sample("ConvTranspose", ((2, 4, 5), (4, 3, 3)), {"group": 2, "dilations": [2]}),
]
WINDOW = {"kernel_shape": [3, 2]}
POOLS = [
    *[
        Sample(key, (dims,), attrs)
        for key in ("MaxPool", "AveragePool")
        for dims, attrs in [
            ((2, 3, 5, 7), WINDOW),
            ((2, 3, 5, 7), WINDOW | {"pads": [1, 0, 1, 1], "strides": [2, 3]}),
            ((1, 2, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
            ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
            ((1, 2, 9, 8), WINDOW | {"dilations": [2, 3]}),
            ((1, 2, 8, 7), {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
            ((2, 3, 9), {"kernel_shape": [4], "pads": [1, 2], "strides": [2]}),
            ((1, 2, 4, 5, 3), {"kernel_shape": [2, 1, 3]}),
        ]
    ],
    Sample("AveragePool", ((2, 3, 5, 7),), WINDOW | {"pads": [1, 0, 1, 1], "count_include_pad": 1}),
    Sample(
        "AveragePool",
        ((1, 2, 8, 8),),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0], "ceil_mode": 1, "count_include_pad": 1},
    ),
    *[
        Sample(f"Global{kind}Pool", (dims,))
        for kind in ("Average", "Max")
        for dims in [(2, 3, 5, 7), (1, 1, 4), (2, 3, 1, 1)]
    ],
]
VECTORS = ((3,), (3,), (3,), np.array([0.5, 2.0, 1.0], np.float32))
NORMALIZATIONS = [
    *[
        Sample("BatchNormalization", (dims, *VECTORS), a)
        for dims, a in [((2, 3, 4, 5), {}), ((2, 3), {"epsilon": 0.1, "momentum": 0.5})]
    ],
    *[
        Sample("InstanceNormalization", (dims, (3,), (3,)), a)
        for dims, a in [((2, 3, 4, 5), {}), ((1, 3, 6), {"epsilon": 0.1})]
    ],
    Sample("LayerNormalization", ((2, 3, 4), (4,), (4,))),
    Sample("LayerNormalization", ((2, 3, 4), (3, 4)), {"axis": 1, "epsilon": 0.1}),
    Sample("LayerNormalization", ((5, 4), (4,), (4,)), {"axis": -1, "epsilon": 1e-12}),
    Sample("GroupNormalization", ((2, 6, 4, 5), (6,), (6,)), {"num_groups": 3}),
    Sample("GroupNormalization", ((1, 4, 3), (4,), (4,)), {"num_groups": 1, "epsilon": 0.1}),
    Sample("RMSNormalization", ((2, 3, 4), (4,))),
    Sample("RMSNormalization", ((2, 3, 4), (3, 4)), {"axis": -2, "epsilon": 0.1}),
    Sample("LRN", ((2, 7, 3, 2),), {"size": 3}),
    Sample("LRN", ((1, 5, 2, 2),), {"size": 5, "alpha": 0.5, "beta": 0.5, "bias": 2.0}),
    Sample("LpNormalization", ((2, 3, 4),)),
    Sample("LpNormalization", ((2, 3, 4),), {"axis": 1, "p": 1}),
    Sample("LpNormalization", (np.array([[0, 0], [3, 4]], np.float32),)),
]
REDUCTIONS = [
    Sample(f"Reduce{kind}", ((2, 3, 4),), attrs)
    for kind in ("Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L2")
    for attrs in [{}, {"axes": [-1], "keepdims": 0}, {"axes": [2, 0]}, {"axes": [1]}, {"keepdims": 0}]
]
REDUCTIONS += [
    Sample("ReduceSum", ((I64, (2, 3)),), {"axes": [1]}),
    Sample("ReduceMax", ((I32, (2, 3)),), {"axes": [0]}),
    Sample("ReduceMean", ((I64, (2, 3)),), {"axes": [1]}),
]
MOVEMENT = [
    Sample("Identity", ((2, 3),)),
    Sample("Identity", ((I64, ()),)),
    Sample("Concat", ((2, 3), (2, 1), (2, 4)), {"axis": -1}),
    Sample("Concat", ((I64, (2,)), (I64, (3,))), {"axis": 0}),
    Sample("Concat", ((1, 2, 3),), {"axis": 1}),
    Sample("Split", ((2, 7),), {"axis": -1, "split": [3, 1, 3]}),
    Sample("Split", ((6, 2),), {"num_outputs": 3}),
    Sample("Split", ((2, 7),), {"axis": 1, "num_outputs": 3}),
    Sample("Slice", ((5, 7),), {"starts": [1], "ends": [-1]}),
    Sample("Slice", ((5, 7),), {"starts": [-1, 5], "ends": [-100, 0], "axes": [-1, 0], "steps": [-2, -1]}),
    Sample("Slice", ((5, 7, 2),), {"starts": [0, 2], "ends": [2**63 - 1, 99], "axes": [0, 1], "steps": [1, 3]}),
    Sample("Slice", ((5, 7),), {"starts": [3, 0], "ends": [3, 7], "axes": [0, 1]}),
    Sample("Slice", ((5,),), {"starts": [0], "ends": [5]}),
    Sample("Transpose", ((2, 3, 4),)),
    Sample("Transpose", ((2, 3, 4, 5),), {"perm": [0, 2, 3, 1]}),
    Sample("Gather", ((5, 3), indices(0, -1, 2))),
    Sample("Gather", ((2, 5, 3), indices(4, 0, 1, 1, shape=(2, 2))), {"axis": 1}),
    Sample("Gather", ((2, 5), np.array(-2, np.int32)), {"axis": -1}),
    Sample("Pad", ((2, 3),), {"pads": [1, 0, 2, 3]}),
    Sample("Pad", ((2, 3),), {"pads": [0, 1, 0, 1], "constant_value": 1.5}),
    Sample("Pad", ((2, 3, 4),), {"pads": [1, 2], "axes": [-1], "constant_value": -1.0}),
    Sample("Pad", ((4, 5),), {"pads": [2, 1, 1, 3], "mode": "reflect"}),
    Sample("Pad", ((4, 5),), {"pads": [2, 1, 1, 3], "mode": "edge"}),
    Sample("Pad", ((4, 5),), {"pads": [2, 1, 1, 3], "mode": "wrap"}),
    Sample("Pad", ((4, 5),), {"pads": [-1, 0, 1, -2]}),
    Sample("Pad", ((I64, (3,)),), {"pads": [1, 1], "constant_value": 7}),
]
RESHAPING = [
    Sample("Reshape", ((2, 3, 4),), {"shape": [0, -1]}),
    Sample("Reshape", ((2, 3, 4),), {"shape": [4, 3, 1, 2]}),
    Sample("Reshape", ((1,),), {"shape": []}),
    Sample("Reshape", ((0, 3),), {"shape": [3, 0], "allowzero": 1}),
    *[Sample("Flatten", ((2, 3, 4),), {"axis": axis}) for axis in (1, 0, 3, -1)],
    Sample("Squeeze", ((1, 3, 1, 2),)),
    Sample("Squeeze", ((1, 3, 1, 2),), {"axes": [-2]}),
    Sample("Squeeze", ((1, 1),), {"axes": [0]}),
    Sample("Squeeze", ((2, 3),)),
    Sample("Unsqueeze", ((2, 3),), {"axes": [0, -1]}),
    Sample("Unsqueeze", ((),), {"axes": [0]}),
    Sample("Expand", ((3, 1),), {"shape": [2, 1, 4]}),
    Sample("Expand", ((2, 3),), {"shape": [1]}),
    Sample("Tile", ((2, 3),), {"repeats": [2, 1]}),
    Sample("Tile", ((2, 1, 3),), {"repeats": [1, 3, 2]}),
    *[Sample("DepthToSpace", ((2, 12, 2, 3),), {"blocksize": 2} | mode) for mode in ({}, {"mode": "CRD"})],
    Sample("DepthToSpace", ((1, 9, 1, 2),), {"blocksize": 3}),
    Sample("SpaceToDepth", ((2, 3, 4, 6),), {"blocksize": 2}),
    Sample("Resize", ((2, 3, 4, 5),), {"scales": [1.0, 1.0, 2.0, 1.5], "nearest_mode": "floor"}),
    Sample("Resize", ((2, 3, 4, 5),), {"sizes": [2, 3, 9, 2], "nearest_mode": "ceil"}),
    Sample("Resize", ((2, 3, 4, 5),), {"sizes": [2, 3, 9, 2], "mode": "linear"}),
    Sample("Resize", ((2, 3, 4, 5),), {"sizes": [2, 3, 9, 2], "mode": "cubic"}),
    Sample("Resize", ((1, 2, 4, 5),), {"scales": [1.0, 1.0, 2.0, 1.5], "mode": "cubic", "cubic_coeff_a": -0.5}),
    Sample("Resize", ((2, 3, 5),), {"scales": [1.0, 1.0, 1.5], "mode": "linear"}),
    Sample("Resize", ((1, 2, 7, 3),), {"sizes": [31, 3], "axes": [2, 3], "mode": "linear", "nearest_mode": "floor"}),
    *(
        Sample("Resize", ((2, 3, 4, 5),), {"mode": "linear", "coordinate_transformation_mode": at, **by})
        for at, by in (
            ("asymmetric", {"scales": [1.0, 1.0, 2.0, 0.25]}),
            ("half_pixel", {"scales": [1.0, 1.0, 1.25, 1.0]}),
            ("align_corners", {"scales": [1.0, 1.0, 2.0, 1.3]}),
            ("pytorch_half_pixel", {"sizes": [2, 3, 8, 1]}),
        )
    ),
]
QKV = ((2, 4, 3, 6), (2, 4, 5, 6), (2, 4, 5, 7))
ATTENTION = [
    Sample("Attention", QKV),
    Sample("Attention", (*QKV, (3, 5)), {"scale": 0.5}),
    Sample("Attention", (*QKV, (2, 1, 3, 5))),
    Sample("Attention", (*QKV, np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]], bool))),
    Sample("Attention", ((2, 4, 5, 6), *QKV[1:]), {"is_causal": 1}),
    Sample("Attention", ((2, 4, 5, 6), (2, 2, 5, 6), (2, 2, 5, 6), (5, 5)), {"is_causal": 1}),
    Sample("Attention", ((1, 3, 24), (1, 5, 24), (1, 5, 16)), {"q_num_heads": 4, "kv_num_heads": 4}),
    Sample("Attention", ((2, 3, 24), (2, 5, 12), (2, 5, 8)), {"q_num_heads": 4, "kv_num_heads": 2}),
    Sample("Attention", QKV, {"softcap": 2.0}),
]
KEEP = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 0]], np.int32)
MICROSOFT_SAMPLES = [
    *unary("ms.Gelu"),
    *unary("ms.QuickGelu", {"alpha": 1.0}),
    Sample("ms.BiasGelu", ((2, 3, 4), (4,))),
    Sample("ms.BiasGelu", ((2, 5), (5,))),
    Sample("ms.FastGelu", ((2, 3, 4),)),
    Sample("ms.FastGelu", ((2, 3, 4), (4,))),
    Sample("ms.FusedMatMul", ((2, 3), (3, 4)), {"alpha": 0.125}),
    Sample("ms.FusedMatMul", ((5, 3, 2), (5, 4, 3)), {"transA": 1, "transB": 1}),
    Sample("ms.FusedMatMul", ((2, 3), (5, 4, 3)), {"transB": 1, "alpha": 2.0}),
    *[
        Sample(
            "ms.FusedGemm",
            ((2, 3), (4, 3), (4,)),
            {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": name} | params,
        )
        for name, params in [
            ("Relu", {}),
            ("Tanh", {}),
            ("Sigmoid", {}),
            ("LeakyRelu", {"activation_alpha": 0.2}),
            ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ]
    ],
    *[
        Sample("ms.FusedConv", ((2, 3, 5, 7), (4, 3, 3, 2), (4,)), {"pads": [1, 0, 2, 1], "activation": name} | params)
        for name, params in [
            ("Relu", {}),
            ("Tanh", {}),
            ("Sigmoid", {}),
            ("LeakyRelu", {"activation_params": [0.2]}),
            ("HardSigmoid", {"activation_params": [0.3, 0.4]}),
            ("Clip", {"activation_params": [-0.5, 0.75]}),
        ]
    ],
    Sample("ms.FusedConv", ((1, 4, 5, 5), (4, 1, 3, 3)), {"group": 4, "activation": "Relu"}),
    Sample("ms.FusedConv", ((1, 2, 5, 5), (3, 2, 3, 3), (3,), (1, 3, 3, 3)), {"activation": "Relu"}),
    Sample("ms.SkipLayerNormalization", ((2, 3, 4), (2, 3, 4), (4,))),
    Sample("ms.SkipLayerNormalization", ((2, 3, 4), (3, 4), (4,), (4,), (4,)), {"epsilon": 0.1}),
    Sample("ms.SkipLayerNormalization", ((2, 3, 4), (1, 3, 4), (4,), None, (4,))),
    Sample("ms.MultiHeadAttention", ((2, 3, 24), (2, 5, 24), (2, 5, 16)), {"num_heads": 4}),
    Sample("ms.MultiHeadAttention", ((2, 3, 24), (2, 5, 24), (2, 5, 16), (64,)), {"num_heads": 4, "scale": 0.25}),
    Sample("ms.MultiHeadAttention", ((2, 3, 24), (2, 5, 24), (2, 5, 16), None, KEEP), {"num_heads": 4}),
    Sample(
        "ms.MultiHeadAttention",
        ((2, 3, 24), (2, 5, 24), (2, 5, 16), None, KEEP, (1, 4, 3, 5)),
        {"num_heads": 4, "mask_filter_value": -50.0},
    ),
    Sample("ms.MultiHeadAttention", ((2, 5, 8), (2, 5, 8), (2, 5, 8)), {"num_heads": 2, "unidirectional": 1}),
    Sample("ms.MultiHeadAttention", ((2, 5, 8), (2, 3, 8), (2, 3, 8)), {"num_heads": 2, "unidirectional": 1}),
    Sample("ms.Attention", ((2, 5, 6), (6, 24), (24,)), {"num_heads": 2}),
    Sample("ms.Attention", ((2, 5, 6), (6, 24), (24,)), {"num_heads": 2, "scale": 0.25}),
    Sample("ms.Attention", ((2, 5, 6), (6, 24), (24,), KEEP), {"num_heads": 4}),
    Sample("ms.Attention", ((2, 5, 6), (6, 24), (24,), KEEP, None, (2, 1, 5, 5)), {"num_heads": 4}),
    Sample(
        "ms.Attention",
        ((2, 5, 6), (6, 20), (20,)),
        {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4], "unidirectional": 1},
    ),
]
SAMPLES = [
    *ELEMENTWISE,
    *ACTIVATIONS,
    *LINEAR,
    *CONVOLUTIONS,
    *POOLS,
    *NORMALIZATIONS,
    *REDUCTIONS,
    *MOVEMENT,
    *RESHAPING,
    *ATTENTION,
    *MICROSOFT_SAMPLES,
]
