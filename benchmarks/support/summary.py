"""The summary of all tables of benchmarks/end_to_end.py: one line for each machine, batch, threads and numerics."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from support.networks import networks
from support.results import FAST, OURS

Row = Mapping[str, Any]
COLUMNS = (
    "machine",
    "batch",
    "threads",
    "numerics",
    "networks",
    "geometric mean",
    "median",
    "least",
    "OpenVINO",
    "ahead of it",
    "by hand",
    "found there",
    "ahead of hands",
    "goals met",
    "unchanged",
)


def summary(parts: Sequence[tuple[tuple[str, str, int, int], Sequence[Row]]]) -> str:
    """Return the summary of rows by (machine, provider, threads, batch)."""
    lines = [f"\n| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|"]
    for (machine, provider, threads, batch), rows in parts:
        where = threads if provider == "cpu" else provider
        for numerics, column in (("reassociate", OURS), ("fast", FAST)):
            if found := [row for row in rows if column in row["speedups"]]:
                cells = (machine, batch, where, numerics, len(found), *_figures(found, column, batch))
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n\n"


def _figures(rows: Sequence[Row], column: str, batch: int) -> Iterator[str]:
    ours = {row["network"]: row["speedups"][column][0] for row in rows}
    yield f"**{geometric_mean(ours.values()):.3f}**"
    yield f"{median(ours.values()):.3f}"
    yield f"{min(ours.values()):.3f}"
    for tool in ("openvino", "by-hand"):
        pairs = [(row["speedups"][tool][0], ours[row["network"]]) for row in rows if tool in row["speedups"]]
        theirs, found = zip(*pairs, strict=True) if pairs else ((), ())
        yield f"{geometric_mean(theirs):.3f}" if pairs else "–"
        if tool == "by-hand":
            yield f"{geometric_mean(found):.3f}" if pairs else "–"
        yield f"{sum(us > them for them, us in pairs)} of {len(pairs)}" if pairs else "–"
    goals = {n.name: dict(zip(n.batches, n.goal, strict=False)).get(batch) for n in networks()}
    wanted = {name: goal for name, goal in goals.items() if goal and name in ours}
    yield f"{sum(round(ours[name], 3) >= goal for name, goal in wanted.items())} of {len(wanted)}"
    yield f"{sum(row['unchanged' if column == OURS else 'unchanged by fast'] for row in rows)} of {len(ours)}"
