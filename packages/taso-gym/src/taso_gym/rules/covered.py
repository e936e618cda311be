"""What rules are shown for: tensors that have elements, up to a rank. Others are matched by no rule."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Rest, Rule, Var
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

WINDOWS = frozenset({"Conv", "ms.FusedConv", "MaxPool", "AveragePool", "LRN"})
"""Operators on images, with up to three spatial axes."""
HIGH_RANK, LOW_RANK, MANY = 6, 5, 4


def about_images(rule: Rule) -> bool:
    """Whether a rule's left side has an operator on images."""
    return any(call.op in WINDOWS for call in calls_of(rule.lhs))


@lru_cache(maxsize=4096)
def rank_limit(rule: Rule) -> int:
    """Return the largest rank of a tensor for which a rule is shown and used.

    It is 6, but 5 for rules about images, and for those of four tensors or more, whose combinations of ranks are many.
    """
    if about_images(rule):
        return LOW_RANK
    tensors = {arg.name for call in calls_of(rule.lhs) for arg in call.args if isinstance(arg, Var | Rest)}
    return HIGH_RANK if len(tensors) < MANY else LOW_RANK


def covered(rule: Rule, sigs: Iterable[Signature]) -> bool:
    """Whether the tensors of matched operators are such as the rule is shown for.

    A symbol counts as having elements: what is claimed of a graph is claimed for sizes of at least 1.
    """
    limit = rank_limit(rule)
    return all(
        t.shape is None or (len(t.shape) <= limit and 0 not in t.shape)
        for sig in sigs
        for t in (*sig.inputs, *sig.outputs)
        if isinstance(t, TensorType)
    )
