"""Integers modulo a prime, many tensors of one type at once: the numeric work of the enumeration in few calls.

The tensors of a batch lie side by side along a last axis that a body doesn't see; broadcasting, which aligns axes from
the right, then needs no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taso_gym.ops.modular import ModularModule, Residues

ALL = slice(None)


class BatchedResidues(Residues):
    """A batch of tensors; values (*shape, B)."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of one tensor's axes."""
        return self.values.shape[:-1]

    def reshaped(self, shape: Sequence[int]) -> BatchedResidues:
        """Return each tensor in another shape."""
        return BatchedResidues(self.values.reshape(*shape, self.values.shape[-1]), self.p)

    def __getitem__(self, index: Any) -> BatchedResidues:
        full = index if isinstance(index, tuple) else (index,)
        return BatchedResidues(self.values[(*full, ALL) if Ellipsis in full else full], self.p)

    def inverse(self) -> BatchedResidues:
        """Return 1 / x, and 0 for 0: one tensor of a batch doesn't spoil the others, and proofs decide anyway."""
        return BatchedResidues(self.to_the(self.p - 2).values, self.p)


class BatchedModule(ModularModule):
    """`ModularModule` over batches; a constant is a batch of one."""

    def constant(self, value: float | int, like: Any, /) -> BatchedResidues:
        """Return a number, for every tensor of a batch."""
        return BatchedResidues(super().constant(value, like).values.reshape(1), self.prime)

    def matmul(self, a: Any, b: Any) -> Any:
        """Matrix product, tensor by tensor; a vector is a row on the left and a column on the right."""
        row, column = a.values.ndim == 2, b.values.ndim == 2
        left = a.values[None] if row else a.values
        right = b.values[:, None] if column else b.values
        rank = max(left.ndim, right.ndim)
        first, second = (Residues(self._front(x, rank), self.prime) for x in (left, right))
        values = np.moveaxis(super().matmul(first, second).values, 0, -1)
        values = values[..., 0, :] if column else values
        return self._new(values[..., 0, :, :] if row and not column else values[..., 0, :] if row else values)

    def _front(self, values: Any, rank: int) -> Any:
        """Move the batch axis to the front and fill up the rank behind it."""
        front = np.moveaxis(values, -1, 0)
        return front.reshape(front.shape[0], *(1,) * (rank - front.ndim), *front.shape[1:])

    def einsum(self, equation: str, *xs: Any) -> Any:
        """Sum of products, tensor by tensor."""
        left, _, right = equation.partition("->")
        batched = ",".join(f"{term}Z" for term in left.split(","))
        return self._new(np.einsum(f"{batched}->{right}Z", *(x.values.astype(object) for x in xs)) % self.prime)

    def reduce(self, name: str, x: Any, axes: Sequence[int], keepdims: bool) -> Any:
        """Reduce each tensor."""
        rank = len(x.shape)
        plain = super().reduce(name, Residues(x.values, self.prime), [a % rank for a in axes], keepdims)
        return self._new(plain.values)

    def concatenate(self, xs: Sequence[Any], axis: int) -> Any:
        """Join tensor by tensor."""
        size = max(x.values.shape[-1] for x in xs)
        full = [np.broadcast_to(x.values, (*x.shape, size)) for x in xs]
        return self._new(np.concatenate(full, axis=axis % len(xs[0].shape)))

    def transpose(self, x: Any, perm: Sequence[int]) -> Any:
        """Permute the axes of each tensor."""
        return self._new(np.transpose(x.values, (*perm, len(perm))))

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """Repeat each tensor along axes of size 1 and new leading axes."""
        return self._new(np.broadcast_to(x.values, (*shape, x.values.shape[-1])))

    def pad(self, x: Any, widths: Sequence[tuple[int, int]], value: float | int = 0, mode: str = "constant") -> Any:
        """Pad each tensor."""
        plain = super().pad(Residues(x.values, self.prime), [*widths, (0, 0)], value, mode)
        return self._new(plain.values)

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        """Refuse: tensors of a batch would be read at different positions."""
        raise NotImplementedError("reading at positions that depend on values isn't part of the enumeration")

    def _new(self, values: Any) -> BatchedResidues:
        return BatchedResidues(np.asarray(values, dtype=self._dtype), self.prime)
