"""T2, bounded proof with z3: both sides are equal over the reals, element by element, at given shapes.

The bodies of the operators run on arrays of z3 terms. Functions such as exp are uninterpreted; maxima are exact. The
small-model theorem (docs/proofs.md) says at which shapes this covers all sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import z3

from taso_gym.graph import Weight
from taso_gym.ops.modules import Array
from taso_gym.rules.conditions import holds
from taso_gym.rules.rule import Rule
from taso_gym.weights import ArrayWeight
from taso_substitutions.verify.instance import Evaluation, Instance, Side
from taso_substitutions.verify.values import index_bounds
from taso_substitutions.verify.z3_module import Z3Module
from taso_substitutions.verify.z3_terms import has_division, real, with_comparisons, without_division

RLIMIT = 5_000_000
"""z3 resource units for one element: counted work, the same on every machine."""
MAX_ELEMENTS = 20_000
"""Most elements of all inputs."""
BLOWUP = 1000
"""How many monomials z3's rewriter may make of one: polynomials are multiplied out before anything else is tried."""


@dataclass(frozen=True)
class BoundedProof:
    """What z3 showed: the sides are equal at these shapes.

    Attributes:
        shapes: of the rule's variables.
        elements: number of elements compared.
        solver: name and version.
    """

    shapes: Mapping[str, tuple[int, ...]]
    elements: int
    solver: str


@dataclass(frozen=True)
class Model:
    """Values at which z3 says that the sides differ: true of the reals if no function was uninterpreted.

    Attributes:
        instance: with the constants that z3 was asked about.
        arrays: leaf -> values.
    """

    instance: Instance
    arrays: Mapping[str, Array]


def prove_bounded(rule: Rule, instance: Instance, rlimit: int = RLIMIT) -> BoundedProof | Model | str:
    """Prove a rule at the shapes of an instance, or return values at which it fails, or why work ran out.

    Constants whose value the rule asks for, and positions that a Gather reads, are numbers: those of the instance, and
    0, 1, … in turn.

    Args:
        rule: the rule.
        instance: small shapes and attributes that meet its conditions.
        rlimit: z3's resource limit.
    """
    elements = sum(prod(d for d in t.shape or () if isinstance(d, int)) for _, t in instance.leaves())
    if elements > MAX_ELEMENTS:
        return f"expected at most {MAX_ELEMENTS} elements of all inputs, found {elements}"
    instance = with_simple_weights(rule, instance)
    xp = Z3Module()
    arrays = _leaves(rule, instance)
    left_side = Side(instance, left=True)
    right_side = Side(instance, left=False, dtype=left_side.outputs(rule.lhs)[0].dtype)
    left = Evaluation(left_side, xp, arrays).outputs(rule.lhs)
    right = Evaluation(right_side, xp, arrays).outputs(rule.rhs)
    sides = [[real(v) for x in side for v in np.asarray(x, dtype=object).flat] for side in (left, right)]
    seen: set[int] = set()
    if any(has_division(v, seen) for side in sides for v in side):
        memo: dict[int, Any] = {}
        sides = [[without_division(v, memo) for v in side] for side in sides]
    for a, b in zip(*sides, strict=True):
        if a.eq(b) or z3.is_true(z3.simplify(a - b == 0, som=True, som_blowup=BLOWUP)):
            continue
        if (fault := _fault(a, b, rlimit)) is not None:
            return fault if isinstance(fault, str) else Model(instance, _values(arrays, fault))
    shapes = {name: array.shape for name, array in arrays.items()}
    return BoundedProof(shapes, len(sides[0]), f"z3 {z3.get_version_string()}")


def with_simple_weights(rule: Rule, instance: Instance) -> Instance:
    """Return an instance whose constants are powers of 2, of which inverses are exact, if conditions allow it."""
    simple: dict[str, Weight] = {}
    for name, weight in instance.weights.items():
        values = weight.array().astype(np.float64)
        powers = np.sign(values) * 2.0 ** np.floor(np.log2(np.clip(np.abs(values), 0.25, 4)))
        simple[name] = ArrayWeight(np.asarray(powers, weight.array().dtype), weight.dtype)
    found = replace(instance, weights=simple)
    return found if all(holds(c, found.binding()) for c in rule.conditions) else instance


def _fault(a: Any, b: Any, rlimit: int) -> z3.ModelRef | str | None:
    """Return where two terms differ, or why they aren't shown to be equal; None where they are."""
    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    memo: dict[int, Any] = {}
    solver.add(with_comparisons(a, memo) != with_comparisons(b, memo))
    answer = solver.check()
    if answer == z3.unsat:
        return None
    return solver.model() if answer == z3.sat else f"z3: {solver.reason_unknown()}"


def _values(arrays: Mapping[str, Array], model: z3.ModelRef) -> dict[str, Array]:
    """Return the numbers that a model gives to the variables."""
    return {name: _numbers(array, model) if array.dtype == object else array for name, array in arrays.items()}


def _numbers(array: Array, model: z3.ModelRef) -> Array:
    result = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        value: Any = model.eval(array[index], model_completion=True)
        exact = value.approx(20) if z3.is_algebraic_value(value) else value
        result[index] = float(exact.as_fraction())
    return result


def _leaves(rule: Rule, instance: Instance) -> dict[str, Array]:
    bounds, weights = index_bounds(rule, instance), {k: w.array() for k, w in instance.weights.items()}
    arrays: dict[str, Array] = {}
    for name, type_ in instance.leaves():
        shape = tuple(d for d in type_.shape or () if isinstance(d, int))
        if name in instance.weights:
            arrays[name] = weights[name]
        elif name in bounds:
            arrays[name] = (np.arange(int(np.prod(shape))) % bounds[name]).reshape(shape)
        else:
            arrays[name] = _variables(name, shape)
    return arrays


def _variables(name: str, shape: Sequence[int]) -> Array:
    result = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = z3.Real(f"{name}{list(index)}")
    return result
