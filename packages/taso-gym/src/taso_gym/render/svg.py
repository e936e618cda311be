"""A state as an SVG image: the whole graph, readable at any size."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.sax.saxutils import escape

from taso_gym.render.placement import Point
from taso_gym.render.scene import MARK, Box, Scene, Wire

COLUMN, LAYER = 150, 56
WIDTH, HEIGHT = 130, 32
MARGIN, TITLE = 90, 40
LONGEST = 200
"""Characters of the title."""

NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 doesn't have (section 2.2)."""


def to_svg(scene: Scene) -> str:
    """Return the text of an SVG image; operators of the last rewrite and their wires are red."""
    columns = list(scene.placement.columns.values()) or [0.0]
    left = min(columns)
    width = int((max(columns) - left) * COLUMN + 2 * MARGIN)
    height = int(max(scene.placement.layers.values(), default=0) * LAYER + 2 * MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        '<g font-family="sans-serif" text-anchor="middle">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="24" font-size="15" text-anchor="start">{escape(short(scene.title, LONGEST))}</text>',
        *(_wire(wire, left) for wire in sorted(scene.wires, key=lambda w: w.marked)),
        *(_box(box, left) for box in scene.boxes),
        "</g></svg>",
    ]
    return "\n".join(lines)


def _at(point: Point, left: float) -> Point:
    return (point[0] - left) * COLUMN + MARGIN, point[1] * LAYER + MARGIN / 2 + TITLE


def _wire(wire: Wire, left: float) -> str:
    points = [_at(p, left) for p in wire.points]
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    stroke = f'stroke="{MARK}" stroke-width="2"' if wire.marked else 'stroke="#999"'
    return f'<path d="{path}" fill="none" {stroke}/>'


def _box(box: Box, left: float) -> str:
    x, y = _at(box.at, left)
    stroke = f'stroke="{MARK}" stroke-width="3"' if box.marked else 'stroke="#555"'
    place = f'x="{x - WIDTH / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{WIDTH}" height="{HEIGHT}"'
    return (
        f'<g><rect {place} rx="5" fill="{box.fill}" {stroke}/>'
        f'<text x="{x:.1f}" y="{y - 2:.1f}" font-size="12">{escape(short(box.label, 19))}</text>'
        f'<text x="{x:.1f}" y="{y + 11:.1f}" font-size="9" fill="#555">{escape(short(box.detail, 26))}</text></g>'
    )


def short(text: str, length: int) -> str:
    """Return a text cut to a length; what isn't a character of XML is shown as unknown."""
    text = NO_XML.sub("\ufffd", text)
    return text if len(text) <= length else text[: length - 1] + "…"
