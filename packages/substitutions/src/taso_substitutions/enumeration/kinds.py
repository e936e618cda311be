"""Kinds: the types of tensors that occur in a fragment, and which of them an operator takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragment import Fragment

UNKNOWN, YES = -1, 1


class Kinds:
    """Numbers the types of a fragment's tensors.

    Attributes:
        types: type of each kind, over symbols.
    """

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.types: list[TensorType] = []
        self._numbers: dict[TensorType, int] = {}
        self._signatures: dict[tuple[int, tuple[int, ...]], Signature | None] = {}
        self._extra = fragment.types
        self._table: list[NDArray[np.int8]] = []
        self._capacity = 0

    def __len__(self) -> int:
        return len(self.types)

    def number(self, type_: TensorType) -> int:
        """Return the number of a type."""
        if type_ not in self._numbers:
            self._numbers[type_] = len(self.types)
            self.types.append(type_)
        return self._numbers[type_]

    def allowed(self, number: int, kinds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows of kinds, (N, arity), an operator instance takes; each combination is looked up once."""
        if len(self.types) > self._capacity:
            self._capacity = 2 * len(self.types)
            shapes = [self._capacity**instance.arity for instance in self.fragment.instances]
            self._table = [np.full(shape, UNKNOWN, np.int8) for shape in shapes]
        codes = kinds[:, 0]
        for column in range(1, kinds.shape[1]):
            codes = codes * self._capacity + kinds[:, column]
        found = self._table[number][codes]
        if (found == UNKNOWN).any():
            missing, first = np.unique(codes[found == UNKNOWN], return_index=True)
            for code, row in zip(missing, kinds[found == UNKNOWN][first], strict=True):
                self._table[number][code] = self.signature(number, tuple(row.tolist())) is not None
            found = self._table[number][codes]
        return found == YES

    def signature(self, number: int, kinds: tuple[int, ...]) -> Signature | None:
        """Return the signature of an operator instance on operands of these kinds; None where it doesn't take them."""
        key = (number, kinds)
        if key not in self._signatures:
            instance = self.fragment.instances[number]
            chosen = [self.types[k] for k in kinds]
            self._signatures[key] = None
            with suppress(TypeInferenceError):
                types = instance.arranged(chosen, [self._extra[name] for name in instance.extra])
                sig = signature(instance.op, dict(instance.attrs), types) if instance.takes(chosen) else None
                same = instance.key in ("Reshape", "Slice") and sig is not None and sig.outputs[0] == types[0]
                self._signatures[key] = sig if sig and not same and self._has_elements(sig.outputs) else None
        return self._signatures[key]

    def _has_elements(self, types: Sequence[object]) -> bool:
        shapes = (bound_shape(t, s) for t in types if isinstance(t, TensorType) for s in self.fragment.sizes)
        return all(d > 0 for shape in shapes for d in shape)


def bound_shape(type_: TensorType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return a shape with its letters bound."""
    shape = type_.bind(sizes).shape or ()
    return tuple(int(d) for d in shape if isinstance(d, int))
