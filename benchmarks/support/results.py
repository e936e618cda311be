"""Where benchmarks/end_to_end.py keeps what it finds of a network: the optimised file and the row of measurements."""

from pathlib import Path

from support.machine import folder_of

DEFAULT = "reassociate"

OURS, FAST = "taso-gym", "taso-gym, fast"
"""Columns of what the search finds by default and with ``--numerics fast``."""


def result_path(source: Path, numerics: str, where: str = "t1", suffix: str = ".fast.onnx") -> Path:
    """Return the file of what was found for a network's file, or that of its log; ``where`` as in `row_path`."""
    kind = "" if where == "t1" else f".{where}"
    return source.with_suffix(f"{kind}{'' if numerics == DEFAULT else f'.{numerics}'}{suffix}")


def row_path(rows: Path, machine: str, network: str, batch: int, where: str, numerics: str) -> Path:
    """Return the file of a row, in the folder of its machine; ``where``: the provider, or threads such as t2."""
    kind = where if numerics == DEFAULT else f"{where}-{numerics}"
    return folder_of(rows, machine) / f"{network}-b{batch}-{kind}.json"
