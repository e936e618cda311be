"""Where the rows of a machine lie, and by which code they are."""

import re
import subprocess
from pathlib import Path


def folder_of(rows: Path, machine: str) -> Path:
    """Return the folder of a machine's rows, given how the machine calls itself."""
    return rows / re.sub(r"\W+", "-", machine).lower()


def commit() -> str:
    """Return the commit of this repository, with a plus where files differ from it; "" where git can't say."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
