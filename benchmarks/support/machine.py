"""Where the rows of a machine lie, and by which code they are."""

import re
import subprocess
from pathlib import Path


def folder_of(rows: Path, machine: str) -> Path:
    """Return the folder of a machine's rows, given how the machine calls itself."""
    return rows / re.sub(r"\W+", "-", machine).lower()


def commit() -> str:
    """Return the commit of this repository, with a plus where code differs from it; "" where git can't say."""
    git = ["git", "-C", str(Path(__file__).parents[2])]
    code = ["packages", "benchmarks/*.py", "benchmarks/*.toml"]
    try:
        commit, differs = (
            subprocess.run([*git, *command], capture_output=True, text=True, check=False).stdout.strip()
            for command in (["describe", "--always"], ["status", "--porcelain", "--", *code])
        )
    except OSError:
        return ""
    return f"{commit}{'+' if differs else ''}"
