"""T2, bounded proof with z3: both sides are equal over the reals, element by element, at given shapes.

The bodies of the operators run on arrays of z3 terms. Functions such as exp are uninterpreted; maxima are exact. The
small-model theorem (docs/proofs.md) says at which shapes this covers all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from taso_gym.ops.modules import Array
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.instance import Evaluation, Instance, Side
from taso_substitutions.verify.z3_module import Z3Module, real, without_division

RLIMIT = 5_000_000
"""z3 resource units for one rule: counted work, the same on every machine."""


@dataclass(frozen=True)
class BoundedProof:
    """What z3 showed: the sides are equal at these shapes.

    Attributes:
        shapes: of the rule's variables.
        elements: number of elements compared.
        by_rewriting: how many of them z3's rewriter made equal, without its solver.
        solver: name and version.
    """

    shapes: dict[str, tuple[int, ...]]
    elements: int
    by_rewriting: int
    solver: str


def prove_bounded(rule: Rule, instance: Instance, rlimit: int = RLIMIT) -> BoundedProof | str:
    """Prove a rule at the shapes of an instance, or say why that failed: a counterexample, or work that ran out.

    Args:
        rule: the rule.
        instance: small shapes and attributes that meet its conditions.
        rlimit: z3's resource limit.
    """
    xp = Z3Module()
    arrays = {name: _variables(name, type_.shape or ()) for name, type_ in instance.leaves()}
    left = Evaluation(Side(instance, left=True), xp, arrays).outputs(rule.lhs)
    right = Evaluation(Side(instance, left=False), xp, arrays).outputs(rule.rhs)
    memo: dict[int, Any] = {}
    sides = [[without_division(real(v), memo) for x in side for v in x.flat] for side in (left, right)]
    pairs = list(zip(*sides, strict=True))
    rewritten = 0
    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    for a, b in pairs:
        if z3.is_true(z3.simplify(a - b == 0, som=True)):
            rewritten += 1
            continue
        solver.push()
        solver.add(a != b)
        answer = solver.check()
        if answer != z3.unsat:
            return f"counterexample: {solver.model()}" if answer == z3.sat else f"z3: {solver.reason_unknown()}"
        solver.pop()
    shapes = {name: array.shape for name, array in arrays.items()}
    return BoundedProof(shapes, len(pairs), rewritten, f"z3 {z3.get_version_string()}")


def _variables(name: str, shape: Sequence[Any]) -> Array:
    result = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = z3.Real(f"{name}{list(index)}")
    return result
