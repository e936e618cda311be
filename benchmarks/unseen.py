"""How much networks gain that no rule was made for: the networks of unseen.toml, optimised by search alone.

    python benchmarks/unseen.py [network ...] [--budget 60s] [--numerics fast] [--tools openvino]

Works as benchmarks/end_to_end.py does, whose options it has, and by default with the budget that `taso-gym optimize`
has; rows are in a folder of their own. The table is written into docs/end_to_end.md, its means into docs/results.md.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from end_to_end import HERE, options, run
from support.networks import networks
from support.page import write_between
from support.results import OURS
from support.summary import KNOWN_AS

UNSEEN = HERE / "unseen.toml"
DEFAULTS = {
    "budget": "60s",
    "numerics": "fast",
    "options": "--no-measure --finalists",
    "tools": ["openvino"],
    "rows": HERE / "rows" / "unseen",
}
Row = Mapping[str, Any]


def main() -> None:
    settings = options(None, __doc__, **DEFAULTS)
    run(networks(UNSEEN), settings)
    if settings.phase != "optimise":
        write_tables(settings.rows)


def write_tables(rows: Path) -> None:
    """Write a line for each machine and setting into docs/results.md, and its networks into docs/end_to_end.md."""
    parts = _parts(rows)
    columns = ("machine", "numerics", "networks", "geometric mean", "median", "least", "most", "OpenVINO", "unchanged")
    lines = ["", f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    lines += [f"| {' | '.join(_figures(*setting, found))} |" for setting, found in parts.items()]
    write_between("unseen_summary", "\n".join(lines) + "\n\n")
    write_between("unseen", "".join(_table(*setting, found) for setting, found in parts.items()), "end_to_end.md")


def _parts(rows: Path) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each machine and numerics, in the order of the list."""
    order = {network.name: place for place, network in enumerate(networks(UNSEEN))}
    parts: dict[tuple[str, str], list[Row]] = {}
    for path in sorted(rows.glob("*/*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        parts.setdefault((KNOWN_AS.get(path.parent.name, path.parent.name), row["numerics"]), []).append(row)
    return {where: sorted(found, key=lambda row: order[row["network"]]) for where, found in sorted(parts.items())}


def _figures(machine: str, numerics: str, rows: Sequence[Row]) -> list[str]:
    ours = [row["speedups"][OURS][0] for row in rows]
    theirs = [row["speedups"]["openvino"][0] for row in rows if "openvino" in row["speedups"]]
    means = f"**{geometric_mean(ours):.3f}**", *(f"{figure(ours):.3f}" for figure in (median, min, max))
    beside = f"{geometric_mean(theirs):.3f} ({len(theirs)})" if theirs else "–"
    return [machine, numerics, str(len(rows)), *means, beside, str(sum(row["unchanged"] for row in rows))]


def _table(machine: str, numerics: str, rows: Sequence[Row]) -> str:
    lines = [f"\n## {machine}: networks that no rule was made for, `--numerics {numerics}`, batch 1, 1 thread\n"]
    lines += ["| network | ms | bound | taso-gym | OpenVINO | optimised in |", "| --- " * 6 + "|"]
    for row in rows:
        ratio, low, high = row["speedups"][OURS]
        found = "unchanged" if row["unchanged"] else f"**{ratio:.3f}** [{low:.3f}, {high:.3f}]"
        other = f"{row['speedups']['openvino'][0]:.3f}" if "openvino" in row["speedups"] else "–"
        took = f"{row['optimise']['seconds']} s"
        lines.append(f"| {row['network']} | {row['file_ms']:.2f} | {row['bound']:.2f} | {found} | {other} | {took} |")
    dates = sorted({row["date"] for row in rows})
    budgets = sorted({row["optimise"]["budget"] for row in rows})
    lines.append(f"\nMeasured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, budget {', '.join(budgets)}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
