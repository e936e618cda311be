"""Whether any ONNX file loads whole and comes out equal: ONNX's own tests, and exported networks.

    python benchmarks/conformance.py [suite ...] [--start N] [--stride N] [--progress FILE] [--folder FOLDER]

Each model is loaded and saved ("round trip"), saved after 50 random legal substitutions of the default rules
("rewritten"), and optimised by the command `taso-gym optimize --no-measure --steps 200`. What comes out gives in
onnxruntime what the original gives, on the inputs that come with the test, or on drawn ones; where onnxruntime doesn't
run the original, in `onnx.reference`. Each finished model is a line in --progress, and what is there isn't done again.
At the end the table of a whole run is written into docs/results.md; the exit code is 1 where a model didn't come out
equal. Networks are exported with `transformers`, with random weights; without that package their suites are left out.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from support.exported import EXPORTERS
from support.page import write_between
from support.suites import SUITES, case, names
from support.trips import EQUAL, EQUAL_IN_REFERENCE, NOT_RUN, TRIPS, Outcome, travel

OUT = Path(__file__).parents[1] / "out" / "conformance"
Rows = Mapping[tuple[str, str], Mapping[str, Outcome]]
FINE = (EQUAL, EQUAL_IN_REFERENCE, NOT_RUN)


def read(progress: Path) -> dict[tuple[str, str], Mapping[str, Outcome]]:
    """Return what was found of each (suite, model) by trip."""
    lines = progress.read_text(encoding="utf-8").splitlines() if progress.exists() else []
    return {
        (row["suite"], row["model"]): {k: Outcome(*v) for k, v in row["trips"].items()}
        for row in map(json.loads, lines)
    }


def run(suites: Sequence[str], which: slice, progress: Path, folder: Path) -> Rows:
    """Do what is missing and return all."""
    rows = read(progress)
    progress.parent.mkdir(parents=True, exist_ok=True)
    for suite in suites:
        for name in names(suite)[which]:
            if (suite, name) in rows:
                continue
            model = case(suite, name, folder)
            with tempfile.TemporaryDirectory() as temporary:
                trips = {trip: travel(model, trip, Path(temporary)) for trip in TRIPS}
            rows[suite, name] = trips
            with progress.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"suite": suite, "model": name, "trips": trips}) + "\n")
            for trip, outcome in trips.items():
                if outcome.result not in FINE:
                    print(f"{suite} {name}, {trip}: {outcome.result}", flush=True)
    return rows


def table(rows: Rows) -> str:
    """Return the counts of each suite as a table."""
    head = ["suite", "models", "loaded", "round-tripped", "rewritten", "equal", "optimised", "equal"]
    head += ["only in onnx.reference", "not run", "refused without --force"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for suite in SUITES:
        listed = [trips for (where, _), trips in rows.items() if where == suite]
        if listed:
            lines.append(f"| {' | '.join(map(str, [suite, *counts(listed)]))} |")
    total = counts(list(rows.values()))
    lines.append(f"| all | {' | '.join(map(str, total))} |")
    versions = f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    return "\n".join([*lines, f"\nWith {versions}.\n"])


def counts(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Count models, and what became of them on each trip."""
    trip, rewritten, optimised = ([row[name] for row in rows] for name in TRIPS)

    def good(outcomes: Sequence[Outcome]) -> int:
        return sum(o.result in FINE for o in outcomes)

    return [
        len(rows),
        sum(not o.result.startswith("ModelError") for o in trip),
        good(trip),
        sum(o.changed for o in rewritten),
        good(rewritten),
        sum(o.changed for o in optimised),
        good(optimised),
        sum(o.result == EQUAL_IN_REFERENCE for o in trip),
        sum(o.result == NOT_RUN for o in trip),
        sum(bool(o.refused) for o in optimised),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(SUITES))
    parser.add_argument("--start", type=int, default=0, help="leave out so many models of each suite")
    parser.add_argument("--stride", type=int, default=1, help="take every so many-th model only")
    parser.add_argument("--progress", type=Path, default=OUT / "progress.jsonl")
    parser.add_argument("--folder", type=Path, default=OUT, help="where exported networks are kept")
    arguments = parser.parse_args()
    available = [s for s in SUITES if s not in EXPORTERS or importlib.util.find_spec("transformers")]
    suites = arguments.suites or available
    rows = run(suites, slice(arguments.start, None, arguments.stride), arguments.progress, arguments.folder)
    print(text := table(rows))
    if (arguments.start, arguments.stride) == (0, 1) and suites == list(SUITES):
        write_between("conformance", text)
    sys.exit(any(o.result not in FINE for trips in rows.values() for o in trips.values()))


if __name__ == "__main__":
    main()
