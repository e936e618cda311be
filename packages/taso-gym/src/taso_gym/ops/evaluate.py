"""Running the body of an operator on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from taso_gym.ops.floating import NUMPY
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Operator
from taso_gym.symbolic import bind
from taso_gym.tensor import numpy_dtype

TWO_BYTES = (np.dtype(np.float16), numpy_dtype("bfloat16"))


def evaluate(
    op: Operator, attrs: Attrs, arrays: Sequence[Any], xp: ArrayModule = NUMPY, dims: Mapping[str, int] | None = None
) -> tuple[Array, ...]:
    """Return the outputs of an operator for NumPy arrays (None where an optional input is absent).

    Types of two bytes compute in float32 and are rounded once, at the end, as onnxruntime does it.

    Args:
        op: an operator.
        attrs: normalised attributes, those of a signature.
        arrays: operands; arrays of another module than NumPy are taken as they are.
        xp: array module to compute with; the results are its arrays, `ArrayModule.to_numpy` converts them.
        dims: values of the dimension symbols that occur in ``attrs``.
    """
    keywords = {k: bind_attr(v, dims or {}) for k, v in attrs.items()}
    with np.errstate(all="ignore"):
        operands = [xp.asarray(a) if isinstance(a, np.ndarray | np.generic) else a for a in arrays]
        narrow = None if op.name == "Cast" else _narrow(operands)
        operands = [_widened(a) for a in operands] if narrow else operands
        result: Array = op.body(xp, *operands, **keywords)
    results = cast("tuple[Array, ...]", result) if isinstance(result, tuple) else (result,)
    return tuple(_as_array(r, narrow) for r in results)


def _narrow(operands: Sequence[Array]) -> np.dtype[Any] | None:
    """Return the element type of the first floating-point operand, if that is of two bytes."""
    dtypes: list[np.dtype[Any]] = [cast(Any, a).dtype for a in operands if isinstance(a, np.ndarray)]
    floats = [dtype for dtype in dtypes if dtype in TWO_BYTES or dtype.kind == "f"]
    return floats[0] if floats and floats[0] in TWO_BYTES else None


def _widened(x: Array) -> Array:
    is_narrow = isinstance(x, np.ndarray) and cast(Any, x).dtype in TWO_BYTES
    return cast(Any, x).astype(np.float32) if is_narrow else cast(Any, x)


def _as_array(x: Array, narrow: np.dtype[Any] | None) -> Array:
    """Return NumPy's scalars as arrays of no axes, and results of what was widened in the type that it had."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    whole = np.asarray(cast(Any, x))
    return whole.astype(narrow) if narrow is not None and whole.dtype == np.float32 else whole


def bind_attr(value: Any, dims: Mapping[str, int]) -> Any:
    """Replace the dimension symbols in an attribute's value."""
    if isinstance(value, tuple):
        return tuple(bind_attr(v, dims) for v in cast("tuple[Any, ...]", value))
    return bind(value, dims)
