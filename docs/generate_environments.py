"""Write docs/environments.md and a page for each registered id in docs/environments/, from the class's docstring.

python docs/generate_environments.py
"""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

import taso_gym
from taso_gym.atomic import write_text
from taso_gym.env import TasoGraphEnv
from taso_gym.models import parameters
from taso_gym.observation import EDGE_FEATURES, GLOBAL_FEATURES, NODE_FEATURES, size_bytes

gym.register_envs(taso_gym)
FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate_environments.py; change the docstring of TasoGraphEnv instead. -->\n"
OPEN = "TasoGraph-v0"
"""The id without a model of its own."""


def specs() -> list[EnvSpec]:
    """All ids of the package, the one without a model first."""
    found = [spec for name, spec in gym.registry.items() if name.startswith("TasoGraph")]
    return sorted(found, key=lambda spec: (spec.id != OPEN, spec.id.lower()))


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def sections() -> tuple[str, str]:
    """First sentence of the class's docstring, and its sections."""
    first, _, rest = inspect.getdoc(TasoGraphEnv).partition("\n\n")
    return first, rest


def graph_rows(spec: EnvSpec) -> list[tuple[Any, ...]]:
    """What each model of an id begins with: name, operators, edges, parameters, cost in ms, legal substitutions."""
    env: Any = gym.make(spec.id).unwrapped
    rows: list[tuple[Any, ...]] = []
    for start in env.starts:
        _, info = env.reset(options={"model": start.name})
        observation = env.observe()
        weights = f"{parameters(start.graph):,}"
        edges = int(observation["edge_mask"].sum())
        operators = sum(not node.sig.const for _, node in start.graph.operators())
        rows.append((start.name, operators, edges, weights, f"{info['cost_ms']:.4f}", info["candidates"]))
    return rows


def space_rows(spec: EnvSpec) -> list[tuple[Any, ...]]:
    """Key, shape and type of an id's observations."""
    space = gym.make(spec.id).observation_space
    return [(key, " × ".join(map(str, box.shape)), box.dtype) for key, box in space.spaces.items()]


def network_text(spec: EnvSpec) -> str:
    """What a built-in network is: the docstring of its function; empty for other models."""
    from taso_gym.models import NETWORKS

    model = spec.kwargs.get("model")
    if model not in NETWORKS:
        return ""
    module, name = NETWORKS[model].function.split(":")
    return (inspect.getdoc(getattr(import_module(module), name)) or "").partition("\n\nArgs:")[0] + "\n\n"


def facts(spec: EnvSpec) -> str:
    """What is particular to an id."""
    arguments = {key: value for key, value in spec.kwargs.items() if key not in ("model", "models")}
    fixed = table(("argument", "value"), sorted((key, f"`{value!r}`") for key, value in arguments.items()))
    if spec.id == OPEN:
        code = f'```python\nenv = gym.make("{OPEN}", model="model.onnx")\n```\n\n'
        return f"{code}Version 0 fixes these arguments:\n\n{fixed}"
    env: Any = gym.make(spec.id)
    size, actions = size_bytes(env.observation_space) / 1024, env.action_space
    graphs = graph_rows(spec)
    head = ("model", "operators", "edges", "parameters", "cost at the start in ms", "legal substitutions")
    return (
        f'{network_text(spec)}```python\nenv = gym.make("{spec.id}")\n```\n\n{table(head, graphs)}\n'
        f"Constants and what is computed from them count as neither operators nor edges. "
        f"The action space is `{actions}`; an observation takes {size:.0f} KiB:\n\n"
        f"{table(('key', 'shape', 'dtype'), space_rows(spec))}\n"
        f"Version {spec.version} fixes these arguments:\n\n{fixed}"
    )


def page(spec: EnvSpec) -> str:
    """The page of an id."""
    first, rest = sections()
    return f"{NOTE}# {spec.id}\n\n{first}\n\n## This environment\n\n{facts(spec)}\n{rest}\n"


def index() -> str:
    """The page that lists all ids."""
    rows: list[tuple[Any, ...]] = []
    for spec in specs():
        link = f"[{spec.id}](environments/{spec.id}.md)"
        if spec.id == OPEN:
            rows.append((link, "any ONNX file", "", "", "", ""))
            continue
        graphs = graph_rows(spec)
        if len(graphs) == 1:
            rows.append((link, *graphs[0]))
        else:
            rows.append(
                (
                    link,
                    f"{len(graphs)} generated graphs",
                    *(span([row[i] for row in graphs]) for i in (1, 2)),
                    "",
                    "",
                    "",
                )
            )
    head = ("id", "model", "operators", "edges", "parameters", "cost at the start in ms", "legal substitutions")
    return (
        f"{NOTE}# Environments\n\nEvery id is one game: make this network's graph cheaper by substitutions that keep "
        "its meaning. `import taso_gym` registers them.\n\n"
        f"{table(head, rows)}\n"
        "The generated graphs are small random networks made worse by substitutions applied backwards, so that a good "
        "solution is known: `taso_gym.models.generated.planted(name).optimum`. The splits have no graph in common, and "
        "the families of the held-out one are in no other; all have the same spaces, so a policy that is trained on "
        f"one plays the others.\n\n{columns()}"
    )


def columns() -> str:
    """What the columns of an observation's features mean; all begin at 0."""
    arrays = {"nodes": NODE_FEATURES, "edge_features": EDGE_FEATURES, "globals": GLOBAL_FEATURES}
    rows = [
        (f"`{key}`, {i}", feature.name, feature.meaning, f"{feature.high:g}")
        for key, features in arrays.items()
        for i, feature in enumerate(features)
    ]
    return f"## Features\n\n{table(('array, column', 'name', 'meaning', 'at most'), rows)}"


def span(values: list[int]) -> str:
    """Least and largest."""
    return f"{min(values)} … {max(values)}"


def main() -> None:
    """Write all pages."""
    folder = FOLDER / "environments"
    folder.mkdir(exist_ok=True)
    pages = {f"{spec.id}.md": page(spec) for spec in specs()}
    for old in {path.name for path in folder.glob("*.md")} - set(pages):
        (folder / old).unlink()
    for name, text in pages.items():
        write_text(folder / name, text)
    write_text(FOLDER / "environments.md", index())
    print(f"{len(pages)} pages in {folder.name}/ and environments.md")


if __name__ == "__main__":
    main()
