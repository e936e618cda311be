"""One side of a TASO rule as terms of our notation; see `taso_gym.rules.taso_pb` for what is made explicit."""

from __future__ import annotations

from collections.abc import Callable

from taso_gym.errors import RuleError
from taso_gym.rules.taso_wire import TasoOperator, TasoTensor

KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD, ACTIVATION = 4, 5, 6, 7, 8, 9
NUM_INPUTS, NUM_OUTPUTS, NUM_DIM, AXIS, PERM, SHUFFLE = 1, 2, 10, 11, 12, 13
ACTIVATIONS = {0: "", 1: "Sigmoid", 2: "Relu", 3: "Tanh"}
CONV, POOL_MAX, POOL_AVG, CONCAT, SPLIT, TRANSPOSE, MATMUL, ENLARGE = 3, 6, 7, 12, 13, 15, 18, 20
SCALED = 19
IMM, ICONV, ONE, CPOOL = 22, 23, 24, 25
CONSTANTS = frozenset({IMM, ICONV, ONE, CPOOL})
ELEMENTWISE = {8: "Relu", 9: "Sigmoid", 10: "Tanh", 16: "Add", 17: "Mul", SCALED: "Mul", 28: "Sub", 29: "Div"}


def name_of(variable: int) -> str:
    """Return what a variable of TASO's is called."""
    return f"x{-variable}"


