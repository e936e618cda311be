"""Fragments: the typed inputs and operator instances over which rules are searched; a row of `FRAGMENTS` each.

Sizes are letters. Each is bound twice, to unequal numbers at most as large as ``--max-shape`` allows, so that an
equality that holds at one size only isn't found. Operators are those of `taso_gym.ops`; an instance says with which
attributes one takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from taso_gym.errors import OptionError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.tensor import Dim, Poly, TensorType, symbol

BY_KEY = {op.key: op for op in OPERATORS.values()}
WINDOWED = frozenset({"Conv", "AveragePool", "MaxPool", "GlobalAveragePool", "BatchNormalization"})
"""Operators on images; what has numbers as spatial sizes is a kernel, and no image."""

ALONG_AXES = frozenset(
    {"MatMul", "Transpose", "Concat", "Softmax", "ReduceSum", "ReduceMean", "Reshape", "Slice", "Split"}
)
"""Operators that aren't applied to what a reduction left, whose axis of size 1 makes many of them equal."""


class Instance(NamedTuple):
    """An operator with attributes, as it takes part in a fragment.

    Attributes:
        key: operator, as rules write it.
        arity: operands that are chosen, at most 3.
        attrs: attributes that aren't at their default; sizes may be letters.
        extra: names of the inputs that are its further operands.
        output: which output is meant.
        alike: whether the operands have one shape, so that none is broadcast.
    """

    key: str
    arity: int
    attrs: tuple[tuple[str, Any], ...] = ()
    extra: tuple[str, ...] = ()
    output: int = 0
    alike: bool = False

    @property
    def op(self) -> Operator:
        """Row of the operator table."""
        return BY_KEY[self.key]

    @property
    def swaps(self) -> bool:
        """Whether the order of the operands makes no difference."""
        return self.op.commutative and self.arity == 2

    def takes(self, types: Sequence[TensorType]) -> bool:
        """Whether operands make sense: a window slides over an image, whose sizes hold letters, and is a kernel."""
        shapes = [t.shape or () for t in types]
        if self.alike and len(set(shapes)) > 1:
            return False
        if self.key in WINDOWED and not all(isinstance(d, Poly) for d in shapes[0][2:]):
            return False
        if self.key == "Conv":
            return all(isinstance(d, int) for d in shapes[1][2:])
        columns = any(1 in shape for shape in shapes[:1] + shapes[1:2] * (self.key == "MatMul"))
        return not (columns and self.key in ALONG_AXES) and (self.key != "MatMul" or min(map(len, shapes)) > 1)


Share = tuple[float, float]
"""Share of the largest size that a letter is, in the first and the second binding."""
DEFAULT_SHARES: Mapping[str, Share] = {
    "A": (0.5, 1.0),
    "B": (1.0, 0.75),
    "C": (0.75, 0.5),
    "N": (0.25, 0.25),
    "H": (1.0, 0.75),
}


@dataclass(frozen=True)
class Fragment:
    """Inputs and operators that are combined.

    Attributes:
        name: as ``--fragments`` takes it.
        inputs: name -> shape in letters and numbers.
        instances: the operators.
        shares: size of each letter as a share of the largest that ``--max-shape`` allows it, in both bindings.
        usual: whether it is one of ``--fragments all``.
        sizes: the two bindings of the letters; `sized` works them out.
    """

    name: str
    inputs: Mapping[str, str]
    instances: tuple[Instance, ...]
    shares: Mapping[str, Share]
    usual: bool = True
    sizes: tuple[Mapping[str, int], ...] = ()

    def types(self) -> dict[str, TensorType]:
        """Return the inputs' types over symbols."""
        return {name: TensorType("float", _shape(text)) for name, text in self.inputs.items()}

    def example(self) -> dict[str, int]:
        """Return a different number for each letter, at which proofs start."""
        return {letter: 2 * i + 2 for i, letter in enumerate(sorted(self.shares))}

    def sized(self, largest: Sequence[int]) -> Fragment:
        """Return it with its letters bound; ``largest`` bounds the axes, counted from the right.

        Raises:
            OptionError: an input has more axes, or a fixed size (a kernel's) is larger.
        """
        most: dict[str, int] = {}
        for name, text in self.inputs.items():
            if len(text) > len(largest):
                raise OptionError(f"expected {len(text)} axes in --max-shape for {self.name}, found {len(largest)}")
            for letter, bound in zip(reversed(text), reversed(largest), strict=False):
                if letter.isdigit() and int(letter) > bound:
                    raise OptionError(
                        f"expected at least {text} in --max-shape for {self.name}'s {name}, found {bound}"
                    )
                most[letter] = min(bound, most.get(letter, bound))
        bind = {k: [max(1, round(share * most[k])) for share in self.shares[k]] for k in most if not k.isdigit()}
        return replace(self, sizes=tuple({k: v[i] for k, v in bind.items()} for i in range(2)))

    def only(self, operators: Sequence[str]) -> Fragment:
        """Return it with some operators left."""
        return replace(self, instances=tuple(i for i in self.instances if i.key in operators))


