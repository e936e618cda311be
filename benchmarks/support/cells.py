"""Measurements that a killed benchmark doesn't repeat: each is a file of its own, so that several processes may run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from taso_gym.atomic import write_text


def cell(folder: Path, name: str, settings: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what was measured under a name, now or in an earlier run, with its ``settings`` and ``cpu_s``.

    Args:
        folder: where the files are; it is made.
        name: of this measurement; a slash in it is a folder.
        settings: all that it depends on, as plain data.
        measure: what to do if it isn't there.

    Raises:
        SystemExit: what is there was measured with other settings.
    """
    path = folder / f"{name}.json"
    settings = json.loads(json.dumps(settings))
    if path.exists():
        found = json.loads(path.read_text("utf-8"))
        if found["settings"] != settings:
            differ = {k: (v, found["settings"].get(k)) for k, v in settings.items() if v != found["settings"].get(k)}
            raise SystemExit(f"{path} was measured with other settings (expected, found): {differ}")
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    began = process_time()
    found = measure()
    found |= {"settings": settings, "cpu_s": round(process_time() - began, 1)}
    write_text(path, json.dumps(found))
    print(f"{name}: {found['cpu_s']} s of CPU time", flush=True)
    return found
