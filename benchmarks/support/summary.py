"""The summaries of all tables of benchmarks/end_to_end.py: for each setting its figures, and the goals it misses."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from support.networks import networks
from support.results import FAST, OURS

Row = Mapping[str, Any]
Part = tuple[tuple[str, str, int, int], Sequence[Row]]
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
KNOWN_AS = {
    "amd-epyc-family-25-model-1-avx2": "Zen 3",
    "amd-epyc-family-25-model-17-avx512f": "Zen 4",
    "amd-epyc-family-26-model-2-avx512f": "Zen 5",
    "intel-r-xeon-r-processor-family-6-model-207-avx512f": "Emerald Rapids",
    "nvidia-h200": "H200",
}
"""What machines are known as, by the folder of their rows."""


def summary(parts: Sequence[Part]) -> str:
    """Return a table of the figures of rows by (machine, provider, threads, batch)."""
    lines = [f"\n| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|"]
    for where, numerics, column, rows in _measured(parts):
        cells = (*where, numerics, len(rows), *_figures(rows, column, where[1]))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n\n"


def missed(parts: Sequence[Part]) -> str:
    """Return a table of the goals that rows miss, the farthest first, with what rewrites made by hand reach there."""
    lines = ["\n| machine | batch | threads | numerics | found, of the goal |", "| --- | --- | --- | --- | --- |"]
    for where, numerics, column, rows in _measured(parts):
        goals = goals_of(where[1])
        short = [row for row in rows if round(row["speedups"][column][0], 3) < goals.get(row["network"], 0)]
        short.sort(key=lambda row: row["speedups"][column][0] / goals[row["network"]])
        found = [_beside(row, column, goals[row["network"]]) for row in short]
        lines.append(f"| {' | '.join(map(str, (*where, numerics)))} | {', '.join(found) or 'none is missed'} |")
    return "\n".join(lines) + "\n\n"


def _measured(parts: Sequence[Part]) -> Iterator[tuple[tuple[str, int, int | str], str, str, list[Row]]]:
    """Yield (machine, batch, threads or provider), numerics and its column, and the rows that have it."""
    for (machine, provider, threads, batch), rows in parts:
        where = (KNOWN_AS.get(machine, machine), batch, threads if provider == "cpu" else provider)
        for numerics, column in (("reassociate", OURS), ("fast", FAST)):
            if found := [row for row in rows if column in row["speedups"]]:
                yield where, numerics, column, found


def _beside(row: Row, column: str, goal: float) -> str:
    speedups = row["speedups"]
    hand = f" (by hand {speedups['by-hand'][0]:.3f})" if "by-hand" in speedups else ""
    return f"{row['network']} {speedups[column][0]:.3f} of {goal:g}{hand}"


def goals_of(batch: int) -> dict[str, float]:
    """Return the goal of each network that has one for a batch."""
    goals = {n.name: dict(zip(n.batches, n.goal, strict=False)).get(batch) for n in networks()}
    return {name: goal for name, goal in goals.items() if goal}


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
    wanted = {name: goal for name, goal in goals_of(batch).items() if name in ours}
    yield f"{sum(round(ours[name], 3) >= goal for name, goal in wanted.items())} of {len(wanted)}"
    yield f"{sum(row['unchanged' if column == OURS else 'unchanged by fast'] for row in rows)} of {len(ours)}"
