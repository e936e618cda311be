"""What the three command lines share: one line for an error, options that read well, progress that can be watched."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from taso_gym.errors import OptionError, TasoError

console = Console(markup=False, emoji=False)  # names in models and of files may look like either
errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
LONGEST = 18
"""Digits of a number that somebody may mean."""
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def run_app(app: Callable[[], object]) -> NoReturn:
    """Run a command line: wrong input is one message and exit code 2; Ctrl-C is 130, SIGTERM 143, SIGHUP 129.

    So is what the system refuses: a full disk behind ``>``, a folder that nobody may enter, memory. A warning is one
    line, too, and doesn't say where in the package it comes from.
    """
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")  # a terminal without arrows loses these, and no result
    try:
        with _ended_in_order(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app()
    except TasoError as error:
        errors.print(f"error: {error}", style="red", soft_wrap=True)
        sys.exit(2)
    except OSError as error:
        _flush_or_drop()
        errors.print(f"error: expected what can be read and written, found: {error}", style="red", soft_wrap=True)
        sys.exit(2)
    except MemoryError as error:
        errors.print(f"error: expected more memory, found: {error or 'too little'}", style="red", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # Typer's own, which says nothing
            errors.print("interrupted")
        raise
    sys.exit(0)


def _flush_or_drop() -> None:
    """Write what is left for stdout, or forget it where stdout takes no more: Python would complain at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _ended_in_order() -> Generator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit, so that temporary files are removed; further ones are ignored meanwhile.

    A SIGHUP that is ignored already, as nohup(1) does, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def end(number: int, _: object) -> NoReturn:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)  # timeout(1) sends two
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    errors.print(f"warning: {message}", style="yellow", soft_wrap=True)


def say(text: str) -> None:
    """Print a line as it is, however long: a path that is broken in two can't be copied."""
    console.print(text, soft_wrap=True)


def progress_bar() -> Progress:
    """Return a bar that says what is done and the best so far."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[best]}", markup=False),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def seconds(text: str) -> float:
    """Read a duration: ``90``, ``90s``, ``5m``, ``1h``.

    Raises:
        OptionError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in _UNITS:
        raise OptionError(f"expected a duration such as 60s, 5m or 1h, found {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def parse_bytes(text: str) -> int:
    """Read an amount of memory: ``500MB``, ``2GiB``, ``1000000``.

    Raises:
        OptionError: it is none.
    """
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmg]i?|)b?", text.strip().lower())
    if not found:
        raise OptionError(f"expected an amount of memory such as 500MB or 2GiB, found {text!r}")
    return int(float(found[1]) * _BYTES[found[2]])


def dimensions(texts: list[str]) -> dict[str, int]:
    """Read ``name=size`` pairs.

    Raises:
        OptionError: one of them is none, or a name has two sizes.
    """
    dims: dict[str, int] = {}
    for text in texts:
        name, sign, size = text.partition("=")
        if not sign or not name or not size.isdecimal() or len(size) > LONGEST or int(size) < 1:
            raise OptionError(f"expected a dimension such as batch=1, found {text!r}")
        if dims.setdefault(name, int(size)) != int(size):
            raise OptionError(f"expected one size for dimension {name!r}, found {dims[name]} and {int(size)}")
    return dims
