"""Recorded costs: measured once, kept in a table, the same everywhere and without the hardware.

A table is a gzipped JSON object:

    {"format": 1,
     "device": "AMD EPYC …|CPUExecutionProvider|onnxruntime 1.31.1|1 threads",   what it was recorded on
     "origin": "…",                   whose operators these are
     "block": 16,                     channels in a block of the device's layout NCHWc (0: none)
     "view": 450000,                  picoseconds that running a node takes which moves nothing (0, as where it isn't
                                      there: views are free)
     "costs": {"0123456789abcdef": [1500000, 1, "Conv Relu"], …}}

with the time in picoseconds, the number of kernels and, for people, the operators of each region by the 64-bit hash
of its description (`taso_gym.cost.regional.describe`), sorted. The tables of the package are in ``cost/tables``.

A region that isn't in the table never pays: it costs more than the whole graph that a search begins with. Those of that
graph, where it has them, cost a bound, so that no more is gained by taking them away, and others in their place don't
pay either (`taso_gym.cost.regional.RegionalCost`).
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from taso_gym.atomic import write_bytes
from taso_gym.cost.devices import fastest
from taso_gym.cost.dims import Dims
from taso_gym.cost.layout import Layouts
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.packages import PROVIDERS
from taso_gym.cost.region import Region
from taso_gym.cost.regional import RegionalCost, describe
from taso_gym.cost.work import Work
from taso_gym.errors import CostError, OptionError
from taso_gym.graph import Graph
from taso_gym.signature import stable_hash

FORMAT = 1
SUFFIX = ".json.gz"
TABLES = Path(__file__).with_name("tables")
TOGETHER = 64
"""Regions that are measured in turns with each other: what they read is in memory as long."""


class Entry(NamedTuple):
    """A recorded region: time in picoseconds, number of kernels, and the names of its operators."""

    time_ps: int
    kernels: int
    operators: str


@dataclass(frozen=True)
class Table:
    """A table of recorded costs.

    Attributes:
        device: what it was recorded on.
        block: channels in a block of the device's layout; 0 where there is none.
        costs: hash of a region's description -> entry.
        origin: whose operators these are, for people.
        view_ps: picoseconds that running a node takes which moves nothing.
    """

    device: str
    block: int
    costs: Mapping[str, Entry]
    origin: str = ""
    view_ps: int = 0

    @property
    def provider(self) -> str:
        """Short name of the provider that it was recorded on."""
        return "cuda" if PROVIDERS["cuda"] in self.device else "cpu"

    @property
    def threads(self) -> int | None:
        """Threads that it was recorded with; None where it doesn't say."""
        found = re.search(r"\|([1-9]\d*) threads$", self.device)
        return int(found[1]) if found else None

    @cached_property
    def digest(self) -> str:
        """Hash of the numbers: another recording under the same name has another."""
        return f"{stable_hash(self.block, self.view_ps, repr(sorted(self.costs.items()))):016x}"

    def save(self, path: str | Path) -> None:
        """Write the table, whole or not at all; equal tables give equal files.

        Raises:
            OptionError: the folder doesn't exist or can't be written.
        """
        lines = [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in sorted(self.costs.items())]
        head = {
            "format": FORMAT,
            "device": self.device,
            "origin": self.origin,
            "block": self.block,
            "view": self.view_ps,
        }
        text = json.dumps(head)[:-1] + ', "costs": {\n' + ",\n".join(lines) + "\n}}\n"
        write_bytes(path, gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, path: Path) -> Table:
        """Read a table.

        Raises:
            CostError: there is none at ``path``, it is damaged, or of another format.
        """
        try:
            content = json.loads(gzip.decompress(path.read_bytes()))
        except FileNotFoundError:
            raise CostError(f"expected a table of costs, found nothing at {path}") from None
        except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
            raise CostError(f"expected a table of costs as gzipped JSON, found {path}: {error}") from error
        fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if (found := fields.get("format")) != FORMAT:
            raise CostError(f"expected a table of costs of format {FORMAT}, found {found!r} in {path}")
        try:
            rows = cast("dict[str, Sequence[Any]]", fields["costs"])
            costs = {key: _entry(*row) for key, row in rows.items()}
            view_ps = _not_negative(fields.get("view", 0))
            return cls(str(fields["device"]), int(fields["block"]), costs, str(fields.get("origin", "")), view_ps)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise CostError(f"expected device, block and costs in a table, found {path} without: {error!r}") from error


def _entry(time_ps: float, kernels: float, operators: str) -> Entry:
    """Return the entry of a row."""
    return Entry(_not_negative(time_ps), _not_negative(kernels), str(operators))