class Side:
    """Writes the operators of one side as terms.

    Attributes:
        variables: those that occur.
        ranks: rank of a variable, where an operator says it.
        conditions: what TASO's parameters demand of variables.
    """

    def __init__(self, ops: tuple[TasoOperator, ...], kernels: dict[int, tuple[int, int]], groups: str) -> None:
        self.ops, self.kernels, self.groups = ops, kernels, groups
        self.variables: set[int] = set()
        self.ranks: dict[int, int] = {}
        self.conditions: list[str] = []

    def term(self, tensor: TasoTensor) -> str:
        """Return the term of a tensor.

        Raises:
            RuleError: ONNX or our notation has no such operator, activation, padding or Split.
        """
        if tensor.op < 0:
            self.variables.add(tensor.op)
            return name_of(tensor.op)
        op = self.ops[tensor.op]
        if op.type in ELEMENTWISE:
            return self._elementwise(op)
        writer = WRITERS.get(op.type)
        if writer is None:
            raise RuleError(f"expected an operator of TASO's that ONNX has, found type {op.type}")
        text = writer(self, op)
        if op.type == SPLIT:
            return f"{text}[{tensor.output}]"
        if op.type in CONSTANTS:
            return text
        activation = ACTIVATIONS.get(op.parameters.get(ACTIVATION, 0))
        if activation is None:
            raise RuleError(f"expected an activation of TASO's, found {op.parameters[ACTIVATION]}")
        return f"{activation}({text})" if activation else text

    def _elementwise(self, op: TasoOperator) -> str:
        terms = [self.term(t) for t in op.inputs]
        if op.type == SCALED and op.inputs[1].op < 0:
            self.ranks[op.inputs[1].op] = 0
        elif len(terms) == 2 and terms[0] != terms[1]:
            self._alike(*op.inputs)
        return f"{ELEMENTWISE[op.type]}({', '.join(terms)})"

    def _alike(self, a: TasoTensor, b: TasoTensor) -> None:
        """Demand one shape, since TASO's element-wise operators don't broadcast."""
        if a.op < 0 and b.op < 0:
            self.conditions.append(f"shape({name_of(a.op)}) == shape({name_of(b.op)})")
            return
        rank = self.rank_of(a) or self.rank_of(b) or 0
        sizes = [(self.size(a, axis), self.size(b, axis)) for axis in range(rank)]
        self.conditions += [f"{x} == {y}" for x, y in sizes if x != y]

    def rank_of(self, tensor: TasoTensor) -> int | None:
        """Return the rank of a tensor; None where nothing says it."""
        if tensor.op < 0:
            return self.ranks.get(tensor.op)
        op = self.ops[tensor.op]
        known = {CONV: 4, POOL_MAX: 4, POOL_AVG: 4, MATMUL: 2}.get(op.type, op.parameters.get(NUM_DIM))
        return known or next((rank for t in op.inputs if (rank := self.rank_of(t))), None)

    def conv(self, op: TasoOperator) -> str:
        """Write a convolution."""
        data, weight = (self.term(t) for t in op.inputs)
        for tensor in op.inputs:
            self.rank(tensor, 4)
        kernel = (op.parameters[KERNEL_H], op.parameters[KERNEL_W])
        for variable, wanted in self.kernels.items():
            if variable in self.variables and self.groups != "right":
                sizes = [
                    f"dim({name_of(variable)}, {axis}) == {size}" for axis, size in zip((2, 3), wanted, strict=True)
                ]
                self.conditions += [s for s in sizes if s not in self.conditions]
        attrs = self.window(op, kernel)
        if self.groups == "left" and not self._is_pool(op.inputs[1]):
            attrs.append(f"group=g{self.ops.index(op)}")
        elif self._is_pool(op.inputs[1]):
            attrs.append(f"group={self.size(op.inputs[0], 1)}")
        elif self.groups == "right":
            attrs.append(f"group={self.size(op.inputs[0], 1)} // {self.size(op.inputs[1], 1)}")
        return f"Conv({', '.join([data, weight, *attrs])})"

    def window(self, op: TasoOperator, kernel: tuple[int, int]) -> list[str]:
        """Return pads and strides.

        Raises:
            RuleError: it is SAME padding that depends on the size of the image.
        """
        strides = [op.parameters[STRIDE_H], op.parameters[STRIDE_W]]
        same = op.parameters[PAD] == 0
        if same and (strides != [1, 1] or not all(k % 2 for k in kernel)):
            raise RuleError(f"expected SAME padding with stride 1 and odd kernels, found stride {strides}, {kernel}")
        pads = [k // 2 for k in kernel] * 2
        found = [f"pads={pads}"] if same and any(pads) else []
        return found + ([f"strides={strides}"] if strides != [1, 1] else [])

    def pool(self, op: TasoOperator) -> str:
        """Write a pool."""
        kernel = (op.parameters[KERNEL_H], op.parameters[KERNEL_W])
        self.rank(op.inputs[0], 4)
        attrs = [f"kernel_shape={list(kernel)}", *self.window(op, kernel)]
        counted = ["count_include_pad=1"] if op.type == POOL_AVG else []
        name = "AveragePool" if op.type == POOL_AVG else "MaxPool"
        return f"{name}({', '.join([self.term(op.inputs[0]), *attrs, *counted])})"

    def matmul(self, op: TasoOperator) -> str:
        """Write a product."""
        for tensor in op.inputs:
            self.rank(tensor, 2)
        return f"MatMul({', '.join(self.term(t) for t in op.inputs)})"

    def concat(self, op: TasoOperator) -> str:
        """Write a Concat."""
        for tensor in op.inputs:
            self.rank(tensor, op.parameters[NUM_DIM])
        return f"Concat({', '.join(self.term(t) for t in op.inputs)}, axis={op.parameters[AXIS]})"

    def split(self, op: TasoOperator) -> str:
        """Write a Split; where it divides follows from the Concat that its operand comes from.

        Raises:
            RuleError: there is no such Concat.
        """
        axis = op.parameters[AXIS]
        parts = self.parts(op.inputs[0], axis)
        if parts is None or len(parts) != op.parameters[NUM_OUTPUTS]:
            raise RuleError("expected a Split below a Concat on its axis, found none")
        return f"Split({self.term(op.inputs[0])}, axis={axis}, split=[{', '.join(parts)}])"

    def transpose(self, op: TasoOperator) -> str:
        """Write a Transpose; the permutation is one number to the base of the rank."""
        rank, code = op.parameters[NUM_DIM], op.parameters[PERM]
        perm = [code // rank**i % rank for i in range(rank)][::-1]
        self.rank(op.inputs[0], rank)
        return f"Transpose({self.term(op.inputs[0])}, perm={perm})"

    def enlarge(self, op: TasoOperator) -> str:
        """Write the growing of a kernel by zeros on all sides."""
        (tensor,) = op.inputs[:1]
        kernel = self.kernels.get(tensor.op) or ((1, 3) if -15 <= tensor.op <= -13 else (3, 1))
        grown = [(op.parameters[key] - size) // 2 for key, size in zip((KERNEL_H, KERNEL_W), kernel, strict=True)]
        self.rank(tensor, 4)
        name = self.term(tensor)
        if tensor.op < 0:
            self.conditions += [f"dim({name}, {a}) == {k}" for a, k in zip((2, 3), kernel, strict=True)]
        return f"Pad({name}, pads=[0, 0, {grown[0]}, {grown[1]}, 0, 0, {grown[0]}, {grown[1]}])"

    def _is_pool(self, tensor: TasoTensor) -> bool:
        op = self.ops[tensor.op] if tensor.op >= 0 else None
        return op is not None and (op.type == CPOOL or (op.type == SCALED and self._is_pool(op.inputs[0])))

    def constant(self, op: TasoOperator) -> str:
        """Write one of TASO's constants: its size is that of what it is used with."""
        size = self._rows(self.ops.index(op))
        kernel = (op.parameters.get(KERNEL_H, 1), op.parameters.get(KERNEL_W, 1))
        if op.type == ONE:
            return "1"
        if op.type == CPOOL:
            ones = f"Expand(1, shape=[{size}, 1, {kernel[0]}, {kernel[1]}])"
            return f"Div({ones}, {kernel[0] * kernel[1]})"
        ones = f"Pad(Expand(1, shape=[{size}, 1]), pads=[0, 0, 0, {size}])"
        flat = f"Reshape({ones}, shape=[{size} * ({size} + 1)])"
        diagonal = f"Slice({flat}, starts=[0], ends=[{size} * {size}], axes=[0])"
        if op.type == IMM:
            return f"Reshape({diagonal}, shape=[{size}, {size}])"
        pads = [0, 0, kernel[0] // 2, kernel[1] // 2] * 2
        return f"Pad(Reshape({diagonal}, shape=[{size}, {size}, 1, 1]), pads={pads})"

    def _rows(self, number: int) -> str:
        """Return how many rows a constant has: as many as what it is used with asks for."""
        for op in self.ops:
            for place, tensor in enumerate(op.inputs):
                if tensor.op != number:
                    continue
                if len(op.inputs) == 1 or op.type == SCALED:  # of the constant's own shape, in the axes that count
                    return self._rows(self.ops.index(op))
                other = op.inputs[1 - place]
                if other.op >= 0 and (other == tensor or self.ops[other.op].type in CONSTANTS):
                    break
                if op.type == CONCAT:  # square, so as large as the axis that isn't joined
                    return self.size(other, 1 - op.parameters[AXIS])
                return self.size(other, {MATMUL: place, CONV: 1}.get(op.type, 0))
        raise RuleError("expected a constant beside a tensor that says its size, found none")

    def rank(self, tensor: TasoTensor, rank: int) -> None:
        """Note the rank of a variable."""
        if tensor.op < 0:
            self.ranks.setdefault(tensor.op, rank)

    def parts(self, tensor: TasoTensor, axis: int) -> list[str] | None:
        """Return the sizes that a tensor was joined of along an axis."""
        op = self.ops[tensor.op] if tensor.op >= 0 else None
        if op is None:
            return None
        if op.type == CONCAT and op.parameters[AXIS] == axis:
            return [self.size(t, axis) for t in op.inputs]
        if op.type == MATMUL:
            return self.parts(op.inputs[axis], axis)
        if op.type == TRANSPOSE:
            return self.parts(op.inputs[0], 1 - axis) if op.parameters[NUM_DIM] == 2 else None
        if op.type == CONV:
            return self.parts(op.inputs[axis], 0) if axis < 2 else None
        return next((p for t in op.inputs if (p := self.parts(t, axis))), None)

    def size(self, tensor: TasoTensor, axis: int) -> str:
        """Return the size of a tensor's axis over the variables' sizes."""
        if tensor.op < 0:
            return f"dim({name_of(tensor.op)}, {axis})"
        op = self.ops[tensor.op]
        if op.type in CONSTANTS:
            return "1" if op.type == CPOOL and axis == 1 else self._rows(tensor.op)
        if op.type == CONCAT and op.parameters[AXIS] == axis:
            return f"({' + '.join(self.size(t, axis) for t in op.inputs)})"
        if op.type == ENLARGE and axis >= 2:
            return str(op.parameters[KERNEL_H if axis == 2 else KERNEL_W])
        if op.type == TRANSPOSE:
            return self.size(op.inputs[0], 1 - axis)
        if op.type == MATMUL or (op.type == CONV and axis < 2):
            return self.size(op.inputs[axis], 0 if op.type == CONV else axis)
        return self.size(op.inputs[0], axis)


WRITERS: dict[int, Callable[[Side, TasoOperator], str]] = {
    CONV: Side.conv,
    POOL_MAX: Side.pool,
    POOL_AVG: Side.pool,
    CONCAT: Side.concat,
    SPLIT: Side.split,
    TRANSPOSE: Side.transpose,
    MATMUL: Side.matmul,
    ENLARGE: Side.enlarge,
    IMM: Side.constant,
    ICONV: Side.constant,
    ONE: Side.constant,
    CPOOL: Side.constant,
}
