"""Records a table of costs of the built-in networks, as those in packages/taso-gym/src/taso_gym/cost/tables are.

    python benchmarks/record.py TABLE.json.gz [network ...] [--provider cuda] [--walks 10] [--seconds 600]

For each network: its regions, those of all graphs that are one rewrite away, and the same around the ends of random
walks. The table is written after every part. What was measured is in the user's cache, so that a recording goes on
where it was ended.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from taso_gym import models
from taso_gym.console import console, run_app
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import TOGETHER, merged, record
from taso_gym.cost.region import Region
from taso_gym.cost.variants import neighbourhood
from taso_gym.rules.ruleset import RuleSet

NETWORKS = ("BERT", "InceptionV3", "ResNet18", "ResNet50", "SqueezeNet1.1")
LONGEST = 20

Part = tuple[OnnxRuntimeCost, list[Region], str]


def parts(name: str, provider: str, walks: int, cache: Path | None) -> list[Part]:
    """Return the regions of a network and its neighbours in parts, with what measures them and where they are from."""
    graph = models.build(name)
    model = OnnxRuntimeCost(provider, start=graph, cache=cache)
    regions = neighbourhood(graph, RuleSet.load("default"), model, walks, LONGEST)
    cut = (regions[first : first + TOGETHER] for first in range(0, len(regions), TOGETHER))
    return [(model, part, f"{walks} walks from {name}") for part in cut]


def in_turns(networks: Sequence[Sequence[Part]]) -> Iterator[Part]:
    """Yield a part of each network, then the next of each: what there is time for is of all of them."""
    return filter(None, chain.from_iterable(zip_longest(*networks)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="the table to write")
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="network", help="names of built-in networks")
    parser.add_argument("--provider", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--walks", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no part begins later")
    parser.add_argument("--cache", type=Path, help="file of the measurements; default: the user's")
    asked = parser.parse_args()
    began = time.monotonic()
    found = [parts(name, asked.provider, asked.walks, asked.cache) for name in asked.networks]
    tables, in_all = [], sum(map(len, found))
    for model, regions, origin in in_turns(found):
        if time.monotonic() > began + asked.seconds:
            break
        tables.append(record(regions, model, origin=origin))
        table = merged(tables)
        table.save(asked.table)
        took = time.monotonic() - began
        console.print(f"{len(tables)} of {in_all} parts, {len(table.costs)} regions, {took:.0f} s: {origin}")


if __name__ == "__main__":
    run_app(main)
