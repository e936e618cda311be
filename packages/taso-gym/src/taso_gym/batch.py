"""A batch, one sample after the other: a network for one sample, and a loop (Scan) over it.

What a kernel writes for a whole batch doesn't stay in the cache until the next one reads it; of one sample it does. So
a batch may be faster in a loop over a network for one sample, whose kernels are chosen for one sample, too. Where it
reads weights more than values it isn't: they are read for each sample. Which it is, is measured.

It computes the same if what the network computes for a sample depends on that sample alone. That is known where each
operator is one of the table, and, if it depends on an input,

* has a meaning there, not only types;
* has results whose leading axis goes with the batch, and no other: found by working out all shapes once more for a
  batch whose size divides no other size, so that nothing fits to it by chance;
* doesn't do anything along the leading axis, such as a Softmax over it, moving it by padding, or adding up over it.

Only reshaping may make the batch a factor of the leading axis, as windows do that attention is within: in row-major
order the rows of a sample stay together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from taso_gym.builder import GraphBuilder
from taso_gym.errors import TypeInferenceError
from taso_gym.graph import Graph, Node, value_of
from taso_gym.ops import Operator
from taso_gym.ops.shapes import expect
from taso_gym.scan import add_scan, may_scan, scan_over
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType, ValueType

STATED = ("shape", "sizes")
"""Attributes that say the sizes of a result."""
RESHAPING = frozenset({"Reshape", "Flatten"})
"""Operators that may make the batch a factor of the leading size."""


def batch_size(graph: Graph) -> int:
    """Return the leading size of all inputs; 1 where they have none in common, or some size isn't known."""
    types = [graph.type_of(value) for value in graph.info.inputs]
    sizes = {t.shape[0] if isinstance(t, TensorType) and t.is_static and t.shape else 1 for t in types}
    found = sizes.pop() if len(sizes) == 1 else 1
    return found if isinstance(found, int) and found > 1 and not graph.info.defaults else 1


def for_one_sample(graph: Graph) -> Graph | None:
    """Return the network of a graph for a batch of one; None where its batch is one, or samples aren't known apart."""
    size = batch_size(graph)
    if size == 1 or not may_scan(graph):
        return None
    try:
        _Resized(graph, size, _prime_beyond(graph)).build()
        return _Resized(graph, size, 1).build()
    except TypeInferenceError:
        return None


def nodes_of_batch(sample: Graph, graph: Graph) -> dict[int, int]:
    """Return the node of a graph that each of its `for_one_sample` stands for."""
    return dict(zip(sorted(node_id for node_id, _ in sample.operators()), graph.topological_order(), strict=True))


def in_a_loop(sample: Graph, graph: Graph) -> Graph:
    """Return a graph that does what another does by running a network for one sample in a loop.

    Args:
        sample: of `for_one_sample`, or what a search made of it.
        graph: the other; has the names of inputs and outputs, the batch, and all that a file says besides.

    Raises:
        ModelError: the network is larger than a node may be (2 GB with its weights).
    """
    size = batch_size(graph)
    op, opsets = scan_over(sample, "sample")
    builder = GraphBuilder(opsets)
    inputs = [builder.input(graph.leaves[value].name, graph.type_of(value)) for value in graph.info.inputs]
    rows = [builder.add("Reshape", v, shape=(size, 1, *builder.shape_of(v)[1:])) for v in inputs]
    values = add_scan(builder, op, sample, rows)
    for name, value, t in zip(graph.info.output_names, values, _tensors(graph, graph.outputs), strict=True):
        builder.output(name, builder.add("Reshape", value, shape=t.shape))
    built = builder.build()
    info = replace(graph.info, inputs=built.info.inputs, opsets=opsets)
    return Graph(built.nodes, built.uses, built.leaves, built.next_id, built.hash, info)


def _tensors(graph: Graph, values: tuple[int, ...]) -> Iterator[TensorType]:
    for value in values:
        t = graph.type_of(value)
        assert isinstance(t, TensorType)
        yield t


def _prime_beyond(graph: Graph) -> int:
    """Return a prime that is larger than any size in a graph."""
    types = [leaf.type for leaf in graph.leaves.values()] + [t for _, n in graph.operators() for t in n.sig.outputs]
    sizes = [d for t in types if isinstance(t, TensorType) for d in t.shape or () if isinstance(d, int)]
    number = max(sizes, default=1) + 1
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


