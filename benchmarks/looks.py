"""What single looks at kernels are worth, by a cache of measurements that a search has filled.

    python benchmarks/looks.py [CACHE.sqlite ...]

Of the kernels that were measured once and in turns, by the time of the look: the median of time in turns to time by one
look, and the median difference between the two, as it is and after `taso_gym.cost.looks` has learned from all others.
"""

from __future__ import annotations

import argparse
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from taso_gym.cost.cache import default_path
from taso_gym.cost.looks import Looks
from taso_gym.cost.node_keys import COLD
from taso_gym.cost.turns import TURNS

LIMITS_US = (0, 10, 100, 1000, 10_000, math.inf)
BOTH = """
    SELECT turns.key, look.value, turns.value FROM measurements turns
    JOIN measurements look ON look.key = replace(turns.key, ?1, '|node ') WHERE instr(turns.key, ?1)
"""


def pairs_in(path: Path) -> Iterator[tuple[bool, int, int]]:
    """Yield of each kernel whether it was out of the cache, and its picoseconds by one look and in turns."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        mark = f"|node in {TURNS} turns "
        for key, *values in db.execute(BOTH, (mark,)):
            look, settled = (json.loads(value)["ps"] for value in values)
            if look and settled:
                yield key.partition(mark)[2].startswith(COLD), look, settled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("caches", nargs="*", type=Path, default=[default_path()])
    pairs = defaultdict[bool, list[tuple[int, int]]](list)
    for cache in parser.parse_args().caches:
        for cold, *pair in pairs_in(cache):
            pairs[cold].append((pair[0], pair[1]))
    table = Table("µs by one look", "in the cache", "kernels", "in turns / once", "difference, %", "learned, %")
    for cold, found in sorted(pairs.items()):
        learned = [Looks(found[:i] + found[i + 1 :]).expected(look) for i, (look, _) in enumerate(found)]
        for least, most in pairwise(LIMITS_US):
            rows = [(*pair, e) for pair, e in zip(found, learned, strict=True) if least <= pair[0] / 1e6 < most]
            if rows:
                ratio = median(settled / look for look, settled, _ in rows)
                once, after = (100 * median(abs(math.log(r[i] / r[1])) for r in rows) for i in (0, 2))
                cells = f"{ratio:.2f}", f"{once:.1f}", f"{after:.1f}"
                table.add_row(f"{least} to {most:g}", "no" if cold else "yes", str(len(rows)), *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
