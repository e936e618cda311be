"""What a graph world model has learned as bytes, to go into a checkpoint; nothing in them is executed when read."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taso_agents.world_models.graph.dream_patch import Patch
from taso_agents.world_models.graph.lessons import Lessons
from taso_agents.world_models.graph.seen_graph import Kinds, SeenGraph
from taso_gym.errors import CheckpointError

PROBE = (0, (1, -2), 2**40)
"""What surrounds a node is told by Python's hash of tuples of integers, which another Python may compute otherwise."""


def write_lessons(lessons: Lessons, learned: int, start: SeenGraph | None) -> Tensor:
    """Return lessons, the number of episodes that they are from and the graph that episodes begin with as bytes."""
    kinds = lessons.kinds
    content = {
        "hash": hash(PROBE),
        "learned": learned,
        "nodes": kinds.nodes.rows().tolist(),
        "edges": kinds.edges.rows().tolist(),
        "patches": list(lessons.patches.rows()),
        "rewards": list(lessons.rewards.rows()),
        "found": [[codes, list(cell.items())] for codes, cell in lessons.found.items()],
        "start": None if start is None else [part.tolist() for part in start],
    }
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    return torch.from_numpy(np.frombuffer(packed, np.uint8).copy())


def read_lessons(state: Tensor, kinds: Kinds) -> tuple[Lessons, int, SeenGraph | None]:
    """Return what `write_lessons` was given.

    Args:
        state: the bytes.
        kinds: empty ones of the right widths.

    Raises:
        CheckpointError: they were written by a Python that hashes otherwise, or are damaged.
    """
    try:
        content = json.loads(zlib.decompress(state.numpy().tobytes()))
        found = content["hash"]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"expected the lessons of a graph world model: {error}") from error
    if found != hash(PROBE):
        raise CheckpointError(f"expected lessons of a Python that hashes {PROBE} as {hash(PROBE)}, found {found}")
    kinds.nodes.fill(np.array(content["nodes"], np.float32).reshape(-1, kinds.nodes.width))
    kinds.edges.fill(np.array(content["edges"], np.float32).reshape(-1, kinds.edges.width))
    lessons = Lessons(kinds)
    for group, keys, patch, count in content["patches"]:
        lessons.patches.learn(group, keys, Patch(*_frozen(patch)), count)
    for group, keys, reward, count in content["rewards"]:
        lessons.rewards.learn(group, keys, reward, count)
    for codes, cell in content["found"]:
        lessons.found[tuple(codes)] = {_frozen(outcome): count for outcome, count in cell}
    lessons.settle()
    start = content["start"]
    return lessons, content["learned"], None if start is None else SeenGraph.of(*start)


def _frozen(value: Any) -> Any:
    """Return lists as tuples, all the way down."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
