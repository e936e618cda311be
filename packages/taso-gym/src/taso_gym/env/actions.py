"""Reading actions: whatever is handed to `step` is a pair of integers or illegal, never an exception."""

from __future__ import annotations

from typing import Any

import numpy as np

ILLEGAL = (-1, -1)


def read_pair(action: Any) -> tuple[int, int]:
    """Return (xfer, location) of an action of shape (2,), whole numbers of integer or float type, else `ILLEGAL`."""
    values = _array(action)
    if values is None or values.shape != (2,):
        return ILLEGAL
    first, second = (_whole(v) for v in values.tolist())
    return (first, second) if first is not None and second is not None else ILLEGAL


def read_index(action: Any) -> int:
    """Return an action that is one whole number of an integer or float type, of shape () or (1,), else -1."""
    values = _array(action)
    if values is None or values.shape not in ((), (1,)):
        return -1
    index = _whole(values.reshape(-1).tolist()[0])
    return -1 if index is None else index


def _array(action: Any) -> np.ndarray[Any, Any] | None:
    try:
        values = np.asarray(action)
    except Exception:  # ragged, or an object whose own `__array__` raises anything
        return None
    return values if values.dtype.kind in "iuf" else None


def _whole(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None