class _Resized:
    """A graph for another batch, in the making."""

    def __init__(self, graph: Graph, old: int, new: int) -> None:
        self._graph, self._old, self._new = graph, old, new
        self._builder = GraphBuilder(graph.info.opsets)
        self._values: dict[int, int] = {}
        self._of_batch = set(graph.info.inputs)
        for value in graph.info.inputs:
            self._values[value] = self._builder.input(graph.leaves[value].name, self._resized(graph.type_of(value)))
        self._values |= self._builder.weights_of(graph)

    def build(self) -> Graph:
        """Return it.

        Raises:
            TypeInferenceError: it isn't known to be the same network.
        """
        graph = self._graph
        for node_id in graph.topological_order():
            node = graph.nodes[node_id]
            outputs = [value_of(node_id, i) for i in range(len(node.sig.outputs))]
            inputs = [None if v is None else self._values[v] for v in node.inputs]
            sig = node.sig
            # others may draw numbers, once for all samples
            expect(isinstance(sig.op, Operator), "an operator of the table", sig)
            if not self._of_batch.isdisjoint(node.inputs):
                sig = self._signature(node, inputs)
                self._of_batch.update(outputs)
            self._values |= zip(outputs, self._builder.add_signature(sig, inputs, node.names), strict=True)
        for name, value in zip(graph.info.output_names, graph.outputs, strict=True):
            expect(value in self._of_batch, "an output that depends on an input", name)
            self._builder.output(name, self._values[value])
        return self._builder.build()

    def _signature(self, node: Node, inputs: list[int | None]) -> Signature:
        op = node.sig.op
        assert isinstance(op, Operator)
        attrs: dict[str, Any] = dict(node.sig.attrs)
        of_batch = [value in self._of_batch for value in node.inputs]
        expect(not _acts_along_batch(node.sig, of_batch), "an operator along other axes than the leading one", node.sig)
        for name in STATED:
            if attrs.get(name):
                attrs[name] = self._scaled(attrs[name])
        found = signature(op, attrs, [None if v is None else self._builder.type_of(v) for v in inputs])
        expect(found.outputs == tuple(map(self._resized, node.sig.outputs)), "results for that batch", found.outputs)
        return found

    def _resized(self, type_: ValueType) -> TensorType:
        expect(isinstance(type_, TensorType) and type_.is_static, "sizes that are known", type_)
        assert isinstance(type_, TensorType)
        return type_._replace(shape=self._scaled(_shape(type_)))

    def _scaled(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        expect(bool(shape) and shape[0] % self._old == 0, f"a leading size that {self._old} divides", shape)
        return (shape[0] // self._old * self._new, *shape[1:])


def _acts_along_batch(sig: Signature, of_batch: Sequence[bool]) -> bool:
    """Return whether an operator does more along the leading axis of what is of the batch than to carry it over."""
    attrs, operands = dict(sig.attrs), [t for t, is_of_batch in zip(sig.inputs, of_batch, strict=True) if is_of_batch]
    if sig.op.key == "Einsum":
        return _mixes_letters(attrs["equation"], of_batch)
    along = 0 in (attrs.get("axis"), *(attrs.get("axes") or ()))
    if along and (of_batch[0] or sig.op.key != "Gather"):  # of a table, rows are taken
        return True
    if sig.op.key in RESHAPING:
        return False
    if sig.op.key == "Pad" and (attrs["pads"][0] or attrs["pads"][len(attrs["pads"]) // 2]):
        return True
    return len({_shape(t)[:1] for t in (*operands, *sig.outputs)}) > 1


def _mixes_letters(equation: str, of_batch: Sequence[bool]) -> bool:
    """Return whether an Einsum does more with the first letter of its result than to carry it over."""
    left, _, result = equation.partition("->")
    letter, terms = result[:1], left.split(",")
    if "." in equation or not letter or letter in result[1:]:
        return True
    firsts = [term[:1] == letter for term in terms]
    return firsts != list(of_batch) or any(letter in term[1:] for term in terms)


def _shape(type_: ValueType | None) -> tuple[Any, ...]:
    return (type_.shape or ()) if isinstance(type_, TensorType) else ()
