"""Running the body of an operator on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from taso_gym.errors import ModelError
from taso_gym.ops.floating import NUMPY
from taso_gym.ops.modules import Array, ArrayModule
from taso_gym.ops.operator import Attrs, Operator
from taso_gym.tensor import bind, numpy_dtype

BFLOAT16 = numpy_dtype("bfloat16")


def evaluate(
    op: Operator, attrs: Attrs, arrays: Sequence[Any], xp: ArrayModule = NUMPY, dims: Mapping[str, int] | None = None
) -> tuple[Array, ...]:
    """Return the outputs of an operator for NumPy arrays (None where an optional input is absent).

    Args:
        op: an operator with a body.
        attrs: normalised attributes, those of a signature.
        arrays: operands; arrays of another module than NumPy are taken as they are.
        xp: array module to compute with; the results are its arrays, `ArrayModule.to_numpy` converts them.
        dims: values of the dimension symbols that occur in ``attrs``.

    Raises:
        ModelError: only the types of this operator are known.
    """
    if op.body is None:
        raise ModelError(f"expected an operator that can be evaluated, found {op.key}, of which only types are known")
    keywords = {k: bind_attr(v, dims or {}) for k, v in attrs.items()}
    with np.errstate(all="ignore"):
        operands = [xp.asarray(a) if isinstance(a, np.ndarray | np.generic) else a for a in arrays]
        result: Array = op.body(xp, *operands, **keywords)
    results = cast("tuple[Array, ...]", result) if isinstance(result, tuple) else (result,)
    narrow = op.name != "Cast" and any(getattr(a, "dtype", None) == BFLOAT16 for a in operands)
    return tuple(_as_array(r, narrow) for r in results)


def _as_array(x: Array, narrow: bool) -> Array:
    """Return NumPy's scalars as arrays of no axes; bfloat16, which Python numbers widen, as itself."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    whole = np.asarray(cast(Any, x))
    return whole.astype(BFLOAT16) if narrow and whole.dtype == np.float32 else whole


def bind_attr(value: Any, dims: Mapping[str, int]) -> Any:
    """Replace the dimension symbols in an attribute's value."""
    if isinstance(value, tuple):
        return tuple(bind_attr(v, dims) for v in cast("tuple[Any, ...]", value))
    return bind(value, dims)