def _not_negative(number: float) -> int:
    """Return a time or number of a table; one below 0 is a ValueError."""
    if number < 0:
        raise ValueError(f"{number}, which is below 0")
    return int(number)


class RecordedCost(RegionalCost):
    """Costs from a table; deterministic, and needs no runtime."""

    def __init__(
        self,
        argument: str = "",
        dims: Mapping[str, int] | None = None,
        *,
        strict: bool = False,
        start: Graph | None = None,
    ) -> None:
        """Read a table.

        Args:
            argument: name of a table of the package, or a path that ends in ``.json.gz``.
            dims: values of dimension symbols.
            strict: raise an error for a region that isn't recorded.
            start: graph that a search begins with: what isn't recorded of it costs its bound, no more.

        Raises:
            OptionError: no such table in the package.
            CostError: a file that isn't there, or no table.
        """
        if not argument.endswith(SUFFIX) and argument not in (names := table_names()):
            choices = f"a table among {', '.join(names)}, or a path that ends in {SUFFIX}"
            raise OptionError(f"expected {choices}, found {argument!r}")
        super().__init__(f"recorded:{argument}", dims, start, strict=strict)
        self.table = Table.load(Path(argument) if argument.endswith(SUFFIX) else TABLES / f"{argument}{SUFFIX}")
        self.strict = strict
        self.bound_device = fastest(self.table.provider, self.table.threads or 1)
        self._layouts = Layouts(self.table.block)

    @property
    def key(self) -> str:
        """Table and what is in it, what it was recorded on, and bound dimensions."""
        return f"{self.name} {self.table.digest}|{self.table.device}[{self._dims.key}]"

    @property
    def layouts(self) -> Layouts:
        """The layouts of the device that it was recorded on."""
        return self._layouts

    @property
    def view_ps(self) -> int:
        """What was recorded."""
        return self.table.view_ps

    def region_time(self, region: Region, load: Work) -> tuple[int, int]:
        """Return what was recorded.

        Raises:
            CostError: nothing was, and the table is strict.
        """
        entry = self.table.costs.get(region_key(region, self._dims))
        if entry is not None:
            return entry.time_ps, entry.kernels
        if self.strict:
            raise CostError(f"expected a recorded cost in {self.name}, found none for {region.nodes[0].sig}")
        return self.unknown_time(region, load)

    def share_recorded(self, graph: Graph) -> float:
        """Return the part of a graph's regions that is in the table, from 0 to 1."""
        keys = list(self._keys(graph))
        return sum(key in self.table.costs for key in keys) / max(len(keys), 1)

    def _keys(self, graph: Graph) -> Iterable[str]:
        return (region_key(region, self._dims) for region in self.regions(graph))


def record(
    regions: Iterable[Region],
    model: OnnxRuntimeCost,
    progress: Callable[[int, int], None] | None = None,
    origin: str = "",
) -> Table:
    """Return a table of regions, each measured in turns by a model; those that fail are left out.

    Args:
        regions: what is recorded, such as `taso_gym.cost.variants.neighbourhood` returns.
        model: what measures; its symbols are bound as it says. What it has measured is in its cache, so that recording
            goes on where it was ended.
        progress: called with (regions measured, regions in all).
        origin: where the regions are from, for people.
    """
    dims = Dims(model.dims)
    distinct = list({region_key(region, dims): region for region in regions}.items())
    costs: dict[str, Entry] = {}
    for first in range(0, len(distinct), TOGETHER):
        part = distinct[first : first + TOGETHER]
        model = model.regions_in_turns({region: 1 for _, region in part})
        for key, region in part:
            if (nodes := model.executed_in(region)) is not None:
                names = " ".join(node.sig.op.key for node in region.nodes)
                costs[key] = Entry(model.time_of(nodes), len(nodes), names)
        if progress:
            progress(first + len(part), len(distinct))
    return Table(model.runtime.key, model.layouts.block, costs, origin, model.view_ps)


def merged(tables: Sequence[Table]) -> Table:
    """Return what tables of one device have, at least one of them; a region costs what the first that has it says.

    What a view takes is in each, and was measured again for it: the last knows it best.
    """
    costs = {key: entry for table in reversed(tables) for key, entry in table.costs.items()}
    origins = dict.fromkeys(table.origin for table in tables if table.origin)
    first = tables[0]
    return Table(first.device, first.block, costs, ", ".join(origins), tables[-1].view_ps)


def region_key(region: Region, dims: Dims) -> str:
    """Return the hash of a region's description."""
    return f"{stable_hash(describe(region, dims)):016x}"


def table_names() -> list[str]:
    """Return the names of the tables of the package."""
    return sorted(path.name.removesuffix(SUFFIX) for path in TABLES.glob(f"*{SUFFIX}"))
