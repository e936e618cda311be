"""Whether a file is a graph at all: its versions, and its nodes in an order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from onnx import IR_VERSION, ModelProto, NodeProto, TensorProto, defs

from taso_gym.errors import ModelError
from taso_gym.graph import OUTPUT_BITS
from taso_gym.onnx_io.scope import captures, describe, domain_of, inner_nodes, inner_tensors

FIRST_IR_WITH_OPSETS = 3
FIRST_IR_WITH_OVERRIDES = 4
MOST_OPERANDS = 1 << OUTPUT_BITS
"""Inputs, or outputs, of one node."""
MOST_OPSET = (1 << 31) - 1
"""ONNX's checker takes no larger version of a domain that it doesn't know."""


class Step(NamedTuple):
    """A node and the outer values that its subgraphs read."""

    node: NodeProto
    captures: tuple[str, ...]

    @property
    def reads(self) -> list[str]:
        """Names of all values that it needs."""
        return [name for name in (*self.node.input, *self.captures) if name]


def read_opsets(model: ModelProto) -> dict[str, int]:
    """Return the opset imports of a model.

    Raises:
        ModelError: the file has no graph, or is of a version that the installed ``onnx`` doesn't know.
    """
    if not model.HasField("graph"):
        raise ModelError("expected an ONNX model with a graph, found none")
    if not 1 <= model.ir_version <= IR_VERSION:
        raise ModelError(f"expected an IR version from 1 to {IR_VERSION}, found {model.ir_version}")
    opsets = {domain_of(o.domain): o.version for o in model.opset_import}
    if model.ir_version < FIRST_IR_WITH_OPSETS and not opsets:
        opsets = {"": 1}
    newest = defs.C.schema_version_map()
    for domain, version in opsets.items():
        _, high = newest.get(domain, (1, MOST_OPSET))
        if not 1 <= version <= high:
            raise ModelError(f"expected opset 1 to {high} of domain {domain or 'ai.onnx'!r}, found {version}")
    for node in model.graph.node:
        if not node.op_type:
            raise ModelError(f"expected an operator, found a node without one: {describe(node)}")
        if domain_of(node.domain) not in opsets:
            raise ModelError(f"expected an opset import for the domain of {describe(node)}, found {sorted(opsets)}")
    _expect_parts(model)
    _expect_data(model)
    return opsets


def _expect_parts(model: ModelProto) -> None:
    """Refuse a Split into ever so many parts, or fewer than outputs, of which shape inference first makes a list.

    A function of the file that has the name is held to the same: inference takes its calls for the operator.
    """
    for holder in (*model.graph.node, *(n for f in model.functions for n in f.node)):
        for node in (holder, *inner_nodes(holder)):
            least = len(node.output)
            found = [a.i for a in node.attribute if a.name == "num_outputs" and not a.ref_attr_name]
            is_split = node.op_type == "Split" and not domain_of(node.domain)
            if is_split and found and not least <= found[0] <= MOST_OPERANDS:
                raise ModelError(
                    f"expected num_outputs from {least} to {MOST_OPERANDS}, found {found[0]} in {describe(node)}"
                )


def _expect_data(model: ModelProto) -> None:
    """Refuse functions and training graphs with data in another file: they are kept as they are, and files aren't."""
    for function in model.functions:
        _expect_own(chain.from_iterable(map(inner_tensors, function.node)), f"function {function.name!r}")
    for graph in (g for t in model.training_info for g in (t.initialization, t.algorithm)):
        tensors = chain(graph.initializer, *map(inner_tensors, graph.node))
        _expect_own(tensors, f"the training graph {graph.name!r}")


def _expect_own(tensors: Iterable[TensorProto], holder: str) -> None:
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors):
        raise ModelError(f"expected all data of {holder} in it, found them in another file")


def in_order(nodes: Iterable[NodeProto], given: Iterable[str]) -> list[Step]:
    """Return the nodes, producers first; the file's own order where it is one.

    Args:
        nodes: nodes of the main graph.
        given: names of inputs and initializers.

    Raises:
        ModelError: a value is defined twice or not at all, or the graph has a cycle.
    """
    steps = [Step(node, captures(node)) for node in nodes]
    producers: dict[str, int] = dict.fromkeys(given, -1)
    for i, step in enumerate(steps):
        for name in filter(None, step.node.output):
            if name in producers:
                raise ModelError(f"expected each value defined once, found {name!r} again in {describe(step.node)}")
            producers[name] = i
    for step in steps:
        for name in step.reads:
            if name not in producers:
                raise ModelError(f"expected the inputs of {describe(step.node)} to be defined, found no {name!r}")
    return _sorted(steps, producers)


def _sorted(steps: Sequence[Step], producers: Mapping[str, int]) -> list[Step]:
    needs = [{producers[name] for name in step.reads} - {-1} for step in steps]
    if all(all(producer < i for producer in need) for i, need in enumerate(needs)):
        return list(steps)
    consumers: list[list[int]] = [[] for _ in steps]
    for i, need in enumerate(needs):
        for producer in need:
            consumers[producer].append(i)
    waiting = [len(need) for need in needs]
    ready = [i for i, count in enumerate(waiting) if not count]
    for i in ready:  # grows while it is read
        for consumer in consumers[i]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                ready.append(consumer)
    if len(ready) != len(steps):
        stuck = next(i for i, count in enumerate(waiting) if count)
        raise ModelError(f"expected a graph without cycles, found one through or before {describe(steps[stuck].node)}")
    return [steps[i] for i in ready]
