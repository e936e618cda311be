"""Resize: what of it is modelled, what isn't and is still typed, and that networks with either are rewritten."""

import numpy as np
import pytest
from model_texts import graph_of, op_names

from taso_gym.errors import ModelError
from taso_gym.ops import OPERATORS, evaluate
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState, check
from taso_gym.signature import signature
from taso_gym.tensor import TensorType

RESIZE = OPERATORS["", "Resize"]
IMAGE = TensorType("float", (1, 2, 4, 4))
DOUBLE = {"scales": (1.0, 1.0, 2.0, 2.0)}
TYPED_ONLY = [
    {"mode": "cubic", "exclude_outside": 1},
    {"mode": "nearest"},
    {"mode": "linear", "antialias": 1},
    {"mode": "linear", "exclude_outside": 1},
    {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
]


@pytest.mark.parametrize("attrs", TYPED_ONLY, ids=str)
def test_what_isnt_modelled_has_a_type_and_no_value(attrs: dict[str, object]) -> None:
    sig = signature(RESIZE, attrs | DOUBLE, [IMAGE])
    assert sig.outputs == (TensorType("float", (1, 2, 8, 8)),)
    with pytest.raises(ModelError, match="expected a"):
        evaluate(RESIZE, dict(sig.attrs), [np.zeros((1, 2, 4, 4), np.float32)])


def test_integers_are_moved_but_not_interpolated() -> None:
    x = np.array([[1, 2]], np.uint8)
    attrs = {"scales": (1.0, 2.0), "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    sigs = [
        signature(RESIZE, attrs | {"mode": mode}, [TensorType("uint8", (1, 2))])
        for mode in ("nearest", "linear", "cubic")
    ]
    (found,) = evaluate(RESIZE, dict(sigs[0].attrs), [x])
    assert found.dtype == np.uint8 and found.tolist() == [[1, 1, 2, 2]]
    for sig in sigs[1:]:
        with pytest.raises(ModelError, match="integers"):
            evaluate(RESIZE, dict(sig.attrs), [x])


def test_what_the_mode_doesnt_read_makes_no_difference() -> None:
    stated = {"mode": "linear", "nearest_mode": "floor", "cubic_coeff_a": -0.5, "extrapolation_value": 1.0}
    assert signature(RESIZE, stated | DOUBLE, [IMAGE]) is signature(RESIZE, {"mode": "linear"} | DOUBLE, [IMAGE])
    floor, nearest = ({"mode": "nearest", "nearest_mode": m} | DOUBLE for m in ("floor", "round_prefer_floor"))
    assert signature(RESIZE, floor, [IMAGE]) is not signature(RESIZE, nearest, [IMAGE])


def network(attrs: str, batch: int | str = 1, size: int = 4) -> str:
    return f"""
        g (float[{batch},2,{size},{size}] x) => (float[{batch},2,{2 * size},{2 * size}] y) <float[4] s = {{1, 1, 2, 2}}>
        {{ p = Relu(x)
           q = Relu(p)
           r = Resize<{attrs}>(q, , s)
           y = Relu(r) }}
    """


def moves(text: str) -> dict[str, RewriteState]:
    """Return what each rule that matches makes of a network."""
    rules = RuleSet.load()
    state = RewriteState(graph_of(text), rules)
    found = {rule.name: state.apply(row[0]) for rule, row in zip(rules, state.matches, strict=True) if row}
    for child in found.values():
        check(child)
    return found


def resizing(text: str) -> list[str]:
    """Return the rules about Resize that match."""
    return [name for name in moves(text) if name.startswith("resize")]


def test_around_one_that_isnt_modelled_other_rules_apply() -> None:
    found = moves(network('mode = "cubic", antialias = 1'))
    assert op_names(found["relu-idempotent"].graph) == ["Relu", "Resize", "Relu"]
    assert resizing(network('mode = "cubic", antialias = 1')) == []


@pytest.mark.parametrize("batch", [1, "N"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_one_becomes_two_products(mode: str, batch: int | str) -> None:
    """As PyTorch writes it: with attributes that this mode doesn't read."""
    text = network(f'mode = "{mode}", nearest_mode = "floor", coordinate_transformation_mode = "half_pixel"', batch)
    child = moves(text)["resize-as-matmul"].graph
    assert [name for name in op_names(child) if name not in ("Reshape", "Transpose")].count("MatMul") == 2


@pytest.mark.parametrize(
    "attrs",
    [
        'mode = "linear", antialias = 1',
        'mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric"',
        'mode = "nearest", nearest_mode = "floor"',
    ],
)
def test_another_one_stays(attrs: str) -> None:
    assert resizing(network(attrs)) == []


def test_a_matrix_that_is_too_large_isnt_made() -> None:
    assert resizing(network('mode = "linear"', size=256)) == ["resize-as-matmul"]
    assert resizing(network('mode = "linear"', size=257)) == []
