"""Whether a rewritten site computes what its source did: the sub-graph alone, on normal data, in float64.

A whole network hides errors (normalisations, saturated softmaxes); a site on its own doesn't, and in float64 the
rounding of its operators is far below any other error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from taso_gym.equivalence.compare import Difference, Value, compare, compare_floats, worst
from taso_gym.equivalence.draw import ROUNDS, bind_sizes, draw, kind_of
from taso_gym.equivalence.report import OutputReport, Report
from taso_gym.graph import Graph, output_index, producer_of
from taso_gym.onnx_io.reference import run_graph
from taso_gym.ops import Operator
from taso_gym.ops.floating import FLOAT64
from taso_gym.signature import Signature
from taso_gym.symbolic import Dim
from taso_gym.tensor import TensorType

SITE_TOLERANCE = {"double": 1e-6, "float": 1e-6, "float16": 8e-3, "bfloat16": 6e-2}
"""Largest error of a site by the element type of its result, relative to the magnitude.

The operators compute in float64; what remains are constants that a rule writes in the element type, and attributes,
which ONNX stores in float32: 6e-8 each, measured 5e-8. Half-precision constants are off by eight units at most.
"""


class Site(NamedTuple):
    """A part of a graph that differs from another graph.

    Attributes:
        inputs: values that both parts start from.
        outputs: pairs of a value of the first graph and the one that takes its place in the second.
    """

    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]


def site_of(before: Graph, after: Graph) -> Site:
    """Return where two graphs differ that share ids, as a graph and a rewritten one do.

    A value that is read on both sides of the change is an input. A value that takes another's place without being
    read there is computed, too.
    """
    removed, added = before.nodes.keys() - after.nodes.keys(), after.nodes.keys() - before.nodes.keys()
    pairs: dict[tuple[int, int], None] = {}
    for node_id in before.nodes.keys() & after.nodes.keys():
        old, new = before.nodes[node_id].inputs, after.nodes[node_id].inputs
        changed = ((x, y) for x, y in zip(old, new, strict=True) if x != y and x is not None and y is not None)
        pairs.update(dict.fromkeys(changed))
    read = {*_reads(before, removed), *_reads(after, added)}
    kept = {producer_of(v) for pair in pairs for v in pair if v not in read} - before.leaves.keys()
    inside = removed | added | {i for i in kept if i in before.nodes and i in after.nodes}
    read |= {*_reads(before, kept & before.nodes.keys()), *(v for pair in pairs for v in pair)}
    inputs = {v for v in read if producer_of(v) not in inside and not _is_constant(before, after, v)}
    return Site(tuple(sorted(inputs)), tuple(sorted(pairs)))


def _reads(graph: Graph, node_ids: Iterable[int]) -> set[int]:
    return {v for i in node_ids for v in graph.nodes[i].inputs if v is not None}


def _is_constant(before: Graph, after: Graph, value: int) -> bool:
    graph = before if value in before.leaves or producer_of(value) in before.nodes else after
    type_ = graph.type_of(value)
    return type_.const


def check_site(
    before: Graph,
    after: Graph,
    site: Site | None = None,
    *,
    draws: int = 2,
    seed: int = 0,
    tolerance: float | None = None,
) -> Report:
    """Compute the part of two graphs in which they differ in float64 and compare the results.

    Constants have their values; everything else that the site reads is drawn: normal floats, indices in range.

    Args:
        before: a graph.
        after: what it was rewritten into.
        site: what to compute from what; by default all that differs.
        draws: how often values are drawn; with symbolic dimensions, of other sizes each time.
        seed: of the draws.
        tolerance: largest error relative to the magnitude of a value, instead of `SITE_TOLERANCE`, for rules that only
            approximate.

    Raises:
        ModelError: the site holds an operator that can't be computed here.
        EquivalenceError: it reads a value that can't be drawn: one that is too large.
    """
    inputs, pairs = site or site_of(before, after)
    kinds = {v: kind_of(before if _has(before, v) else after, v, f"value {v}") for v in inputs}
    types = [k.type for k in kinds.values()] + [t for n in before.nodes.values() for t in n.sig.inputs if t]
    columns: list[list[Difference]] = [[] for _ in pairs]
    labels: list[str] = []
    for i in range(draws):
        rng = np.random.default_rng((seed, i))
        plan = ROUNDS[0][i % len(ROUNDS[0])]
        sizes = bind_sizes(types, plan, {})
        feeds = {v: draw(kind, sizes, rng, binary=plan.binary) for v, kind in kinds.items()}
        expected = _run(before, feeds, [x for x, _ in pairs], sizes)
        found = _run(after, feeds, [y for _, y in pairs], sizes)
        for column, (value, _), x, y in zip(columns, pairs, expected, found, strict=True):
            column.append(_difference(x, y, _tolerance(before, value) if tolerance is None else tolerance))
        labels.append(" ".join(f"{k}={v}" for k, v in sorted(sizes.items())))
    names = [_name(before, x) for x, _ in pairs]
    outputs = (OutputReport(name, worst(column)) for name, column in zip(names, columns, strict=True))
    return Report(tuple(outputs), tuple(labels), "both in float64")


def operations(signatures: Iterable[Signature]) -> int:
    """Return how many floating-point operations some operators take, as far as their sizes are fixed."""
    found: list[Dim] = []
    for sig in signatures:
        if isinstance(sig.op, Operator) and all(t is None or t.is_static for t in sig.inputs):
            inputs, outputs = sig.inputs, tuple(t for t in sig.outputs if isinstance(t, TensorType))
            found.append(sig.op.flops(inputs, outputs, dict(sig.attrs)))  # pyright: ignore[reportArgumentType]
    return sum(f for f in found if isinstance(f, int))


def _has(graph: Graph, value: int) -> bool:
    return value in graph.leaves or producer_of(value) in graph.nodes


def _run(graph: Graph, feeds: Mapping[int, Value], wanted: Sequence[int], sizes: Mapping[str, int]) -> list[Value]:
    return [FLOAT64.to_numpy(v) for v in run_graph(graph, feeds, wanted, FLOAT64, sizes)]


def _tolerance(graph: Graph, value: int) -> float:
    type_ = graph.type_of(value)
    return SITE_TOLERANCE.get(type_.dtype, 0.0) if isinstance(type_, TensorType) else 0.0


def _difference(expected: Value, found: Value, tolerance: float) -> Difference:
    if expected.dtype == found.dtype == np.float64 and expected.shape == found.shape:
        return compare_floats(expected, found, tolerance)
    return compare(expected, found)


def _name(graph: Graph, value: int) -> str:
    leaf = graph.leaves.get(value)
    if leaf:
        return leaf.name
    node = graph.nodes[producer_of(value)]
    return node.names[output_index(value)] or f"{node.sig.op.key} {producer_of(value)}"
