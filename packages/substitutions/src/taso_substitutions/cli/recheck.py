"""``taso-gen-subst recheck``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taso_gym.console import console
from taso_gym.errors import EquivalenceError
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify import recheck as replay


def recheck(file: Annotated[Path, typer.Argument(help="A rule file with its certificates beside it.")]) -> None:
    """Show every rule of a file again and compare with its certificates."""
    rules = RuleSet.load(file, numerics="fast")
    differences = replay(file)
    if differences:
        raise EquivalenceError("\n".join(differences))
    console.print(f"{len(rules)} rules of {file.name} are what their certificates say")
