"""TENSAT's rules as text, ``matmul(matmul(input_1,input_4),input_5)==…``, read into TASO's records.

Its operators are TASO's, with their parameters as first operands; what it leaves out (ranks and kernels) follows from
TASO's numbering of inputs: 1 to 6 are matrices, 7 to 9 images, 10 to 19 kernels, 20 is a scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from taso_gym.errors import RuleError
from taso_gym.rules.taso_terms import (
    ACTIVATION,
    AXIS,
    CONCAT,
    CONV,
    CPOOL,
    ENLARGE,
    ICONV,
    IMM,
    KERNEL_H,
    KERNEL_W,
    MATMUL,
    NUM_DIM,
    NUM_INPUTS,
    NUM_OUTPUTS,
    ONE,
    PAD,
    PERM,
    POOL_AVG,
    POOL_MAX,
    SPLIT,
    STRIDE_H,
    STRIDE_W,
    TRANSPOSE,
)
from taso_gym.rules.taso_wire import TasoOperator, TasoRule, TasoTensor

TOKEN = re.compile(r"\s*(?:(\w+)|([(),]))")
OPERATORS: dict[str, tuple[int, tuple[int, ...]]] = {
    "ewadd": (16, ()),
    "ewmul": (17, ()),
    "smul": (19, ()),
    "relu": (8, ()),
    "matmul": (MATMUL, ()),
    "conv2d": (CONV, (STRIDE_H, STRIDE_W, PAD, ACTIVATION)),
    "poolavg": (POOL_AVG, (KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD)),
    "poolmax": (POOL_MAX, (KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, PAD)),
    "concat": (CONCAT, (AXIS,)),
    "split_0": (SPLIT, (AXIS,)),
    "split_1": (SPLIT, (AXIS,)),
    "transpose": (TRANSPOSE, ()),
    "enlarge": (ENLARGE, (KERNEL_H, KERNEL_W)),
    "Iconv": (ICONV, (KERNEL_H, KERNEL_W)),
    "Cpool": (CPOOL, (KERNEL_H, KERNEL_W)),
    "Imatmul": (IMM, ()),
    "Iewmul": (ONE, ()),
}
"""Name -> type of the operator, and what its first operands are."""


def read_tensat(path: Path) -> list[TasoRule]:
    """Read equations, one a line.

    Raises:
        RuleError: the file can't be read, or a line isn't an equation.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"expected a readable text file, found {path}: {error}") from error
    return [_equation(line, f"{path.name}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _equation(line: str, where: str) -> TasoRule:
    sides = line.split("==")
    if len(sides) != 2:
        raise RuleError(
            f"expected an equation `left==right`, found {len(sides) - 1} times `==`", line=line, where=where
        )
    try:
        (source, a), (target, b) = (_Side(side).result() for side in sides)
    except (StopIteration, ValueError, LookupError, RecursionError) as error:
        raise RuleError(f"expected terms of TENSAT's operators, found {error}", line=line, where=where) from error
    return TasoRule(source, target, ((a, b),))


class _Side:
    """Reads one side; equal terms become one operator."""

    def __init__(self, text: str) -> None:
        self.tokens: Iterator[str] = iter(_tokens(text))
        self.ops: list[TasoOperator] = []
        self.after = next(self.tokens)

    def result(self) -> tuple[tuple[TasoOperator, ...], TasoTensor]:
        """Return the operators and the result."""
        found = self._term()
        if self.after or not isinstance(found, TasoTensor):
            raise ValueError(f"{self.after!r} after a term")
        return tuple(self.ops), found

    def _next(self) -> str:
        token, self.after = self.after, next(self.tokens, "")
        return token

    def _term(self) -> TasoTensor | int:
        name = self._next()
        if name.isdigit():
            return int(name)
        if name.startswith("input_"):
            if int(name[6:]) < 1:
                raise ValueError(f"{name}, where inputs are counted from 1")
            return TasoTensor(-int(name[6:]), 0)
        kind, parameters = OPERATORS[name]
        items: list[TasoTensor | int] = []
        if self.after == "(":
            while (sign := self._next()) in ("(", ","):
                if not str(self.after).startswith(")"):
                    items.append(self._term())
            if sign != ")":
                raise ValueError(f"{sign!r} instead of )")
        numbers = [i for i in items if isinstance(i, int)]
        tensors = tuple(i for i in items if isinstance(i, TasoTensor))
        if len(numbers) < len(parameters):
            raise ValueError(f"{name} with {len(numbers)} parameters")
        op = TasoOperator(kind, tensors, self._completed(kind, dict(zip(parameters, numbers, strict=False)), tensors))
        if op not in self.ops:
            self.ops.append(op)
        return TasoTensor(self.ops.index(op), int(name == "split_1"))

    def _completed(self, kind: int, found: dict[int, int], tensors: tuple[TasoTensor, ...]) -> dict[int, int]:
        """Return parameters with those that TENSAT leaves out."""
        if kind == CONCAT:
            found |= {NUM_INPUTS: len(tensors), NUM_DIM: 2 if self._input(tensors[0]) <= 6 else 4}
        if kind == SPLIT:
            found[NUM_OUTPUTS] = 2
        if kind == TRANSPOSE:
            found |= {NUM_DIM: 2, PERM: 2}
        if kind == CONV:
            number = self._input(tensors[1])
            found |= {KERNEL_H: 1 if 13 <= number <= 15 else 3, KERNEL_W: 1 if 16 <= number <= 18 else 3}
        return found

    def _input(self, tensor: TasoTensor) -> int:
        """Return the number of the first input below a tensor; 10, a 3x3 kernel, below a constant."""
        if tensor.op < 0:
            return -tensor.op
        op = self.ops[tensor.op]
        return 10 if op.type == ENLARGE or not op.inputs else self._input(op.inputs[0])


def _tokens(text: str) -> list[str]:
    position, found = 0, list[str]()
    text = text.strip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match:
            raise ValueError(f"{text[position]!r} at column {position}")
        found.append(match[1] or match[2])
        position = match.end()
    return found
