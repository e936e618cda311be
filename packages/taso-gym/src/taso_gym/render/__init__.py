"""Pictures of a state: the graph with the last rewrite marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taso_gym.render.image import to_rgb
from taso_gym.render.scene import Scene
from taso_gym.render.svg import to_svg
from taso_gym.render.text import graph_text, to_text

__all__ = ["RENDERERS", "Scene", "graph_text", "render", "to_rgb", "to_svg", "to_text"]

RENDERERS: dict[str, Callable[[Scene], Any]] = {"ansi": to_text, "svg": to_svg, "rgb_array": to_rgb}
"""Render mode -> function."""


def render(mode: str, scene: Scene) -> Any:
    """Return the picture of a scene: text, the text of an SVG image, or (height, width, 3) uint8."""
    return RENDERERS[mode](scene)
