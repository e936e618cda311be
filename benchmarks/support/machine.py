"""Where the rows of a machine lie."""

import re
from pathlib import Path


def folder_of(rows: Path, machine: str) -> Path:
    """Return the folder of a machine's rows, given how the machine calls itself."""
    return rows / re.sub(r"\W+", "-", machine).lower()
