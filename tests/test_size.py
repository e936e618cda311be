"""Source files and functions stay small enough to be read at one sitting."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))

# Normal is 250 and 15. Over a ceiling: split by idea, don't squeeze.
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 40


def long_functions(source: str) -> Iterator[str]:
    """Yield name and length of the functions whose statements, below the docstring, are over the ceiling."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            lines = (node.end_lineno or first.lineno) - first.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield f"{node.name}: {lines} lines"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "packages").as_posix())
def test_file_and_functions_are_short(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_FILE_LINES
    assert list(long_functions(source)) == []


def test_long_functions_are_found() -> None:
    body = "    pass\n"
    assert list(long_functions("def f():\n" + body * (MAX_FUNCTION_LINES + 1))) == ["f: 41 lines"]
    assert list(long_functions("def f():\n" + body * MAX_FUNCTION_LINES)) == []
