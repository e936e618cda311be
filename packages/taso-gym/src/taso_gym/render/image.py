"""A state as an array of pixels: an overview at the left, the surroundings of the last rewrite at the right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taso_gym.errors import MissingPackageError
from taso_gym.render.placement import Point
from taso_gym.render.scene import MARK, Box, Scene
from taso_gym.render.svg import LONGEST, short

WIDTH, HEIGHT, DPI = 1280, 960, 100
LAYERS, COLUMNS = 14, 7
"""Size of the surroundings that are shown."""


def to_rgb(scene: Scene) -> NDArray[np.uint8]:
    """Return an image (960, 1280, 3), of the same size whatever the graph.

    Raises:
        MissingPackageError: without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingPackageError("render_mode 'rgb_array' needs matplotlib: pip install matplotlib") from error
    figure: Any = Figure((WIDTH / DPI, HEIGHT / DPI), DPI)
    canvas = FigureCanvasAgg(figure)
    figure.text(0.015, 0.965, short(scene.title, LONGEST), fontsize=13, parse_math=False)
    centre = _centre(scene)
    _overview(figure.add_axes((0.01, 0.02, 0.2, 0.92)), scene, centre)
    _surroundings(figure.add_axes((0.22, 0.02, 0.77, 0.92)), scene, centre)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _centre(scene: Scene) -> Point:
    """Middle of the marked operators; the top of the graph if there are none."""
    marked = [box.at for box in scene.boxes if box.marked]
    if not marked:
        first = scene.boxes[0].at if scene.boxes else (0.0, 0.0)
        return first[0], LAYERS / 2 - 1
    return sum(x for x, _ in marked) / len(marked), sum(y for _, y in marked) / len(marked)


def _wires(axes: Any, scene: Scene, width: float) -> None:
    from matplotlib.collections import LineCollection

    colours = [MARK if wire.marked else "#999999" for wire in scene.wires]
    axes.add_collection(LineCollection([w.points for w in scene.wires], colors=colours, linewidths=width, zorder=1))


def _overview(axes: Any, scene: Scene, centre: Point) -> None:
    from matplotlib.patches import Rectangle

    _wires(axes, scene, 0.5)
    for marked, size in ((False, 6), (True, 30)):
        boxes = [box for box in scene.boxes if box.marked is marked]
        fills = [MARK if marked else "#3b6fa0" for _ in boxes]
        axes.scatter([b.at[0] for b in boxes], [b.at[1] for b in boxes], s=size, c=fills, zorder=2, linewidths=0)
    frame = (centre[0] - COLUMNS / 2, centre[1] - LAYERS / 2)
    axes.add_patch(Rectangle(frame, COLUMNS, LAYERS, fill=False, edgecolor=MARK, linewidth=0.8))
    axes.autoscale_view()
    axes.invert_yaxis()
    axes.axis("off")


def _surroundings(axes: Any, scene: Scene, centre: Point) -> None:
    _wires(axes, scene, 1.2)
    axes.set_xlim(centre[0] - COLUMNS / 2, centre[0] + COLUMNS / 2)
    axes.set_ylim(centre[1] + LAYERS / 2, centre[1] - LAYERS / 2)
    for box in scene.boxes:
        if abs(box.at[0] - centre[0]) < COLUMNS / 2 and abs(box.at[1] - centre[1]) < LAYERS / 2:
            _draw_box(axes, box)
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_box(axes: Any, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = box.at
    edge, line = (MARK, 2.5) if box.marked else ("#555555", 0.8)
    style: dict[str, Any] = {"boxstyle": "round,pad=0.02", "facecolor": box.fill, "edgecolor": edge, "linewidth": line}
    axes.add_patch(FancyBboxPatch((x - 0.42, y - 0.3), 0.84, 0.6, zorder=3, **style))
    text: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "clip_on": True, "parse_math": False}
    axes.text(x, y - 0.06, short(box.label, 20), fontsize=8, **text)
    axes.text(x, y + 0.2, short(box.detail, 25), fontsize=6, color="#555555", **text)
