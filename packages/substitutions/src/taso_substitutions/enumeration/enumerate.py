"""Enumeration: every operator DAG up to a number of operators over a fragment, each once.

A tensor is known by its fingerprint, so an operator is computed once for each distinct choice of operands, however many
DAGs it occurs in, and a DAG is a set of such applications: integers. The last operator of a DAG has to use whatever is
unused so far, since a DAG has one result; rules with several results follow from those whose result is a Concat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import OptionError
from taso_substitutions.enumeration.fingerprint import Evaluator
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.enumeration.kinds import bound_shape

Ints = NDArray[np.int64]
OPERANDS = 3
"""Most operands of an operator."""
BITS = 19
"""Bits of an operand's number in the key of an application."""
CHUNK = 100_000
"""DAGs that are extended at a time; bounds the memory."""
APPLICATION_BYTES = 300
"""Memory for one application, besides the data of its tensor: keys, numbers, fingerprints, and room to sort them."""
COUNTED_AT = 4
"""Largest size at which tensors are counted for an estimate; there are about as many at other ones."""


@dataclass
class Table:
    """All applications found; application ``i`` computes value ``value[i]``.

    Attributes:
        instance: number of the operator instance, (N,).
        operands: values; -1 where an operator has fewer, (N, 3).
        value: what it computes, (N,).
        size: operators of the smallest DAG that ends in it, (N,).
        dags: how many DAGs were visited, by number of operators.
    """

    instance: Ints
    operands: Ints
    value: Ints
    size: Ints
    dags: list[int]

    def __len__(self) -> int:
        return len(self.value)


