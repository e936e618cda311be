"""``taso-gen-subst stats``."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from taso_gym.console import console
from taso_gym.rules.files import generated_sets
from taso_gym.rules.ruleset import RuleSet, only_reorders, operators_of


def stats(source: Annotated[str, typer.Argument(help="A rule set of the package, or a rule file.")] = "basis") -> None:
    """Count the rules of a set by what is shown about them and by operators, and what a generation counted."""
    rules = RuleSet.load(source, numerics="fast")
    shown = Counter(rules.certificates.get(rule.name, "no certificate") for rule in rules)
    operators = Counter(op for rule in rules for op in operators_of((*rule.lhs, *rule.rhs)))
    table = Table("what", "rules", box=None)
    table.add_row("all", str(len(rules)))
    table.add_row("only reorder", str(sum(map(only_reorders, rules))))
    table.add_row("several outputs", str(sum(len(rule.lhs) > 1 for rule in rules)))
    for what, counts in (("", shown), ("", Counter(rule.numerics for rule in rules)), ("with ", operators)):
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            table.add_row(f"{what}{name}", str(count))
    for count, name in _funnel(source):
        table.add_row(f"generation: {name}", count)
    console.print(table)


def _funnel(source: str) -> list[tuple[str, str]]:
    """Return what the header of a generated file counts, as (count, stage) in order; nothing for other files."""
    path = generated_sets().get(source, Path(source))
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() and path.suffix == ".rules" else []
    header = next((line for line in lines if line.startswith("# Equalities: ")), "")
    return re.findall(r"(\d+) ([a-z ]+)", header)
