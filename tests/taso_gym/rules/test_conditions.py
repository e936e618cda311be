"""Conditions: arithmetic, three-valued truth over symbolic sizes, functions, weights."""

from typing import Any

import numpy as np
import pytest

from taso_gym.rules.conditions import Binding, evaluate, holds, truth
from taso_gym.rules.functions import FUNCTIONS, Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Expr
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight, array_weight, literal

N, M = symbol("n"), symbol("m")
WEIGHTS = {
    "w": array_weight(np.array([[1, 2], [3, 4]], np.float32)),
    "s": literal(0.5, "float", (3,)),
    "q": array_weight(np.array([1, np.nan], np.float32)),
    "g": (TensorType("float", (4,), const=True), GeneratedWeight(0, "g", "float", (4,), positive=True)),
}
BINDING = Binding(
    {
        "x": Operand(TensorType("float", (N, 3, 4))),
        "y": Operand(TensorType("float", (N, 3, 4))),
        "z": Operand(TensorType("float", (M, 3, 1))),
        "f": Operand(TensorType("float16", (2, 3))),
        "xs": (Operand(TensorType("float", (2, 3))), Operand(TensorType("float", (2, 5)))),
        **{name: Operand(type_, weight) for name, (type_, weight) in WEIGHTS.items()},
    },
    {"a": 1, "p": (2, 0, 1), "k": {"group": 2, "pads": (0, 0, 1, 1)}, "m": "CRD", "e": 0.5, "none": None},
    opset=18,
)


def read(text: str) -> Expr:
    (rule,) = parse_rules(
        "r [any]: Where(x, y, z), Where(x, f, w), Where(x, s, g), Where(x, q, w), Concat(x, *xs, axis=a), "
        "Transpose(x, perm=p), Softmax(x, axis=none), DepthToSpace(x, mode=m, blocksize=1), LeakyRelu(x, alpha=e), "
        f"Conv(x, w, **k) => *Split(x, axis=0, split=[1]) if {text}"
    )
    assert len(rule.conditions) == 1
    return rule.conditions[0]


