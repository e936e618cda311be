"""The command ``taso-gym``: one file for each subcommand."""

from __future__ import annotations

from typing import NoReturn

import typer

from taso_gym.cli.costs import calibrate, profile, record
from taso_gym.cli.inspect import networks, rules
from taso_gym.cli.measure import measure
from taso_gym.cli.optimize import optimize
from taso_gym.cli.replay import replay
from taso_gym.cli.validate import validate
from taso_gym.console import run_app

app = typer.Typer(
    help="Optimise ONNX graphs with substitutions that keep their meaning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (optimize, validate, measure, profile, calibrate, record, replay, rules, networks):
    app.command()(command)


def main() -> NoReturn:
    """Run the command line."""
    run_app(app)
