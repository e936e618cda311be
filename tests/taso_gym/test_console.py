from __future__ import annotations

import subprocess
import sys

import pytest

from taso_gym.console import dimensions, seconds
from taso_gym.errors import OptionError

LINES = "from taso_gym.console import run_app, say; run_app(lambda: [say('x' * 1000) for _ in range(1000)])"


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("1.5s", 1.5), ("5m", 300), (" 1H ", 3600)])
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1", "5x", "1 2", "nan"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(OptionError, match="expected a duration"):
        seconds(text)


def test_dimensions():
    assert dimensions(["batch=1", "time=07"]) == {"batch": 1, "time": 7}


@pytest.mark.parametrize("text", ["", "batch", "=1", "batch=", "batch=0", "batch=-1", "batch=x"])
def test_what_is_no_dimension_is_refused(text):
    with pytest.raises(OptionError, match="expected a dimension such as batch=1"):
        dimensions([text])


def test_closed_pipe_ends_quietly_and_is_no_success():
    with subprocess.Popen(
        [sys.executable, "-c", LINES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, "")


def test_warning_is_one_line():
    program = "import warnings; from taso_gym.console import run_app; run_app(lambda: warnings.warn('[cold] coffee'))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stderr == "warning: [cold] coffee\n"
