"""``taso-gym rules`` and ``taso-gym networks``: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from taso_gym.cli.choices import CLASSES, RULE_SETS
from taso_gym.console import console, say
from taso_gym.errors import OptionError
from taso_gym.models import NETWORKS
from taso_gym.rules.rule import numerics_named
from taso_gym.rules.ruleset import RuleSet

NOT_SHOWN = "not-shown"
LEVELS = ("proved", "bounded", "analytic", "tested", NOT_SHOWN)
"""What may be known of a rule."""


def rules(
    rule_set: Annotated[str, typer.Argument(help=f"Rule set: {RULE_SETS}.")] = "default",
    numerics: Annotated[str, typer.Option(help=f"Loosest rules to list: {CLASSES}.")] = "reassociate",
    level: Annotated[str, typer.Option(help=f"Only rules that were shown so: {', '.join(LEVELS)}.")] = "",
) -> None:
    """List the rules of a set in their order, with the class of their numerics and how they were shown."""
    if level and level not in LEVELS:
        raise OptionError(f"expected --level among {', '.join(LEVELS)}, found {level!r}")
    found = RuleSet.load(rule_set, numerics=numerics_named(numerics))
    listed = 0
    for index, rule in enumerate(found):
        shown = found.certificates.get(rule.name, NOT_SHOWN)
        if level in ("", shown):
            listed += 1
            say(f"{index:4d}  {rule.numerics:<11}  {shown:<9}  {rule.name}")
    say(f"{f'{listed} of ' if level else ''}{len(found)} rules, digest {found.digest}")


def networks() -> None:
    """List the built-in networks and the ids of their environments."""
    table = Table("network", "parameters", "environment")
    for name, network in NETWORKS.items():
        table.add_row(name, f"{network.parameters:,}", f"TasoGraph-{name}-v0")
    console.print(table)
