"""Running the examples as a user does, each in a process of its own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = {"OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def run(*command: str, **settings: str) -> str:
    """Run Python with a command line in the repository and return what it printed; it must end well."""
    environment = {**os.environ, **SETTINGS, **settings}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    """Skip a test without a package, and say how it is installed."""
    missing = find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f'needs {package}: pip install -e "packages/agents[{extra}]"')
