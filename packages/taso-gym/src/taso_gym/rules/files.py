"""Rule files: where the package keeps its own, how they are read, and their certificates."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path

from taso_gym.checks import check_path
from taso_gym.errors import RuleError
from taso_gym.rules.collector import paused
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule

READERS: dict[str, str] = {".rules": "taso_gym.rules.files:read_rules", ".pb": "taso_gym.rules.taso_pb:read_taso"}
"""Suffix of a rule file -> import string of what reads it: a function from a path to rules."""

DEFAULT = "default"
"""Name of the set of all rule files in the package."""


def package_sets() -> dict[str, Path]:
    """Return name -> path of the hand-written rule files in the package, sorted by name."""
    return {path.stem: path for path in sorted(folder().glob("*.rules"))}


def generated_sets() -> dict[str, Path]:
    """Return name -> path of the rule files that taso-gen-subst wrote: "basis" and "full"."""
    return {path.stem: path for path in sorted((folder() / "generated").glob("*.rules"))}


def folder() -> Path:
    """Return where the rule files of the package lie."""
    return Path(str(resources.files("taso_gym.rules")))


def files_of(source: str | Path) -> list[Path]:
    """Return the files of a set by name, or the file at a path.

    Raises:
        RuleError: there is no such set.
        OptionError: neither a name nor a path.
    """
    sets = package_sets()
    if source == DEFAULT:
        return list(sets.values())
    named = sets | generated_sets()
    if str(source) in named:
        return [named[str(source)]]
    choices = f"a rule set ({', '.join([DEFAULT, *named])}) or a path that ends in {' or '.join(READERS)}"
    path = check_path(source, choices)
    if not path.suffix:
        raise RuleError(f"expected {choices}, found {str(source)!r}")
    return [path]


def reader_of(path: Path) -> Callable[[Path], list[Rule]]:
    """Return what reads a rule file of this suffix.

    Raises:
        RuleError: nothing does.
    """
    if path.suffix not in READERS:
        raise RuleError(f"expected a rule file ({', '.join(READERS)}), found {str(path)!r}")
    module, name = READERS[path.suffix].split(":")
    return getattr(import_module(module), name)


def read_rules(path: Path) -> list[Rule]:
    """Read a ``.rules`` file.

    Raises:
        RuleError: it can't be read, or a line isn't a rule.
    """
    return list(_parsed(_read(path), path.name))


@lru_cache(maxsize=64)
def _parsed(text: str, where: str) -> tuple[Rule, ...]:
    """Return the rules of a text; a process loads the same sets again and again."""
    with paused():
        return tuple(parse_rules(text, where))


def read_certificates(path: Path) -> dict[str, str]:
    """Return rule digest -> status from the sidecar ``<stem>.certificates.jsonl`` beside a rule file, if there is one.

    Raises:
        RuleError: a row isn't ``{"rule": digest, "status": …}``.
    """
    sidecar = path.with_name(f"{path.stem}.certificates.jsonl")
    if not os.path.isfile(sidecar):
        return {}
    found: dict[str, str] = {}
    for number, line in enumerate(_read(sidecar).splitlines(), 1):
        try:
            row = json.loads(line)
            found[str(row["rule"])] = str(row["status"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            where = f"{sidecar.name}:{number}"
            raise RuleError('expected a row {"rule": digest, "status": …}', line=line, where=where) from error
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"expected a readable text file, found {path}: {error}") from error
