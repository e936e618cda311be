"""Element-wise arithmetic, functions and logic."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Types, no_work, operator, shortest, whole
from taso_gym.ops.shapes import (
    broadcast,
    elementwise,
    expect,
    float_as_first,
    one_dtype,
    per_element,
    same_as_first,
    shape,
    tensor,
    truth,
)
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType, dtype_name, numpy_dtype


@operator("Add", since=7, infer=elementwise, commutative=True)
def add(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a + b."""
    return a + b


@operator("Sub", since=7, infer=elementwise)
def sub(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a - b."""
    return a - b


@operator("Mul", since=7, infer=elementwise, commutative=True)
def mul(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a * b."""
    return a * b


@operator("Div", since=7, infer=elementwise)
def div(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a / b; integers are truncated towards zero."""
    return xp.divide(a, b)


def pow_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The base's element type; the exponent may have another."""
    return (TensorType(tensor(types, 0).dtype, broadcast(shape(types, 0), shape(types, 1))),)


@operator("Pow", since=7, infer=pow_type)
def pow_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a**b."""
    return xp.power(a, b)


@operator("Neg", since=6, infer=same_as_first)
def neg(xp: ArrayModule, x: Array) -> Array:
    """-x."""
    return -x


@operator("Abs", since=6, infer=same_as_first)
def abs_(xp: ArrayModule, x: Array) -> Array:
    """|x|."""
    return xp.abs(x)


@operator("Reciprocal", since=6, infer=float_as_first)
def reciprocal(xp: ArrayModule, x: Array) -> Array:
    """1 / x."""
    return 1 / x


@operator("Sqrt", since=6, infer=float_as_first)
def sqrt(xp: ArrayModule, x: Array) -> Array:
    """Square root."""
    return xp.sqrt(x)


@operator("Exp", since=6, infer=float_as_first)
def exp(xp: ArrayModule, x: Array) -> Array:
    """e**x."""
    return xp.exp(x)


@operator("Log", since=6, infer=float_as_first)
def log(xp: ArrayModule, x: Array) -> Array:
    """Natural logarithm."""
    return xp.log(x)


@operator("Erf", since=9, infer=float_as_first)
def erf(xp: ArrayModule, x: Array) -> Array:
    """Gauss error function."""
    return xp.erf(x)


@operator("Tanh", since=6, infer=float_as_first)
def tanh(xp: ArrayModule, x: Array) -> Array:
    """Hyperbolic tangent."""
    return xp.tanh(x)


@operator("Sin", since=7, infer=float_as_first)
def sin(xp: ArrayModule, x: Array) -> Array:
    """Sine."""
    return xp.function("sin", x)


@operator("Cos", since=7, infer=float_as_first)
def cos(xp: ArrayModule, x: Array) -> Array:
    """Cosine."""
    return xp.function("cos", x)


@operator("Floor", since=6, infer=float_as_first)
def floor(xp: ArrayModule, x: Array) -> Array:
    """Round down."""
    return xp.function("floor", x)


@operator("Ceil", since=6, infer=float_as_first)
def ceil(xp: ArrayModule, x: Array) -> Array:
    """Round up."""
    return xp.function("ceil", x)


@operator("Sign", since=9, infer=same_as_first)
def sign(xp: ArrayModule, x: Array) -> Array:
    """-1, 0 or 1."""
    return xp.function("sign", x)


def operands_less_one(types: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """One operation per element and operand but the first."""
    return product(outputs[0].shape or ()) * (len(types) - 1)


@operator("Sum", since=8, infer=elementwise, flops=operands_less_one, commutative=True)
def sum_(xp: ArrayModule, a: Array, *others: Array) -> Array:
    """a + b + …."""
    for x in others:
        a = a + x
    return a


@operator("Max", since=8, infer=elementwise, flops=operands_less_one, commutative=True)
def max_(xp: ArrayModule, a: Array, *others: Array) -> Array:
    """Largest of the operands."""
    return xp.maximum(a, *others)


@operator("Min", since=8, infer=elementwise, flops=operands_less_one, commutative=True)
def min_(xp: ArrayModule, a: Array, *others: Array) -> Array:
    """Smallest of the operands."""
    return xp.minimum(a, *others)


def clip_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Write bounds as numbers of the operand's element type, shortest form."""
    dtype = numpy_dtype(tensor(types, 0).dtype)
    if dtype.kind in "iub":
        return {k: None if v is None else whole(v, dtype) for k, v in attrs.items()}
    precise = dtype.type if dtype.kind == "f" else float
    return {k: None if v is None else shortest(float(v), precise) for k, v in attrs.items()}


@operator(
    "Clip",
    since=6,
    infer=same_as_first,
    normalize=clip_attrs,
    flops=per_element(2),
    inputs_as_attrs={"min": (1, 11), "max": (2, 11)},
)
def clip(xp: ArrayModule, x: Array, *, min: float | None = None, max: float | None = None) -> Array:
    """min(max(x, lower), upper); an absent bound is none."""
    if min is not None:
        x = xp.maximum(x, xp.constant(min, x))
    return x if max is None else xp.minimum(x, xp.constant(max, x))


@operator("And", since=7, infer=truth, commutative=True)
def and_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a and b."""
    return xp.logical_and(a, b)


@operator("Or", since=7, infer=truth, commutative=True)
def or_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a or b."""
    return xp.logical_or(a, b)


@operator("Not", since=1, infer=same_as_first)
def not_(xp: ArrayModule, x: Array) -> Array:
    """Not x."""
    return xp.logical_not(x)


@operator("Equal", since=7, infer=truth, commutative=True)
def equal(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a == b."""
    return xp.equal(a, b)


@operator("IsNaN", since=9, infer=truth)
def is_nan(xp: ArrayModule, x: Array) -> Array:
    """Whether x isn't a number; what isn't equals nothing, itself included."""
    return xp.logical_not(xp.equal(x, x))


@operator("Less", since=7, infer=truth)
def less(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a < b."""
    return xp.less(a, b)


@operator("Greater", since=7, infer=truth)
def greater(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a > b."""
    return xp.less(b, a)


def where_type(types: Types, _attrs: Attrs) -> tuple[TensorType, ...]:
    """The element type of the two branches."""
    expect(tensor(types, 0).dtype == "bool", "a bool tensor as input 0", tensor(types, 0))
    branches = broadcast(shape(types, 1), shape(types, 2))
    return (TensorType(one_dtype(types[1:]), broadcast(shape(types, 0), branches)),)


@operator("Where", since=9, infer=where_type)
def where(xp: ArrayModule, condition: Array, a: Array, b: Array) -> Array:
    """A where the condition holds, else b."""
    return xp.where(condition, a, b)


def cast_attrs(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
    """Check the target; ``saturate`` and ``round_mode`` only matter for types of 8 bits, which aren't modelled."""
    expect(attrs["to"] in TensorProto.DataType.values(), "the code of an element type", attrs["to"])
    for dtype in (tensor(types, 0).dtype, dtype_name(attrs["to"])):
        if dtype == "string" or dtype.startswith("float8"):
            raise TypeInferenceError(f"expected a cast between numbers of 16 bits or more, found {dtype}")
    return {"to": attrs["to"]}


def cast_type(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    """The first input's shape in the target's element type."""
    return (TensorType(dtype_name(attrs["to"]), shape(types, 0)),)


@operator("Cast", since=6, infer=cast_type, normalize=cast_attrs, flops=no_work)
def cast(xp: ArrayModule, x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    """Convert to the ONNX element type of code ``to``."""
    return xp.cast(x, dtype_name(to))
