"""The environments' ids; importing the package enters them into Gymnasium's registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym

from taso_gym.graph import Graph
from taso_gym.models import NETWORKS
from taso_gym.models.splits import SPLITS, names

ENTRY_POINT = "taso_gym.env:TasoGraphEnv"
VECTOR_ENTRY_POINT = "taso_gym.vector:TasoGraphVectorEnv"

V0: dict[str, Any] = {
    "rules": "default",
    "cost": "roofline",
    "reward": "runtime",
    "max_steps": 300,
    "max_locations": 200,
    "max_matches": 1024,
    "invalid_penalty": -1.0,
    "numerics": "reassociate",
}
"""What version 0 of an id stands for; another value is a deliberate choice of who calls `gymnasium.make`."""


MEASURED: dict[str, Any] = {**V0, "cost": "recorded:epyc-zen4-1t"}
"""The same with costs that were measured, and are the same everywhere.

These aren't called version 1: Gymnasium would then warn at every version 0 that it is out of date, which it isn't.
"""

RECORDED = ("BERT", "InceptionV3", "ResNet18", "ResNet50", "SqueezeNet1.1")
"""Networks that the table of measured costs was recorded for."""


def env_id(network: str) -> str:
    """Return the id of a network's environment: ``TasoGraph-BERT-v0``."""
    return f"TasoGraph-{network}-v0"


def recorded_ids() -> dict[str, dict[str, Any]]:
    """Return an id for each network with recorded costs: ``TasoGraphRecorded-BERT-v0``."""
    return {f"TasoGraphRecorded-{name}-v0": {**MEASURED, "model": name} for name in RECORDED}


GENERATED = 24, {"max_nodes": 96, "max_edges": 160}
"""Graphs of an id of generated graphs, and their common sizes: a policy that is trained on one plays the others."""


def generated_ids() -> dict[str, dict[str, Any]]:
    """Return an id for each split of the generated graphs: ``TasoGraph-GeneratedHeldOut-v0``."""
    count, sizes = GENERATED
    ids = {env_id("Generated" + split.title().replace("-", "")): split for split in SPLITS}
    return {name: {**V0, **sizes, "models": names(split, count)} for name, split in ids.items()}


def register_all() -> None:
    """Register an id for each built-in network and split, and ``TasoGraph-v0`` for a model of one's own."""
    registry: Any = gym
    ids = {env_id(name): {**V0, "model": name} for name in NETWORKS}
    for name, arguments in {**ids, **recorded_ids(), **generated_ids(), "TasoGraph-v0": V0}.items():
        if name not in gym.registry:
            registry.register(name, ENTRY_POINT, vector_entry_point=VECTOR_ENTRY_POINT, kwargs=dict(arguments))


def make(model: str | Path | Graph, **arguments: Any) -> gym.Env[Any, Any]:
    """Make the environment of a built-in network, of an ONNX file or of a graph, by `gymnasium.make`.

    Args:
        model: name of a network (``BERT``), path of a file, or graph.
        arguments: of `taso_gym.env.TasoGraphEnv`, besides those of an id.

    Raises:
        OptionError: neither network nor file, or an argument outside its choices.
    """
    from taso_gym.arguments import check_kinds

    check_kinds(model=model)
    name = env_id(str(model)) if not isinstance(model, Graph) and str(model) in NETWORKS else "TasoGraph-v0"
    return gym.make(name, model=model, **arguments)
