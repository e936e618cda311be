"""Importing the package defines names and does nothing else."""

import subprocess
import sys

import pytest

OPTIONAL = ("torch", "cupy", "onnxruntime", "z3")


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


def test_import_loads_no_optional_package() -> None:
    result = run(f"import sys, taso_gym; print(*sorted(sys.modules.keys() & {set(OPTIONAL)!r}))")
    assert (result.returncode, result.stdout.split(), result.stderr) == (0, [], "")


@pytest.mark.parametrize("package", OPTIONAL)
def test_import_works_where_an_optional_package_is_missing(package: str) -> None:
    result = run(f"import sys; sys.modules[{package!r}] = None; import taso_gym")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
