"""Files of policies, world models and runs to go on with: tensors and plain data, nothing that is executed."""

from __future__ import annotations

import os
import pickle
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch

from taso_gym.atomic import replacing
from taso_gym.checks import check_path
from taso_gym.errors import CheckpointError

FORMAT = 1


def save(path: str | Path, kind: str, taso: Mapping[str, Any], **parts: Any) -> None:
    """Write a file, whole or not at all.

    Args:
        path: where.
        kind: "policy", "world model" or "run"; `load` asks for it again.
        taso: what it belongs to, as text, numbers, lists and dicts: rule set's digest, environment, settings.
        parts: state dicts and other containers of tensors, numbers and text.
    """
    with replacing(path) as temporary:
        torch.save({"format": FORMAT, "kind": kind, "taso": dict(taso), **parts}, temporary)


def load(path: str | Path, kind: str) -> dict[str, Any]:
    """Read what `save` wrote; ``weights_only`` keeps torch from building anything but tensors and plain data.

    Raises:
        CheckpointError: the file is missing, damaged, of another kind, or holds anything else.
        OptionError: it is no path.
    """
    file = check_path(path, f"the path of a {kind}")
    if not os.path.isfile(file):
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found no file")
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found something else, or part of one")
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found objects of other kinds") from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}: {reason}") from error
    if not isinstance(data, dict) or data.get("kind") != kind:
        found = data.get("kind", "something else") if isinstance(data, dict) else type(data).__name__
        raise CheckpointError(f"expected a {kind} of taso-agents in {path}, found {found}")
    if data.get("format") != FORMAT:
        raise CheckpointError(f"expected format {FORMAT} in {path}, found {data.get('format')}: another version's file")
    return data


def part_of(data: Mapping[str, Any], name: str, path: str | Path) -> Any:
    """Return one of the parts of what `load` read that not every file of its kind has.

    Raises:
        CheckpointError: this one hasn't.
    """
    if name not in data:
        raise CheckpointError(f"expected a {data['kind']} with its {name} in {path}, found one without")
    return data[name]


def load_run(path: str | Path, kind: str, taso: Mapping[str, Any]) -> dict[str, Any]:
    """Read the file of a run to go on with, which must belong to the same as this one.

    Raises:
        CheckpointError: the file is damaged, or of another run.
    """
    data = load(path, kind)
    for key, expected in taso.items():
        if data["taso"].get(key) != expected:
            found = data["taso"].get(key)
            raise CheckpointError(f"{path}: expected a run with {key} {expected!r}, found one with {found!r}")
    return data


class Resumable(ABC):
    """A run that writes itself into a file now and then, and goes on from it after it was killed.

    Attributes:
        file_kind: of its file.
    """

    file_kind: ClassVar[str]

    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Return all that the run has to remember, as `save` takes it."""

    @abstractmethod
    def take_up(self, parts: Mapping[str, Any]) -> None:
        """Put the run where `parts` was asked for."""

    def write(self, path: Path, taso: Mapping[str, Any]) -> None:
        """Write everything, whole or not at all; ``taso`` is what the run belongs to."""
        save(path, self.file_kind, taso, **self.parts())

    def restore(self, path: Path, taso: Mapping[str, Any]) -> None:
        """Go on from a file.

        Raises:
            CheckpointError: the file is damaged, or belongs to another run.
        """
        data = load_run(path, self.file_kind, taso)
        try:
            self.take_up(data)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path}: the run doesn't fit this version or its settings: {error}") from error

    def go_on(self, file: str | Path | None, taso: Mapping[str, Any]) -> Path | None:
        """Return where the run is to be written to, if anywhere; if that is there, go on from it as `restore` does."""
        path = Path(file) if file else None
        if path and os.path.exists(path):
            self.restore(path, taso)
        return path