def _shape(text: str) -> tuple[Dim, ...]:
    return tuple(int(c) if c.isdigit() else symbol(c) for c in text)


def op(
    key: str, arity: int = 1, *, extra: Sequence[str] = (), output: int = 0, alike: bool = False, **attrs: Any
) -> Instance:
    """Return an operator instance."""
    return Instance(key, arity, tuple(sorted(attrs.items())), tuple(extra), output, alike)


def fragment(
    name: str, inputs: str, *instances: Instance, usual: bool = True, shares: Mapping[str, Share] | None = None
) -> Fragment:
    """Return a fragment; inputs are written ``x y: AB, s:``."""
    named: dict[str, str] = {}
    for group in inputs.split(","):
        names, _, shape = group.partition(":")
        named |= dict.fromkeys(names.split(), shape.strip())
    letters = {c for shape in named.values() for c in shape if not c.isdigit()}
    return Fragment(name, named, instances, {**{k: DEFAULT_SHARES[k] for k in letters}, **(shares or {})}, usual)


ADD, MUL, DIV = op("Add", 2, alike=True), op("Mul", 2), op("Div", 2)
HADAMARD = op("Mul", 2, alike=True)
MATMUL, RELU, TRANSPOSE = op("MatMul", 2), op("Relu"), op("Transpose", perm=(1, 0))
CONCAT = [op("Concat", 2, axis=axis) for axis in range(4)]
ROW_SUM, ROW_MEAN = (op(f"Reduce{name}", axes=(1,), keepdims=1) for name in ("Sum", "Mean"))
CONV_3X3, CONV_1X1 = op("Conv", 2, pads=(1, 1, 1, 1)), op("Conv", 2)
AVERAGE = op("AveragePool", kernel_shape=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1)
MAXIMUM = op("MaxPool", kernel_shape=(3, 3), pads=(1, 1, 1, 1))
A, B, C, N = symbol("A"), symbol("B"), symbol("C"), symbol("N")
HALVES = (0.5, 0.75)
IMAGE = {"B": HALVES}


def _split(axis: int, size: Dim) -> tuple[Instance, Instance]:
    first, second = (op("Split", axis=axis, split=(size, size), output=i) for i in range(2))
    return first, second


