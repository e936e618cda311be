"""One instance of a rule under test, and where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import EquivalenceError, TypeInferenceError
from taso_gym.ops.floating import FLOAT64, NUMPY
from taso_gym.ops.modular import MERSENNE_31, ModularModule
from taso_gym.ops.modules import ArrayModule
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.facts import calls_in
from taso_substitutions.verify.instance import Evaluation, Instance, Side
from taso_substitutions.verify.values import (
    STYLES,
    Arrays,
    different_bits,
    numbers,
    relative_error,
    residues,
    special_numbers,
)

TOLERANCE = 1e-9
"""Largest error in float64, relative to the largest element or 1: rounding through some operators, no wrong term."""
FIELD_TRIES = 4
"""Draws of residues before giving up on one without a division by 0."""


@dataclass(frozen=True)
class Counterexample:
    """Where a rule is wrong.

    Attributes:
        rule: the rule.
        instance: shapes and attributes.
        fault: what is wrong there.
        arrays: values of the tensors, where values matter.
    """

    rule: Rule
    instance: Instance
    fault: str
    arrays: Arrays | None = None

    def __str__(self) -> str:
        """Explain it to people."""
        lines = [f"{self.rule.name} is false: {self.fault}", f"  rule: {self.rule.text}", f"  with: {self.instance}"]
        for name, array in (self.arrays or {}).items():
            text = np.array2string(array, threshold=24, edgeitems=3 if array.ndim < 3 else 1, separator=", ")
            lines.append(f"  {name} = " + " ".join(text.split()))
        return "\n".join(lines)


class Trial:
    """One instance of a rule under test."""

    def __init__(self, rule: Rule, instance: Instance, rng: np.random.Generator) -> None:
        self.rule, self.instance, self.rng = rule, instance, rng
        self.left = Side(instance, left=True)
        self.types = self.left.outputs(rule.lhs)
        self.right = Side(instance, left=False, dtype=self.types[0].dtype)

    def fault(self) -> Counterexample | None:
        """Return what is wrong with the types, or with the bits of a rule that claims to keep them, or of integers."""
        exact = self.rule.numerics == "exact" or "int" in self.instance.dtype
        return self.type_fault() or (self.bit_fault() if exact else None)

    def type_fault(self) -> Counterexample | None:
        """Return what is wrong with the types of the right side."""
        wanted = [(t.dtype, t.shape) for t in self.types]
        try:
            found = [(t.dtype, t.shape) for t in self.right.outputs(self.rule.rhs)]
        except (TypeInferenceError, Undefined, KeyError, IndexError) as error:
            return self._fault(f"the left side is well-typed and the right side isn't: {error}")
        if found != wanted:
            return self._fault(f"the outputs are {wanted} on the left and {found} on the right")
        return self._attribute_fault() if self.types[0].dtype == "double" else None

    def _attribute_fault(self) -> Counterexample | None:
        """Return where an attribute, which a file keeps in float32, is too coarse for double tensors."""
        for side, roots in ((self.left, self.rule.lhs), (self.right, self.rule.rhs)):
            for call in calls_in(roots):
                attrs = side.unrounded(call)
                for name, expr in call.attrs:
                    value = None if expr.kind == "name" else attrs.get(name)
                    if isinstance(value, float) and value != float(np.float32(value)):
                        return self._fault(f"{name} of {call.op} is rounded to float32: leave out double tensors")
        return None

    def bit_fault(self) -> Counterexample | None:
        """Return where the sides differ in a bit, infinities and NaN among the values."""
        arrays = special_numbers(self.rule, self.instance, self.rng)
        left, right = (self._outputs(side, NUMPY, arrays, rounded=True) for side in (self.left, self.right))
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            place = different_bits(a, b)
            if place is not None:
                return self._fault(f"it claims exact bits, but {_at(index, place, a, b)}", arrays)
        return None

    def error(self, draws: int, first: int = 0) -> float | Counterexample | None:
        """Return the largest error in float64, relative to the largest element or 1, or where it is more than rounding.

        None if no values were found for which the left side is finite.

        Args:
            draws: sets of values; more where none of them is finite on the left.
            first: the style of the first set, so that all instances together are tried with all styles.
        """
        worst, seen = 0.0, False
        for draw in range(draws + len(STYLES)):
            if draw >= draws and seen:
                break
            arrays = numbers(self.rule, self.instance, self.rng, STYLES[(first + draw) % len(STYLES)])
            found = self.error_at(arrays)
            if isinstance(found, Counterexample):
                return found
            if found is not None:
                worst, seen = max(worst, found), True
        return worst if seen else None

    def error_at(self, arrays: Arrays) -> float | Counterexample | None:
        """Return the relative error at some values; None where the left side isn't finite, or has no value at all."""
        worst, seen = 0.0, False
        try:
            left = self._outputs(self.left, FLOAT64, arrays)
        except IndexError:  # it reads a position that there isn't
            return None
        try:
            right = self._outputs(self.right, FLOAT64, arrays)
        except IndexError as error:
            return self._fault(f"the left side has a value and the right side hasn't: {error}", arrays)
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            error, place = relative_error(a, b, floor=1.0)
            seen = seen or place is not None
            if error > TOLERANCE and place is not None:
                return self._fault(_at(index, place, a, b), arrays)
            worst = max(worst, error)
        return worst if seen else None

    def agrees_in_field(self, draws: int) -> bool:
        """Whether both sides agree exactly modulo the prime, functions being opaque."""
        return all(self._agrees(key) for key in range(draws))

    def _agrees(self, key: int) -> bool:
        for _ in range(FIELD_TRIES):
            arrays = residues(self.rule, self.instance, self.rng, MERSENNE_31)
            try:
                xp = ModularModule(MERSENNE_31, key)
                left, right = (self._outputs(side, xp, arrays) for side in (self.left, self.right))
            except EquivalenceError:  # a division by 0, or a number that isn't finite: other values may do
                continue
            except IndexError:  # a residue that is no position
                return False
            return all(bool((a == b).all()) for a, b in zip(left, right, strict=True))
        return False

    def _outputs(self, side: Side, xp: ArrayModule, arrays: Arrays, *, rounded: bool = False) -> list[NDArray[Any]]:
        return Evaluation(side, xp, arrays, rounded=rounded).outputs(self.rule.lhs if side.left else self.rule.rhs)

    def _fault(self, text: str, arrays: Arrays | None = None) -> Counterexample:
        return Counterexample(self.rule, self.instance, text, arrays)


def _at(index: int, place: tuple[int, ...], a: NDArray[Any], b: NDArray[Any]) -> str:
    return f"output {index} at {list(place)} is {a[place].item()} on the left and {b[place].item()} on the right"
