"""Writing files whole or not at all: into a hidden folder beside the target, then moved."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from taso_gym.checks import check_path
from taso_gym.errors import OptionError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a disk says that takes no more; other errors of the system inside a block are not about its target."""


@contextmanager
def replacing(path: str | Path) -> Generator[Path]:
    """Yield a path of the target's name in a fresh hidden folder beside it, and move it to the target if all ends well.

    Other files that the block writes into that folder or below it, to which the target may refer by name, are moved
    first, each to its place beside the target; what else is there in folders of the same names stays.

    Raises:
        OptionError: the folder doesn't exist or can't be written, the disk is full, or a folder has a file's name.
    """
    target = check_target(path)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OptionError(f"expected a folder that can be written, found {target.parent}: {error.strerror}") from error
    try:
        yield folder / target.name
        _move(folder, target)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise OptionError(f"expected room for {target.name} in {target.parent}, found: {error.strerror}") from error
    finally:
        shutil.rmtree(folder)


def _move(folder: Path, target: Path) -> None:
    """Move the files of a folder beside the target, one by one, the target itself last."""
    files = sorted((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f == folder / target.name)
    for file in files:
        place = target.parent / file.relative_to(folder)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        except OSError as error:
            raise OptionError(f"expected to write {place}, found: {error.strerror}") from error


def check_target(path: str | Path) -> Path:
    """Return the path of a file that is to be written; to be called before work that a wrong path would waste.

    Raises:
        OptionError: its folder doesn't exist or can't be written, or it is a folder itself, or no path.
    """
    target = check_path(path, "the path of a file to write")
    if not target.parent.is_dir():
        raise OptionError(f"expected a folder to write {target.name} into, found none at {target.parent}")
    if target.is_dir():
        raise OptionError(f"expected the name of a file to write, found the folder {target}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OptionError(f"expected a folder that can be written, found {target.parent}")
    return target


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a binary file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
