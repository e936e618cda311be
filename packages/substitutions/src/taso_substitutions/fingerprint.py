"""Fingerprints: what a tensor's elements are modulo primes, at several sizes, as one 64-bit number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.modular import MERSENNE_31
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType
from taso_substitutions.batched import BatchedModule, BatchedResidues
from taso_substitutions.fragments import Fragment

Ints = NDArray[np.int64]
BATCH = 4096


class Evaluator:
    """Computes applications of a fragment's operators and numbers the distinct tensors that come out.

    Values 0, 1, … are the inputs. The data of values that are operands later is kept; of others, only the number.

    Attributes:
        types: type of each kind of tensor, over symbols.
        kind: kind of each value.
    """

    def __init__(self, fragment: Fragment, seed: int = 0) -> None:
        self.fragment, self.seed = fragment, seed
        self.types: list[TensorType] = []
        self.kind = np.zeros(0, np.int64)
        self._xp = BatchedModule(MERSENNE_31, seed)
        self._signatures: dict[tuple[int, int, int], Signature | None] = {}
        self._allowed = np.zeros((len(fragment.instances), 0, 1), np.bool_)
        self._data: list[list[NDArray[Any]]] = []
        self._slot = np.zeros(0, np.int64)
        self._numbers: dict[int, int] = {}
        self._add_inputs()

    def _add_inputs(self) -> None:
        rng = np.random.default_rng(self.seed)
        kinds, prints = [], []
        for type_ in self.fragment.types().values():
            kinds.append(self._kind_of(type_))
            arrays = [rng.integers(1, MERSENNE_31, (*_bound(type_, s), 1)) for s in self.fragment.sizes]
            prints.append(self._fingerprint(kinds[-1], arrays)[0])
            self._store(kinds[-1], arrays)
        self.kind = np.array(kinds, np.int64)
        self._slot = self._slots(self.kind)
        self._numbers = {int(p): i for i, p in enumerate(prints)}

    def _slots(self, kinds: Ints) -> Ints:
        """Return the place of consecutive new values within the data of their kind, in order of appearance."""
        result = np.zeros(len(kinds), np.int64)
        for kind in np.unique(kinds):
            result[kinds == kind] = np.arange((kinds == kind).sum())
        return result

    def _kind_of(self, type_: TensorType) -> int:
        if type_ not in self.types:
            self.types.append(type_)
            self._data.append([np.zeros((*_bound(type_, s), 0), np.int64) for s in self.fragment.sizes])
            self._allow()
        return self.types.index(type_)

    def _allow(self) -> None:
        """Work out which operator instances take which kinds."""
        n = len(self.types)
        grown = np.zeros((len(self.fragment.instances), n, n + 1), np.bool_)
        for i, instance in enumerate(self.fragment.instances):
            for a in range(n):
                for b in range(n) if instance.arity == 2 else (-1,):
                    grown[i, a, b + 1] = self._signature(i, a, b) is not None
        self._allowed = grown

    def _signature(self, number: int, a: int, b: int) -> Signature | None:
        key = (number, a, b)
        if key not in self._signatures:
            instance = self.fragment.instances[number]
            types = [self.types[a]] + ([self.types[b]] if b >= 0 else [])
            try:
                self._signatures[key] = signature(instance.op, dict(instance.attrs), types)
            except TypeInferenceError:
                self._signatures[key] = None
        return self._signatures[key]

    def fits(self, number: int, first: Ints, second: Ints) -> NDArray[np.bool_]:
        """Return which pairs of values an operator instance takes."""
        kinds = np.append(self.kind, -1)
        return self._allowed[number, kinds[first], kinds[second] + 1]

    def apply(self, instance: Ints, first: Ints, second: Ints, *, keep: bool) -> Ints:
        """Compute applications and return the values' numbers; ``keep`` their data for later operands."""
        result = np.full(len(instance), -1, np.int64)
        kinds = np.append(self.kind, -1)
        groups = np.stack([instance, kinds[first], kinds[second]], axis=1)
        for group in np.unique(groups, axis=0):
            rows = np.flatnonzero((groups == group).all(axis=1))
            for begin in range(0, len(rows), BATCH):
                part = rows[begin : begin + BATCH]
                result[part] = self._apply_group(group, first[part], second[part], keep=keep)
        return result

    def _apply_group(self, group: Ints, first: Ints, second: Ints, *, keep: bool) -> Ints:
        sig = self._signature(*(int(g) for g in group))
        assert sig is not None
        type_ = sig.outputs[0]
        assert isinstance(type_, TensorType)
        kind = self._kind_of(type_)
        arrays: list[NDArray[Any]] = []
        for number, sizes in enumerate(self.fragment.sizes):
            operands = [self._read(int(group[1]), number, first)]
            operands += [self._read(int(group[2]), number, second)] if group[2] >= 0 else []
            (output, *_) = evaluate(self._op(sig), dict(sig.attrs), operands, self._xp, sizes)
            arrays.append(np.broadcast_to(output.values, (*output.shape, len(first))))
        return self._enter(kind, self._fingerprint(kind, arrays), arrays, keep=keep)

    def _op(self, sig: Signature) -> Any:
        return sig.op

    def _read(self, kind: int, number: int, values: Ints) -> BatchedResidues:
        return BatchedResidues(self._data[kind][number][..., self._slot[values]], MERSENNE_31)

    def _fingerprint(self, kind: int, arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
        """Return a random linear hash modulo 2**64 of the elements at all sizes, and of the type."""
        rng = np.random.default_rng((self.seed, kind))
        total = np.full(arrays[0].shape[-1], rng.integers(1 << 63), np.uint64)
        for array in arrays:
            flat = array.reshape(-1, array.shape[-1]).astype(np.uint64)
            high = rng.integers(1 << 63, size=(2, flat.shape[0]), dtype=np.uint64)
            mixed = (flat * high[0][:, None]) ^ (flat * high[1][:, None] >> np.uint64(29))
            total = total + mixed.sum(axis=0, dtype=np.uint64)
        return total

    def _enter(self, kind: int, prints: NDArray[np.uint64], arrays: Sequence[NDArray[Any]], *, keep: bool) -> Ints:
        """Number the tensors; the data of new ones is stored if they are operands later."""
        result = np.zeros(len(prints), np.int64)
        new: list[int] = []
        for row, fingerprint in enumerate(prints.tolist()):
            number = self._numbers.get(fingerprint)
            if number is None:
                number = self._numbers[fingerprint] = len(self._numbers)
                new.append(row)
            result[row] = number
        base = self._data[kind][0].shape[-1]
        self.kind = np.append(self.kind, np.full(len(new), kind, np.int64))
        self._slot = np.append(self._slot, base + np.arange(len(new)))
        if keep and new:
            self._store(kind, [a[..., new] for a in arrays])
        return result

    def _store(self, kind: int, arrays: Sequence[NDArray[Any]]) -> None:
        stored = self._data[kind]
        self._data[kind] = [np.concatenate([old, new], axis=-1) for old, new in zip(stored, arrays, strict=True)]


def _bound(type_: TensorType, sizes: Any) -> tuple[int, ...]:
    shape = type_.bind(sizes).shape or ()
    return tuple(int(d) for d in shape if isinstance(d, int))
