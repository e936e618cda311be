"""The work folder: what each stage found, as one file a stage and fragment, written whole or not at all.

A file's first line says of what it is the result, and has a digest of the others; a stage that is resumed takes it only
if that is what it would do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

from taso_gym.atomic import write_text
from taso_gym.errors import OptionError, RuleError


def digest_of(*parts: object) -> str:
    """Return a hash of the text of values."""
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


class WorkFolder:
    """Keeps the results of stages.

    Args:
        path: the folder; None keeps nothing.
        resume: take results that are there already.
        force: replace those of other work.

    Raises:
        OptionError: the folder can't be made, or holds results and isn't to be resumed.
    """

    def __init__(self, path: Path | None, *, resume: bool, force: bool = False) -> None:
        self.path, self.resume, self.force = path, resume, force
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"expected a folder to work in, found {path}: {error.strerror}") from error
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise OptionError(f"expected a folder to work in that can be read and written, found {path}")
        if any(path.glob("*.jsonl")) and not resume and not force:
            raise OptionError(
                f"expected an empty work folder, found results in {path}: --resume goes on, --force starts anew"
            )

    def lines(self, stage: str, key: str, make: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Return the lines of a stage: those of the file if it is the result of the same work, else made and written.

        Args:
            stage: name of the file.
            key: digest of everything that the result depends on.
            make: does the work; a line is the JSON text of a value.

        Raises:
            RuleError: the file is corrupt.
        """
        if self.path is None:
            return make()
        file = self.path / f"{stage}.jsonl"
        kept = self._kept(stage)
        if kept and kept[0] == key:
            return kept[1]
        lines = make()
        header = json.dumps({"stage": stage, "key": key, "rows": digest_of(*lines)})
        write_text(file, "".join(f"{line}\n" for line in (header, *lines)))
        return lines

    def has(self, stage: str, key: str) -> bool:
        """Whether `lines` would take the file.

        Raises:
            RuleError: the file is corrupt.
        """
        kept = self._kept(stage)
        return kept is not None and kept[0] == key

    def expect_same(self, stage: str, key: str) -> None:
        """Raise `OptionError` if the file is the result of other work, which would be lost."""
        if (kept := self._kept(stage)) and kept[0] != key and not self.force:
            raise OptionError(
                f"expected results of the same options and version, found others in {self.path}/{stage}.jsonl: --force "
                "makes them anew"
            )

    def _kept(self, stage: str) -> tuple[str, list[str]] | None:
        file = self.path / f"{stage}.jsonl" if self.path else None
        return _read(file) if self.resume and file and file.is_file() else None


def _read(file: Path) -> tuple[str, list[str]]:
    """Return the key and the rows of a file."""
    try:
        first, *lines = file.read_text(encoding="utf-8").splitlines()
        header = json.loads(first)
        key, whole = str(header["key"]), header["rows"] == digest_of(*lines)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise RuleError(f"expected rows of JSON, found a damaged file {file}: {error}") from error
    if not whole:
        raise RuleError(f"expected all rows that were written, found a damaged file {file}: delete it")
    return key, lines
