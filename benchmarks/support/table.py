"""The table of benchmarks/end_to_end.py in docs/results.md."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from support.networks import networks
from support.page import write_between

COLUMNS = ("taso-gym", "transformers", "onnxsim", "onnxslim", "onnxscript", "openvino", "torch.compile")


def write_table(rows: Path) -> None:
    """Write the tables of all rows between their marks in docs/results.md."""
    write_between("end_to_end", tables(rows))


def tables(rows: Path) -> str:
    """Return one table for each number of threads and batch size that was measured."""
    parts: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(rows.glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        parts[row.get("provider", "cpu"), row["threads"], row["batch"]].append(row)
    return "".join(_table(*setting, found) for setting, found in sorted(parts.items()))


def _table(provider: str, threads: int, batch: int, rows: Sequence[Mapping[str, Any]]) -> str:
    order = {n.name: i for i, n in enumerate(networks())}
    goals = {n.name: dict(zip(n.batches, n.goal, strict=False)) for n in networks()}
    listed = [n for n in networks() if batch in n.batches]
    where = f"{threads} thread{'s' if threads > 1 else ''}" if provider == "cpu" else provider
    lines = [f"\n#### Batch {batch}, {where}: {len(rows)} of {len(listed)} networks\n"]
    lines += [
        f"| network | ms | bound | goal | {' | '.join(COLUMNS)} | optimised in |",
        "| --- " * (len(COLUMNS) + 5) + "|",
    ]
    for row in sorted(rows, key=lambda row: order[row["network"]]):
        goal = goals[row["network"]].get(batch)
        cells = [_cell(row, tool) for tool in COLUMNS]
        bound = f"{row['bound']:.2f}" if "bound" in row else ""
        start = [
            row["network"],
            f"{row['file_ms']:.2f}" if "file_ms" in row else "",
            bound,
            f"{goal:g}" if goal else "",
        ]
        lines.append(f"| {' | '.join([*start, *cells])} | {row['optimise']['seconds']} s |")
    for name, summary in (("geometric mean", _geometric), ("median", median)):
        found = [[r["speedups"][tool][0] for r in rows if tool in r["speedups"]] for tool in COLUMNS]
        lines.append(f"| {name} | | | | {' | '.join(f'{summary(f):.3f}' if f else '' for f in found)} | |")
    machines = sorted({f"{r['machine']}, onnxruntime {r['onnxruntime']}" for r in rows})
    searches = sorted({f"--search {r['optimise']['search']} --budget {r['optimise']['budget']}" for r in rows})
    lines.append(f"\nMeasured on {'; '.join(machines)}. Options: `{'`, `'.join(searches)}`.")
    failures = [
        f"{t} on {r['network']} ({why})" for r in rows for t, why in r["missing"].items() if why != "not installed"
    ]
    lines += [f"Not run or failed: {'; '.join(failures)}."] if failures else []
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, Any], tool: str) -> str:
    if tool not in row["speedups"]:
        return "–"
    ratio, low, high = row["speedups"][tool]
    if tool == "taso-gym":
        return "unchanged" if row["unchanged"] else f"**{ratio:.3f}** [{low:.3f}, {high:.3f}]"
    return f"{ratio:.3f}"


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
