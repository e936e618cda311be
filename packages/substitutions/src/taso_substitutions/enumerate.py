"""Enumeration: every operator DAG up to a number of operators over a fragment, each once.

A tensor is known by its fingerprint, so an operator is computed once for each distinct pair of operands, however many
DAGs it occurs in, and a DAG is a set of such applications: integers. The last operator of a DAG has to use whatever is
unused so far, since a DAG has one result; rules with several results follow from those whose result is a Concat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from taso_substitutions.fingerprint import Evaluator
from taso_substitutions.fragments import Fragment

Ints = NDArray[np.int64]
BITS = 24
"""Bits of a value's number in the key of an application."""
CHUNK = 200_000
"""DAGs that are extended at a time; bounds the memory."""


@dataclass
class Table:
    """All applications found so far; application ``i`` computes value ``value[i]``.

    Attributes:
        instance: number of the operator instance, (N,).
        first, second: operands (values); second is -1 for unary operators, (N,).
        value: what it computes, (N,).
        size: operators of the smallest DAG that ends in it, (N,).
        dags: how many DAGs were visited, by number of operators.
    """

    instance: Ints
    first: Ints
    second: Ints
    value: Ints
    size: Ints
    dags: list[int] = field(default_factory=list[int])

    def __len__(self) -> int:
        return len(self.value)


class Enumerator:
    """Enumerates one fragment; see `enumerate_fragment`."""

    def __init__(self, fragment: Fragment, on_progress: Callable[[str], None]) -> None:
        self.fragment, self.on_progress = fragment, on_progress
        self.evaluator = Evaluator(fragment)
        self.inputs = len(fragment.inputs)
        self._known: Ints = np.zeros(0, np.int64)
        self._order: Ints = np.zeros(0, np.int64)
        self._keys: list[Ints] = []
        self._values: list[Ints] = []
        self._sizes: list[Ints] = []

    def run(self, ops: int) -> Table:
        """Enumerate all DAGs of up to ``ops`` operators."""
        dags = np.zeros((1, 0), np.int64)
        counts: list[int] = []
        for size in range(1, ops + 1):
            last = size == ops
            keys = np.unique(np.concatenate([self._extensions(d, ops - size) for d in _chunks(dags)] or [dags[:0, 0]]))
            new = keys[~np.isin(keys, self._known)]
            self._compute(new, size, keep=not last)
            self.on_progress(f"{self.fragment.name}: {len(new)} tensors with {size} operators")
            if last:
                counts.append(self._count_last(dags))
                break
            dags = self._grow(dags, ops - size)
            counts.append(len(dags))
        return self._table(counts)

    def _extensions(self, dags: Ints, left: int) -> Ints:
        """Return the keys of all applications that may follow DAGs, ``left`` operators before the end."""
        return np.unique(np.concatenate([keys for keys, _ in self._follow(dags, left)] or [np.zeros(0, np.int64)]))

    def _follow(self, dags: Ints, left: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield (keys, rows of ``dags``) for each operator instance and choice of operands."""
        values = np.concatenate([np.tile(np.arange(self.inputs), (len(dags), 1)), self._outputs(dags)], axis=1)
        unused = self._unused(dags)
        for number, instance in enumerate(self.fragment.instances):
            for columns in product(range(values.shape[1]), repeat=instance.arity):
                if instance.op.commutative and columns[0] > columns[-1]:
                    continue
                a = values[:, columns[0]]
                b = values[:, columns[1]] if instance.arity == 2 else np.full(len(dags), -1, np.int64)
                if instance.op.commutative:
                    a, b = np.minimum(a, b), np.maximum(a, b)
                rest = unused.sum(axis=1)
                for column in {c - self.inputs for c in columns if c >= self.inputs}:
                    rest = rest - unused[:, column]
                fits = self.evaluator.fits(number, a, b) & (rest <= left)
                rows = np.flatnonzero(fits)
                yield pack(number, a[rows], b[rows]), rows

    def _outputs(self, dags: Ints) -> Ints:
        """Return the values that the applications of DAGs compute, (D, k)."""
        flat = np.concatenate(self._values) if self._values else np.zeros(0, np.int64)
        return flat[dags] if dags.shape[1] else dags

    def _unused(self, dags: Ints) -> NDArray[np.bool_]:
        """Return which applications' values no other one of the DAG uses, (D, k)."""
        if not dags.shape[1]:
            return np.zeros(dags.shape, np.bool_)
        _, first, second = unpack(np.concatenate(self._keys))
        outputs = self._outputs(dags)
        used = np.zeros(dags.shape, np.bool_)
        for column in range(dags.shape[1]):
            for operand in (first[dags[:, column]], second[dags[:, column]]):
                used |= outputs == operand[:, None]
        return ~used

    def _compute(self, keys: Ints, size: int, *, keep: bool) -> None:
        """Compute new applications and give them numbers."""
        instance, first, second = unpack(keys)
        self._values.append(self.evaluator.apply(instance, first, second, keep=keep))
        self._keys.append(keys)
        self._sizes.append(np.full(len(keys), size, np.int64))
        every = np.concatenate(self._keys)
        self._order = np.argsort(every, kind="stable")
        self._known = every[self._order]

    def _number(self, keys: Ints) -> Ints:
        """Return the numbers of applications that are known."""
        return self._order[np.searchsorted(self._known, keys)]

    def _grow(self, dags: Ints, left: int) -> Ints:
        """Return the DAGs with one operator more, each once: as an ascending row of applications."""
        grown: list[Ints] = []
        for chunk in _chunks(dags):
            outputs = self._outputs(chunk)
            for keys, rows in self._follow(chunk, left):
                numbers = self._number(keys)
                value = np.concatenate(self._values)[numbers]
                fresh = (value >= self.inputs) & ~(outputs[rows] == value[:, None]).any(axis=1)
                added = np.concatenate([chunk[rows[fresh]], numbers[fresh, None]], axis=1)
                grown.append(np.sort(added, axis=1))
        return np.unique(np.concatenate(grown), axis=0) if grown else dags[:0]

    def _count_last(self, dags: Ints) -> int:
        """Return how many DAGs the last operator completes; they aren't stored."""
        total = 0
        for chunk in _chunks(dags):
            total += sum(len(rows) for _, rows in self._follow(chunk, 0))
        return total

    def _table(self, counts: list[int]) -> Table:
        instance, first, second = unpack(np.concatenate(self._keys))
        return Table(instance, first, second, np.concatenate(self._values), np.concatenate(self._sizes), counts)


def pack(instance: int, first: Ints, second: Ints) -> Ints:
    """Return applications as single integers."""
    return (np.int64(instance) << (2 * BITS)) | ((first + 1) << BITS) | (second + 1)


def unpack(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Return instance, first and second operand of packed applications."""
    mask = (1 << BITS) - 1
    return keys >> (2 * BITS), ((keys >> BITS) & mask) - 1, (keys & mask) - 1


def _chunks(rows: Ints) -> Iterator[Ints]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


def enumerate_fragment(
    fragment: Fragment, ops: int, on_progress: Callable[[str], None] = lambda _: None
) -> tuple[Table, Evaluator]:
    """Return the applications of all DAGs of up to ``ops`` operators, and the evaluator that knows their types."""
    enumerator = Enumerator(fragment, on_progress)
    return enumerator.run(ops), enumerator.evaluator
