"""Drawing shapes of operands that fit an operator and the operands that are known already."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import OPERATORS
from taso_gym.signature import signature
from taso_gym.tensor import TensorType
from taso_substitutions.verify.draw import MAX_ELEMENTS, Draw, Unfit

Shape = tuple[int, ...]
FLAGS = ("transA", "transB")
BIAS = 5
"""Operand of com.microsoft's MultiHeadAttention that is added to the scores."""


class Site(Protocol):
    """The call that an operand is drawn for.

    Attributes:
        draw: source of randomness.
        known: shape of each operand, None for those that aren't drawn yet.
    """

    draw: Draw
    known: list[Shape | None]

    def attr(self, name: str) -> Any:
        """Return an attribute of the call, drawn now if need be."""
        ...

    def items(self, name: str) -> int | None:
        """Return how many items an attribute has that the call writes as a list; None for any other."""
        ...

    def block(self) -> int:
        """Return the block size of the DepthToSpace that makes the first operand, 1 where none does."""
        ...


def first_known(site: Site) -> Shape | None:
    """Return the first operand whose shape is known."""
    return next((s for s in site.known if s is not None), None)


def _any(site: Site, _index: int) -> Shape:
    return site.draw.familiar()


def _padded(site: Site, _index: int) -> Shape:
    pads = site.items("pads")
    return site.draw.shape(pads // 2, pads // 2) if pads else site.draw.familiar()


def _elementwise(site: Site, _index: int) -> Shape:
    known = [s for s in site.known if s is not None]
    return site.draw.broadcastable(max(known, key=math.prod)) if known else site.draw.familiar(0)


def _concat(site: Site, _index: int) -> Shape:
    first = first_known(site)
    if first is None:
        return site.draw.shape()
    axis = site.attr("axis") % len(first)
    return (*first[:axis], site.draw.size(), *first[axis + 1 :])


def _matmul(site: Site, index: int) -> Shape:
    draw, other = site.draw, site.known[1 - index]
    if other is None:
        return draw.shape(2)
    if len(other) < 2 or draw.chance(0.05):
        return other[-1:] if index else other[-2:-1] or other
    inner = other[-1] if index else other[-2]
    batch = other[:-2] if draw.chance(0.4) else draw.pick([(), (1,) * len(other[:-2]), draw.broadcastable(other[:-2])])
    return (*batch, inner, draw.size()) if index else (*batch, draw.size(), inner)


def _fused_matmul(site: Site, index: int) -> Shape:
    flipped = [s if s is None or not site.attr(t) else _swap(s) for s, t in zip(site.known, FLAGS, strict=True)]
    found = _matmul(_View(site, flipped), index)
    return _swap(found) if site.attr("transB" if index else "transA") else found


def _swap(shape: Shape) -> Shape:
    return (*shape[:-2], *shape[:-3:-1])


class _View:
    """A site with other known shapes."""

    def __init__(self, site: Site, known: list[Shape | None]) -> None:
        self.draw, self.known = site.draw, known
        self.attr, self.items, self.block = site.attr, site.items, site.block


def _gemm(site: Site, index: int) -> Shape:
    if any(s is not None and len(s) != 2 for s in site.known[:2]):
        raise Unfit("operands that aren't matrices")
    a, b = (s and (s[::-1] if site.attr(t) else s) for s, t in zip(site.known[:2], FLAGS, strict=True))
    if index == 2:
        assert a and b
        return site.draw.pick([(b[1],), (1, b[1]), (a[0], b[1]), (), (1,), (a[0], 1)])
    inner = b[0] if b else a[1] if a else site.draw.size()
    shape = (inner, site.draw.size()) if index else (site.draw.size(), inner)
    return shape[::-1] if site.attr("transB" if index else "transA") else shape


def _image(site: Site, _index: int) -> Shape:
    draw = site.draw
    images = [shape for shape in draw.shapes if len(shape) > 2]
    if images and draw.chance(0.5):
        found = list(draw.pick(images))
        found[1] = draw.size() if draw.chance(0.5) else found[1]
        return tuple(found)
    rank = draw.pick((1, 2, 2, 2, 2, 3))
    return (draw.size(), draw.size() * draw.pick((1, 1, 2, 3)), *(draw.integer(1, 10 - 2 * rank) for _ in range(rank)))


def _conv(site: Site, index: int) -> Shape:
    draw = site.draw
    x, w = site.known[0], site.known[1]
    if index == 0:
        if w is None or len(w) < 3:
            return _image(site, 0)
        return (draw.size(), w[1] * draw.pick((1, 1, 2)), *(draw.integer(k, k + 4) for k in w[2:]))
    if index == 1:
        assert x is not None
        group = site.attr("group")
        if len(x) < 3 or x[1] % group:
            raise Unfit("groups that don't divide the channels")
        block = site.block()
        kernel = (1,) * (len(x) - 2) if draw.chance(0.3) else tuple(draw.integer(1, min(3, d // block)) for d in x[2:])
        return (group * draw.pick((1, 2, 3, 4)), x[1] // group, *(block * k for k in kernel))
    assert x is not None and w is not None
    if not w:
        raise Unfit("a scalar as kernel")
    return (w[0],) if index == 2 else _conv_output(site, x, w)


def _conv_output(site: Site, x: Shape, w: Shape) -> Shape:
    attrs = {name: site.attr(name) for name in ("strides", "pads", "dilations", "group")}
    try:
        sig = signature(OPERATORS["", "Conv"], attrs, [TensorType("float", x), TensorType("float", w)])
    except TypeInferenceError as error:
        raise Unfit(str(error)) from error
    output = sig.outputs[0]
    assert isinstance(output, TensorType) and output.shape is not None
    return tuple(d for d in output.shape if isinstance(d, int))


def _conv_transpose(site: Site, index: int) -> Shape:
    """Return an image, a kernel, which often covers so many strides, or a bias."""
    draw, x, w = site.draw, site.known[0], site.known[1]
    if x is None:
        return _image(site, index)
    if len(x) < 3:
        raise Unfit("no image")
    if index == 1 or w is None:
        kernel = (draw.pick((1, 2, 3, 2 * stride)) for stride in site.attr("strides"))
        return (x[1], draw.size(), *kernel)
    return (w[1] * site.attr("group"),)


def _blocks(site: Site, _index: int) -> Shape:
    """Return an image whose channels make blocks of pixels."""
    draw, size = site.draw, site.attr("blocksize")
    return (draw.size(), size * size * draw.size(), draw.integer(1, 4), draw.integer(1, 4))


def _channels(site: Site, index: int) -> Shape:
    x = site.known[0]
    if index == 0:
        return site.draw.shape(2)
    assert x is not None
    return x[1:2]


def _trailing(site: Site, index: int) -> Shape:
    x = site.known[0]
    if index == 0:
        return site.draw.shape()
    if not x:
        raise Unfit("a scalar")
    whole = x[site.attr("axis") % len(x) :]
    return site.draw.pick([whole, whole, whole, whole, (), whole[-1:]])


def _last(site: Site, index: int) -> Shape:
    x = site.known[0]
    return site.draw.shape(2, 3) if index == 0 or x is None else x[-1:]


def _skip(site: Site, index: int) -> Shape:
    x = next((s for s in site.known[:2] if s is not None), None)
    if index < 2:
        return x or site.draw.shape(3, 3)
    assert x is not None
    return x[-1:]


def _gather(site: Site, index: int) -> Shape:
    return site.draw.pick([(), (), (1,), (3,), (2, 2)]) if index else site.draw.shape()


def _slope(site: Site, index: int) -> Shape:
    x = site.known[0]
    if index == 0 or x is None:
        return site.draw.shape()
    return site.draw.pick([x, (1,), x[-1:], (*x[1:2], *(1,) * (len(x) - 2)), ()])


def _einsum(site: Site, index: int) -> Shape:
    terms = site.attr("equation").partition("->")[0].split(",")
    sizes = {
        letter: d
        for term, known in zip(terms, site.known, strict=True)
        for letter, d in zip(term, known or (), strict=False)
    }
    return tuple(sizes.setdefault(letter, site.draw.size()) for letter in terms[index])


def _heads(site: Site, index: int) -> Shape:
    q = site.known[0]
    if index == 0 or q is None:
        return (site.draw.size(), site.draw.size(), site.attr("num_heads") * site.draw.size())
    key = site.known[1]
    if index == BIAS and key:
        return (*site.draw.pick([(1, 1), (q[0], 1), (q[0], site.attr("num_heads"))]), q[1], key[1])
    return (q[0], key[1] if key else site.draw.size(), q[2])


Operand = Callable[[Site, int], Shape]

OPERANDS: Mapping[str, Operand] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Max", "Min", "Where", "Equal", "Less"), _elementwise),
    **dict.fromkeys(("Conv", "ms.FusedConv"), _conv),
    **dict.fromkeys(("Gemm", "ms.FusedGemm"), _gemm),
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LRN"), _image),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _channels),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _trailing),
    **dict.fromkeys(("ms.BiasGelu", "ms.FastGelu"), _last),
    "Concat": _concat,
    "ConvTranspose": _conv_transpose,
    "DepthToSpace": _blocks,
    "Einsum": _einsum,
    "Gather": _gather,
    "MatMul": _matmul,
    "PRelu": _slope,
    "Pad": _padded,
    "ms.SkipLayerNormalization": _skip,
    "ms.FusedMatMul": _fused_matmul,
    "ms.MultiHeadAttention": _heads,
}
"""Operator -> how an operand of it is drawn; any shape for the others."""

DTYPES: Mapping[tuple[str, int], str] = {("Gather", 1): "int64", ("Where", 0): "bool"}
"""(operator, operand) -> element type, where it isn't the rule's."""


def operand_shape(op: str, site: Site, index: int) -> Shape:
    """Return a shape for an operand.

    Raises:
        Unfit: nothing fits the operands that are known.
    """
    shape = OPERANDS.get(op, _any)(site, index)
    if math.prod(shape) > MAX_ELEMENTS or len(shape) > 6:
        raise Unfit(f"{shape} is too large")
    return shape
