"""Fragments: the typed inputs and operator instances over which rules are searched; a row of `FRAGMENTS` each.

Sizes are letters. Each is bound twice, to unequal numbers at most as large as ``--max-shape`` allows, so that an
equality that holds at one size only isn't found. Operators are those of `taso_gym.ops`; an instance says with which
attributes one takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from taso_gym.errors import OptionError
from taso_gym.symbolic import Dim, symbol
from taso_substitutions.enumeration.fragment import Fragment, Instance, fragment, op

ADD, MUL = op("Add", 2, alike=True), op("Mul", 2)
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


def _turns(rank: int, kept: int = 0) -> list[Instance]:
    """Return all permutations of axes, but for leading ones that are kept: what two of them do, one of them does."""
    found = permutations(range(kept, rank))
    next(found)  # the identity
    return [op("Transpose", perm=(*range(kept), *perm)) for perm in found]


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
            "grouped",
            "x y: N4HH, v w: 4411, c d: 4211",
            CONV_1X1,
            op("Conv", 2, group=2),
            ADD,
            RELU,
            CONCAT[0],
            CONCAT[1],
        ),
        fragment(
            "folding",
            "x y: NBHH, v w: BB11, c d: B",
            op("Conv", 2, strides=(2, 2)),
            op("Conv", 3, strides=(2, 2)),
            op("Unsqueeze", axes=(1, 2), of="?"),
            op("Unsqueeze", axes=(1, 2, 3), of="?"),
            op("Add", 2),
            MUL,
            shares=IMAGE,
        ),
        fragment(
            "normalised",
            "x: NBHH, w: BB11, c d: B, g b r: B",
            op("BatchNormalization", 2, extra=("g", "b", "r"), places=(0, 3)),
            op("Conv", 2),
            op("Conv", 3),
            op("Sub", 2, alike=True, of="?"),
            shares=IMAGE,
        ),
        fragment(
            "movement",
            "x y: A4A",
            RELU,
            *_turns(3),
            *CONCAT[:3],
            op("Slice", starts=(0,), ends=(2,), axes=(1,)),
            op("Slice", starts=(2,), ends=(4,), axes=(1,)),
            op("Reshape", shape=(A * 4, A)),
        ),
        fragment(
            "softmax",
            "x y: AB, c: A1, w: BB",
            op("Div", 2, column=True),
            op("Exp"),
            op("Softmax", axis=1),
            ROW_SUM,
            MATMUL,
        ),
        # Sums and means are apart: what relates them is the number of columns, which no operator computes
        fragment(
            "means",
            "x y: AB, c: A1, w: BB, g: B",
            op("Sub", 2, column=True),
            op("LayerNormalization", 2, axis=1),
            ROW_MEAN,
            MATMUL,
        ),
        fragment(
            "layers",
            "x y: AB, c: A1, g h: B",
            op("LayerNormalization", 2, axis=1),
            op("LayerNormalization", 2, extra=("h",), axis=1),
            op("Sub", 2, column=True),
            op("Add", 2),
            op("Mul", 2),
            CONCAT[0],
        ),
        fragment(
            "attention",
            "q k v: NABA, w: AA, s:",
            MATMUL,
            ADD,
            MUL,
            *_turns(4, kept=1),
            op("Softmax", axis=3),
            op("Reshape", shape=(N, A, A * B)),
        ),
        fragment(
            "taso",
            "x1 x2 x3: AB, w1 w2 w3: BB, i1 i2 i3: NCHH, w4 w5 w6: CC33, w7 w8 w9: CC13, w13: C133, s:",
            op("MatMul", 2, of="??"),
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
            op("Pad", pads=(0, 0, 1, 0, 0, 0, 1, 0), of="??13"),
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
    chosen = list(dict.fromkeys(name.strip() for name in chosen))
    for name in chosen:
        if name not in FRAGMENTS:
            raise OptionError(f"expected fragments of {', '.join(FRAGMENTS)} or all, found {name!r}")
    found = [FRAGMENTS[name].sized(largest) for name in chosen]
    known = {i.key for f in FRAGMENTS.values() for i in f.instances}
    for key in operators:
        if key not in known:
            raise OptionError(f"expected operators of the fragments ({', '.join(sorted(known))}), found {key!r}")
    if not operators:
        return found
    left = [f for f in (f.only(operators) for f in found) if f.instances]
    if not left:
        raise OptionError(f"expected operators that {', '.join(chosen)} have, found {', '.join(operators)}")
    return left
