"""Small ONNX models of regions, which onnxruntime optimises and runs to show what it makes of them.

A region's neighbours are stood in for where they decide the layout: a value that comes in blocks comes out of a
convolution, one that is read in blocks goes into one. Constants are initializers, since onnxruntime packs weights and
fuses only then; the table of a Gather is an input, which costs nothing to make.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from taso_gym.cost.beside import declared, is_large, repeated
from taso_gym.cost.dims import Dims, size_bytes, sizes_of
from taso_gym.cost.layout import GLOBAL_POOLS
from taso_gym.cost.machine import available_bytes, memory_bytes
from taso_gym.cost.memory import peak_bytes
from taso_gym.cost.region import BLOCKED, PLAIN, Operand, Part, Region, Wanted
from taso_gym.cost.regional import bind_signature
from taso_gym.errors import KernelError, OutOfMemoryError
from taso_gym.graph import Graph
from taso_gym.ops import OPERATORS, Operator
from taso_gym.ops.onnx_form import to_onnx
from taso_gym.signature import OpaqueOperator, Signature
from taso_gym.tensor import FLOATS, TensorType, ValueType, dtype_code, numpy_dtype

OPSET = 20
"""Opset of the small models unless that of a file is given: some kernels of onnxruntime depend on it."""
IR_VERSION = 10
STAND_IN = "stand-in"
"""Beginning of the names of the stand-ins' values and nodes."""
FEW_CHANNELS = 4
MOST_ROWS = 16384
"""Rows of a Gather's table that are made: the indices are zero, so the others aren't read."""
COPIES = 4
"""How often a value is in memory: as an array, as onnxruntime's, and of weights as it stores and as it packs them."""
LARGEST_BYTES = (1 << 31) - (1 << 20)
"""Bytes of the constants within a model, which protobuf lets take 2 GiB with all that is around them."""
DIVISIONS = frozenset({"Div", "Mod"})
POSITIVE = frozenset({"Sqrt", "Log", "Pow", "BatchNormalization", "Acosh", "Acos", "Asin", "Atanh"})
"""Operators that make NaN of negative values, which some kernels are slow at."""


def draw_inputs(graph: Graph, dims: Dims) -> dict[str, NDArray[Any]]:
    """Return values for a graph's inputs, by name, to run it on.

    Raises:
        KernelError: an input isn't a tensor, or of unknown rank.
        OutOfMemoryError: there isn't the memory to run it.
    """
    if (needed := peak_bytes(graph, dims)) > (found := available_bytes()):
        raise OutOfMemoryError(f"expected {needed} bytes of memory to run the graph, found {found}")
    rng, drawn = np.random.default_rng(0), dict[str, NDArray[Any]]()
    for value in graph.info.inputs:
        name, [t] = graph.leaves[value].name, dims.bind([graph.type_of(value)])
        if not isinstance(t, TensorType) or t.shape is None:
            raise KernelError(f"expected inputs that are tensors of a known rank, found {name}")
        drawn[name] = draw(t, rng)
    return drawn


def draw(t: TensorType, rng: np.random.Generator, ones: bool = False, positive: bool = False) -> NDArray[Any]:
    """Return a value of a type.

    Floats of magnitude 0.1 to 1 and either sign, or positive ones; either truth value; else zeros (or ones), which are
    indices that exist. A kernel that branches on the sign, such as PRelu's, takes ten times as long where it can't be
    foreseen.
    """
    shape = sizes_of(t)
    if t.dtype == "string":
        return np.full(shape, "a", object)
    dtype = numpy_dtype(t.dtype)
    if t.dtype not in FLOATS and t.dtype != "bool":
        return np.full(shape, int(ones), dtype)
    size = min(math.prod(shape), 1 << 16)
    if t.dtype == "bool":
        return np.resize(rng.integers(0, 2, size), shape).astype(bool)
    block = rng.uniform(0.1, 1.0, size)
    if not positive:
        block *= rng.choice([-1.0, 1.0], size)
    return repeated(block.astype(dtype), shape)  # drawing all of a large weight takes seconds


