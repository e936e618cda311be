"""Fragments: the typed inputs and operator instances over which rules are searched; one table row adds to one.

Sizes are letters, bound to unequal numbers at most as large as ``--max-shape`` allows, twice, so that an equality that
holds only at one size isn't found. Operators are those of `taso_gym.ops`; a row here says with which attributes an
operator takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from taso_gym.errors import OptionError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.tensor import Dim, Poly, TensorType, symbol


class Instance(NamedTuple):
    """An operator with attributes, as it takes part in a fragment.

    Attributes:
        key: operator, as rules write it.
        arity: operands.
        attrs: attributes that aren't at their default; sizes may be letters.
    """

    key: str
    arity: int
    attrs: tuple[tuple[str, Any], ...] = ()

    @property
    def op(self) -> Operator:
        """Row of the operator table."""
        return BY_KEY[self.key]

    def takes(self, types: Sequence[TensorType]) -> bool:
        """Whether operands make sense: a window slides over an image, whose size is a letter, and not over a kernel."""
        return self.key not in WINDOWED or all(isinstance(d, Poly) for d in (types[0].shape or ())[2:])


WINDOWED = frozenset({"Conv", "AveragePool", "MaxPool"})
BY_KEY = {op.key: op for op in OPERATORS.values()}


@dataclass(frozen=True)
class Fragment:
    """Inputs and operators that are combined.

    Attributes:
        name: as ``--fragments`` takes it.
        inputs: name -> shape in letters and numbers.
        instances: the operators.
        sizes: the two bindings of the letters, each at most 4.
    """

    name: str
    inputs: Mapping[str, str]
    instances: tuple[Instance, ...]
    sizes: tuple[Mapping[str, int], ...] = ({"A": 2, "B": 4}, {"A": 4, "B": 3})

    def types(self) -> dict[str, TensorType]:
        """Return the inputs' types over symbols."""
        return {name: TensorType("float", _shape(text)) for name, text in self.inputs.items()}


def _shape(text: str) -> tuple[Dim, ...]:
    return tuple(int(c) if c.isdigit() else symbol(c) for c in text)


def op(key: str, arity: int, **attrs: Any) -> Instance:
    """Return an operator instance."""
    return Instance(key, arity, tuple(sorted(attrs.items())))


ADD, MUL, SUB = op("Add", 2), op("Mul", 2), op("Sub", 2)
MATMUL, RELU = op("MatMul", 2), op("Relu", 1)
TRANSPOSE_2D = op("Transpose", 1, perm=(1, 0))
A, B = symbol("A"), symbol("B")

FRAGMENTS = {
    f.name: f
    for f in (
        Fragment(
            "matrix",
            {"x": "AB", "y": "AB", "z": "AB", "a": "BB", "b": "BB", "c": "BB"},
            (MATMUL, ADD, MUL, RELU, TRANSPOSE_2D, op("Concat", 2, axis=0), op("Concat", 2, axis=1)),
        ),
        Fragment(
            "scalar",
            {"x": "AB", "y": "AB", "a": "BB", "b": "BB", "s": ""},
            (MATMUL, ADD, SUB, MUL, op("Neg", 1), RELU, TRANSPOSE_2D, op("ReduceSum", 1, axes=(1,), keepdims=1)),
        ),
        Fragment(
            "convolution",
            {"x": "1BHH", "y": "1BHH", "v": "BB33", "w": "BB33", "u": "BB11", "s": ""},
            (
                op("Conv", 2, pads=(1, 1, 1, 1)),
                op("Conv", 2),
                ADD,
                MUL,
                RELU,
                op("Concat", 2, axis=0),
                op("Concat", 2, axis=1),
                op("AveragePool", 1, kernel_shape=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1),
                op("MaxPool", 1, kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
            ),
            ({"B": 2, "H": 4}, {"B": 3, "H": 3}),
        ),
        Fragment(
            "movement",
            {"x": "ABA", "y": "ABA", "z": "ABA"},
            (
                ADD,
                RELU,
                op("Transpose", 1, perm=(2, 1, 0)),
                op("Transpose", 1, perm=(1, 0, 2)),
                op("Transpose", 1, perm=(0, 2, 1)),
                op("Concat", 2, axis=0),
                op("Concat", 2, axis=1),
                op("Concat", 2, axis=2),
                op("Slice", 1, starts=(0,), ends=(1,), axes=(1,)),
                op("Slice", 1, starts=(1,), ends=(2,), axes=(1,)),
                op("Reshape", 1, shape=(A * B, A)),
                op("Reshape", 1, shape=(A, B, A)),
                op("ReduceSum", 1, axes=(1,), keepdims=1),
            ),
        ),
        Fragment(
            "normalisation",
            {"x": "AB", "y": "AB", "g": "B", "h": "B", "s": ""},
            (
                ADD,
                SUB,
                MUL,
                op("Div", 2),
                op("Exp", 1),
                op("Softmax", 1, axis=1),
                op("ReduceSum", 1, axes=(1,), keepdims=1),
                op("ReduceMean", 1, axes=(1,), keepdims=1),
            ),
        ),
        Fragment(
            "attention",
            {"q": "1ABA", "k": "1ABA", "v": "1ABA", "s": ""},
            (
                MATMUL,
                ADD,
                MUL,
                op("Transpose", 1, perm=(0, 1, 3, 2)),
                op("Transpose", 1, perm=(0, 2, 1, 3)),
                op("Softmax", 1, axis=3),
                op("Concat", 2, axis=1),
                op("Concat", 2, axis=3),
            ),
        ),
    )
}


def fragments(names: str) -> list[Fragment]:
    """Return the fragments of a comma-separated list, or all of them.

    Raises:
        OptionError: a name that isn't in the table.
    """
    chosen = list(FRAGMENTS) if names == "all" else [n.strip() for n in names.split(",")]
    for name in chosen:
        if name not in FRAGMENTS:
            raise OptionError(f"expected fragments of {', '.join(FRAGMENTS)}, found {name!r}")
    return [FRAGMENTS[name] for name in chosen]
