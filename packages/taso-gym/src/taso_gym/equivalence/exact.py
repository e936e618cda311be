"""Whether a graph computes without rounding on whole numbers, so that its outputs can be compared exactly.

Of each value it is known that its elements are multiples of a power of two and no larger than a bound. Sums, products
and selections of such numbers are such numbers again. While the quotient of the two fits into the significand of the
element type, no operator rounds, in whatever order and by whatever fused kernel a runtime adds the terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from taso_gym.equivalence.draw import InputKind
from taso_gym.graph import Graph, Node, Weight, value_of
from taso_gym.signature import OpaqueOperator
from taso_gym.symbolic import Dim, bind, product
from taso_gym.tensor import FLOATS, TensorType, ValueType, numpy_dtype

MAGNITUDES = (100, 10, 3, 1)
"""Whole numbers up to the first of these that a graph computes with exactly are drawn as its floating-point inputs."""
FINEST, LARGEST = 2.0**-24, 2.0**30
"""Constants that aren't multiples of the one, or above the other, leave no room for a product."""
PIECE = 1 << 16
"""Elements of a constant that are looked at at a time."""


class Format(NamedTuple):
    """An element type: the bits of its significand, the least step and the largest number that it holds."""

    bits: int
    step: float
    bound: float


FORMATS = {
    "double": Format(53, 2.0**-900, 2.0**900),
    "float": Format(24, 2.0**-100, 2.0**100),
    "float16": Format(11, 2.0**-14, 2.0**15),
    "bfloat16": Format(8, 2.0**-100, 2.0**100),
    "int32": Format(31, 1, 2.0**31),
    "int64": Format(63, 1, 2.0**63),
}


class Grid(NamedTuple):
    """Numbers of which it is known that they are multiples of ``step`` and at most ``bound`` in magnitude."""

    bound: float
    step: float


Grids = Sequence[Grid]


def exact_magnitude(graphs: Sequence[Graph], kinds: Sequence[InputKind], sizes: Mapping[str, int]) -> int | None:
    """Return up to which magnitude whole numbers can be drawn so that no graph rounds any; None if there is none.

    Args:
        graphs: graphs with inputs of the same names.
        kinds: those inputs.
        sizes: values of the dimension symbols.
    """
    constants = [_constants(graph) for graph in graphs]
    for magnitude in MAGNITUDES:
        given = {kind.name: _drawn(kind, magnitude) for kind in kinds}
        if all(_is_exact(g, c, given, sizes) for g, c in zip(graphs, constants, strict=True)):
            return magnitude
    return None


def _drawn(kind: InputKind, magnitude: int) -> Grid | None:
    dtype = kind.type.dtype if isinstance(kind.type, TensorType) else "string"
    if dtype in FLOATS:
        return Grid(magnitude, 1)
    is_number = dtype == "bool" or dtype.startswith(("int", "uint"))
    return Grid(max(kind.bound or 0, 255), 1) if is_number else None


def _constants(graph: Graph) -> dict[int, Grid | None]:
    used = {v: leaf.weight for v, leaf in graph.leaves.items() if leaf.weight and v in graph.uses}
    return {v: _grid_of(weight) for v, weight in used.items()}


def _grid_of(weight: Weight) -> Grid | None:
    """Return the grid that the elements of a constant lie on, or None if they are no numbers or too fine."""
    if weight.dtype == "string" or numpy_dtype(weight.dtype).kind == "c":
        return None
    flat = weight.array().reshape(-1)
    grid = Grid(0, LARGEST)
    for start in range(0, flat.size, PIECE):
        piece = grid_of_numbers(flat[start : start + PIECE].astype(np.float64))
        if piece is None:
            return None
        grid = Grid(max(grid.bound, piece.bound), min(grid.step, piece.step))
    return grid


def grid_of_numbers(values: Any) -> Grid | None:
    """Return the coarsest grid of finite numbers, or None if that is finer than any that is looked at."""
    numbers = np.abs(np.asarray(values, np.float64)).reshape(-1)
    bound = float(numbers.max(initial=0.0))
    if not bound <= LARGEST:
        return None
    steps = numbers / FINEST
    if not np.array_equal(steps, np.floor(steps)):
        return None
    bits = int(np.bitwise_or.reduce(steps.astype(np.int64)))
    return Grid(bound, (bits & -bits) * FINEST if bits else LARGEST)


def _is_exact(
    graph: Graph, constants: Mapping[int, Grid | None], given: Mapping[str, Grid | None], sizes: Mapping[str, int]
) -> bool:
    known = dict(constants)
    for value in graph.info.inputs:
        default = graph.info.defaults.get(value)
        known[value] = _grid_of(default) if default else given.get(graph.leaves[value].name)
    for node_id in graph.topological_order():
        node = graph.nodes[node_id]
        grid = _result(node, [None if v is None else known.get(v) for v in node.inputs], sizes)
        known.update({value_of(node_id, i): _kept(grid, t) for i, t in enumerate(node.sig.outputs)})
    floats = [v for v in graph.outputs if _dtype(graph.type_of(v)) in FLOATS]
    others = [v for v in graph.outputs if _dtype(graph.type_of(v)) in (None, "complex64", "complex128")]
    return bool(floats) and not others and all(known.get(v) for v in floats)


