"""What rules are shown for: tensors that have elements, up to a rank; others are matched by no rule."""

from __future__ import annotations

from collections.abc import Iterable

from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

MAX_RANK = 6
"""Largest rank of a tensor that a match reads or makes; the proofs of the shipped rules go up to it."""


def covered(sigs: Iterable[Signature]) -> bool:
    """Whether the tensors of matched operators are such as rules are about.

    A dimension that is a symbol counts as having elements: what is claimed of a graph is claimed for sizes of at least 1.
    """
    return all(
        t.shape is None or (len(t.shape) <= MAX_RANK and 0 not in t.shape)
        for sig in sigs
        for t in (*sig.inputs, *sig.outputs)
        if isinstance(t, TensorType)
    )
