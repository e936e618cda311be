"""Kinds of arguments by their names: a wrong one is named before something else breaks on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from taso_gym.checks import check_kind, check_sizes
from taso_gym.cost.objective import Objective
from taso_gym.cost_model import CostModel
from taso_gym.graph import Graph
from taso_gym.rules.ruleset import RuleSet

KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "model": ((str, Path, Graph), "a name, path or Graph"),
    "models": ((Iterable,), "a sequence of names, paths or Graphs"),
    "extra_views": ((Iterable,), "a sequence of names"),
    "rules": ((str, Path, RuleSet), "a name, path or RuleSet"),
    "cost": ((str, CostModel), "a name or CostModel"),
    "search": ((str,), "a name"),
    "budget": ((Real, tuple), "seconds or a Budget"),
    "objective": ((str, Objective), "a sum of quantities or an Objective"),
    "checkpoint": ((str, Path, type(None)), "a path"),
    "dims": ((Mapping, type(None)), "a mapping from names to sizes"),
    "model_kwargs": ((Mapping, type(None)), "a mapping from names to values"),
    "options": ((Mapping, type(None)), "a mapping from names to values"),
    "reward_kwargs": ((Mapping, type(None)), "a mapping from names to values"),
}
"""Argument -> types that it may have, and how they are called."""


def check_kinds(**values: Any) -> None:
    """Raise OptionError for an argument of `KINDS` that has another type, and for names or sizes that aren't any."""
    for name, value in values.items():
        types, called = KINDS[name]
        check_kind(name, value, types, called)
    check_sizes(values.get("dims"))
