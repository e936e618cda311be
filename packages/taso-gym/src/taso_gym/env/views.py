"""Views of a state by name that are computed only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taso_gym import onnx_io
from taso_gym.env.episode import Episode
from taso_gym.errors import OptionError
from taso_gym.render import graph_text

VIEWS: dict[str, Callable[[Episode], Any]] = {
    "cost_changes": lambda episode: episode.observer.cost_changes(),
    "onnx": lambda episode: onnx_io.to_model(episode.state.graph).SerializeToString(),
    "text": lambda episode: graph_text(episode.state.graph),
}
"""Name -> view: predicted cost change of each candidate, the ONNX file as bytes, the graph as text."""


def view(episode: Episode, name: str) -> Any:
    """Return a view of the present state.

    Raises:
        OptionError: no such view.
    """
    if name not in tuple(VIEWS):
        raise OptionError(f"expected a view among {', '.join(VIEWS)}, found {name!r}")
    return VIEWS[name](episode)
