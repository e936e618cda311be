"""Fingerprints: what a tensor's elements are modulo a prime, at several sizes, as one 64-bit number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.modular import MERSENNE_31
from taso_gym.ops.operator import Operator
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.batched import BatchedModule, BatchedResidues
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.enumeration.kinds import Kinds, bound_shape

Ints = NDArray[np.int64]
Data = list[NDArray[Any]]
"""A batch of tensors of one kind at each binding of the sizes; (*shape, batch)."""
BATCH = 4096


class Evaluator:
    """Computes applications of a fragment's operators and numbers the distinct tensors that come out.

    Values 0, 1, … are the inputs. The data of values that are operands later is kept; of others, only the number.

    Attributes:
        kinds: the types of tensors that occur.
        kind: kind of each value, (V,).
        trivial: whether a value's elements are all the same, as those of x - x and x / x: such terms take no further
            part, (V,).
    """

    def __init__(self, fragment: Fragment, seed: int = 0) -> None:
        self.fragment, self.seed = fragment, seed
        self.kinds = Kinds(fragment)
        self.kind = np.zeros(0, np.int64)
        self._xp = BatchedModule(MERSENNE_31, seed)
        self._data: dict[int, Data] = {}
        self.trivial = np.zeros(0, np.bool_)
        self._slot = np.zeros(0, np.int64)
        self._prints = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.int64)
        self._names = {name: number for number, name in enumerate(fragment.inputs)}
        self._add_inputs()

    def _add_inputs(self) -> None:
        rng = np.random.default_rng(self.seed)
        kinds, prints = [], []
        for type_ in self.fragment.types.values():
            kinds.append(self.kinds.number(type_))
            arrays = [rng.integers(1, MERSENNE_31, (*bound_shape(type_, s), 1)) for s in self.fragment.sizes]
            prints.append(self._fingerprint(kinds[-1], arrays)[0])
            self._store(kinds[-1], arrays)
        self.kind = np.array(kinds, np.int64)
        self.trivial = np.zeros(len(kinds), np.bool_)
        self._slot = _ranks(self.kind)
        self._remember(np.array(prints, np.uint64), np.arange(len(prints)))

    def fits(self, number: int, operands: Ints) -> NDArray[np.bool_]:
        """Return which operands, (N, arity), an operator instance takes."""
        return self.kinds.allowed(number, self.kind[operands]) & ~self.trivial[operands].any(axis=1)

    def apply(self, instance: Ints, operands: Ints, *, keep: bool) -> Ints:
        """Compute applications and return the values' numbers.

        Args:
            instance: number of each one's operator instance, (N,).
            operands: values, -1 where an operator has fewer, (N, 3).
            keep: keep the data, for later operands.
        """
        prints = np.zeros(len(instance), np.uint64)
        kinds = np.zeros(len(instance), np.int64)
        trivial = np.zeros(len(instance), np.bool_)
        data: dict[int, list[tuple[Ints, Data]]] = {}
        for number, taken, rows in self._groups(instance, operands):
            for begin in range(0, len(rows), BATCH):
                part = rows[begin : begin + BATCH]
                kind, arrays = self._compute(number, taken, operands[part])
                prints[part], kinds[part] = self._fingerprint(kind, arrays), kind
                trivial[part] = _is_trivial(arrays)
                if keep:
                    data.setdefault(kind, []).append((part, arrays))
        return self._number(prints, kinds, trivial, data)

    def _groups(self, instance: Ints, operands: Ints) -> Iterator[tuple[int, tuple[int, ...], Ints]]:
        """Yield instance, kinds of its operands, and the rows of the applications that have them."""
        kinds = np.append(self.kind, -1)[operands]
        base = len(self.kinds) + 1
        codes = ((instance * base + kinds[:, 0] + 1) * base + kinds[:, 1] + 1) * base + kinds[:, 2] + 1
        order = np.argsort(codes, kind="stable")
        _, begins = np.unique(codes[order], return_index=True)
        for rows in np.split(order, begins[1:]):
            if len(rows):
                number = int(instance[rows[0]])
                yield number, tuple(kinds[rows[0], : self.fragment.instances[number].arity].tolist()), rows

    def _compute(self, number: int, taken: tuple[int, ...], operands: Ints) -> tuple[int, Data]:
        """Return kind and data of applications of one kind."""
        instance, sig = self.fragment.instances[number], self.kinds.signature(number, taken)
        assert sig is not None and isinstance(sig.op, Operator)
        type_ = sig.outputs[instance.output]
        assert isinstance(type_, TensorType)
        arrays: Data = []
        for size, sizes in enumerate(self.fragment.sizes):
            chosen = [self._read(kind, size, operands[:, i]) for i, kind in enumerate(taken)]
            args = instance.arranged(chosen, [self._read_input(name, size) for name in instance.extra])
            output = evaluate(sig.op, dict(sig.attrs), args, self._xp, sizes)[instance.output]
            arrays.append(np.broadcast_to(output.values, (*output.shape, len(operands))))
        return self.kinds.number(type_), arrays

    def _read(self, kind: int, size: int, values: Ints) -> BatchedResidues:
        return BatchedResidues(np.take(self._data[kind][size], self._slot[values], axis=-1), MERSENNE_31)

    def _read_input(self, name: str, size: int) -> BatchedResidues:
        value = self._names[name]
        return self._read(int(self.kind[value]), size, np.array([value]))

    def _fingerprint(self, kind: int, arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
        """Return a random hash modulo 2**64 of the elements at all sizes, and of the type."""
        rng = np.random.default_rng((self.seed, kind))
        total = np.full(arrays[0].shape[-1], rng.integers(1 << 63), np.uint64)
        for array in arrays:
            flat = array.reshape(-1, array.shape[-1]).view(np.uint64)
            factors = rng.integers(1 << 63, size=(2, flat.shape[0]), dtype=np.uint64)
            for element, first, second in zip(flat, *factors, strict=True):
                total += (element * first) ^ (element * second >> np.uint64(29))
        return total

    def _number(
        self,
        prints: NDArray[np.uint64],
        kinds: Ints,
        trivial: NDArray[np.bool_],
        data: dict[int, list[tuple[Ints, Data]]],
    ) -> Ints:
        """Number tensors by fingerprint; the data of new ones is stored where it was kept."""
        distinct, rows, inverse = np.unique(prints, return_index=True, return_inverse=True)
        place = np.minimum(np.searchsorted(self._prints, distinct), len(self._prints) - 1)
        known = self._prints[place] == distinct
        numbers = np.where(known, self._numbers[place], 0)
        new = np.flatnonzero(~known)
        new = new[np.argsort(rows[new], kind="stable")]
        numbers[new] = len(self.kind) + np.arange(len(new))
        base = np.zeros(len(self.kinds), np.int64)
        base[list(self._data)] = [d[0].shape[-1] for d in self._data.values()]
        self._slot = np.append(self._slot, base[kinds[rows[new]]] + _ranks(kinds[rows[new]]))
        self.kind = np.append(self.kind, kinds[rows[new]])
        self.trivial = np.append(self.trivial, trivial[rows[new]])
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

    def _store(self, kind: int, arrays: Data) -> None:
        stored = self._data.get(kind)
        joined = [np.concatenate([o, n], axis=-1) for o, n in zip(stored, arrays, strict=True)] if stored else arrays
        self._data[kind] = joined


def _is_trivial(arrays: Data) -> NDArray[np.bool_]:
    flat = [a.reshape(-1, a.shape[-1]) for a in arrays]
    first, several = flat[0][0], max(map(len, flat)) > 1
    alike = np.logical_and.reduce([(a == (a[0] if several else first)).all(axis=0) for a in flat])
    return alike if several else alike & (first <= 1)


def _ranks(kinds: Ints) -> Ints:
    """Return for each entry how many equal ones come before it."""
    order = np.argsort(kinds, kind="stable")
    _, begins, counts = np.unique(kinds[order], return_index=True, return_counts=True)
    result = np.zeros(len(kinds), np.int64)
    result[order] = np.arange(len(kinds)) - np.repeat(begins, counts)
    return result
