"""Small generations, equalities as rules, and the command ``taso-gen-subst`` run in this process as a shell would."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taso_gym.rules.notation import parse_rules
from taso_substitutions import cli
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.enumeration.fragments import FRAGMENTS, chosen_fragments
from taso_substitutions.equalities.terms import canonical
from taso_substitutions.generation.engine import Serial
from taso_substitutions.generation.pipeline import FragmentResult, Pipeline
from taso_substitutions.generation.search import stated
from taso_substitutions.generation.work import WorkFolder

LARGEST = (4, 4, 4, 4)
SMALL = ["--ops", 2, "--fragments", "scalar", "--operators", "MatMul,Mul", "--no-certificates", "--jobs", 1]
"""A generation that takes seconds."""


def run(*arguments: object) -> int:
    """Run the command line and return its exit code."""
    sys.argv = ["taso-gen-subst", *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        cli.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


def sized(name: str) -> Fragment:
    """Return a fragment at the usual sizes."""
    (fragment,) = chosen_fragments(name, LARGEST)
    return fragment


def small(name: str = "scalar", operators: tuple[str, ...] = ("MatMul", "Mul")) -> Fragment:
    """Return a fragment with few operators."""
    return sized(name).only(operators)


def pipeline(folder: Path | None = None) -> Pipeline:
    """Return a pipeline in this process that resumes."""
    return Pipeline(Serial(), WorkFolder(folder, resume=True), lambda *_: None)


@cache
def discovered(name: str, ops: int = 2) -> FragmentResult:
    """Return what is found in a fragment with few operators."""
    (result,) = pipeline().fragments([sized(name)], ops)
    return result


def rules_of(name: str, start: str, *, lift: bool) -> list[str]:
    """Return the rules that state an equality that is found in a fragment."""
    equality = next(e for e in discovered(name).general if e.body.startswith(start))
    return stated(equality, FRAGMENTS[name].example(), lift=lift)


def lifted(text: str, fragment: str, inputs: str) -> list[str]:
    """Return the rules that state an equality of inputs of a fragment, one letter each, lifted."""
    (rule,) = parse_rules(f"r: {text}")
    types = {f"x{i}": sized(fragment).types[name] for i, name in enumerate(inputs)}
    sides: list[Any] = [rule.lhs[0], rule.rhs[0]]
    return stated(canonical(sides[0], sides[1], types), FRAGMENTS[fragment].example(), lift=True)
