"""Rules that are nearly true: each is refuted, by values or by types, before anything is claimed about it."""

import pytest

from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify.levels import assess
from taso_substitutions.verify.trial import Counterexample

IMAGES = "rank(x) == 4 and rank(a) == 4 and rank(b) == 4"
FALSE = {
    "wrong axis": "Concat(Relu(x), Relu(y), axis=1) => Relu(Concat(x, y, axis=0)) if rank(x) == 2 and rank(y) == 2",
    "axis of the other side": "Softmax(Transpose(x, perm=[1, 0]), axis=0) => Transpose(Softmax(x, axis=0), perm=[1, 0])"
    " if rank(x) == 2",
    "negative axis at another rank": "Softmax(x, axis=-1) => Softmax(x, axis=1) if rank(x) >= 2",
    "wrong pads": "Conv(Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 1]), w) => Conv(x, w, pads=[1, 1, 0, 0]) if rank(x) == 4",
    "pads that aren't 0": "MaxPool(Relu(x), **k) => MaxPool(Pad(Relu(x), pads=[0, 0, 1, 1, 0, 0, 1, 1]), **k)"
    " if rank(x) == 4 and k.pads == [0, 0, 0, 0]",
    "padding an average": "AveragePool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])"
    " => AveragePool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1) if rank(x) == 4",
    "group left out": f"Conv(x, a, **k), Conv(x, b, **k) => *Split(Conv(x, Concat(a, b, axis=0), **k), axis=1,"
    f" split=[dim(a, 0), dim(b, 0)]) if shape(a)[1:] == shape(b)[1:] and {IMAGES}",
    "groups of joined kernels": "Conv(x, Concat(a, b, axis=0), **k)"
    " => Concat(Conv(x, a, **k), Conv(x, b, **k), axis=1)",
    "bias over groups": "Conv(x, w, group=2) => Conv(x, w) if rank(x) == 4",
    "stride dropped": "Conv(Conv(x, a, **k), b) => Conv(x, Reshape(MatMul(Reshape(b, shape=[dim(b, 0), dim(b, 1)]),"
    " Reshape(a, shape=[dim(a, 0), dim(a, 1)])), shape=[dim(b, 0), dim(a, 1), 1, 1]))"
    f" if {IMAGES} and k.group == 1 and shape(a)[2:] == [1, 1] and shape(b)[2:] == [1, 1]",
    "equal by accident": "MatMul(x, Transpose(y, perm=[1, 0])) => MatMul(y, Transpose(x, perm=[1, 0]))"
    " if rank(x) == 2 and rank(y) == 2 and shape(x) == shape(y)",
    "square only": "MatMul(Transpose(x, perm=[1, 0]), x) => MatMul(x, Transpose(x, perm=[1, 0])) if rank(x) == 2"
    " and dim(x, 0) == dim(x, 1)",
    "traces of small matrices": "ReduceSum(MatMul(x, MatMul(y, z)), axes=[0, 1]) => ReduceSum(MatMul(y, MatMul(x, z)),"
    " axes=[0, 1]) if rank(x) == 2 and shape(x) == shape(y) and shape(y) == shape(z) and dim(x, 0) == dim(x, 1)",
    "size 1 broadcasts": "ReduceSum(Add(x, y), axes=[1]) => Add(ReduceSum(x, axes=[1]), ReduceSum(y, axes=[1]))"
    " if rank(x) == 2 and rank(y) == 2",
    "sum of a broadcast": "ReduceMax(Add(x, c), axes=[1]) => Add(ReduceMax(x, axes=[1]), c)"
    " if rank(x) == 2 and shape(c) == [1, dim(x, 1)]",
    "keepdims": "ReduceSum(x, axes=[0], keepdims=1) => ReduceSum(x, axes=[0], keepdims=0) if rank(x) == 2",
    "mean of unequal parts": "ReduceMean(Concat(x, y, axis=0), axes=[0]) => Mul(Add(ReduceMean(x, axes=[0]),"
    " ReduceMean(y, axes=[0])), 0.5) if rank(x) == 1 and rank(y) == 1",
    "integers wrap": "r [any]: Div(Mul(x, 3), 3) => x",
    "integer division": "r [any]: Mul(Div(x, y), y) => x if shape(x) == shape(y)",
    "roundings kept": "r [exact]: Add(Add(x, y), z) => Add(x, Add(y, z))",
    "signed zeros": "r [exact]: Add(x, 0) => x",
    "overflow": "r [exact]: Div(Mul(x, 2), 2) => x",
    "NaN": "r [exact]: Sub(x, x) => Mul(x, 0)",
    "division by zero": "Mul(Div(x, y), z) => Div(Mul(x, z), Mul(y, Mul(z, Div(z, Mul(z, z)))))",
    "root of a square": "Sqrt(Mul(x, x)) => x",
    "beyond what tests draw": "Relu(x) => Clip(x, min=0, max=300)",
    "a far kink": "Abs(Add(x, 1000)) => Add(x, 1000)",
    "a position elsewhere": "Gather(x, i, axis=0) => Gather(x, i, axis=1) if rank(x) == 2 and dim(x, 0) == dim(x, 1)",
    "data as positions": "r [exact any]: Gather(x, i, **k), Gather(x, i, **k) => Gather(x, i, **k), Gather(i, x, **k)",
    "0 of a quotient": "Mul(Sub(x, x), y) => Mul(Sub(x, x), Div(1, y))",
    "reshape isn't transpose": "Reshape(x, shape=[dim(x, 1), dim(x, 0)]) => Transpose(x, perm=[1, 0]) if rank(x) == 2",
    "slice off by one": "Slice(Relu(x), starts=[0], ends=[2], axes=[0])"
    " => Slice(Relu(x), starts=[1], ends=[3], axes=[0]) if dim(x, 0) > 3",
    "variance": "ReduceMean(Mul(x, x), axes=[0]) => Mul(ReduceMean(x, axes=[0]), ReduceMean(x, axes=[0]))",
}


@pytest.mark.parametrize("text", FALSE.values(), ids=FALSE)
def test_is_refuted(text: str) -> None:
    (rule,) = parse_rules(text if text.startswith("r ") else f"r: {text}")
    assert isinstance(assess(rule), Counterexample)
