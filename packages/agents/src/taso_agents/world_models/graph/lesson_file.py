"""What a graph world model has learned as bytes, to go into a checkpoint; nothing in them is executed when read."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taso_agents.world_models.graph.analogy import Matched
from taso_agents.world_models.graph.dream_patch import Patch
from taso_agents.world_models.graph.lessons import Lessons
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph
from taso_gym.errors import CheckpointError

FORMAT = 4
PROBE = (0, (1, -2), 2**40)
"""What surrounds a node is told by Python's hash of tuples of integers, which another Python may compute otherwise."""


def write_lessons(lessons: Lessons, learned: Mapping[str, int], start: SeenGraph | None) -> Tensor:
    """Return lessons, how often each episode was learned and the graph that episodes begin with as bytes."""
    kinds = lessons.kinds
    content = {
        "format": FORMAT,
        "hash": hash(PROBE),
        "learned": dict(learned),
        "nodes": kinds.nodes.rows().tolist(),
        "edges": kinds.edges.rows().tolist(),
        "known": kinds.learned,
        "patches": list(lessons.patches.rows()),
        "rewards": list(lessons.rewards.rows()),
        "holds": list(lessons.holds.rows()),
        "rewrites": list(lessons.rewrites.rows()),
        "places": [[label, [[r, sorted(p)] for r, p in of.items()]] for label, of in lessons.places.items()],
        "found": [[codes, list(cell.items())] for codes, cell in lessons.found.items()],
        "start": None if start is None else [part.tolist() for part in start],
    }
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    return torch.from_numpy(np.frombuffer(packed, np.uint8).copy())


def read_lessons(state: Tensor, kinds: Kinds) -> tuple[Lessons, Counter[str], SeenGraph | None]:
    """Return what `write_lessons` was given.

    Args:
        state: the bytes.
        kinds: empty ones of the right widths.

    Raises:
        CheckpointError: they are of another format, written by a Python that hashes otherwise, or damaged.
    """
    try:
        content = json.loads(zlib.decompress(state.numpy().tobytes()))
        form, found = content.get("format"), content["hash"]
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"expected the lessons of a graph world model: {error}") from error
    if form != FORMAT:
        raise CheckpointError(f"expected lessons of format {FORMAT}, found {form}: another version's")
    if found != hash(PROBE):
        raise CheckpointError(f"expected lessons of a Python that hashes {PROBE} as {hash(PROBE)}, found {found}")
    kinds.nodes.fill(np.array(content["nodes"], np.float32).reshape(-1, kinds.nodes.width))
    kinds.edges.fill(np.array(content["edges"], np.float32).reshape(-1, kinds.edges.width))
    lessons = Lessons(kinds)
    for group, keys, patch, count in content["patches"]:
        lessons.patches.learn(group, keys, Patch(*_frozen(patch)), count)
    for group, keys, reward, count in content["rewards"]:
        lessons.rewards.learn(group, keys, reward, count)
    for group, keys, held, count in content["holds"]:
        lessons.holds.learn(group, keys, held, count)
    for shape, matched, patch in content["rewrites"]:
        lessons.rewrites.learn(_frozen(shape), Matched(*_frozen(matched)), Patch(*_frozen(patch)))
    for label, of_rule in content["places"]:
        lessons.places[label] = {rule: set(_frozen(places)) for rule, places in of_rule}
    for codes, cell in content["found"]:
        lessons.found[tuple(codes)] = {_frozen(outcome): count for outcome, count in cell}
    lessons.settle()
    nodes, edges = content["known"]
    kinds.learned = nodes, edges  # not those that were only looked at, which `settle` can't tell
    start = content["start"]
    return lessons, Counter(content["learned"]), None if start is None else SeenGraph.of(*start)


def _frozen(value: Any) -> Any:
    """Return lists as tuples, all the way down."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
