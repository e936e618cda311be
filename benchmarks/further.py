"""How much networks of other lists than networks.toml gain by search alone: fresh.toml, for which no rule was made.

    python benchmarks/further.py [network ...] [--of fresh] [--budget 60s] [--numerics fast] [--tools openvino]

Works as benchmarks/end_to_end.py does, whose options it has, and by default with the budget that `taso-gym optimize`
has; each list has a folder of rows. Tables are written into docs/end_to_end.md, their means into docs/results.md.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from end_to_end import HERE, options, run
from support.networks import Network, networks
from support.page import write_between
from support.results import OURS
from support.summary import KNOWN_AS
from support.table import cell, number

LISTS = ("fresh", "unseen", "decoders", "volumes")
"""Names of the .toml files, of the folders of their rows, and of the tables in the documentation."""
DEFAULTS = {
    "budget": "60s",
    "numerics": "fast",
    "options": "--no-measure --finalists",
    "tools": ["openvino"],
    "folder": Path("build/further"),
    "rows": HERE / "rows" / "further",
}
Row = Mapping[str, Any]
Setting = tuple[str, int, int, str]
"""Machine, batch, threads and numerics."""


def main() -> None:
    chosen = argparse.ArgumentParser(add_help=False)
    chosen.add_argument("--of", choices=LISTS, help="the list of networks; default: all")
    of, others = chosen.parse_known_args()
    settings = options(others, __doc__, **DEFAULTS)
    rows = settings.rows
    for name in LISTS:
        if of.of in (None, name):
            settings.rows = rows / name
            run(_networks(name), settings)
    if settings.phase != "optimise":
        write_tables(rows)


def _networks(name: str) -> list[Network]:
    return networks(HERE / f"{name}.toml")


def write_tables(rows: Path) -> None:
    """Write a line for each list and setting into docs/results.md, and its networks into docs/end_to_end.md."""
    parts = [(name, setting, found) for name in LISTS for setting, found in _parts(rows / name, name).items()]
    of = ("list", "machine", "batch", "threads", "numerics", "networks")
    columns = (*of, "geometric mean", "median", "least", "most", "OpenVINO", "unchanged")
    lines = ["", f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    lines += [f"| {' | '.join(_figures(*part))} |" for part in parts]
    write_between("further_summary", "\n".join(lines) + "\n\n")
    write_between("further", "".join(_table(*part) for part in parts), "end_to_end.md")


def _parts(rows: Path, name: str) -> dict[Setting, list[Row]]:
    """Return the rows of each setting, in the order of the list."""
    order = {network.name: place for place, network in enumerate(_networks(name))}
    parts: dict[Setting, list[Row]] = {}
    for path in sorted(rows.glob("*/*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        machine = KNOWN_AS.get(path.parent.name, path.parent.name)
        parts.setdefault((machine, row["batch"], row["threads"], row["numerics"]), []).append(row)
    return {where: sorted(found, key=lambda row: order[row["network"]]) for where, found in sorted(parts.items())}


def _figures(name: str, setting: Setting, rows: Sequence[Row]) -> list[str]:
    ours = [row["speedups"][OURS][0] for row in rows]
    theirs = [row["speedups"]["openvino"][0] for row in rows if "openvino" in row["speedups"]]
    means = f"**{geometric_mean(ours):.3f}**", *(f"{figure(ours):.3f}" for figure in (median, min, max))
    beside = f"{geometric_mean(theirs):.3f} ({len(theirs)})" if theirs else "–"
    return [name, *map(str, setting), str(len(rows)), *means, beside, str(sum(row["unchanged"] for row in rows))]


def _table(name: str, setting: Setting, rows: Sequence[Row]) -> str:
    machine, batch, threads, numerics = setting
    where = f"`--numerics {numerics}`, batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
    lines = [f"\n## {machine}: the list `{name}`, {where}\n"]
    lines += ["| network | ms | bound | taso-gym | OpenVINO | optimised in |", "| --- " * 6 + "|"]
    for row in rows:
        cells = (number(row, "file_ms"), number(row, "bound"), cell(row, OURS), cell(row, "openvino"))
        lines.append(f"| {' | '.join((row['network'], *cells))} | {row['optimise']['seconds']} s |")
    dates = sorted({row["date"] for row in rows})
    budgets = sorted({row["optimise"]["budget"] for row in rows})
    lines.append(f"\nMeasured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, budget {', '.join(budgets)}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