FRAGMENTS = {
    f.name: f
    for f in (
        fragment("matrix", "x y: AB, a b c: BB", MATMUL, ADD, HADAMARD, RELU, TRANSPOSE, CONCAT[0], CONCAT[1]),
        fragment("scalar", "x y: AB, a b: BB, s:", MATMUL, ADD, MUL, RELU, TRANSPOSE, ROW_SUM),
        fragment(
            "linear",
            "x y: AB, a b: BC, c d: C",
            op("Gemm", 3),
            MATMUL,
            op("Add", 2),
            op("Sigmoid"),
            CONCAT[0],
            CONCAT[1],
            *_split(1, C),
        ),
        fragment(
            "convolution",
            "x y: NBHH, v w: BB33, u: BB11, s:",
            CONV_3X3,
            CONV_1X1,
            ADD,
            MUL,
            RELU,
            CONCAT[0],
            CONCAT[1],
            AVERAGE,
            MAXIMUM,
            shares=IMAGE,
        ),
        fragment(
            "normalised",
            "x y: NBHH, v w: BB33, c d g m r: B",
            op("Conv", 2, strides=(2, 2), pads=(1, 1, 1, 1)),
            op("Conv", 2, group=2, pads=(1, 1, 1, 1)),
            op("Conv", 3, pads=(1, 1, 1, 1)),
            op("BatchNormalization", extra=("g", "c", "m", "r")),
            op("GlobalAveragePool"),
            ADD,
            CONCAT[0],
            CONCAT[1],
            shares=IMAGE,
        ),
        fragment(
            "movement",
            "x y z: A4A",
            ADD,
            RELU,
            *(op("Transpose", perm=perm) for perm in ((2, 1, 0), (1, 0, 2), (0, 2, 1))),
            *CONCAT[:3],
            op("Slice", starts=(0,), ends=(2,), axes=(1,)),
            op("Slice", starts=(2,), ends=(4,), axes=(1,)),
            *_split(0, A),
            op("Reshape", shape=(A * 4, A)),
            op("Reshape", shape=(A, 4, A)),
            ROW_SUM,
        ),
        fragment(
            "softmax",
            "x y: AB, g h: B",
            ADD,
            DIV,
            op("Exp"),
            op("Softmax", axis=1),
            op("LayerNormalization", extra=("g", "h"), axis=1),
            ROW_SUM,
            op("Sub", 2),
            ROW_MEAN,
        ),
        fragment(
            "attention",
            "q k v: NABA, w: AA, s:",
            MATMUL,
            ADD,
            MUL,
            op("Transpose", perm=(0, 1, 3, 2)),
            op("Transpose", perm=(0, 2, 1, 3)),
            op("Softmax", axis=3),
            op("Reshape", shape=(N, A, A * B)),
            CONCAT[1],
            CONCAT[3],
        ),
        fragment(
            "taso",
            "x1 x2 x3: AB, w1 w2 w3: BB, i1 i2 i3: NCHH, w4 w5 w6: CC33, w7 w8 w9: CC13, w13: C133, s:",
            MATMUL,
            ADD,
            MUL,
            RELU,
            TRANSPOSE,
            CONCAT[0],
            CONCAT[1],
            CONV_3X3,
            op("Conv", 2, pads=(0, 1, 0, 1)),
            AVERAGE,
            MAXIMUM,
            op("Pad", pads=(0, 0, 1, 0, 0, 0, 1, 0)),
            usual=False,
            shares={"N": (0.25, 0.5), "C": HALVES},
        ),
    )
}


def chosen_fragments(names: str, largest: Sequence[int], operators: Sequence[str] = ()) -> list[Fragment]:
    """Return the fragments of a comma-separated list, or the usual ones for "all", with their letters bound.

    Args:
        names: as ``--fragments`` gives them.
        largest: largest size of each axis, ``--max-shape``.
        operators: keys of those that take part; all if it is empty.

    Raises:
        OptionError: a fragment or operator that isn't in a table, or inputs that don't fit.
    """
    chosen = [f.name for f in FRAGMENTS.values() if f.usual] if names == "all" else names.split(",")
    for name in chosen:
        if name.strip() not in FRAGMENTS:
            raise OptionError(f"expected fragments of {', '.join(FRAGMENTS)} or all, found {name.strip()!r}")
    found = [FRAGMENTS[name.strip()].sized(largest) for name in chosen]
    known = {i.key for f in FRAGMENTS.values() for i in f.instances}
    for key in operators:
        if key not in known:
            raise OptionError(f"expected operators of the fragments ({', '.join(sorted(known))}), found {key!r}")
    return [f for f in (f.only(operators) for f in found) if f.instances] if operators else found
