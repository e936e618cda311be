"""What a node of a file reads besides its inputs, and whether it always computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, defs

from taso_gym.errors import ModelError

STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
FunctionKey = tuple[str, str, str]
"""Domain, name and overload of a model-local function."""


class Function(NamedTuple):
    """What is known of a model-local function.

    Attributes:
        pure: it always computes the same from the same inputs.
        digest: hash of its body and of the functions that it calls.
    """

    pure: bool
    digest: str


def describe(node: NodeProto) -> str:
    """Name a node for a message."""
    label = node.name or next(filter(None, node.output), "")
    return f"{node.domain + '.' if node.domain else ''}{node.op_type} {label!r}"


def domain_of(name: str) -> str:
    """Return a domain in its short form."""
    return "" if name == "ai.onnx" else name


def subgraphs(node: NodeProto) -> list[GraphProto]:
    """Return the graphs among the attributes of a node."""
    found: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        found.extend(attribute.graphs)
    return found


def inner_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs in a node at any depth."""
    waiting = subgraphs(node)
    while waiting:
        graph = waiting.pop()
        yield graph
        for inner in graph.node:
            waiting.extend(subgraphs(inner))


def inner_nodes(node: NodeProto) -> Iterator[NodeProto]:
    """Yield the nodes in the subgraphs of a node at any depth."""
    for graph in inner_graphs(node):
        yield from graph.node


def inner_names(node: NodeProto) -> set[str]:
    """Return every value name that occurs in the subgraphs of a node."""
    names: set[str] = set()
    for graph in inner_graphs(node):
        names.update(_defined(graph))
        for inner in graph.node:
            names.update(inner.input)
    return names


def fresh_names(node: NodeProto, taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield names for a node's inputs and outputs that occur neither in its subgraphs nor among others."""
    known = inner_names(node).union(taken)
    return (name for number in count() if (name := f"value{number}") not in known)


def inner_tensors(node: NodeProto) -> Iterator[TensorProto]:
    """Yield the tensors in the attributes of a node and in its subgraphs, at any depth."""
    for graph in inner_graphs(node):
        yield from graph.initializer
    for holder in (node, *inner_nodes(node)):
        for attribute in holder.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def captures(node: NodeProto) -> tuple[str, ...]:
    """Return the names of outer values that the subgraphs of a node read, sorted."""
    found: set[str] = set()
    waiting: list[tuple[GraphProto, _Scope | None]] = [(g, None) for g in subgraphs(node)]
    while waiting:
        graph, outer = waiting.pop()
        scope = _Scope(_defined(graph), outer)
        reads = [name for inner in graph.node for name in inner.input] + [o.name for o in graph.output]
        found.update(name for name in reads if name and not scope.has(name))
        waiting.extend((g, scope) for inner in graph.node for g in subgraphs(inner))
    return tuple(sorted(found))


class _Scope(NamedTuple):
    names: set[str]
    outer: _Scope | None

    def has(self, name: str) -> bool:
        scope: _Scope | None = self
        while scope:
            if name in scope.names:
                return True
            scope = scope.outer
        return False


def _defined(graph: GraphProto) -> set[str]:
    names = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    names |= {t.values.name for t in graph.sparse_initializer}
    return names.union(*(node.output for node in graph.node))


class Scope:
    """What a file says of operators: their opset versions, and the functions it defines."""

    def __init__(self, model: ModelProto, opsets: Mapping[str, int]) -> None:
        """Read the functions of a model with these opset imports."""
        self.opsets = opsets
        self.functions: dict[FunctionKey, Function] = {}
        for key, proto in _callees_first({(domain_of(f.domain), f.name, f.overload): f for f in model.functions}):
            versions = {domain_of(o.domain): o.version for o in proto.opset_import} or opsets
            called = [self.functions[k].digest for k in sorted(_calls(proto)) if k in self.functions]
            own = proto.SerializeToString(deterministic=True)
            digest = blake2b(own + repr(called).encode(), digest_size=16).hexdigest()
            pure = all(self._is_pure(n, versions, _nothing_known) for n in _nodes_of(proto))
            self.functions[key] = Function(pure, digest)

    def function(self, node: NodeProto) -> Function | None:
        """Return the model-local function that a node calls, or None."""
        return self.functions.get(function_key(node))

    def is_pure(self, node: NodeProto, is_false: Callable[[str], bool]) -> bool:
        """Whether a node of the main graph is deterministic and stateless, subgraphs and functions included.

        Args:
            node: a node.
            is_false: whether the value of that name is a constant that is false (Dropout's training_mode).
        """
        return self._is_pure(node, self.opsets, is_false) and all(
            self._is_pure(n, self.opsets, _nothing_known) for n in inner_nodes(node)
        )

    def _is_pure(self, node: NodeProto, opsets: Mapping[str, int], is_false: Callable[[str], bool]) -> bool:
        if function := self.function(node):
            return function.pure
        domain = domain_of(node.domain)
        if domain not in STANDARD_DOMAINS or not defs.has(node.op_type, domain=domain) or node.op_type in RANDOM:
            return False
        return not (domain == "" and trains(node, opsets.get("", 1), is_false))

    def context(self, node: NodeProto) -> str:
        """Return what besides its attributes gives a node its meaning: opset versions, digests of functions."""
        nodes = [node, *inner_nodes(node)]
        versions = {(d, self.opsets.get(d, 0)) for d in (domain_of(n.domain) for n in nodes)}
        called = {f.digest for f in map(self.function, nodes) if f}
        return repr((sorted(versions), sorted(called)))


def trains(node: NodeProto, opset: int, is_false: Callable[[str], bool]) -> bool:
    """Whether a standard node may run in training mode."""
    attrs = {a.name: a.i for a in node.attribute}
    if node.op_type == "Dropout":
        if opset < 7:
            return not attrs.get("is_test", 0)
        return opset >= 12 and len(node.input) > 2 and bool(node.input[2]) and not is_false(node.input[2])
    if node.op_type == "BatchNormalization":
        if opset < 7:
            return not attrs.get("is_test", 0)
        return bool(attrs.get("training_mode", 0)) if opset >= 14 else len(node.output) > 1
    return False


def function_key(node: NodeProto) -> FunctionKey:
    """Return what a model-local function that a node calls would be found by."""
    return domain_of(node.domain), node.op_type, node.overload


def _nothing_known(_name: str) -> bool:
    return False


def _nodes_of(function: FunctionProto) -> Iterator[NodeProto]:
    for node in function.node:
        yield node
        yield from inner_nodes(node)


def _calls(function: FunctionProto) -> set[FunctionKey]:
    return {function_key(n) for n in _nodes_of(function)}


def _callees_first(functions: Mapping[FunctionKey, FunctionProto]) -> Iterator[tuple[FunctionKey, FunctionProto]]:
    """Yield functions after all functions that they call.

    Raises:
        ModelError: a function calls itself.
    """
    calls = {key: _calls(proto) & functions.keys() for key, proto in functions.items()}
    callers: dict[FunctionKey, list[FunctionKey]] = {key: [] for key in functions}
    for key, callees in calls.items():
        for callee in callees:
            callers[callee].append(key)
    waiting = {key: len(callees) for key, callees in calls.items()}
    ready = [key for key, count in waiting.items() if not count]
    for key in ready:  # grows while it is read
        yield key, functions[key]
        for caller in callers[key]:
            waiting[caller] -= 1
            if not waiting[caller]:
                ready.append(caller)
    if len(ready) != len(functions):
        name = ".".join(filter(None, next(key for key, count in waiting.items() if count)))
        raise ModelError(f"expected functions that don't call themselves, found that {name} does")
