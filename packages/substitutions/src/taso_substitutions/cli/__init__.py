"""The command ``taso-gen-subst``: one file for each subcommand; without one, it generates."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from taso_gym.console import run_app
from taso_substitutions.cli.explain import explain
from taso_substitutions.cli.generate import generate, merge
from taso_substitutions.cli.interop import export, import_rules
from taso_substitutions.cli.recheck import recheck
from taso_substitutions.cli.stats import stats

app = typer.Typer(
    help="Discover, prove and minimise substitutions. Without a command: generate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    "generate": generate,
    "merge": merge,
    "recheck": recheck,
    "import": import_rules,
    "export": export,
    "stats": stats,
    "explain": explain,
}
OWN = ("-h", "--help", "--install-completion", "--show-completion")
"""Options of the command itself."""
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> NoReturn:
    """Run the command line; options without a command belong to ``generate``."""
    arguments = sys.argv[1:]
    if arguments and arguments[0].startswith("-") and arguments[0] not in OWN:
        sys.argv.insert(1, "generate")
    run_app(app)
