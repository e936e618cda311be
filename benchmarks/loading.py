"""Whether it matters which of several models is loaded first: one file, measured as if it were five.

    python benchmarks/loading.py FILE.onnx [--models 5] [--sessions 6] [--rounds 12]

Printed is how many times faster than the first each is: in sessions that load them in this order, in those between,
which load them the other way round, and in both together, by which the order cancels out.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from taso_gym.cost.measure import measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()

    names = [str(i + 1) for i in range(options.models)]
    found = measure(dict.fromkeys(names, options.model), sessions=options.sessions, rounds=options.rounds)
    table = Table(title=options.model.stem)
    for name in ("place", "in this order", "the other way round", "both"):
        table.add_column(name, justify="right")
    for name in names:
        ratios = np.median(found.rounds[names[0]], axis=1) / np.median(found.rounds[name], axis=1)
        table.add_row(name, *(f"{np.exp(np.log(part).mean()):.3f}" for part in (ratios[::2], ratios[1::2], ratios)))
    Console().print(table)


if __name__ == "__main__":
    main()