def _dtype(type_: ValueType) -> str | None:
    return type_.dtype if isinstance(type_, TensorType) else None


def _kept(grid: Grid | None, type_: ValueType) -> Grid | None:
    """Return a grid if numbers on it are held by the type."""
    dtype = _dtype(type_)
    if dtype == "bool":
        return grid and Grid(1, 1)
    form = FORMATS.get(dtype or "")
    if form is None or grid is None or not form.step <= grid.step or not grid.bound <= form.bound:
        return None
    return grid if grid.bound <= math.ldexp(grid.step, form.bits) else None


def _result(node: Node, operands: Sequence[Grid | None], sizes: Mapping[str, int]) -> Grid | None:
    sig = node.sig
    transfer = None if isinstance(sig.op, OpaqueOperator) else TRANSFERS.get(sig.op.key)
    grids = [grid for grid, v in zip(operands, node.inputs, strict=True) if grid and v is not None]
    if transfer is None or len(grids) != sum(v is not None for v in node.inputs):
        return None
    return transfer(node, grids, sizes)


def _selects(node: Node, grids: Grids, _sizes: Mapping[str, int]) -> Grid | None:
    """Every element is one of an operand's, up to its sign, or one of the numbers among the attributes."""
    named = [v for k, v in node.sig.attrs if k in ("min", "max", "constant_value") and v is not None]
    numbers = [v for v in named if math.isfinite(v)]
    return _union([*grids, *map(grid_of_numbers, numbers)])


def _union(grids: Sequence[Grid | None]) -> Grid | None:
    found = [grid for grid in grids if grid]
    return Grid(max(g.bound for g in found), min(g.step for g in found)) if len(found) == len(grids) else None


def _sum(_node: Node, grids: Grids, _sizes: Mapping[str, int]) -> Grid:
    return Grid(sum(g.bound for g in grids), min(g.step for g in grids))


def _product(_node: Node, grids: Grids, _sizes: Mapping[str, int]) -> Grid:
    a, b = grids
    return Grid(a.bound * b.bound, a.step * b.step)


def _dot(count: Callable[[Node], Dim]) -> Callable[[Node, Grids, Mapping[str, int]], Grid | None]:
    """Return the transfer of an operator that adds ``count`` products, times alpha, and a third operand times beta."""

    def transfer(node: Node, grids: Grids, sizes: Mapping[str, int]) -> Grid | None:
        terms, attrs = bind(count(node), sizes), dict(node.sig.attrs)
        factors = [grid_of_numbers(attrs.get(name, 1.0)) for name in ("alpha", "beta")]
        if not isinstance(terms, int) or None in factors:
            return None
        alpha, beta = (f for f in factors if f)
        a, b = grids[:2]
        # alpha may be applied to an operand or to the sum
        dots = Grid(terms * a.bound * b.bound * max(alpha.bound, 1), a.step * b.step * alpha.step)
        added = [Grid(g.bound * max(beta.bound, 1), g.step * beta.step) for g in grids[2:]]
        return _sum(node, [dots, *added], sizes)

    return transfer


def _shape(node: Node, index: int) -> tuple[Dim, ...]:
    type_ = node.sig.inputs[index]
    assert isinstance(type_, TensorType)
    return type_.shape or ()


def _reduced(node: Node) -> Dim:
    """How many elements are added for each one of the result."""
    shape, axes = _shape(node, 0), cast("tuple[int, ...]", node.sig.attr("axes"))
    return product(shape[axis] for axis in axes)


def _reduce_sum(node: Node, grids: Grids, sizes: Mapping[str, int]) -> Grid | None:
    terms = bind(_reduced(node), sizes)
    return Grid(grids[0].bound * terms, grids[0].step) if isinstance(terms, int) else None


def _where(node: Node, grids: Grids, sizes: Mapping[str, int]) -> Grid | None:
    return _selects(node, grids[1:], sizes)


def _first(node: Node, grids: Grids, sizes: Mapping[str, int]) -> Grid | None:
    return _selects(node, grids[:1], sizes)


_SELECTING = """
Abs Clip Concat DepthToSpace Expand Flatten GlobalMaxPool Identity Max MaxPool Min Neg Pad ReduceMax ReduceMin Relu
Reshape Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Cast
"""
TRANSFERS: Mapping[str, Callable[[Node, Grids, Mapping[str, int]], Grid | None]] = {
    **dict.fromkeys(_SELECTING.split(), _selects),
    **dict.fromkeys(("And", "Equal", "Greater", "Less", "Not", "Or", "Sign"), lambda _node, _grids, _sizes: Grid(1, 1)),
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    "Mul": _product,
    "Gather": _first,
    "Where": _where,
    "ReduceSum": _reduce_sum,
    "MatMul": _dot(lambda node: _shape(node, 0)[-1]),
    "ms.FusedMatMul": _dot(lambda node: _shape(node, 0)[-2 if node.sig.attr("transA") else -1]),
    "Gemm": _dot(lambda node: _shape(node, 0)[0 if node.sig.attr("transA") else 1]),
    "Conv": _dot(lambda node: product(_shape(node, 1)[1:])),
}
"""The grid of an operator's results, by its name; an operator that isn't here rounds, as far as is known."""