class SmallModel:
    """The model of a region.

    Attributes:
        proto: the model.
        feeds: values of its inputs.
        weights: values of its large constants, which are beside it.
        converted_before: values whose conversion to blocks is paid for where they are made.
    """

    def __init__(self, region: Region, dims: Dims, opset: int = OPSET) -> None:
        """Build the model in an opset, or the first that has its operators; symbols are bound by ``dims``.

        Raises:
            KernelError: the region holds an operator that isn't in the table, a value that is no tensor, or more
                constants than fit into a model.
            OutOfMemoryError: it holds more than fits into memory.
        """
        self.feeds: dict[str, NDArray[Any]] = {}
        self.weights: dict[str, NDArray[Any]] = {}
        self.converted_before: set[str] = set()
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self.proto = ModelProto(ir_version=IR_VERSION)
        self._weight_bytes = 0
        self._rng = np.random.default_rng(0)
        self._names: dict[int, str] = {}
        bound = [self._bind(part, dims) for part in region.nodes]
        needed = COPIES * sum(size_bytes(t) for sig in bound for t in (*sig.inputs, *sig.outputs))
        if needed > (most := memory_bytes()):
            raise OutOfMemoryError(f"expected operators that {most} bytes of memory can hold, found {bound[0]}")
        operators = [OPERATORS[sig.op.domain, sig.op.name] for sig in bound]
        opset = max([opset, *(op.since for op in operators if not op.domain)])
        for i, (part, sig, op) in enumerate(zip(region.nodes, bound, operators, strict=True)):
            self._add(i, part._replace(sig=sig), op, region, 1 if op.domain else opset)
        for w in region.outputs:
            self._leave(w, bound[w.node].outputs[w.output], len(bound) == 1)
        self.proto.opset_import.extend([helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
        graph = self.proto.graph
        graph.name = "region"
        graph.node.extend(self._nodes)
        graph.input.extend(self._inputs)
        graph.output.extend(self._outputs)

    def _bind(self, part: Part, dims: Dims) -> Signature:
        if isinstance(part.sig.op, OpaqueOperator):
            raise KernelError(f"expected an operator of the table, found {part.sig}")
        return bind_signature(part.sig, dims)

    def _add(self, i: int, part: Part, op: Operator, region: Region, opset: int) -> None:
        sig = part.sig
        exported = to_onnx(sig, opset)
        node = exported.node
        node.name = f"node-{i}"
        taken = {index for index, since in op.inputs_as_attrs.values() if opset >= since}
        places = (index for index in range(len(sig.inputs) + len(taken)) if index not in taken)
        names = {index: self._weight(f"{node.name}-{index}", value) for index, value in exported.constants.items()}
        for index, operand, t in zip(places, part.operands, sig.inputs, strict=False):
            if operand is not None and t is not None:
                names[index] = self._operand((i, index), operand, t, sig, region)
        node.input.extend(names.get(index, "") for index in range(max(names, default=-1) + 1))
        node.output.extend(f"value-{i}-{output}" for output in range(len(sig.outputs)))
        self._nodes.append(node)

    def _operand(self, place: tuple[int, int], operand: Operand, t: ValueType, sig: Signature, region: Region) -> str:
        if not isinstance(t, TensorType):
            raise KernelError(f"expected tensors as operands of {sig.op.key}, found {t}")
        if operand.kind == "node":
            return f"value-{operand.place}-{operand.output}"
        name, divisor = f"node-{place[0]}-{place[1]}", sig.op.name in DIVISIONS
        positive = sig.op.name in POSITIVE
        if operand.kind == "constant" and (sig.op.name != "Gather" or place[1] > 0):
            value = draw(t, self._rng, divisor, positive)
            return self._weight(name, value if operand.value is None else np.full_like(value, operand.value))
        if operand.kind == "constant":
            return self._input(name, _few_rows(t, sig.attr("axis")), divisor, positive)
        if operand.place not in self._names:
            layout = region.inputs[operand.place]
            alone = (len(region.nodes) == 1 and sig.op.name not in GLOBAL_POOLS) or t.dtype not in FLOATS
            if layout == BLOCKED:
                self._names[operand.place] = self._enter_blocked(operand.place, t, positive)
            else:
                made = self._input(name, t, divisor, positive) if alone else self._enter(operand.place, t, positive)
                self._names[operand.place] = made
            if layout == PLAIN:
                self.converted_before.add(self._names[operand.place])
        return self._names[operand.place]

    def _weight(self, name: str, value: NDArray[Any]) -> str:
        if is_large(value):
            self.weights[name] = value
            self.proto.graph.initializer.append(declared(name, value))
            return name
        self._weight_bytes += value.nbytes
        if self._weight_bytes > LARGEST_BYTES:
            raise KernelError(f"expected {LARGEST_BYTES} bytes of constants at most, found more, up to {name}")
        self.proto.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def _input(self, name: str, t: TensorType, ones: bool = False, positive: bool = False) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, dtype_code(t.dtype), sizes_of(t)))
        self.feeds[name] = draw(t, self._rng, ones, positive)
        return name

    def _enter(self, place: int, t: TensorType, positive: bool) -> str:
        """Return a value that an operator makes: some fusions, and the layout of global pools, look for one before."""
        name = f"{STAND_IN}-before-{place}"
        operator = "Abs" if positive else "Neg"
        self._nodes.append(helper.make_node(operator, [self._input(f"{name}-input", t)], [name], f"{name}-operator"))
        return name

    def _enter_blocked(self, place: int, t: TensorType, positive: bool) -> str:
        """Return an image in blocks: what a convolution (with an activation, so that it takes no other) makes."""
        batch, _, *size = sizes_of(t)
        name = f"{STAND_IN}-before-{place}"
        plain = self._input(f"{name}-input", t._replace(shape=(batch, FEW_CHANNELS, *size)))
        shape = (sizes_of(t)[1], FEW_CHANNELS, 1, 1)  # drawn, so that no two channels have their signs alike
        weight = self._weight(f"{name}-weight", draw(TensorType("float", shape), self._rng))
        self._nodes += [
            helper.make_node("Conv", [plain, weight], [f"{name}-linear"], f"{name}-convolution"),
            helper.make_node("Sigmoid" if positive else "Tanh", [f"{name}-linear"], [name], f"{name}-activation"),
        ]
        return name

    def _leave(self, wanted: Wanted, t: ValueType, alone: bool) -> None:
        """Let a value be read plain, in blocks, or both."""
        assert isinstance(t, TensorType)
        value = f"value-{wanted.node}-{wanted.output}"
        name = f"{STAND_IN}-after-{wanted.node}-{wanted.output}"
        if wanted.layout != BLOCKED and (alone or t.dtype not in FLOATS):
            self._outputs.append(helper.make_tensor_value_info(value, dtype_code(t.dtype), None))
        elif wanted.layout != BLOCKED:  # some fusions take no values that leave the model
            self._nodes.append(helper.make_node("Abs", [value], [name], f"{name}-operator"))
            self._outputs.append(helper.make_tensor_value_info(name, dtype_code(t.dtype), None))
        if wanted.layout != PLAIN:  # the sum stays in blocks where a convolution reads few channels plain
            weight = self._weight(f"{name}-weight", np.full((FEW_CHANNELS, sizes_of(t)[1], 1, 1), 0.1, np.float32))
            self._nodes += [
                helper.make_node("Add", [value, value], [f"{name}-sum"], f"{name}-addition"),
                helper.make_node("Conv", [f"{name}-sum", weight], [f"{name}-image"], f"{name}-convolution"),
            ]
            self._outputs.append(helper.make_tensor_value_info(f"{name}-image", TensorProto.FLOAT, None))


def _few_rows(table: TensorType, axis: int) -> TensorType:
    """Return the type of the table that is made for a Gather: cut along the axis that it picks from."""
    sizes = list(sizes_of(table))
    sizes[axis] = min(sizes[axis], MOST_ROWS)
    return table._replace(shape=tuple(sizes))
