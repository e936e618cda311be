import pytest

from taso_gym.errors import EquivalenceError
from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify.attributes import ATTRIBUTES
from taso_substitutions.verify.instance import KEYS
from taso_substitutions.verify.operands import OPERANDS
from taso_substitutions.verify.sampling import sample_instances

WRITTEN = {
    "Resize": 'Resize(x0, scales=s, coordinate_transformation_mode=c, mode="linear")',
    "ms.FusedConv": 'ms.FusedConv(x0, x1, activation="Relu", **k) => Relu(Conv(x0, x1, **k))',
    "ms.FusedGemm": 'ms.FusedGemm(x0, x1, activation="Relu", **k) => Relu(Gemm(x0, x1, **k))',
    "ms.MultiHeadAttention": "ms.MultiHeadAttention(x0, x1, x2, mask_filter_value=-10000.0, unidirectional=0, **k)",
}
"""Operators with attributes that can't be drawn, with what **k can stand for."""
DRAWN = sorted({*OPERANDS, *(op for op, _ in ATTRIBUTES)} - {"Einsum", "Where"})


def call(op: str) -> str:
    """Return an application of an operator to as many tensors as it needs, all attributes free."""
    operands = ", ".join(f"x{i}" for i in range(max(KEYS[op].min_inputs, 1)))
    return f"{op}({operands}, **k)" if KEYS[op].defaults else f"{op}({operands})"


@pytest.mark.parametrize("op", DRAWN)
def test_operands_and_attributes_that_fit_are_found(op: str) -> None:
    text = WRITTEN.get(op, call(op))
    (rule,) = parse_rules(f"f: {text if '=>' in text else f'{text} => {text}'}")
    shapes = [i.tensors["x0"].shape for i in sample_instances(rule, 12, seed=0)]
    assert len(set(shapes)) > 3


@pytest.mark.parametrize("op", WRITTEN)
def test_attributes_that_nothing_draws_stand_for_no_others(op: str) -> None:
    (rule,) = parse_rules(f"f: {call(op)} => {call(op)}")
    with pytest.raises(EquivalenceError, match=f"expected a way to draw the attribute .* of {op}, found none"):
        list(sample_instances(rule, 12, seed=0))


def test_all_optional_operands_are_found() -> None:
    for left, right in (
        ("Conv(x, w, b, **k)", "Conv(x, w, b, **k)"),
        ("Gemm(x, w, b, **k)", "Gemm(x, w, b, **k)"),
        ("LayerNormalization(x, w, b, **k)", "LayerNormalization(x, w, b, **k)"),
        ('ms.FusedConv(x, w, b, z, activation="Relu", **k)', "Relu(Add(Conv(x, w, b, **k), z))"),
    ):
        (rule,) = parse_rules(f"f: {left} => {right}")
        assert len(list(sample_instances(rule, 12, seed=0))) == 12


def test_a_kernel_over_blocks_of_pixels_covers_whole_blocks() -> None:
    text = "Conv(DepthToSpace(x, blocksize=f), w)"
    (rule,) = parse_rules(f"f: {text} => {text}")
    for instance in sample_instances(rule, 12, seed=0):
        assert [d % instance.attrs["f"] for d in instance.tensors["w"].shape[2:]] == [0, 0]
