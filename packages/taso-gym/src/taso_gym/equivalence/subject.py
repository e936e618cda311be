"""A model that is to be compared, and how it is run: here, or in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto

from taso_gym.checks import check_kind
from taso_gym.cost.packages import expecting_room
from taso_gym.equivalence.child import run_in_child
from taso_gym.equivalence.compare import Value
from taso_gym.equivalence.runtime import Feeds, run_model
from taso_gym.equivalence.seeds import is_random, seeded
from taso_gym.errors import EquivalenceError
from taso_gym.graph import Graph, Node, producer_of
from taso_gym.onnx_io import from_model, load, save, to_model, with_dims
from taso_gym.onnx_io.reference import blank_node
from taso_gym.onnx_io.types import element_of
from taso_gym.signature import OpaqueOperator
from taso_gym.tensor import TensorType

FILE_BYTES = 50_000_000
"""Graphs with more bytes of weights are written to disk, which takes a fourth of the time that copying them does."""
PROTO_BYTES = 2_000_000_000
"""What is larger can't be one message, with what isn't weights."""
CHILD_BYTES = 500_000_000
"""Models with more bytes of weights run in a process of their own, one at a time."""
DEADLY = frozenset({("", "STFT")})
"""Operators at which onnxruntime ends the process where it should refuse a value: a step of zero."""


@dataclass(frozen=True)
class Subject:
    """A model as a graph and as something to run."""

    graph: Graph
    content: Path | bytes
    weight_bytes: int

    def run(self, feeds: Sequence[Feeds]) -> list[list[Value] | str]:
        """Return the outputs for each set of inputs, or onnxruntime's message where it failed.

        Random operators draw the same for each, whatever was run before.
        """
        if len(feeds) > 1 and is_random(self.graph):
            return [result for feed in feeds for result in self.run([feed])]
        if isinstance(self.content, Path) and (self.weight_bytes > CHILD_BYTES or _is_deadly(self.graph)):
            return run_in_child(self.content, feeds)
        return run_model(self.content, feeds)


def subject(model: Graph | ModelProto | str | Path, stack: ExitStack, dims: Mapping[str, int] | None = None) -> Subject:
    """Return a model as something to run; what has to lie on disk for that does so until the stack is closed.

    Sizes that are given for dimensions are added to those that a graph knows. Random operators have seeds there.

    Raises:
        OptionError: it is something else.
        CostError: there is no room for temporary files.
    """
    check_kind("model", model, (Graph, ModelProto, str, Path), "a Graph, ModelProto or path")
    if isinstance(model, str | Path):
        graph = load(model, dims)
        if not is_random(graph):
            return Subject(graph, Path(model), _weight_bytes(graph))
        model = _loaded(model) if _weight_bytes(graph) < PROTO_BYTES else graph
    else:
        graph = from_model(model) if isinstance(model, ModelProto) else model
        graph = with_dims(graph, {**graph.info.dims, **(dims or {})})
    size = _weight_bytes(graph)
    in_memory = size <= FILE_BYTES and not _is_deadly(graph)
    proto = model if isinstance(model, ModelProto) and size < PROTO_BYTES else to_model(graph) if in_memory else None
    if proto is not None and is_random(graph):
        proto = seeded(proto)
    if proto is not None and in_memory:
        return Subject(graph, proto.SerializeToString(), size)
    with expecting_room():
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="taso-gym-"))) / "model.onnx"
        if proto is None:
            save(graph, path)
            proto = seeded(ModelProto.FromString(path.read_bytes())) if is_random(graph) else None
        if proto is not None:
            path.write_bytes(proto.SerializeToString())
    return Subject(graph, path, size)


def _loaded(path: str | Path) -> ModelProto:
    return onnx.load(str(path))  # pyright: ignore[reportUnknownMemberType]


def _is_deadly(graph: Graph) -> bool:
    nodes = [node for _, node in graph.operators()]
    keys = {(node.sig.op.domain, node.sig.op.name) for node in nodes}
    return not keys.isdisjoint(DEADLY) or any(_is_cast_between(graph, n) or _is_loop_without(n) for n in nodes)


def _is_loop_without(node: Node) -> bool:
    """Whether a Loop leaves out an output, at which onnxruntime 1.31 ends the process."""
    op = node.sig.op
    return isinstance(op, OpaqueOperator) and (op.domain, op.name) == ("", "Loop") and "" in blank_node(op).output


def _is_cast_between(graph: Graph, node: Node) -> bool:
    """Whether a product takes what is first transposed and then cast; the cast of float16 is onnxruntime's own.

    onnxruntime 1.31 ends the process where it would fuse such a Transpose that moves a leading axis.
    """
    left = node.inputs[0] if node.sig.op.name == "MatMul" else None
    cast = _producer(graph, left)
    if cast and cast.sig.op.name == "Cast":
        left = cast.inputs[0]
    elif left is None or element_of(graph.type_of(left)) != "float16":
        return False
    before = _producer(graph, left)
    return before is not None and before.sig.op.name == "Transpose"


def _producer(graph: Graph, value: int | None) -> Node | None:
    return None if value is None else graph.nodes.get(producer_of(value))


def _weight_bytes(graph: Graph) -> int:
    types = [leaf.type for value, leaf in graph.leaves.items() if leaf.weight and value in graph.uses]
    return sum(t.size_bytes for t in types if isinstance(t, TensorType))


def expect_one_interface(a: Graph, b: Graph) -> None:
    """Raise an EquivalenceError unless both have inputs and outputs of the same names and types.

    Only the second may have further inputs with a default: who runs the first doesn't give these.
    """
    known = _types(a, a.info.defaults)
    further = {name: type_ for name, type_ in _types(b, b.info.defaults).items() if name in known}
    for what, x, y in (
        ("inputs", _required(a), _required(b)),
        ("inputs with a default", known, further),
        ("outputs", _outputs(a), _outputs(b)),
    ):
        types = zip(x.values(), y.values(), strict=False)
        if list(x) != list(y) or any(p != q and None not in (p, q) for p, q in types):
            raise EquivalenceError(f"expected models with the same {what}, found {_listed(x)} and {_listed(y)}")


def _required(graph: Graph) -> dict[str, str | None]:
    return _types(graph, set(graph.info.inputs) - graph.info.defaults.keys())


def _types(graph: Graph, inputs: Iterable[int]) -> dict[str, str | None]:
    """Return the element types of some inputs, by name in order."""
    return dict(sorted((graph.leaves[value].name, element_of(graph.type_of(value))) for value in inputs))


def _outputs(graph: Graph) -> dict[str, str | None]:
    return dict(zip(graph.info.output_names, (element_of(graph.type_of(v)) for v in graph.outputs), strict=True))


def _listed(types: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}: {type_ or 'unknown'}" for name, type_ in types.items()) or "none"
