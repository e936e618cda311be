"""Small generations, and the command ``taso-gen-subst`` run in this process as a shell would."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from taso_substitutions import cli
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.enumeration.fragments import chosen_fragments
from taso_substitutions.generation.engine import Serial
from taso_substitutions.generation.pipeline import FragmentResult, Pipeline
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