class Enumerator:
    """Enumerates one fragment; see `enumerate_fragment`."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.evaluator = Evaluator(fragment)
        self.inputs = len(fragment.inputs)
        self.widest = max(2, *(instance.arity for instance in fragment.instances))
        empty = np.zeros(0, np.int64)
        self.keys, self.values, self.sizes = empty, empty, empty
        self._sorted, self._order = empty, empty

    def run(self, ops: int, on_level: Callable[[int, int], None]) -> Table:
        """Enumerate all DAGs of up to ``ops`` operators."""
        dags = np.zeros((1, 0), np.int64)
        counts: list[int] = []
        for size in range(1, ops + 1):
            keys, visited = self._extensions(dags, ops - size)
            new = keys[~self._is_known(keys)]
            self._compute(new, size, keep=size < ops)
            if size < ops:
                dags = self._grow(dags, ops - size)
            counts.append(len(dags) if size < ops else visited)
            on_level(size, len(new))
        instance, operands = unpack(self.keys)
        return Table(instance, operands, self.values, self.sizes, counts)

    def _extensions(self, dags: Ints, left: int) -> tuple[Ints, int]:
        """Return the applications that may follow DAGs, ``left`` operators before the end, and how many DAGs result."""
        parts, visited = list[Ints](), 0
        for chunk in _chunks(dags):
            found = [keys for keys, _ in self._follow(chunk, left)]
            visited += sum(map(len, found))
            parts.append(_distinct(np.concatenate(found)) if found else np.zeros(0, np.int64))
        return _distinct(np.concatenate([np.zeros(0, np.int64), *parts])), visited

    def _follow(self, dags: Ints, left: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield (keys, rows of ``dags``) for each operator instance and choice of operands."""
        outputs = self.values[dags]
        values = np.concatenate([np.tile(np.arange(self.inputs), (len(dags), 1)), outputs], axis=1)
        unused = self._unused(dags, outputs)
        waiting = unused.sum(axis=1)
        inner = range(dags.shape[1])
        for used in (u for size in range(OPERANDS + 1) for u in combinations(inner, size)):
            rows = np.flatnonzero(waiting - unused[:, list(used)].sum(axis=1) <= left * (self.widest - 1))
            if not len(rows):
                continue
            taken = values[rows]
            for number, columns in self._choices(set(used)):
                operands = taken[:, columns]
                fitting = np.flatnonzero(self.evaluator.fits(number, operands))
                if len(fitting):
                    yield pack(number, self._sorted_operands(number, operands[fitting])), rows[fitting]

    def _choices(self, used: set[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield instances with the columns of their operands, exactly ``used`` of which are inner ones."""
        columns = [*range(self.inputs), *(self.inputs + c for c in used)]
        for number, instance in enumerate(self.fragment.instances):
            for chosen in product(columns, repeat=instance.arity):
                ordered = not instance.swaps or chosen[0] <= chosen[1]
                if ordered and {c - self.inputs for c in chosen if c >= self.inputs} == used:
                    yield number, list(chosen)

    def _sorted_operands(self, number: int, operands: Ints) -> Ints:
        return np.sort(operands, axis=1) if self.fragment.instances[number].swaps else operands

    def _unused(self, dags: Ints, outputs: Ints) -> NDArray[np.bool_]:
        """Return which applications' values no other one of the DAG uses, (D, k)."""
        used = np.zeros(dags.shape, np.bool_)
        _, operands = unpack(self.keys)
        for column in range(dags.shape[1]):
            for operand in operands[dags[:, column]].T:
                used |= outputs == operand[:, None]
        return ~used

    def _is_known(self, keys: Ints) -> NDArray[np.bool_]:
        if not len(self._sorted):
            return np.zeros(len(keys), np.bool_)
        place = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return self._sorted[place] == keys

    def _compute(self, keys: Ints, size: int, *, keep: bool) -> None:
        """Compute new applications and give them numbers."""
        instance, operands = unpack(keys)
        self.values = np.append(self.values, self.evaluator.apply(instance, operands, keep=keep))
        self.keys = np.append(self.keys, keys)
        self.sizes = np.append(self.sizes, np.full(len(keys), size, np.int64))
        if keep:
            if len(self.evaluator.kind) >= 1 << BITS:
                raise OptionError(f"expected fewer operators: {self.fragment.name} has over {1 << BITS} tensors")
            self._order = np.argsort(self.keys, kind="stable")
            self._sorted = self.keys[self._order]

    def _grow(self, dags: Ints, left: int) -> Ints:
        """Return the DAGs with one operator more, each once: as an ascending row of applications."""
        grown = [dags[:0, :0].reshape(0, dags.shape[1] + 1)]
        for chunk in _chunks(dags):
            outputs = self.values[chunk]
            for keys, rows in self._follow(chunk, left):
                numbers = self._order[np.searchsorted(self._sorted, keys)]
                value = self.values[numbers]
                fresh = (value >= self.inputs) & ~(outputs[rows] == value[:, None]).any(axis=1)
                added = np.concatenate([chunk[rows[fresh]], numbers[fresh, None]], axis=1)
                grown.append(np.sort(added, axis=1))
        return _distinct_rows(np.concatenate(grown), len(self.keys))


def pack(instance: int, operands: Ints) -> Ints:
    """Return applications of an operator instance as single integers; operands are (N, arity)."""
    keys = np.full(len(operands), instance, np.int64)
    for column in range(OPERANDS):
        keys <<= BITS
        if column < operands.shape[1]:
            keys |= operands[:, column] + 1
    return keys


def unpack(keys: Ints) -> tuple[Ints, Ints]:
    """Return instances, (N,), and operands, (N, 3), of packed applications."""
    shifts = BITS * np.arange(OPERANDS - 1, -1, -1)
    return keys >> (BITS * OPERANDS), ((keys[:, None] >> shifts) & ((1 << BITS) - 1)) - 1


def _distinct(keys: Ints) -> Ints:
    """Return the keys in order, each once (`np.unique` hashes, which is slower here)."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _distinct_rows(rows: Ints, below: int) -> Ints:
    """Return the rows in order, each once; entries are smaller than ``below``."""
    bits = max(1, (below - 1).bit_length())
    if bits * rows.shape[1] > 62:
        return np.unique(rows, axis=0)
    shifts = bits * np.arange(rows.shape[1])
    keys = _distinct((rows << shifts).sum(axis=1))
    return (keys[:, None] >> shifts) & ((1 << bits) - 1)


def _chunks(rows: Ints) -> Iterator[Ints]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


def enumerate_fragment(
    fragment: Fragment, ops: int, on_level: Callable[[int, int], None] = lambda _size, _new: None
) -> tuple[Table, Evaluator]:
    """Return the applications of all DAGs of up to ``ops`` operators, and the evaluator that knows their types.

    Args:
        fragment: inputs and operators, with the letters bound.
        ops: most operators of a DAG.
        on_level: told the number of operators and of new tensors after each level.

    Raises:
        OptionError: there are more tensors than can be numbered.
    """
    enumerator = Enumerator(fragment)
    return enumerator.run(ops, on_level), enumerator.evaluator


def estimated_bytes(fragment: Fragment, ops: int) -> int:
    """Return about how much memory the enumeration of a fragment takes, from its two first levels at small sizes.

    Each level has about as many times more tensors as the second has more than the first.
    """
    elements = max(prod(bound_shape(t, s)) for t in fragment.types.values() for s in fragment.sizes)
    shapes = fragment.inputs.values()
    largest = max([COUNTED_AT, *(int(c) for shape in shapes for c in shape if c.isdigit())])
    counts = [0, 1]
    small = fragment.sized([largest] * max(map(len, shapes)))
    enumerate_fragment(small, min(ops, 2), lambda _size, new: counts.append(new))
    last, before = max(1, counts[-1]), max(1, counts[-2])
    growth = max(1.0, last / before)
    total = last * growth ** max(0, ops - 2)
    return int(total * APPLICATION_BYTES + total / growth * elements * 8 * 2 * 3)
