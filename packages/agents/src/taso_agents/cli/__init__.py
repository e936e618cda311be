"""The command ``taso-agents``: one file for each subcommand.

Torch is imported by what needs it, so that help and mistakes are answered at once.
"""

from __future__ import annotations

from typing import NoReturn

import typer

from taso_agents.cli.collect import collect
from taso_agents.cli.dream import dream
from taso_agents.cli.evaluate import evaluate
from taso_agents.cli.gap import gap
from taso_agents.cli.train import train
from taso_gym.console import run_app

app = typer.Typer(
    help="Train and evaluate agents that optimise ONNX graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, collect, dream, gap, evaluate):
    app.command()(command)


def main() -> NoReturn:
    """Run the command line."""
    run_app(app)
