"""Writing files whole or not at all: into a hidden folder beside the target, then moved."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from taso_gym.checks import check_path
from taso_gym.errors import OptionError, WriteError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a disk says that takes no more; other errors of the system inside a block are not about its target."""

LONGEST = 255
"""Bytes of a name that file systems take."""


@contextmanager
def replacing(path: str | Path) -> Generator[Path]:
    """Yield a path of the target's name in a fresh hidden folder beside it, and move it to the target if all ends well.

    Other files that the block writes into that folder or below it, to which the target may refer by name, are moved
    first, each to its place beside the target; what else is there in folders of the same names stays. If that fails
    or is interrupted, all is put back. Where such a file replaces another, the old target is put aside meanwhile: it
    never stands beside files that it doesn't mean, and if the process is killed in between, there is no target, and
    the old files are in a hidden folder named after it.

    Raises:
        OptionError: there is no such folder, or it can't be written.
        WriteError: the system doesn't write there: the disk is full, say, or a folder has a file's name.
    """
    target = check_target(path)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:20]}.", dir=target.parent))
    except OSError as error:
        raise WriteError(f"expected a folder that can be written, found {target.parent}: {error.strerror}") from error
    try:
        yield folder / target.name
        _move(folder, target)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise WriteError(f"expected room for {target.name} in {target.parent}, found: {error.strerror}") from error
    finally:
        shutil.rmtree(folder)


def _move(folder: Path, target: Path) -> None:
    """Move the files of a folder beside the target, one by one, the target itself last; see `replacing`."""
    files = sorted((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f == folder / target.name)
    moves = [(file, target.parent / file.relative_to(folder)) for file in files]
    old = [place for _, place in reversed(moves) if place.is_file() or place.is_symlink()]
    aside = folder.with_name(f"{folder.name}.old")
    if set(old) - {target}:
        moves = [*((place, aside / place.relative_to(target.parent)) for place in old), *moves]
    try:
        for file, place in moves:
            _move_one(file, place)
    except BaseException:
        for file, place in reversed(moves):
            if not os.path.lexists(file):
                place.replace(file)
        shutil.rmtree(aside, ignore_errors=True)  # no file is left there
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _move_one(file: Path, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)
    except OSError as error:
        raise WriteError(f"expected to write {place}, found: {error.strerror}") from error


def check_target(path: str | Path) -> Path:
    """Return the path of a file that is to be written; to be called before work that a wrong path would waste.

    Raises:
        OptionError: its folder doesn't exist or can't be written, or it is a folder itself or a device, or no path,
            or one that models or file systems don't take.
    """
    target = check_path(path, "the path of a file to write")
    check_name(target)
    if not os.path.isdir(target.parent):
        raise OptionError(f"expected a folder to write {target.name} into, found none at {target.parent}")
    if os.path.exists(target) and not os.path.isfile(target):
        kind = "folder" if target.is_dir() else "device or pipe"
        raise OptionError(f"expected the name of a file to write, found the {kind} {target}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OptionError(f"expected a folder that can be written, found {target.parent}")
    return target


def check_name(target: Path) -> None:
    """Make sure that a file may have a name; raises OptionError."""
    try:
        str(target).encode()
    except UnicodeEncodeError:
        raise OptionError(f"expected the path of a file to write in UTF-8, found {str(target)!r}") from None
    if len(target.name.encode()) > LONGEST:
        raise OptionError(f"expected the name of a file to write of at most {LONGEST} bytes, found {target.name}")


def check_targets(*paths: Path | None, kept: Mapping[Path, str] = MappingProxyType({})) -> None:
    """Make sure that files can be written, before hours of work, and that none of them replaces what is needed.

    Args:
        paths: the files; None is none.
        kept: files that are read, and what is said of them where one would be replaced.

    Raises:
        OptionError: one can't be written, is also to be something else, or is to be kept.
    """
    places = {os.path.realpath(path): what for path, what in kept.items()}
    for path in filter(None, paths):
        place = os.path.realpath(check_target(path))
        if place in places:
            raise OptionError(f"expected another file to write than {path}, which {places[place]}")
        places[place] = "is to be written for something else, too"


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a binary file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
