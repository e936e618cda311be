from pathlib import Path
from typing import Any

import pytest

from taso_gym.rules.conditions import Binding
from taso_gym.rules.functions import Operand
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.tensor import TensorType
from taso_substitutions.verify.analytic import prove_analytic
from taso_substitutions.verify.normal.analytic import AXIOMS
from taso_substitutions.verify.prover import Proof, UnprovableError, prove
from taso_substitutions.verify.sampling import sample_instances

PLAIN = {"pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": 1}
NO_PADS = PLAIN | {"pads": (0, 0, 0, 0)}
GROUPED = PLAIN | {"group": 2}
POOL = {"kernel_shape": (2, 2), "strides": (2, 2), "pads": (1, 1, 0, 0), "dilations": (1, 1), "ceil_mode": 0}
PADDED = "Relu(MaxPool(x, **k))"


def shown(text: str, method: Any = prove, *, attrs: dict[str, Any] | None = None, **shapes: tuple[int, ...]) -> Proof:
    (rule,) = parse_rules(f"rule: {text}")
    types = {name: TensorType("int64" if name in "ij" else "float", shape) for name, shape in shapes.items()}
    operands = {name: Operand(type_) for name, type_ in types.items()}
    return method(rule, Binding(operands, attrs or {}, 23))


TRUE: list[tuple[str, dict[str, Any]]] = [
    ("MatMul(x, MatMul(y, z)) => MatMul(MatMul(x, y), z)", {"x": (2, 3), "y": (3, 4), "z": (4, 5)}),
    ("Mul(x, Add(y, z)) => Add(Mul(x, y), Mul(x, z))", {"x": (2, 3), "y": (2, 3), "z": (1, 3)}),
    ("Reshape(Flatten(x, axis=0), shape=s) => Reshape(x, shape=s)", {"x": (7, 4), "attrs": {"s": (4, 7)}}),
    (f"MaxPool(Relu(x), **k) => {PADDED}", {"x": (2, 3, 8, 9), "attrs": {"k": POOL | {"pads": (0, 0, 0, 0)}}}),
    ("Gather(Relu(x), i, axis=1) => Relu(Gather(x, i, axis=1))", {"x": (3, 4), "i": (2, 5)}),
    (("Slice(Slice(x, starts=[1], ends=[6], axes=[0], steps=[1]), starts=[1], ends=[3], axes=[0], steps=[1]) => "
     "Slice(x, starts=[2], ends=[4], axes=[0], steps=[1])"), {"x": (7, 2)}),
    ("Conv(Pad(x, pads=[0, 0, 1, 2, 0, 0, 1, 2]), w) => Conv(x, w, pads=[1, 2, 1, 2])",
     {"x": (2, 3, 8, 9), "w": (4, 3, 3, 3)}),
    ("Mul(MatMul(a, b), MatMul(Tanh(MatMul(d, e)), f)) => Mul(MatMul(Tanh(MatMul(d, e)), f), MatMul(a, b))",
     {"a": (2, 3), "b": (3, 4), "d": (2, 5), "e": (5, 6), "f": (6, 4)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given"), TRUE)
def test_true_rules_are_proved_for_all_sizes(text: str, given: dict[str, Any]) -> None:
    assert shown(text, **given).complete


HEADS = "ms.MultiHeadAttention(q, k, v, num_heads=2, scale=1.0)"
STEPS = (
    "Reshape(Transpose(Reshape(x, shape=[dim(x, 0), dim(x, 1) // 4, 2, 2, dim(x, 2), dim(x, 3)]), "
    "perm=[0, 1, 4, 2, 5, 3]), shape=[dim(x, 0), dim(x, 1) // 4, 2 * dim(x, 2), 2 * dim(x, 3)])"
)
HALF = "dim(x, 0) // 2"
HALVES = f"Slice(x, starts=[0], ends=[{HALF}], axes=[0]), Slice(x, starts=[{HALF}], ends=[dim(x, 0)], axes=[0])"
GENERAL: dict[str, tuple[str, dict[str, Any]]] = {
    "a real number isn't NaN": ("Where(IsNaN(x), y, x) => x", {"x": (2, 3), "y": (2, 3)}),
    "channels are a multiple of what they are divided by": (
        f'DepthToSpace(x, blocksize=2, mode="CRD") => {STEPS}',
        {"x": (2, 8, 3, 5)},
    ),
    "as the left side reshapes them": (
        f"ReduceSum(Reshape(x, shape=s), axes=[0], keepdims=0) => Add({HALVES}) if s == [2, {HALF}]",
        {"x": (6,), "attrs": {"s": (2, 3)}},
    ),
    "heads divide the width": (
        f"Relu({HEADS}) => Clip({HEADS}, min=0)",
        {"q": (2, 3, 8), "k": (2, 5, 8), "v": (2, 5, 6)},
    ),
}


@pytest.mark.parametrize("case", GENERAL)
def test_sizes_stay_general(case: str) -> None:
    text, given = GENERAL[case]
    proof = shown(text, **given)
    assert (proof.complete, proof.numbers) == (True, ())


def test_a_size_that_only_the_right_side_divides_stays_a_number() -> None:
    text = "Relu(x) => Reshape(Relu(Reshape(x, shape=[dim(x, 0) // 2, 2])), shape=[dim(x, 0)])"
    assert shown(text, x=(6,)).numbers == ("x.0",)


# rules that are false, though many of them hold where sizes are equal by accident, or 1, or without padding or groups
FALSE: list[tuple[str, dict[str, Any]]] = [
    ("Mul(x, Add(y, z)) => Add(Mul(x, y), z)", {"x": (2, 3), "y": (2, 3), "z": (2, 3)}),
    ("MatMul(x, x) => MatMul(x, Transpose(x, perm=[1, 0]))", {"x": (3, 3)}),
    ("MatMul(x, y) => MatMul(y, x)", {"x": (3, 3), "y": (3, 3)}),
    ("Concat(x, y, axis=0) => Concat(y, x, axis=0)", {"x": (3, 3), "y": (3, 3)}),
    ("Concat(x, x, axis=0) => Concat(x, x, axis=1)", {"x": (3, 3)}),
    # TASO's 125, 130 and 131: two convolutions become one with other groups
    ("Concat(Conv(x, a, **k), Conv(x, b, **k), axis=1) => Conv(x, Concat(a, b, axis=0), **k)",
     {"x": (2, 6, 8, 9), "a": (4, 3, 3, 3), "b": (4, 3, 3, 3), "attrs": {"k": GROUPED}}),
    (("Concat(Conv(x, w, **k), Conv(y, v, **k), axis=1) => "
     "Conv(Concat(x, y, axis=1), Concat(w, v, axis=0), group=2, pads=k.pads, strides=k.strides)"),
     {"x": (2, 4, 8, 9), "y": (2, 4, 8, 9), "w": (4, 4, 3, 3), "v": (4, 4, 3, 3), "attrs": {"k": PLAIN}}),
    ("Add(Conv(x, w, **k), Conv(y, v, **k)) => Conv(Concat(x, y, axis=1), Concat(w, v, axis=1), **k)",
     {"x": (2, 6, 5, 5), "y": (2, 6, 5, 5), "w": (4, 3, 3, 3), "v": (4, 3, 3, 3), "attrs": {"k": GROUPED}}),
    ("Mul(Conv(x, w, **k), Conv(y, w, **k)) => Conv(Mul(x, y), w, **k)",
     {"x": (2, 3, 8, 9), "y": (2, 3, 8, 9), "w": (4, 3, 3, 3), "attrs": {"k": PLAIN}}),
    ("Conv(Relu(x), w, **k) => Relu(Conv(x, w, **k))",
     {"x": (2, 3, 8, 9), "w": (4, 3, 3, 3), "attrs": {"k": PLAIN}}),
    ("Conv(Conv(x, w, **k), v, **k) => Conv(Conv(x, v, **k), w, **k)",
     {"x": (2, 3, 8, 9), "w": (3, 3, 3, 3), "v": (3, 3, 3, 3), "attrs": {"k": NO_PADS}}),
    ("Conv(Conv(x, w, b, **k), v, **k) => Add(Conv(Conv(x, w, **k), v, **k), Reshape(b, shape=[3, 1, 1]))",
     {"x": (2, 3, 8, 9), "w": (3, 3, 3, 3), "b": (3,), "v": (3, 3, 3, 3), "attrs": {"k": PLAIN}}),
    # maxima and padding
    ("MaxPool(x, **k) => MaxPool(Relu(x), **k)", {"x": (2, 3, 8, 9), "attrs": {"k": POOL}}),
    ("MaxPool(Add(x, y), **k) => Add(MaxPool(x, **k), MaxPool(y, **k))",
     {"x": (2, 3, 8, 9), "y": (2, 3, 8, 9), "attrs": {"k": POOL}}),
    (("MaxPool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) => "
     "MaxPool(MaxPool(x, kernel_shape=[2, 2], pads=[1, 1, 0, 0]), kernel_shape=[2, 2], pads=[1, 1, 0, 0])"),
     {"x": (2, 3, 8, 9)}),
    (("AveragePool(Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 1]), kernel_shape=[3, 3]) => "
     "AveragePool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])"), {"x": (2, 3, 8, 9)}),
    ("Pad(Pad(x, pads=[1, 0], constant_value=1.0), pads=[1, 0]) => Pad(x, pads=[2, 0])", {"x": (5,)}),
    # blocks, slices and positions
    (("Slice(Slice(x, starts=[1], ends=[6], axes=[0], steps=[1]), starts=[1], ends=[3], axes=[0], steps=[1]) => "
     "Slice(x, starts=[1], ends=[3], axes=[0], steps=[1])"), {"x": (7, 2)}),
    ("Add(Split(x, axis=0, split=[1, 2])[0], y) => Add(Split(x, axis=0, split=[2, 1])[1], y)",
     {"x": (3, 4), "y": (1, 4)}),
    ("Reshape(Transpose(x, perm=[1, 0]), shape=s) => Reshape(x, shape=s)", {"x": (3, 3), "attrs": {"s": (9,)}}),
    (("Reshape(Reshape(x, shape=[2, 3, 4]), shape=[6, 4]) => Reshape(Transpose(Reshape(x, shape=[3, 2, 4]), "
     "perm=[1, 0, 2]), shape=[6, 4])"), {"x": (24,)}),
    ("Gather(Gather(x, i, axis=0), j, axis=0) => Gather(Gather(x, j, axis=0), i, axis=0)",
     {"x": (4, 2), "i": (4,), "j": (4,)}),
    ("Gather(Gather(x, i, axis=0), j, axis=1) => Gather(Gather(x, j, axis=0), i, axis=1)",
     {"x": (4, 4), "i": (4,), "j": (4,)}),
    ("Gather(MatMul(x, y), i, axis=1) => MatMul(x, Gather(y, i, axis=0))", {"x": (4, 4), "y": (4, 4), "i": (4,)}),
    ("ReduceMean(Relu(x), axes=[1]) => Relu(ReduceMean(x, axes=[1]))", {"x": (2, 3)}),
    ("ReduceMax(Add(x, y), axes=[1]) => Add(ReduceMax(x, axes=[1]), y)", {"x": (2, 3), "y": (2, 3)}),
    ("Softmax(Add(x, y), axis=1) => Softmax(x, axis=1)", {"x": (2, 3), "y": (1, 3)}),
    # an index of a sum within a function is none of the sum around it
    (("Mul(ReduceSum(x, axes=[0], keepdims=0), ReduceSum(Tanh(ReduceSum(y, axes=[1], keepdims=0)), axes=[0], "
     "keepdims=0)) => ReduceSum(MatMul(Tanh(Mul(y, dim(y, 1))), x), axes=[0], keepdims=0)"), {"x": (3,), "y": (5, 3)}),
]  # fmt: skip


@pytest.mark.parametrize("method", [prove, prove_analytic])
@pytest.mark.parametrize(("text", "given"), FALSE)
def test_false_rules_stay_unproved(text: str, given: dict[str, Any], method: Any) -> None:
    with pytest.raises(UnprovableError):
        shown(text, method, **given)


def test_the_tensors_of_a_rest_are_none_of_the_named_ones() -> None:
    one = Operand(TensorType("float", (2, 3)))
    (rule,) = parse_rules("rule: Max(x0, *x) => Max(*x)")
    with pytest.raises(UnprovableError):
        prove(rule, Binding({"x0": one, "x": (one, one)}, {}, 23))


LACKING: list[tuple[str, dict[str, Any]]] = [
    ("Relu(x) => Reshape(Reshape(Relu(x), shape=[3, 4]), shape=[3, 4])", {"x": (3, 4)}),
    ("MatMul(x, y) => MatMul(x, Split(Concat(y, y, axis=0), axis=0, split=[dim(x, 0), dim(y, 0)])[1])",
     {"x": (3, 3), "y": (3, 4)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given"), LACKING)
def test_what_only_the_right_side_asks_for_is_a_precondition_that_the_rule_lacks(
    text: str, given: dict[str, Any]
) -> None:
    proof = shown(text, **given)
    assert proof.lacking
    assert not proof.complete


def test_conditions_come_before_what_the_sides_ask_for() -> None:
    text = "Add(MaxPool(x, **k), MaxPool(y, **k)) => Add(MaxPool(y, **k), MaxPool(x, **k)) if shape(x) == shape(y)"
    assert "x.2 = y.2" in shown(text, x=(2, 3, 8, 9), y=(2, 3, 8, 9), attrs={"k": POOL}).typing


def test_sizes_that_are_equal_by_accident_stay_different() -> None:
    proof = shown("MatMul(x, MatMul(y, z)) => MatMul(MatMul(x, y), z)", x=(3, 3), y=(3, 3), z=(3, 3))
    assert proof.typing == ("y.1 = z.0", "x.1 = y.0")


ANALYTIC = [
    ("Sigmoid(x) => Add(Mul(Tanh(Mul(x, 0.5)), 0.5), 0.5)", {"exp-sum", "logistic", "tanh"}),
    ("Softplus(x) => Add(Relu(x), Log(Add(Exp(Neg(Abs(x))), 1)))", {"case", "log-exp"}),
    ("HardSwish(x) => Mul(Mul(x, Clip(Add(x, 3), min=0, max=6)), 1/6)", {"piecewise", "literal"}),
    ("Mul(Mul(x, Add(Erf(Mul(x, sqrt(0.5))), 1)), 0.5) => Gelu(x)", {"literal"}),
    ("Pow(x, 0.75) => Mul(Sqrt(x), Sqrt(Sqrt(x)))", {"power"}),
]


@pytest.mark.parametrize(("text", "axioms"), ANALYTIC)
def test_identities_over_the_reals_name_their_axioms(text: str, axioms: set[str]) -> None:
    with pytest.raises(UnprovableError):
        shown(text, x=(2, 3))
    assert axioms <= set(shown(text, prove_analytic, x=(2, 3)).axioms)


FALSE_ANALYTIC = [
    "Sigmoid(x) => Add(Mul(Tanh(x), 0.5), 0.5)",
    "Tanh(x) => Sub(Mul(Sigmoid(x), 2), 1)",
    "Softplus(x) => Add(Relu(x), Log(Add(Exp(Abs(x)), 1)))",
    "HardSwish(x) => Mul(Mul(x, Clip(Add(x, 3), min=0, max=5)), 1/6)",
    "Relu(Clip(x, min=-1, max=2)) => Clip(x, min=0, max=1)",
    "Clip(Clip(x, min=0, max=2), min=1, max=3) => Clip(x, min=0, max=2)",
    "LeakyRelu(x, alpha=2.0) => Max(x, Mul(x, 2.0))",
    "Relu(Mul(x, c)) => Mul(Relu(x), c)",
    "PRelu(x, c) => Max(x, Mul(x, c)) if value(c) >= 0",
    "Pow(x, 0.75) => Mul(Sqrt(x), Sqrt(x))",
    "Mul(Mul(x, Add(Erf(Mul(x, sqrt(2))), 1)), 0.5) => Gelu(x)",
    "Exp(Mul(x, c)) => Mul(Exp(x), Exp(c))",
    "Abs(Add(x, c)) => Add(Abs(x), Abs(c))",
    "Reciprocal(Add(Div(2, Sub(Exp(x), 2)), 1)) => Sub(1, Div(2, Exp(x)))",
    "Mul(Sub(x, x), c) => Mul(Sub(x, x), Div(c, Sub(c, c)))",
]


@pytest.mark.parametrize("text", FALSE_ANALYTIC)
def test_axioms_prove_no_false_identity(text: str) -> None:
    with pytest.raises(UnprovableError):
        shown(text, prove_analytic, x=(2, 3), c=(2, 3))


def test_a_quotient_by_exponentials_is_an_identity() -> None:
    text = "Mul(x, Tanh(Softplus(x))) => Div(x, Add(Div(2, Mul(Exp(x), Add(Exp(x), 2))), 1))"
    assert "logistic" in shown(text, prove_analytic, x=(2, 3)).axioms


def test_the_documentation_states_every_axiom() -> None:
    text = (Path(__file__).parents[3] / "docs" / "proofs.md").read_text(encoding="utf-8")
    assert [name for name in AXIOMS if f"| {name} |" not in text] == []


def test_only_sizes_without_an_index_form_become_numbers() -> None:
    rules = RuleSet.load("convolution", numerics="fast")
    rule = rules[rules.index("conv-winograd-two")]
    proofs = [prove(rule, i.binding()) for i in sample_instances(rule, 3, 0)]
    assert {fact[:3] for p in proofs for fact in p.fixed} == {"x.2", "x.3"}


def test_a_divisor_cancels_by_an_axiom_only() -> None:
    text, shapes = "Mul(x, Div(y, x)) => y", {"x": (2, 3), "y": (2, 3)}
    with pytest.raises(UnprovableError):
        shown(text, **shapes)
    assert shown(text, prove_analytic, **shapes).axioms == ("divisor",)


@pytest.mark.parametrize("op", ["Relu", "Sign", "Softmax"])
def test_only_functions_that_keep_0_pass_through_padding(op: str) -> None:
    attrs = ", axis=0" if op == "Softmax" else ""
    text = f"{op}(Pad(x, pads=[0, 1, 0, 1]){attrs}) => Pad({op}(x{attrs}), pads=[0, 1, 0, 1])"
    if op == "Relu":
        assert shown(text, x=(2, 3)).complete
    else:
        with pytest.raises(UnprovableError):
            shown(text, x=(2, 3))
