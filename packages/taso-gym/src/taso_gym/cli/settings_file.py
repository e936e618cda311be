"""The file of session settings beside a result: written, or removed where it was of an earlier result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from taso_gym.console import say
from taso_gym.cost.measure import SessionSettings
from taso_gym.cost.session_settings import DEFAULT, KEYS, code, write_settings
from taso_gym.errors import OptionError


def settings_file(output: Path) -> Path:
    """Return where the settings of a result are."""
    return output.with_name(f"{output.stem}.session.json")


def expect_replaceable(file: Path) -> None:
    """Refuse a place where settings would replace something else.

    Raises:
        OptionError: there is a file that taso-gym didn't write as settings.
    """
    if os.path.isfile(file) and not _holds_settings(file):
        raise OptionError(f"expected session settings of an earlier result or no file at {file}, found another file")


def put_settings(output: Path, settings: SessionSettings, threads: int, provider: str) -> None:
    """Write settings beside a result and say how to use them; of default ones leave nothing there."""
    beside = settings_file(output)
    if settings != DEFAULT:
        write_settings(beside, settings, threads, provider)
        say(f"{beside} written; it runs fastest as\n{code(output, settings, threads, provider)}")
    elif os.path.isfile(beside) and _holds_settings(beside):
        beside.unlink()
        say(f"{beside} removed: it was of an earlier file")


def _holds_settings(file: Path) -> bool:
    try:
        found: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # not to be read, or no JSON
        return False
    return isinstance(found, dict) and cast("dict[str, object]", found).keys() == set(KEYS)
