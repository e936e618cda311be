"""What onnxruntime really executes: the nodes of its optimised model, each with the values it runs on.

The sum of their times, each measured by itself, is within 1 % of a model's own after one constant, and ranks variants
right where sums over the operators of the file don't.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

from taso_gym.cost.beside import Serialised
from taso_gym.cost.node_keys import SMALL
from taso_gym.cost.runtime import Runtime
from taso_gym.cost.small_model import IR_VERSION, OPSET, STAND_IN, SmallModel, draw
from taso_gym.signature import stable_hash
from taso_gym.tensor import TensorType, dtype_name

VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
"""Operators that share their input's memory in a session, though not when they run by themselves."""
FUSED_SUM, ADDED_TO = frozenset({"Conv", "FusedConv"}), 3
"""Convolutions into which onnxruntime fuses an Add, and the place of the input that they add to."""
WRITTEN_OUT = {
    "FusedMatMul": {"alpha": "1.0"} | dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), "0"),
    "MultiHeadAttention": {"unidirectional": "0"},
}
"""Defaults that onnxruntime's own operators have in some optimised models, while others leave them out."""
BLOCKS = (4, 8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Executed:
    """A node that onnxruntime executes.

    Attributes:
        key: operator with the opset that it is defined in (the kernel of another may be another), attributes that
            aren't the default, types, small constants, which operands are the same, and which outputs it has unless it
            has the first alone: equal keys take equal time.
        make: returns the model of that node alone.
        feeds: its inputs, on the device.
        name: the node's name in the optimised model.
        added_to: name of the input that its kernel adds to in place, which it copies first when it runs alone; or "".
    """

    key: str
    make: Callable[[], Serialised]
    feeds: dict[str, Any]
    name: str
    added_to: str = ""

    @cached_property
    def model(self) -> Serialised:
        """What ``make`` returns: only the models of nodes that are measured are made, as weights may be large."""
        return self.make()


class Optimised(NamedTuple):
    """A model that onnxruntime has optimised, and its large weights, by name."""

    proto: ModelProto
    weights: Mapping[str, Any]


def executed_in(small: SmallModel, runtime: Runtime) -> list[Executed]:
    """Return the nodes that onnxruntime executes for a region, without stand-ins and conversions that others pay for.

    Raises:
        CostError: onnxruntime doesn't take or run it.
    """
    beside = {name: runtime.place_weight(value) for name, value in small.weights.items()}
    optimised = runtime.optimised(Serialised(small.proto.SerializeToString(), beside))
    stand_ins = {o for node in optimised.graph.node if STAND_IN in node.name for o in node.output}
    kept = [
        node
        for node in optimised.graph.node
        if STAND_IN not in node.name
        and not (node.op_type == "ReorderOutput" and node.input[0] in stand_ins)
        and not (node.op_type == "ReorderInput" and node.input[0] in small.converted_before)
    ]
    return _split(Optimised(optimised, _large_weights(optimised, beside, runtime)), kept, small.feeds, runtime)


def executed_nodes(model: bytes, feeds: Mapping[str, NDArray[Any]], runtime: Runtime) -> list[Executed]:
    """Return all nodes that onnxruntime executes for a model, but for views.

    Raises:
        CostError: onnxruntime doesn't take or run it.
    """
    optimised = runtime.optimised(model)
    return _split(Optimised(optimised, {}), list(optimised.graph.node), feeds, runtime)


def smallest_view(runtime: Runtime) -> Executed:
    """Return a view of one number: what it takes is what any view takes in a network, where none is copied."""
    model = ModelProto(ir_version=IR_VERSION, opset_import=[helper.make_opsetid("", OPSET)])
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    weights = {"shape": numpy_helper.from_array(np.ones(1, np.int64), "shape")}
    return _alone(node, weights, {"x": runtime.place(np.ones(1, np.float32))}, Optimised(model, {}))


def block_channels(runtime: Runtime) -> int:
    """Return how many channels a block of onnxruntime's layout NCHWc has on this CPU; 0 where it has none."""
    for channels in BLOCKS:
        node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, 4, 4])
        graph = helper.make_graph([node], "pool", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        if any(n.domain == "com.microsoft.nchwc" for n in runtime.optimised(model.SerializeToString()).graph.node):
            return channels
    return 0


def _large_weights(optimised: ModelProto, given: Mapping[str, Any], runtime: Runtime) -> dict[str, Any]:
    """Return those that are beside a model: given ones if it still has them; others, made of these, are drawn."""
    rng, found = np.random.default_rng(0), dict[str, Any]()
    for w in optimised.graph.initializer:
        if w.data_location == TensorProto.EXTERNAL:
            known, shape = given.get(w.name), tuple(w.dims)
            kept = known is not None and (known.element_type(), tuple(known.shape())) == (w.data_type, shape)
            type_ = TensorType(dtype_name(w.data_type), shape)
            found[w.name] = known if kept else runtime.place_weight(draw(type_, rng))
    return found


def _split(
    optimised: Optimised, kept: list[NodeProto], feeds: Mapping[str, NDArray[Any]], runtime: Runtime
) -> list[Executed]:
    weights = {w.name: w for w in optimised.proto.graph.initializer}
    placed = {name: runtime.place(value) for name, value in feeds.items()}
    needed = {name for node in kept for name in node.input if name and name not in weights}
    values = {**placed, **_intermediate(optimised, needed - placed.keys(), placed, runtime)}
    return [_alone(node, weights, values, optimised) for node in kept if node.op_type not in VIEWS]


def _intermediate(
    optimised: Optimised, wanted: set[str], placed: Mapping[str, Any], runtime: Runtime
) -> dict[str, Any]:
    """Run a model as it is, but for its outputs, and return values in it: with shapes and layouts of the real run."""
    if not wanted:
        return {}
    names, model = sorted(wanted), optimised.proto
    del model.graph.output[:]  # nobody reads them any more, and a copy of the weights may take seconds
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    session = runtime.open(Serialised(model.SerializeToString(), optimised.weights), optimise=False, pack=False)
    return dict(zip(names, runtime.bind(session, placed)(), strict=True))


def _alone(
    node: NodeProto, weights: Mapping[str, TensorProto], values: Mapping[str, Any], optimised: Optimised
) -> Executed:
    inputs: list[ValueInfoProto] = []
    own: list[TensorProto] = []
    texts: list[str] = []
    for place, name in enumerate(node.input):
        if name and (first := list(node.input).index(name)) < place:
            texts.append(f"{texts[first]}={first}")
        elif name in weights:
            texts.append(_describe(weights[name]))
            own.append(weights[name])
        elif name:
            kind, shape = values[name].data_type(), values[name].shape()
            texts.append(f"{kind.removeprefix('tensor(').removesuffix(')')}{list(shape)}")
            inputs.append(helper.make_tensor_value_info(name, values[name].element_type(), shape))
        else:
            texts.append("-")
    opset = max((o.version for o in optimised.proto.opset_import if o.domain == node.domain), default=1)
    since, defaults = _definition(node.domain, node.op_type, opset)
    given = ((a.name, _attribute(a)) for a in node.attribute)
    attrs = ", ".join(sorted(f"{name}={value}" for name, value in given if defaults.get(name) != value))
    domain = f"{node.domain}." if node.domain else ""
    places = [str(place) for place, name in enumerate(node.output) if name]
    made = "" if places == ["0"] else f" makes {', '.join(places)}"
    key = f"{domain}{node.op_type}{since}[{attrs}]({', '.join(texts)}){made}"
    feeds = {e.name: values[e.name] for e in inputs}
    added_to = node.input[ADDED_TO] if node.op_type in FUSED_SUM and len(node.input) > ADDED_TO else ""
    make = partial(_model_of, node, inputs, own, optimised)
    return Executed(key, make, feeds, node.name, added_to if added_to in feeds else "")


def _model_of(node: NodeProto, inputs: list[ValueInfoProto], own: list[TensorProto], of: Optimised) -> Serialised:
    """Return the model of a node alone, in the opsets of the model that it is of."""
    model = ModelProto(ir_version=of.proto.ir_version)
    model.opset_import.extend(of.proto.opset_import)
    model.graph.name = "node"
    model.graph.node.append(node)
    model.graph.input.extend(inputs)
    model.graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
    model.graph.initializer.extend(own)
    return Serialised(model.SerializeToString(), {w.name: of.weights[w.name] for w in own if w.name in of.weights})


@cache
def _definition(domain: str, name: str, opset: int) -> tuple[str, dict[str, str]]:
    """Return the opset that an operator of the standard is defined in, as text, and the defaults of its attributes.

    FusedConv, FusedGemm and FusedMatMul have those of the operator that something is fused to.
    """
    standard, version = (name.removeprefix("Fused"), OPSET) if domain else (name, opset)
    own = WRITTEN_OUT.get(name, {}) if domain else {}
    if (domain and standard == name) or not defs.has(standard, version):
        return "", own
    schema = defs.get_schema(standard, version)
    values = {n: a.default_value for n, a in schema.attributes.items()}
    since = "" if domain else f"-{schema.since_version}"
    return since, {n: _attribute(v) for n, v in values.items() if v.type} | own


def _describe(weight: TensorProto) -> str:
    shape = list(weight.dims)
    text = f"const {TensorProto.DataType.Name(weight.data_type).lower()}{shape}"
    if np.prod(shape) <= SMALL:
        text += f"={numpy_helper.to_array(weight).reshape(-1).tolist()}"
    return text


def _attribute(attribute: AttributeProto) -> str:
    value = helper.get_attribute_value(attribute)
    if attribute.type in (AttributeProto.TENSOR, AttributeProto.GRAPH):
        return f"{stable_hash(value.SerializeToString()):016x}"
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
