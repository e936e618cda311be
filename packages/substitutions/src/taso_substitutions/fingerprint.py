"""Fingerprints: what a tensor's elements are modulo primes, at several sizes, as one 64-bit number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.modular import MERSENNE_31
from taso_gym.ops.operator import Operator
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
        self._prints = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.int64)
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
        self._slot = _ranks(self.kind)
        self._remember(np.array(prints, np.uint64), np.arange(len(prints)))

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
            self._signatures[key] = None
            with suppress(TypeInferenceError):
                sig = signature(instance.op, dict(instance.attrs), types) if instance.takes(types) else None
                self._signatures[key] = sig if sig and self._has_elements(sig.outputs[0]) else None
        return self._signatures[key]

    def _has_elements(self, type_: object) -> bool:
        assert isinstance(type_, TensorType)
        return all(d > 0 for sizes in self.fragment.sizes for d in _bound(type_, sizes))

    def fits(self, number: int, first: Ints, second: Ints) -> NDArray[np.bool_]:
        """Return which pairs of values an operator instance takes."""
        kinds = np.append(self.kind, -1)
        return self._allowed[number, kinds[first], kinds[second] + 1]

    def apply(self, instance: Ints, first: Ints, second: Ints, *, keep: bool) -> Ints:
        """Compute applications and return the values' numbers; ``keep`` their data for later operands."""
        prints = np.zeros(len(instance), np.uint64)
        kinds = np.zeros(len(instance), np.int64)
        data: dict[int, list[tuple[Ints, list[NDArray[Any]]]]] = {}
        for group, rows in self._groups(instance, first, second):
            for begin in range(0, len(rows), BATCH):
                part = rows[begin : begin + BATCH]
                kind, arrays = self._compute(group, first[part], second[part])
                prints[part], kinds[part] = self._fingerprint(kind, arrays), kind
                if keep:
                    data.setdefault(kind, []).append((part, arrays))
        return self._number(prints, kinds, data)

    def _groups(self, instance: Ints, first: Ints, second: Ints) -> Iterator[tuple[tuple[int, int, int], Ints]]:
        """Yield (instance, kinds of the operands) and the rows of the applications that have them."""
        known = np.append(self.kind, -1)
        n = len(self.types) + 1
        codes = (instance * n + known[first] + 1) * n + known[second] + 1
        order = np.argsort(codes, kind="stable")
        found, begins = np.unique(codes[order], return_index=True)
        for code, rows in zip(found.tolist(), np.split(order, begins[1:]), strict=True):
            yield (code // n // n, code // n % n - 1, code % n - 1), rows

    def _compute(self, group: tuple[int, int, int], first: Ints, second: Ints) -> tuple[int, list[NDArray[Any]]]:
        """Return kind and data of applications of one kind."""
        sig = self._signature(*group)
        assert sig is not None and isinstance(sig.op, Operator)
        type_ = sig.outputs[0]
        assert isinstance(type_, TensorType)
        kind = self._kind_of(type_)
        arrays: list[NDArray[Any]] = []
        for number, sizes in enumerate(self.fragment.sizes):
            operands = [self._read(group[1], number, first)]
            operands += [self._read(group[2], number, second)] if group[2] >= 0 else []
            (output, *_) = evaluate(sig.op, dict(sig.attrs), operands, self._xp, sizes)
            arrays.append(np.broadcast_to(output.values, (*output.shape, len(first))))
        return kind, arrays

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

    def _number(
        self, prints: NDArray[np.uint64], kinds: Ints, data: dict[int, list[tuple[Ints, list[NDArray[Any]]]]]
    ) -> Ints:
        """Number tensors by fingerprint; the data of new ones is stored where it was kept."""
        distinct, rows, inverse = np.unique(prints, return_index=True, return_inverse=True)
        place = np.minimum(np.searchsorted(self._prints, distinct), len(self._prints) - 1)
        known = self._prints[place] == distinct
        numbers = np.where(known, self._numbers[place], 0)
        new = np.flatnonzero(~known)
        new = new[np.argsort(rows[new], kind="stable")]
        numbers[new] = len(self.kind) + np.arange(len(new))
        base = np.array([d[0].shape[-1] for d in self._data], np.int64)
        self._slot = np.append(self._slot, base[kinds[rows[new]]] + _ranks(kinds[rows[new]]))
        self.kind = np.append(self.kind, kinds[rows[new]])
        self._remember(distinct, numbers)
        is_new = np.zeros(len(prints), np.bool_)
        is_new[rows[new]] = True
        for kind, parts in data.items():
            order = np.argsort(np.concatenate([part[is_new[part]] for part, _ in parts]), kind="stable")
            columns = [[a[..., is_new[part]] for a in arrays] for part, arrays in parts]
            self._store(kind, [np.concatenate(c, axis=-1)[..., order] for c in zip(*columns, strict=True)])
        return numbers[inverse]

    def _remember(self, prints: NDArray[np.uint64], numbers: Ints) -> None:
        every, index = np.unique(np.append(self._prints, prints), return_index=True)
        self._prints, self._numbers = every, np.append(self._numbers, numbers)[index]

    def _store(self, kind: int, arrays: Sequence[NDArray[Any]]) -> None:
        stored = self._data[kind]
        self._data[kind] = [np.concatenate([old, new], axis=-1) for old, new in zip(stored, arrays, strict=True)]


def _bound(type_: TensorType, sizes: Any) -> tuple[int, ...]:
    shape = type_.bind(sizes).shape or ()
    return tuple(int(d) for d in shape if isinstance(d, int))


def _ranks(kinds: Ints) -> Ints:
    """Return for each entry how many equal ones come before it."""
    order = np.argsort(kinds, kind="stable")
    _, begins, counts = np.unique(kinds[order], return_index=True, return_counts=True)
    result = np.zeros(len(kinds), np.int64)
    result[order] = np.arange(len(kinds)) - np.repeat(begins, counts)
    return result
