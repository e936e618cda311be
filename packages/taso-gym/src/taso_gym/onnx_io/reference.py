"""Running a graph, or part of it, without a runtime: operator bodies, and ONNX's reference for opaque nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import numpy as np
from onnx import FunctionProto, ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator

from taso_gym.errors import ModelError
from taso_gym.graph import Graph, Node, producer_of, value_of
from taso_gym.onnx_io.scope import fresh_names
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.floating import NUMPY
from taso_gym.ops.modules import ArrayModule
from taso_gym.signature import OpaqueOperator
from taso_gym.symbolic import Poly, symbol
from taso_gym.tensor import TensorType, ValueType, numpy_dtype

Value = Any
"""An array, or what ``onnx.reference`` uses for other types: a list for a sequence, None for an empty optional."""


def run_graph(
    graph: Graph,
    feeds: Mapping[int, Value],
    wanted: Sequence[int],
    xp: ArrayModule = NUMPY,
    dims: Mapping[str, int] | None = None,
) -> list[Value]:
    """Compute values of a graph from others.

    Args:
        graph: any graph.
        feeds: what is known: graph inputs, or any values that the computation is to start from.
        wanted: values to compute.
        xp: array module; opaque nodes always run on NumPy arrays, in the element types that come in.
        dims: values of the dimension symbols in attributes; those that name sizes of values inside are seen there.

    Raises:
        ModelError: a node can't be run, or needs a graph input that isn't fed.
    """
    order = _needed(graph, feeds, wanted)
    uses_left = _count_uses(graph, order, wanted)
    known: dict[int, Value] = dict(feeds)
    sizes = dict(dims or {})
    _note_sizes([graph.type_of(v) for v in feeds], [*feeds.values()], sizes)
    for node_id in order:
        node = graph.nodes[node_id]
        operands = [None if v is None else _operand(graph, known, v) for v in node.inputs]
        if isinstance(node.sig.op, OpaqueOperator):
            arrays = [_plain(v, xp) for v in operands]
            results = _run_opaque_node(node, arrays, graph)
        else:
            results = _run_body(node, operands, xp, sizes)
        _note_sizes(node.sig.outputs, results, sizes)
        known.update({value_of(node_id, i): r for i, r in enumerate(results)})
        for value in node.inputs:
            if value is not None and value not in feeds:
                uses_left[value] -= 1
                if not uses_left[value]:
                    known.pop(value, None)
    return [_as_result(_operand(graph, known, v), xp) for v in wanted]


def _run_opaque_node(node: Node, arrays: Sequence[Value], graph: Graph) -> list[Value]:
    """Run an opaque node on arrays as they come in, and if that fails, in the types of its signature.

    Values of the table's operators are float64, weights in subgraphs aren't, and onnx.reference mixes no types.
    """
    op, opsets, functions = node.sig.op, graph.info.opsets, functions_of(graph.info.template)
    assert isinstance(op, OpaqueOperator)
    try:
        return run_opaque(op, arrays, opsets, functions)
    except ModelError:
        typed = [*map(_typed, node.sig.inputs, arrays)]
        if all(new is old for new, old in zip(typed, arrays, strict=True)):
            raise
        return run_opaque(op, typed, opsets, functions)


def _typed(type_: ValueType | None, value: Value) -> Value:
    """Return an array of the element type that a type says, the same one where it is."""
    if not isinstance(type_, TensorType) or not isinstance(value, np.ndarray):
        return value
    return np.asarray(value, numpy_dtype(type_.dtype))


def _run_body(node: Node, operands: Sequence[Value], xp: ArrayModule, dims: Mapping[str, int]) -> Sequence[Value]:
    assert not isinstance(node.sig.op, OpaqueOperator)
    try:
        return evaluate(node.sig.op, dict(node.sig.attrs), operands, xp, dims)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"expected operands that {node.sig} can be computed on, found others: {error}") from error


def _note_sizes(types: Sequence[ValueType | None], values: Sequence[Value], sizes: dict[str, int]) -> None:
    """Add what the symbols of types stand for that are sizes by themselves."""
    for type_, value in zip(types, values, strict=False):
        if isinstance(type_, TensorType) and type_.shape and not type_.is_static and hasattr(value, "shape"):
            for dim, size in zip(type_.shape, value.shape, strict=False):
                if isinstance(dim, Poly) and dim == symbol(name := min(dim.symbols)):
                    sizes.setdefault(name, size)


def _plain(value: Value, xp: ArrayModule) -> Value:
    return cast(Value, value) if value is None or isinstance(value, list) else xp.to_numpy(value)


def _as_result(value: Value, xp: ArrayModule) -> Value:
    return cast(Value, value) if value is None or isinstance(value, list) else xp.asarray(value)


def _operand(graph: Graph, known: Mapping[int, Value], value: int) -> Value:
    if value in known:
        return known[value]
    leaf = graph.leaves[value]
    weight = leaf.weight or graph.info.defaults.get(value)
    if weight is None:
        raise ModelError(f"expected a value for input {leaf.name!r}, found none")
    return weight.array()


def _needed(graph: Graph, feeds: Mapping[int, Value], wanted: Sequence[int]) -> list[int]:
    """Return the ids of the nodes between what is fed and what is wanted, producers first."""
    needed: set[int] = set()
    waiting = [v for v in wanted if v not in feeds]
    while waiting:
        value = waiting.pop()
        if value in graph.leaves or producer_of(value) in needed:
            continue
        needed.add(producer_of(value))
        waiting.extend(v for v in graph.nodes[producer_of(value)].inputs if v is not None and v not in feeds)
    return [node_id for node_id in graph.topological_order() if node_id in needed]


def _count_uses(graph: Graph, order: Sequence[int], wanted: Sequence[int]) -> dict[int, int]:
    counts = dict.fromkeys(wanted, 1)
    for node_id in order:
        for value in graph.nodes[node_id].inputs:
            if value is not None:
                counts[value] = counts.get(value, 0) + 1
    return counts


def run_opaque(
    op: OpaqueOperator, operands: Sequence[Value], opsets: Mapping[str, int], functions: Sequence[FunctionProto] = ()
) -> list[Value]:
    """Run an operator that the table doesn't know in ``onnx.reference``.

    Raises:
        ModelError: the reference doesn't know it either, or it isn't deterministic.
    """
    if not op.pure:
        raise ModelError(f"expected a deterministic operator of the standard, found {op.key}")
    blank = blank_node(op)
    fresh = fresh_names(blank, op.captures)
    names = [*islice(fresh, len(operands) - len(op.captures))]
    present = [n if v is not None else "" for n, v in zip(names, operands, strict=False)]
    node = named_node(op, present, [*islice(fresh, len(blank.output))])
    feeds = dict(zip((*names, *op.captures), operands, strict=True))
    model = ModelProto(ir_version=10, functions=functions)
    for domain, version in opsets.items():
        model.opset_import.add(domain=domain, version=version)
    model.graph.node.append(node)
    for name in feeds:
        model.graph.input.add(name=name)
    for name in filter(None, node.output):
        model.graph.output.add(name=name)
    try:
        evaluator: Any = ReferenceEvaluator(model)
        found = iter(evaluator.run(None, {k: v for k, v in feeds.items() if v is not None}))
    except Exception as error:  # the reference has no errors of its own: whatever NumPy raises comes out
        raise ModelError(f"expected an operator that onnx.reference can run, found {op.key}: {error}") from error
    return [next(found) if name else None for name in node.output]


def blank_node(op: OpaqueOperator) -> NodeProto:
    """Return the node of an opaque operator, whose inputs and outputs are placeholders ("" for an absent output)."""
    return NodeProto.FromString(op.proto)


def named_node(op: OpaqueOperator, inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
    """Return the node of an opaque operator with names; an output that the file left out stays left out.

    Args:
        op: the operator.
        inputs: names of its inputs without those that its subgraphs capture; absent ones at the end may be missing.
        outputs: a name for each output.
    """
    node = blank_node(op)
    count = len(node.input)
    node.input[:] = [*inputs, *[""] * (count - len(inputs))]
    node.output[:] = [name if place else "" for name, place in zip(outputs, node.output, strict=True)]
    return node


@lru_cache(maxsize=16)
def functions_of(template: bytes) -> tuple[FunctionProto, ...]:
    """Return the model-local functions of a file."""
    return tuple(ModelProto.FromString(template).functions)
