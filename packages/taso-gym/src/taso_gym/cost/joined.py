"""Kernels that run out of the cache one after the other in one session, timed by its profile.

At several threads those of a session go on for some 40 ms after a run, on cores that another session would need. So
kernels share one there, and the cache is emptied once for a run of all of them: for each by itself that takes most of a
search that begins with no times.

Each runs twice, once right after the other, with weights of its own: the first run brings back code and inputs, which
its neighbours do within a network, and the second counts (`taso_gym.cost.eviction`).
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto

from taso_gym.cost.beside import Fed, Model, Serialised
from taso_gym.cost.packages import temporary_folder
from taso_gym.cost.sessions import Sessions
from taso_gym.errors import KernelError

FEWEST, MOST, ENOUGH_S = 4, 16, 0.25
"""Runs that count: all that begin within these seconds, between these bounds."""
LARGE = 1 << 23
"""A kernel that reads so many numbers runs once: its code is a small part of them."""
EVENT = "_kernel_time"
"""What the profile adds to the name of a node."""
AROUND_US = 1.0
"""Microseconds of a kernel in onnxruntime's profile that are the executor's."""


def kernel_events(session: Any) -> list[dict[str, Any]]:
    """End a session's profile, and return what it says of each kernel that ran, in order; ``name`` is the node's.

    Raises:
        JSONDecodeError: it is cut off, as there was no room.
    """
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    of_nodes = (event for event in events if event.get("cat") == "Node" and event["name"].endswith(EVENT))
    return [{**event, "name": event["name"].removesuffix(EVENT)} for event in of_nodes]


def times_out_of_cache(sessions: Sessions, models: Sequence[Fed], evict: Callable[[], None]) -> list[int]:
    """Return the least picoseconds of the wall time of each model's node, with nothing in the cache before.

    Args:
        sessions: what they run on.
        models: each of one node, with its inputs, placed.
        evict: empties the cache.

    Raises:
        CostError: one can't be loaded or run, or there is no room for temporary files.
    """
    alike, found = defaultdict[bytes, list[int]](list), [0] * len(models)
    for place, (model, _) in enumerate(models):
        alike[_empty(_parsed(model)).SerializeToString()].append(place)
    for places in alike.values():
        joint = joined(sessions, [models[place] for place in places])
        for place, time_us in zip(places, _least_us(sessions, joint, evict), strict=True):
            found[place] = max(round((time_us - AROUND_US) * 1e6), 0)
    return found


def joined(sessions: Sessions, models: Sequence[Fed]) -> Fed:
    """Return a model of the nodes of models of the same opsets, in which each is twice, but for those that read much.

    The nodes of the first model are called "0 0" and "0 1", and so on.
    """
    whole, weights, feeds = _empty(_parsed(models[0][0])), dict[str, Any](), dict[str, Any]()
    for place, (model, given) in enumerate(models):
        proto, beside = _parsed(model), model.weights if isinstance(model, Serialised) else dict[str, Any]()
        for entry in proto.graph.input:
            feeds[f"{place} {entry.name}"] = given[entry.name]
            _add(whole.graph.input, entry, f"{place} {entry.name}")
        read = sum(math.prod(value.shape()) for value in (*beside.values(), *given.values()))
        for copy in range(1 if read >= LARGE else 2):
            _add_node(whole, proto, place, copy)
            own = {f"{place} {copy} {name}": value for name, value in beside.items()}
            weights |= {name: sessions.place_weight(w.numpy()) for name, w in own.items()} if copy else own
    return Serialised(whole.SerializeToString(), weights), feeds


def _add_node(whole: ModelProto, proto: ModelProto, place: int, copy: int) -> None:
    """Add the node of a model, with its initializers and outputs, which nodes that run later can't have."""
    graph, [node], prefix = whole.graph, proto.graph.node, f"{place} {copy} "
    constants = {w.name for w in proto.graph.initializer}
    added = _add(graph.node, node, f"{place} {copy}")
    added.input[:] = [name and (prefix if name in constants else f"{place} ") + name for name in node.input]
    added.output[:] = [name and prefix + name for name in node.output]
    for to, entries in ((graph.initializer, proto.graph.initializer), (graph.output, proto.graph.output)):
        for entry in entries:
            _add(to, entry, prefix + entry.name)


def _add(to: Any, entry: Any, name: str) -> Any:
    added = to.add()
    added.CopyFrom(entry)
    added.name = name
    return added


def _parsed(model: Model) -> ModelProto:
    content = model.content if isinstance(model, Serialised) else model
    assert isinstance(content, bytes)
    return ModelProto.FromString(content)


def _empty(proto: ModelProto) -> ModelProto:
    """Return a model of no node in the opsets of another."""
    found = ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    found.graph.name = "kernels"
    return found


def _least_us(sessions: Sessions, joint: Fed, evict: Callable[[], None]) -> list[int]:
    """Return the least microseconds of each kernel of what `joined` returns, of its later run."""
    model, feeds = joint
    with temporary_folder(json.JSONDecodeError) as folder:
        session = sessions.open(model, optimise=False, profile=folder / "profile")
        run, runs = sessions.bind(session, feeds), 0
        run()
        began = time.monotonic()
        while runs < FEWEST or (runs < MOST and time.monotonic() < began + ENOUGH_S):
            evict()
            run()
            runs += 1
        taken = defaultdict[str, list[int]](list)
        for event in kernel_events(session):
            taken[event["name"]].append(event["dur"])
    if taken.keys() != {node.name for node in _parsed(model).graph.node}:
        raise KernelError(f"expected kernels that run as they are, found {', '.join(taken)}")
    later = {int(name.split()[0]): min(times[1:]) for name, times in taken.items()}
    return [least for _, least in sorted(later.items())]
