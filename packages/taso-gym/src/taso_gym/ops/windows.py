"""Windows that slide over spatial axes: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as cartesian
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.modules import Array
from taso_gym.ops.operator import Attrs
from taso_gym.ops.shapes import expect
from taso_gym.symbolic import Dim, Shape, floor_div


def window_attrs(attrs: dict[str, Any], spatial: Shape, kernel: Sequence[Dim]) -> dict[str, Any]:
    """Normalise strides, dilations and pads; ``auto_pad`` becomes explicit pads and is left out."""
    rank = len(spatial)
    expect(len(kernel) == rank, f"a kernel of {rank} axes", tuple(kernel))
    expect(all(not isinstance(k, int) or k > 0 for k in kernel), "a kernel with elements", tuple(kernel))
    full = {k: tuple(attrs.get(k) or (1,) * rank) for k in ("strides", "dilations")}
    for name, values in full.items():
        expect(len(values) == rank and min(values, default=1) > 0, f"{rank} positive {name}", values)
    pads = tuple(attrs["pads"] or (0,) * (2 * rank))
    auto = attrs["auto_pad"]
    if auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = same_pads(spatial, kernel, full["strides"], full["dilations"], auto == "SAME_UPPER")
    else:
        expect(auto == "NOTSET", "auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto)
    expect(len(pads) == 2 * rank and min(pads, default=0) >= 0, f"{2 * rank} pads of at least 0", pads)
    return {k: v for k, v in attrs.items() if k != "auto_pad"} | full | {"pads": pads}


def same_pads(
    spatial: Shape, kernel: Sequence[Dim], strides: Sequence[int], dilations: Sequence[int], upper: bool
) -> tuple[int, ...]:
    """Return the pads with which out = ceil(in / stride); an odd one goes to the end if ``upper``."""
    begins: list[int] = []
    ends: list[int] = []
    for size, k, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        if not isinstance(k, int) or (stride != 1 and not isinstance(size, int)):
            raise TypeInferenceError(f"expected static sizes for auto_pad, found {size} with a kernel of {k}")
        reach = dilation * (k - 1) + 1
        total = reach - 1 if not isinstance(size, int) else max((-(-size // stride) - 1) * stride + reach - size, 0)
        begins.append(total // 2 if upper else total - total // 2)
        ends.append(total - begins[-1])
    return (*begins, *ends)


def window_counts(spatial: Shape, kernel: Sequence[Dim], attrs: Attrs) -> Shape:
    """Return how many windows fit on each spatial axis; ``ceil_mode`` lets the last one overhang the end."""
    rank = len(spatial)
    pads, result = attrs["pads"], list[Dim]()
    for i, (size, k) in enumerate(zip(spatial, kernel, strict=True)):
        stride = attrs["strides"][i]
        free = size + (pads[i] + pads[rank + i] - 1) - (k - 1) * attrs["dilations"][i]
        expect(not isinstance(free, int) or free >= 0, f"a window that fits axis {i}", f"{size} and kernel {k}")
        count = floor_div(free, stride) + 1
        if attrs.get("ceil_mode"):
            if not isinstance(free, int) or not isinstance(size, int):
                raise TypeInferenceError(f"expected a static size for ceil_mode, found {size}")
            count = -(-free // stride) + 1
            count -= (count - 1) * stride >= size + pads[i]
        result.append(count)
    return tuple(result)


def pad_widths(pads: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Return ONNX pads of the last axes as (before, after) of all ``rank`` axes."""
    spatial = len(pads) // 2
    return [(0, 0)] * (rank - spatial) + list(zip(pads[:spatial], pads[spatial:], strict=True))


def patches(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield (offset in the window, elements of ``x`` at that offset of every window).

    ``x`` is padded already; its last axes are the spatial ones, of which a patch has ``counts`` elements each.
    """
    for offset in cartesian(*map(range, kernel)):
        spans = zip(offset, strides, dilations, counts, strict=True)
        yield offset, x[(..., *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, s, d, n in spans))]


def counts_of(x: Array, kernel: Sequence[int], attrs: Attrs) -> tuple[Any, ...]:
    """Return `window_counts` for an array; sizes that a prover's arrays have may be polynomials."""
    return window_counts(tuple(x.shape[2:]), kernel, attrs)
