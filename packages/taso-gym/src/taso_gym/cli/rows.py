"""What a profile shows of an operator, and of the machine."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from taso_gym.cost import bind_dims
from taso_gym.cost.dims import Dims
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.region import Region, lone
from taso_gym.cost.work import region_work
from taso_gym.cost_model import Cost
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.ops import OPERATORS
from taso_gym.signature import OpaqueOperator, signature
from taso_gym.symbolic import Poly
from taso_gym.tensor import TensorType, ValueType

SQUARES, LONG = (256, 512, 1024), (1 << 14, 1 << 18, 1 << 24)


class Row(NamedTuple):
    """An operator's part of a profile.

    Attributes:
        name: of the operator.
        cost: what it costs.
        sized: the sizes of its outputs are known.
        interval: of its time, in picoseconds.
        measured: whether it could be.
    """

    name: str
    cost: Cost
    sized: bool
    interval: tuple[int, int] | None = None
    measured: bool = True


def speeds(row: Row, peak_gflops: float, peak_gbs: float) -> tuple[str, str, str]:
    """Return GFLOP/s, GB/s and their part of the peak; dashes where sizes, and so the work, aren't known.

    What fits into the cache may read faster than the peak.
    """
    gflops, gbs = (1e3 * n / max(row.cost.time_ps, 1) for n in (row.cost.flops, row.cost.bytes_moved))
    if not row.sized:
        return "–", "–", "–"
    return f"{gflops:.1f}", f"{gbs:.1f}", f"{max(gflops / peak_gflops, gbs / peak_gbs):.0%}"


def _is_sized(types: Sequence[ValueType], known: Container[str]) -> bool:
    return all(
        isinstance(t, TensorType)
        and t.shape is not None
        and all(name in known for d in t.shape if isinstance(d, Poly) for name in d.free_symbols)
        for t in types
    )


def rows_of(graph: Graph, model: OnnxRuntimeCost) -> list[Row]:
    """Return the operators of a graph that take time; work is that of all that runs with one, too."""
    rows, known = list[Row](), bind_dims(graph)
    for node_id, node in graph.operators():
        context, name = model.context(graph, node_id), f"{node.sig.op.key} {node.names[0] or node_id}"
        if (cost := model.node(node.sig, context)).time_ps:
            sized = _is_sized(node.sig.outputs, known)
            if isinstance(node.sig.op, OpaqueOperator) or node.sig.op.view:  # in no region
                rows.append(Row(name, cost, sized, measured=node.sig.op.view or model.runs_alone(node.sig)))
                continue
            region = context if isinstance(context, Region) else lone(node.sig)
            load = region_work(region, Dims(model.dims))
            cost = cost._replace(flops=load.flops, bytes_moved=load.bytes_moved)
            measured = model.executed_in(region) is not None
            rows.append(Row(name, cost, sized, model.interval(region) if measured else None, measured))
    return rows


def peaks(model: OnnxRuntimeCost, large: Sequence[Cost] = ()) -> tuple[float, float]:
    """Return the most that the machine reaches: GFLOP/s in square MatMuls, GB/s in Adds, from cache or from memory.

    Args:
        model: measures them, once: at a slow moment it may be.
        large: costs of operators that take long enough to show more than that.

    Raises:
        CostError: none of them takes longer than what is measured around it.
    """
    squares = [TensorType("float", (n, n)) for n in SQUARES]
    products = [model.node(signature(OPERATORS["", "MatMul"], {}, [t, t])) for t in squares]
    streams = [
        model.node(signature(OPERATORS["", "Add"], {}, [t, t])) for t in (TensorType("float", (n,)) for n in LONG)
    ]
    gflops = [1e3 * c.flops / c.time_ps for c in products if c.time_ps]
    gbs = [1e3 * c.bytes_moved / c.time_ps for c in streams if c.time_ps]
    if not gflops or not gbs:
        raise CostError("expected MatMul and Add to take some time, found none: is the machine busy? Try again")
    return (
        max([*gflops, *(1e3 * c.flops / c.time_ps for c in large)]),
        max([*gbs, *(1e3 * c.bytes_moved / c.time_ps for c in large)]),
    )
