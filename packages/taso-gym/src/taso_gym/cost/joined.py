"""Kernels that run out of the cache one after the other in one session, timed by its profile.

At several threads those of a session go on for some 40 ms after a run, on cores that another session would need. So
kernels share one there, and the cache is emptied once for a run of all of them: for each by itself that takes most of a
search that begins with no times.

Each runs twice, once right after the other, with weights of its own: the first run brings back code and inputs, which
its neighbours do within a network, and the second counts (`taso_gym.cost.eviction`). Weights that are drawn alike are
told apart: onnxruntime packs those of a session that say the same only once, and one run would bring back another's.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import EncodeError
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from taso_gym.cost.beside import Fed, Serialised, parsed
from taso_gym.cost.copies import identity
from taso_gym.cost.node_keys import SMALL
from taso_gym.cost.packages import failure, temporary_folder
from taso_gym.cost.sessions import Sessions, kernel_events
from taso_gym.errors import KernelError
from taso_gym.tensor import dtype_name

RUNS = {2: 1.0, 4: 0.25, 16: 0.0}
"""So many runs are enough that took so many seconds: what disturbs long ones lasts as long as all of them."""
LARGE = 1 << 23
"""A kernel that reads so many numbers runs once: its code is a small part of them."""
COMPARED, TOLD_APART = 64, frozenset({"float", "double", "float16"})
"""Weights that begin with the same so many numbers are taken for the same, if they are of these types."""
NOTHING = "nothing"
"""Name of a node that does nothing."""
COUNTED = re.compile(rf"(\d+|{NOTHING}) [01]")
"""Names of the nodes that `joined` makes: others are of functions that onnxruntime has put in their place."""

Kernel = tuple[ModelProto, Mapping[str, Any], Mapping[str, Any]]
"""A model of one node, the large weights beside it, and its inputs, placed."""


def times_out_of_cache(sessions: Sessions, models: Sequence[Fed], evict: Callable[[], None]) -> list[int]:
    """Return the least picoseconds of the wall time of each model's node, with nothing in the cache before.

    By what it takes more in the profile than a node that does nothing in the same runs: all that the profile adds.

    Args:
        sessions: what they run on.
        models: each of one node, with its inputs, placed.
        evict: empties the cache.

    Raises:
        CostError: one can't be loaded or run, or there is no room for temporary files.
    """
    alike, found = defaultdict[bytes, list[int]](list), [0] * len(models)
    kernels = [(*parsed(model), feeds) for model, feeds in models]
    for place, (proto, _, _) in enumerate(kernels):
        alike[_empty(proto).SerializeToString()].append(place)
    for places in alike.values():
        taken = _least_us(sessions, joined(sessions, [kernels[place] for place in places]), evict)
        if missing := {str(i) for i in range(len(places))} - taken.keys():
            raise KernelError(f"expected kernels that run as they are, found others in place of {len(missing)}")
        for i, place in enumerate(places):
            found[place] = max(taken[str(i)] - taken[NOTHING], 0) * 10**6
    return found


def joined(sessions: Sessions, kernels: Sequence[Kernel]) -> Fed:
    """Return a model of kernels of the same opsets, each twice, but for those that read much.

    Nodes of the first model are called "0 0" and "0 1", and so on. One more does nothing.
    """
    whole, weights, feeds = _empty(kernels[0][0]), dict[str, Any](), dict[str, Any]()
    nothing = *parsed(identity(TensorProto.FLOAT, [1])), {"x": sessions.place(np.ones(1, np.float32))}
    names = [*map(str, range(len(kernels))), NOTHING]
    for place, (proto, beside, given) in zip(names, [*kernels, nothing], strict=True):
        for entry in proto.graph.input:
            feeds[f"{place} in {entry.name}"] = given[entry.name]
            _add(whole.graph.input, entry, f"{place} in {entry.name}")
        constants = sum(math.prod(w.dims) for w in proto.graph.initializer)
        read = constants + sum(math.prod(value.shape()) for value in given.values())
        for copy in range(1 if read >= LARGE else 2):
            _add_node(whole, proto, place, copy)
            weights |= {f"{place} {copy} {name}": w for name, w in beside.items()}
    _tell_apart(whole, weights, sessions)
    try:
        return Serialised(whole.SerializeToString(), weights), feeds
    except (ValueError, EncodeError) as error:  # over 2 GB
        raise failure("kernels whose constants fit into a model", error) from error


def _add_node(whole: ModelProto, proto: ModelProto, place: str, copy: int) -> None:
    """Add the node of a model, with its initializers and outputs, whose memory nodes that run later can't have then."""
    graph, [node], prefix = whole.graph, proto.graph.node, f"{place} {copy} "
    constants = {w.name for w in proto.graph.initializer}
    added = _add(graph.node, node, f"{place} {copy}")
    added.input[:] = [name and (prefix if name in constants else f"{place} in ") + name for name in node.input]
    added.output[:] = [name and prefix + name for name in node.output]
    for to, entries in ((graph.initializer, proto.graph.initializer), (graph.output, proto.graph.output)):
        for entry in entries:
            _add(to, entry, prefix + entry.name)


def _tell_apart(whole: ModelProto, weights: dict[str, Any], sessions: Sessions) -> None:
    """Turn the numbers of each weight round by as many places as weights before it begin with the same ones."""
    met = Counter[tuple[bytes, tuple[int, ...]]]()
    for w in whole.graph.initializer:
        if math.prod(w.dims) <= SMALL or dtype_name(w.data_type) not in TOLD_APART:
            continue
        beside = w.name in weights
        value: NDArray[Any] = weights[w.name].numpy() if beside else numpy_helper.to_array(w)
        begins = value.reshape(-1)[:COMPARED].tobytes(), value.shape
        if (places := met[begins]) and beside:
            weights[w.name] = sessions.place_weight(np.roll(value, places))
        elif places:
            w.CopyFrom(numpy_helper.from_array(np.roll(value, places), w.name))
        met[begins] += 1


def _add(to: Any, entry: Any, name: str) -> Any:
    added = to.add()
    added.CopyFrom(entry)
    added.name = name
    return added


def _empty(proto: ModelProto) -> ModelProto:
    """Return a model of no node in the opsets of another."""
    found = ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    found.graph.name = "kernels"
    return found


def _least_us(sessions: Sessions, joint: Fed, evict: Callable[[], None]) -> dict[str, int]:
    """Return the least microseconds in the profile of each kernel of what `joined` returns, of its later run."""
    model, feeds = joint
    with temporary_folder(json.JSONDecodeError) as folder:
        session = sessions.open(model, optimise=False, profile=folder / "profile")
        run, runs = sessions.bind(session, feeds), 0
        run()
        began = time.monotonic()
        while not any(runs >= enough and time.monotonic() >= began + seconds for enough, seconds in RUNS.items()):
            evict()
            run()
            runs += 1
        taken = defaultdict[str, list[int]](list)
        for event in kernel_events(session):
            if COUNTED.fullmatch(event["name"]):
                taken[event["name"]].append(event["dur"])
    return {name.rpartition(" ")[0]: min(times[1:]) for name, times in taken.items()}  # the last that ran counts
