"""Results in a file with one JSON object a line, each written as soon as it is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path | None) -> list[dict[str, Any]]:
    """Return what a file has; nothing where there is none."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path and path.exists() else []


def append(path: Path | None, line: dict[str, Any]) -> None:
    """Write one more, if there is a file to write to."""
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
