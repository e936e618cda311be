"""The tables of benchmarks/end_to_end.py in the documentation."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

from support.networks import networks
from support.page import DOCS, write_between
from support.picture import draw
from support.results import DEFAULT, FAST, OURS
from support.summary import KNOWN_AS, goals_of, missed, summary

from taso_gym.console import seconds

PICTURED = ("cpu", 1, 1)
COLUMNS = (OURS, FAST, "by-hand", "transformers", "onnxsim", "onnxslim", "onnxscript", "openvino", "torch.compile")


def write_table(rows: Path) -> None:
    """Write a summary of all rows into docs/results.md and their tables beside it; draw the first of each machine."""
    parts = [(setting, list(found.values())) for setting, found in sorted(_parts(rows).items())]
    write_between("end_to_end_summary", summary(parts))
    write_between("goals_missed", missed(parts))
    write_between("end_to_end", "".join(_table(*setting, found) for setting, found in parts), "end_to_end.md")
    for (machine, *setting), found in parts:
        if tuple(setting) == PICTURED:
            draw(found, DOCS / f"end_to_end-{machine}.png")


def _parts(rows: Path) -> dict[tuple[str, str, int, int], dict[str, dict[str, Any]]]:
    """Return the rows of each machine, provider, number of threads and batch size that was measured, by network."""
    parts: dict[tuple[str, str, int, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for path in sorted(rows.glob("*/*.json"), key=lambda path: "-fast" in path.stem):
        row = json.loads(path.read_text(encoding="utf-8"))
        if row["numerics"] not in (DEFAULT, "fast"):
            continue
        found = parts[path.parent.name, row.get("provider", "cpu"), row["threads"], row["batch"]]
        row["errors"] = _errors(row)
        found[row["network"]] = _joined(found.get(row["network"]), row)
    return parts


def _errors(row: Mapping[str, Any]) -> list[float]:
    """Return by what part of the measured speed-up of a search's result the predicted one differs from it."""
    costs = re.search(r"([\d.]+) ms → ([\d.]+) ms", row["optimise"].get("headline", ""))
    if costs is None or (row["unchanged"] and "candidate" not in row):  # nothing was measured
        return []
    before, after = map(float, costs.groups())
    return [before / after / row.get("candidate", row["speedups"][OURS])[0] - 1]


def _joined(known: Mapping[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with that of the same network and looser numerics, whose figure has a column of its own.

    Of what both have, such as other tools' figures, that of the later run counts.
    """
    if row.get("numerics") != "fast":
        return row
    speedups = {FAST if tool == OURS else tool: found for tool, found in row["speedups"].items()}
    searches = {"fast": row["optimise"], "unchanged by fast": row["unchanged"]}
    if known is None:
        return {**row, "speedups": speedups, "optimise": None, **searches}
    older, newer = sorted((known, {**row, "speedups": speedups}), key=lambda each: each["date"])
    both = {name: {**older[name], **newer[name]} for name in ("speedups", "missing")}
    both["missing"] = {tool: why for tool, why in both["missing"].items() if tool not in both["speedups"]}
    both |= {name: newer[name] for name in ("file_ms", "bound") if name in newer}
    return {**known, **both, **searches, "errors": known["errors"] + row["errors"], "runs": [known, row]}


def _table(machine: str, provider: str, threads: int, batch: int, rows: Sequence[Mapping[str, Any]]) -> str:
    order = {n.name: i for i, n in enumerate(networks())}
    goals = goals_of(batch)
    listed = [n for n in networks() if batch in n.batches]
    where = f"{threads} thread{'s' if threads > 1 else ''}" if provider == "cpu" else provider
    lines = [f"\n## {KNOWN_AS.get(machine, machine)}, batch {batch}, {where}: {len(rows)} of {len(listed)} networks\n"]
    lines += [
        f"| network | ms | bound | goal | {' | '.join(COLUMNS)} | optimised in |",
        "| --- " * (len(COLUMNS) + 5) + "|",
    ]
    for row in sorted(rows, key=lambda row: order[row["network"]]):
        goal = goals.get(row["network"])
        cells = [cell(row, tool) for tool in COLUMNS]
        start = [row["network"], number(row, "file_ms"), number(row, "bound"), f"{goal:g}" if goal else ""]
        took = " / ".join(map(_took, filter(None, (row["optimise"], row.get("fast")))))
        lines.append(f"| {' | '.join([*start, *cells])} | {took} |")
    lines += _summaries(rows)
    runs = [run for row in rows for run in row.get("runs", [row])]
    machines = sorted({f"{run['machine']}, onnxruntime {run['onnxruntime']}" for run in runs})
    searches = [s for r in rows for s in (r["optimise"], r.get("fast")) if s]
    kinds = sorted({f"`--search {s['search']} --numerics {s['numerics']}`" for s in searches})
    budgets = sorted({s["budget"] for s in searches}, key=seconds)
    spent = budgets[0] if len(budgets) == 1 else f"{budgets[0]} to {budgets[-1]}"
    dates = sorted({run["date"] for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    options = f"{', '.join(kinds)}, each with a `--budget` of {spent}"
    lines.append(f"\nMeasured on {'; '.join(machines)}, {when}. Options: {options}.")
    lines += _truth([error for row in rows for error in row["errors"]])
    failures = [
        f"{t} on {r['network']} ({why})" for r in rows for t, why in r["missing"].items() if why != "not installed"
    ]
    lines += [f"Not run or failed: {'; '.join(failures)}."] if failures else []
    return "\n".join(lines) + "\n"


def _took(search: Mapping[str, Any]) -> str:
    return f"{search['seconds']} s{', a loop' if search.get('loop') else ''}"


def _truth(errors: Sequence[float]) -> list[str]:
    """Return a line that says how far predicted gains are from measured ones; none where there are none."""
    if not errors:
        return []
    far = [abs(error) for error in errors]
    found = f"{mean(far):.1%} off in the mean, {max(far):.1%} at most, {median(errors):+.1%} in the median"
    return [f"Predicted gains of {len(errors)} results against those measured: {found}."]


def _summaries(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines below a table; a network that wasn't run with looser numerics counts as it is without."""
    lines: list[str] = []
    for name, figure in (("geometric mean", geometric_mean), ("median", median)):
        cells: list[str] = []
        for tool in COLUMNS:
            other = OURS if tool == FAST and any(FAST in r["speedups"] for r in rows) else tool
            ran = [r["speedups"].get(tool, r["speedups"].get(other)) for r in rows]
            found = [speedup[0] for speedup in ran if speedup]
            cells.append(f"{figure(found):.3f} ({len(found)})" if found else "")
        lines.append(f"| {name} | | | | {' | '.join(cells)} | |")
    return lines


def number(row: Mapping[str, Any], name: str) -> str:
    """Return a number of a row as its table has it; nothing where the row hasn't it."""
    return f"{row[name]:.2f}" if name in row else ""


def cell(row: Mapping[str, Any], tool: str) -> str:
    """Return what a tool made of the network of a row: a dash where it didn't run."""
    if tool not in row["speedups"]:
        return "–"
    ratio, low, high = row["speedups"][tool]
    if tool in (OURS, FAST):
        same = row["unchanged" if tool == OURS else "unchanged by fast"]
        return "unchanged" if same else f"**{ratio:.3f}** [{low:.3f}, {high:.3f}]"
    return f"{ratio:.3f}"
