"""Writing files whole or not at all: to a temporary file beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taso_gym.errors import OptionError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the target's folder; rename it to the target if the block ends well.

    Raises:
        OptionError: the folder doesn't exist or can't be written.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise OptionError(f"expected a folder to write {target.name} into, found none at {target.parent}")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OptionError(f"expected a folder that can be written, found {target.parent}: {error.strerror}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a binary file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
