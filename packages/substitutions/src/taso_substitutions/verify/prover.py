"""T1, the size-generic prover: both sides of a rule have the same normal form, element by element, for all sizes.

Ranks and attributes are those of an example; every dimension is general, unless an operator needs it as a number (the
spatial axes of a kernel). What the right side needs beyond the left side's typing and the rule's conditions is returned
as the preconditions that the rule lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from taso_gym.errors import TypeInferenceError
from taso_gym.rules.conditions import Binding
from taso_gym.rules.functions import Operand
from taso_gym.rules.rule import Rule
from taso_substitutions.verify.attempt import Attempt, Dimension, Proof
from taso_substitutions.verify.instance import Instance, Side
from taso_substitutions.verify.normal.axes import UnprovableError
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.sizes import Refined, Sizes

MAX_ROUNDS = 200
Result = TypeVar("Result")

__all__ = ["Dimension", "Proof", "UnprovableError", "follows", "prove"]


def prove(rule: Rule, example: Binding, module: Callable[[Sizes], IndexModule] = IndexModule) -> Proof:
    """Prove a rule at the ranks and attributes of an example, for all sizes.

    Args:
        rule: the rule.
        example: shapes, attributes and constants for which the left side is well-typed and the conditions hold.
        module: what computes on index forms.

    Raises:
        UnprovableError: the sides differ, or have no index form.
        WorkExhaustedError: the normal forms are too large.
    """
    _check_types(rule, example)
    return _refined(_general(rule, example, module), lambda sizes: Attempt(rule, example, module(sizes)).run())


def follows(rule: Rule, example: Binding, proof: Proof) -> bool:
    """Whether an example, with sizes of 1 where that of a proof has larger ones, needs no proof of its own.

    That is so if operators do more than to map over axes only where these have the same sizes as in the proof: then the
    tensors of size 1 may be repeated along them first, and the proof holds for what is repeated (docs/proofs.md).

    Args:
        rule: the rule.
        example: ranks and attributes are those of the proof.
        proof: of the rule.
    """
    try:
        _check_types(rule, example)
        sizes = _general(rule, example, IndexModule)
    except UnprovableError:
        return False
    return not sizes.numbers and not sizes.describe("right") and tuple(sizes.trace) == proof.trace


def _refined(sizes: Sizes, attempt: Callable[[Sizes], Result]) -> Result:
    """Return what an attempt does once the sizes are refined as far as it asks for."""
    for _ in range(MAX_ROUNDS):
        try:
            return attempt(sizes)
        except Refined:
            continue
        except UnprovableError as error:
            fix_or_raise(sizes, error)
    raise UnprovableError(f"expected a typing within {MAX_ROUNDS} refinements, found none")


def _general(rule: Rule, example: Binding, module: Callable[[Sizes], IndexModule]) -> Sizes:
    """Return sizes refined so far that both sides have index forms, as few of them numbers as can be.

    An operator that has no index form names all sizes that it reads; each of these is left general in turn.
    """

    def typed(kept: frozenset[str]) -> Sizes:
        sizes = Sizes(kept)
        _refined(sizes, lambda sizes: Attempt(rule, example, module(sizes)).typed())
        return sizes

    found = typed(frozenset())
    for atom in list(found.numbers):
        with suppress(UnprovableError):
            found = typed(found.kept | {atom})
    return found


def _check_types(rule: Rule, example: Binding) -> None:
    """Refuse a rule whose right side isn't well-typed for the example: index forms are laxer than types."""
    tensors = {k: o.type if isinstance(o, Operand) else tuple(t.type for t in o) for k, o in example.tensors.items()}
    weights = {k: o.weight for k, o in example.tensors.items() if isinstance(o, Operand) and o.weight is not None}
    instance = Instance(tensors, example.attrs, weights, "scalar", example.opset)
    dtype = next((t.dtype for _, t in instance.leaves()), "float")
    try:
        Side(instance, left=False, dtype=dtype).outputs(rule.rhs)
    except (TypeInferenceError, KeyError, IndexError) as error:
        raise UnprovableError(f"expected a right side that is well-typed, found {error}") from error


def fix_or_raise(sizes: Sizes, error: UnprovableError) -> None:
    """Fix a size where an operator has no index form for a general one."""
    atom = next((a for a in error.atoms if sizes.is_free(a) and a not in sizes.kept), None)
    if atom is None:
        raise error
    sizes.numbers.append(atom)
    with suppress(Refined):
        sizes.fix(atom)
