"""How much of what kernels read and write is out of the cache where they run: within their model.

A kernel that is measured alone has its operands in the cache, or out of it. Within a model that depends on what ran
since they were made: a sum of what two large products have made finds neither in the cache, a Relu behind a
convolution finds all of it. By onnxruntime's profile of a transformer its sums, products' parts that are cut and put
together and the like take as long as out of the cache; of a DenseNet, whose weights are a tenth, hardly longer than in
it (`benchmarks/in_place.py`). So the file itself is run, and later what a search found, and its kernels without weights
say which share it is.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from taso_gym import onnx_io
from taso_gym.cost.node_keys import operands_of, operator_of, shapes_of
from taso_gym.cost.packages import temporary_folder
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.sessions import kernel_events
from taso_gym.errors import OutOfMemoryError
from taso_gym.graph import Graph

WARM, RUNS, SECONDS = 1, 20, 2.0
"""Runs that don't count, runs that do at most, and the time after which no further one begins, but for the first that
counts: of a batch one takes seconds."""
AROUND_US = 1.0
"""Microseconds of a kernel in onnxruntime's profile that are the executor's."""
USUAL, PRIOR = 0.5, 0.005
"""Share that is expected, and how much it counts: as much as kernels would in which such a part of all time differs."""
SHARES = [i / 20 for i in range(21)]
"""Shares that are told apart."""
SLOWER, SLOWER_BY = 2.0, 0.03
"""Kernels are far slower in a model that take so many times what they cost, if that is such a part of all its time."""
LIGHT, DIFFERS = 0.05, 0.1
"""Part of what a kernel reads that constants may be for it to count, and part by which its time has to be longer."""


def kernel_times(graph: Graph, feeds: Mapping[str, NDArray[Any]], runtime: Runtime) -> dict[str, tuple[int, float]]:
    """Return (how many, picoseconds of all of them in a run) for each `kind` of kernels that is executed for a graph.

    A kernel's time is the first quartile of its times in some runs.

    Raises:
        CostError: onnxruntime doesn't take or run the graph.
        OutOfMemoryError: there is no room for temporary files.
    """
    with temporary_folder(json.JSONDecodeError, kind=OutOfMemoryError) as folder:
        onnx_io.save(graph, folder / "model.onnx")
        session = runtime.open(str(folder / "model.onnx"), optimise=True, profile=folder / "profile")
        run = runtime.bind(session, {name: runtime.place(value) for name, value in feeds.items()})
        began, runs = time.monotonic(), 0
        while runs < WARM + 1 or (runs < WARM + RUNS and time.monotonic() < began + SECONDS):
            run()
            runs += 1
        return _by_kind(kernel_events(session), runs)


def _by_kind(events: list[dict[str, Any]], runs: int) -> dict[str, tuple[int, float]]:
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        arguments = event["args"]
        shapes = [shape for typed in arguments["input_type_shape"] for shape in typed.values()]
        node = arguments.get("node_index", event["name"])
        times[kind(arguments["op_name"], shapes), node].append(event["dur"])
    found: dict[str, tuple[int, float]] = {}
    for (name, _), taken in times.items():
        if len(taken) == runs:
            count, before = found.get(name, (0, 0.0))
            one_us = sorted(taken[WARM:])[(runs - WARM) // 4]
            found[name] = count + 1, before + max(one_us - AROUND_US, 0.0) * 1e6
    return found


def share_outside(
    executed: Mapping[str, int], time_of: Callable[[str, float], int], in_place: Mapping[str, tuple[int, float]]
) -> float:
    """Return by which share of values out of the cache the kernels of a model take as long as in place, of `SHARES`.

    By the kernels without weights that take longer out of the cache, as far as they have a part in the time.

    Args:
        executed: keys of the kernels that the model is predicted to execute, and how often.
        time_of: returns the picoseconds of one by a share; these needn't be linear in it, and aren't of small values.
        in_place: what `kernel_times` found of the model.
    """
    light = {key: count for key, count in executed.items() if operands_of(key)[0] <= LIGHT}
    found_ps, counted = 0.0, dict[str, int]()
    for _, kernels, time_ps in _as_predicted(light, in_place):
        least, most = (_sum_of(kernels, time_of, share) for share in (0.0, 1.0))
        if most - least > DIFFERS * least:
            found_ps += time_ps
            counted |= kernels
    prior = PRIOR * _sum_of(executed, time_of, 0.0)

    def excess(share: float) -> float:
        return _sum_of(counted, time_of, share) - found_ps + prior * (share - USUAL)

    return min(SHARES, key=lambda share: (abs(excess(share)), abs(share - USUAL)))


def slower_in_place(
    executed: Mapping[str, int], time_of: Callable[[str, float], int], in_place: Mapping[str, tuple[int, float]]
) -> dict[str, tuple[float, float]]:
    """Return (picoseconds in their model, alone) of operators whose kernels take far longer there than costs say.

    Their values do that, such as floats below 1.2e-38: those that kernels are measured with alone are of usual size.

    Args:
        executed: as for `share_outside`.
        time_of: as well.
        in_place: as well.
    """
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, kernels, time_ps in _as_predicted(executed, in_place):
        found[name.partition(" ")[0]].append((time_ps, _sum_of(kernels, time_of, 1.0)))
    least = SLOWER_BY * sum(time_ps for _, time_ps in in_place.values())
    sums = {operator: (sum(a for a, _ in times), float(sum(b for _, b in times))) for operator, times in found.items()}
    return {operator: (a, b) for operator, (a, b) in sums.items() if a > SLOWER * b and a - b > least}


def _as_predicted(
    executed: Mapping[str, int], in_place: Mapping[str, tuple[int, float]]
) -> Iterator[tuple[str, dict[str, int], float]]:
    """Yield kinds of kernels of which all that are predicted ran, these by key, and the picoseconds of all of them."""
    groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for key, count in executed.items():
        groups[kind(operator_of(key), [shape for _, shape in shapes_of(key)])][key] = count
    for name, kernels in groups.items():
        number, time_ps = in_place.get(name, (0, 0.0))
        if number == sum(kernels.values()):
            yield name, kernels, time_ps


def _sum_of(kernels: Mapping[str, int], time_of: Callable[[str, float], int], share: float) -> int:
    return sum(count * time_of(key, share) for key, count in kernels.items())


def kind(operator: str, shapes: list[list[int]]) -> str:
    """Return a name for kernels of an operator, without its domain, whose inputs have these shapes."""
    return f"{operator} {shapes}"