SHOWN = [
    "1 + 2 * 3 == 7 or 1 == 2",
    "7 // 2 == 3",
    "7 % 4 == 3",
    "2 ** 3 == 8",
    "-a == -1",
    "1 / 2 == e",
    "not a == 2",
    "a in [1, 2]",
    "a not in [2, 3]",
    "0 < a <= 1 or a == 5",
    "k.group == 2",
    "k.pads[2:] == [1, 1]",
    "k.pads[-1] == 1",
    "sum(k.pads) == 2",
    "[0] * 2 + [1, 1] == k.pads",
    "m == 'CRD'",
    "m != 'DCR'",
    "none == None",
    "opset >= 18",
    "rank(x) == 3",
    "shape(x) == shape(y)",
    "shape(x)[1:] == [3, 4]",
    "shape(x) != shape(f)",
    "dim(x, 0) == dim(y, 0)",
    "dim(x, -1) == 4",
    "dim(x, 0) >= 0",
    "dim(x, 0) + 1 > 0",
    "dim(x, 0) + dim(z, 0) >= dim(x, 0)",
    "dim(x, 0) * 2 // 2 == dim(x, 0)",
    "dim(x, 0) * 4 % 2 == 0",
    "dim(x, 0) + 1 != dim(x, 0)",
    "size(f) == 6",
    "size(x) == 12 * dim(x, 0)",
    "dtype(f) == 'float16'",
    "const(w)",
    "not const(x)",
    "value(s) == 0.5",
    "value(w) >= 1",
    "value(w) > 0",
    "not value(w) > 9",
    "value(g) >= 0",
    "max(value(w)) == 4",
    "min(abs(value(w) - 5)) == 1",
    "value(w) * 2 <= 8",
    "count(xs) == 2",
    "dims(xs, 1) == [3, 5]",
    "sum(dims(xs, 1)) == 8",
    "not const(xs)",
    "len(p) == 3",
    "min(a, 5) == 1",
    "max([1, 7]) == 7",
    "abs(-3) == 3",
    "sqrt(16) == 4",
    "prod(shape(f)) == 6",
    "permute(shape(x), p)[1] == dim(x, 0)",
    "compose(p, inverse(p)) == range(3)",
    "range(1, 3) == [1, 2]",
    "broadcast(shape(x), [4]) == shape(x)",
    "replace(p, 0, 9) == [9, 0, 1]",
    "insert(p, 3, 7) == [2, 0, 1, 7]",
    "delete(p, -1) == [2, 0]",
    "without(p, [0, 2]) == [0]",
    "plus(p, [1, 1, 1]) == [3, 1, 2]",
    "keeps_order([1, 3, 4], [1, 0, 2])",
    "interpolation(2, 2.0, 'half_pixel') == [1, 0, 0.75, 0.25, 0.25, 0.75, 0, 1]",
    "interpolation(3, 2, 'half_pixel') == [0.75, 0.25, 0, 0, 0.25, 0.75]",
    "interpolation(2, 1, 'half_pixel', 'cubic', -0.5) == [0.5, 0.5]",
    "merged_sizes([1, 4, 3, 1, 5], [2, 0, 3, 4, 1]) == [4, 15]",
    "merged_perm([1, 4, 3, 1, 5], [2, 0, 3, 4, 1]) == [1, 0]",
    "merged_perm([2, 3, 4], [0, 2, 1]) == [0, 2, 1]",
    "rank(f) == 3 or rank(f) == 2",
]
REFUTED = [
    "a == 2",
    "not a == 1",
    "dim(x, 0) + 1 == dim(x, 0)",
    "dim(x, 0) < 0",
    "shape(x) == shape(f)",
    "shape(x)[1:] == [3, 5]",
    "value(w) > 9",
    "value(s) != 0.5",
    "const(xs)",
    "min(value(q)) > -1e39",
    "max(value(q)) < 1e39",
    "keeps_order([2, 3, 4], [1, 0, 2])",
    "(rank(f) == 3 and dim(f, 2) == 1) or 1 == 2",
    "m == 1",
]
OPEN = [
    "dim(x, 0) == 3",
    "dim(x, 0) != 3",
    "not dim(x, 0) == 3",
    "dim(x, 0) == dim(z, 0)",
    "dim(x, 0) != dim(z, 0)",
    "dim(x, 0) <= dim(z, 0)",
    "dim(x, 0) > 0",
    "shape(x)[:2] == shape(z)[:2]",
    "dim(x, 0) in [1, 2]",
    "dim(x, 0) // 2 == 1",
    "dim(x, 0) % 2 == 0",
    "dim(x, 7) == 1",
    "not dim(x, 7) == 1",
    "k.pads[9] == 0",
    "value(x) == 1",
    "value(w) == [1, 2, 3]",
    "value(w) <= [1, 2, 3]",
    "inverse(shape(x)) == p",
    "sum([m, m]) == 1",
    "len(10 ** 9 * [0]) == 10 ** 9",
    "value(w) > 2",
    "value(q) > 0",
    "not value(q) > 0",
    "value(q) < 9",
    "value(w) == [1]",
    "a < m",
    "a + m == 1",
    "a / 0 == 1",
    "sqrt(-1) == 1",
    "inverse([0, 0]) == p",
    "broadcast([2], [3]) == [3]",
    "plus(p, [1]) == p",
    "insert(p, 9, 1) == p",
    "2 ** 1000 == 0",
    "(10 ** 64) ** 64 == 0",
    "(7 ** 64) * (7 ** 64) ** 8 * 7 ** 64 * (7 ** 64) ** 20 * (7 ** 64) ** 20 == 0",
    "len([0] * 100000) == 1",
    "len(range(100000)) == 1",
    "len(interpolation(512, 2.5, 'half_pixel')) == 1",
    "len(interpolation(4, 2, 'half_pixel', 'nearest')) == 1",
    "merged_sizes([2, 3], [0, 2]) == 1",
    "len(interpolation(4, 2, 'half_pixel_symmetric')) == 1",
    "len(interpolation(5, 1.1, 'half_pixel')) == 1",
    "len(interpolation(2, 0.2, 'half_pixel')) == 1",
    "min([]) == 0",
    "rank(x)",
]


@pytest.mark.parametrize("text", SHOWN)
def test_shown(text: str) -> None:
    assert truth(read(text), BINDING) is True


@pytest.mark.parametrize("text", REFUTED)
def test_refuted(text: str) -> None:
    assert truth(read(text), BINDING) is False and not holds(read(text), BINDING)


@pytest.mark.parametrize("text", OPEN)
def test_neither(text: str) -> None:
    assert truth(read(text), BINDING) is None and not holds(read(text), BINDING)


def test_a_condition_on_types_is_asked_before_one_on_values() -> None:
    class Unread:
        dtype, shape, digest = "float", (2,), "d"

        def array(self) -> Any:
            raise AssertionError("the weight was read")

    binding = Binding({"x": Operand(TensorType("float", (2,)), Unread())})
    (rule,) = parse_rules("r: Relu(x) => x if rank(x) == 2 and value(x) >= 0")
    assert not all(holds(condition, binding) for condition in rule.conditions)


def test_each_function_refuses_what_it_cannot_compute() -> None:
    for name, function in FUNCTIONS.items():
        wrong = {"tensor": Operand(TensorType("float", None)), "tensors": (), "value": None}
        args = [wrong[kind] for kind in function.parameters]
        if name in ("dtype", "const", "count", "dims"):
            continue
        with pytest.raises(Undefined):
            function.apply(*args)


def test_unknown_names_are_undefined() -> None:
    for expr in (Expr("name", "q"), Expr("call", "rank", (Expr("name", "q"),))):
        with pytest.raises(Undefined):
            evaluate(expr, Binding({}))
