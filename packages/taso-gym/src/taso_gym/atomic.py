"""Writing files whole or not at all: into a hidden folder beside the target, then moved."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from taso_gym.errors import OptionError


@contextmanager
def replacing(path: str | Path) -> Generator[Path]:
    """Yield a path of the target's name in a fresh hidden folder beside it, and move it to the target if all ends well.

    Other files that the block writes into that folder, to which the target may refer by name, are moved first.

    Raises:
        OptionError: the folder doesn't exist or can't be written, or a folder has the target's name.
    """
    target = check_target(path)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OptionError(f"expected a folder that can be written, found {target.parent}: {error.strerror}") from error
    try:
        yield folder / target.name
        for file in sorted(folder.iterdir(), key=lambda f: f.name == target.name):
            file.replace(target.with_name(file.name))
    finally:
        shutil.rmtree(folder)


def check_target(path: str | Path) -> Path:
    """Return the path of a file that is to be written; to be called before work that a wrong path would waste.

    Raises:
        OptionError: its folder doesn't exist, or it is a folder itself.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise OptionError(f"expected a folder to write {target.name} into, found none at {target.parent}")
    if target.is_dir():
        raise OptionError(f"expected the name of a file to write, found the folder {target}")
    return target


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a binary file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
