"""``taso-gen-subst recheck``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from taso_gym.console import console
from taso_gym.errors import EquivalenceError, RuleError
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify import certify
from taso_substitutions.verify import recheck as replay
from taso_substitutions.verify.certificates import sidecar_of


def recheck(
    file: Annotated[Path, typer.Argument(help="A rule file with its certificates beside it.")],
    write: Annotated[bool, typer.Option(help="Write the certificates anew, if no rule is false.")] = False,
) -> None:
    """Show every rule of a file again and compare with its certificates, or write these."""
    rules = RuleSet.load(file, numerics="fast")
    if write:
        certify(file)
        shown = Counter(RuleSet.load(file, numerics="fast").certificates.values())
        counts = ", ".join(f"{count} {status}" for status, count in sorted(shown.items()))
        console.print(f"{counts} of {len(rules)} rules: certificates are in {sidecar_of(file)}")
        return
    if not sidecar_of(file).is_file():
        raise RuleError(f"expected certificates in {sidecar_of(file)}, found no such file: --write shows all rules")
    differences = replay(file)
    if differences:
        raise EquivalenceError("\n".join(differences))
    console.print(f"{len(rules)} rules of {file.name} are what their certificates say")
