import pytest

from taso_gym.errors import EquivalenceError
from taso_gym.rules.conditions import holds
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.signature import signature
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragment import BY_KEY
from taso_substitutions.verify.instance import Instance, Side
from taso_substitutions.verify.sampling import averages_nothing, sample_instances

CONV = (
    "conv: Conv(x, a, **k), Conv(x, b, **k) => *Split(Conv(x, Concat(a, b, axis=0), **k), axis=1, "
    "split=[dim(a, 0), dim(b, 0)]) if shape(a)[1:] == shape(b)[1:] and const(a)"
)


def rule(text: str) -> Rule:
    return parse_rules(text)[0]


def sample(text: str, count: int = 30) -> list[Instance]:
    return list(sample_instances(rule(text), count, seed=0))


def test_same_seed_gives_the_same_instances() -> None:
    assert list(map(str, sample(CONV))) == list(map(str, sample(CONV)))


def test_instances_differ() -> None:
    found = sample(CONV)
    assert len(set(map(str, found))) == 30


def test_conditions_hold_and_the_left_side_is_well_typed() -> None:
    conv = rule(CONV)
    for instance in sample(CONV):
        assert all(holds(c, instance.binding()) for c in conv.conditions)
        assert len(Side(instance, left=True).outputs(conv.lhs)) == 2
        assert instance.tensors["a"].const


def test_strides_pads_dilations_groups_and_unequal_sizes_occur() -> None:
    kept = [instance.attrs["k"] for instance in sample(CONV)]
    assert any(max(k["strides"]) > 1 for k in kept)
    assert any(len(set(k["pads"])) > 1 for k in kept)
    assert any(max(k["dilations"]) > 1 for k in kept)
    assert any(k["group"] > 1 for k in kept)
    assert any(i.tensors["a"].shape[0] != i.tensors["b"].shape[0] for i in sample(CONV))


def test_groups_are_what_a_kernel_that_is_made_has_of_the_channels() -> None:
    found = sample("join: Conv(x, Concat(a, b, axis=0), **k) => Conv(x, Concat(a, b, axis=0), **k)")
    assert sum(i.attrs["k"]["group"] > 1 for i in found) > 3


def test_size_one_and_broadcasting_occur() -> None:
    found = sample("add: Add(x, y) => Add(y, x)")
    pairs = [(i.tensors["x"].shape, i.tensors["y"].shape) for i in found]
    assert any(x == y for x, y in pairs)
    assert any(len(x) != len(y) for x, y in pairs)
    assert any(1 in x for x, _ in pairs)


@pytest.mark.parametrize("bounds", ["starts=s, ends=[2]", "starts=[0], ends=e", "starts=s, ends=e"])
def test_a_tensor_has_the_axis_that_a_slice_names(bounds: str) -> None:
    found = sample(f"f: Slice(x, {bounds}, axes=[2], steps=[1]) => Slice(x, {bounds}, axes=[2], steps=[1])")
    assert {len(i.tensors["x"].shape) for i in found} <= {3, 4, 5, 6}


def test_what_mustnt_widen_a_shape_has_it_or_a_narrower_one() -> None:
    found = sample("f: Mul(x, y) => Mul(y, x) if broadcast(shape(y), shape(x)[:-1] + [1]) == shape(x)[:-1] + [1]")
    shapes = [(i.tensors["x"].shape, i.tensors["y"].shape) for i in found]
    assert any(len(x) > 1 and max(x[:-1]) > 1 and y == (*x[:-1], 1) for x, y in shapes)
    assert any(len(y) < len(x) for x, y in shapes)


def test_ranks_are_at_least_what_a_condition_says_and_larger_ones_occur() -> None:
    ranks = {len(i.tensors["x"].shape) for i in sample("f: Exp(x) => Exp(x) if rank(x) >= 4")}
    assert {4, 5} <= ranks and min(ranks) == 4


def test_what_a_condition_defines_is_taken_from_there() -> None:
    found = sample("f: MatMul(x, w) => MatMul(x, w) if shape(w) == [dim(x, -1), 4] and rank(x) == 3")
    assert {i.tensors["w"].shape[1] for i in found} == {4}
    assert {len(i.tensors["x"].shape) for i in found} == {3}


def test_lists_and_any_number_of_tensors_are_bound() -> None:
    found = sample(
        "f: Slice(Concat(*xs, axis=0), starts=[b], ends=[c], axes=[a], steps=[1]) => Slice(Concat(*xs, axis=0),"
        " starts=[b], ends=[c], axes=[a], steps=[1])"
    )
    assert {len(i.tensors["xs"]) for i in found} == {1, 2, 3}
    assert all(0 <= i.attrs["b"] < i.attrs["c"] for i in found)


def test_constants_whose_value_is_asked_for_have_one() -> None:
    found = sample("f: Mul(x, c) => Mul(x, c) if value(c) <= 1")
    assert all((i.weights["c"].array() <= 1).all() for i in found)


def test_integers_occur_for_a_rule_on_any_type() -> None:
    assert {i.tensors["x"].dtype for i in sample("f [any]: Neg(x) => Neg(x)")} >= {"float", "int64"}
    assert {i.tensors["x"].dtype for i in sample("f: Neg(x) => Neg(x)")} == {"float", "double"}


def test_too_few_instances_are_an_error() -> None:
    with pytest.raises(EquivalenceError, match=r"expected 2 instances of f, found 0 in \d+ tries with seed 0"):
        list(sample_instances(rule("f: Relu(x) => Relu(x) if rank(x) == 1 and rank(x) == 2"), 2, seed=0))


def test_an_attribute_that_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(EquivalenceError, match="expected a way to draw the attribute blocksize of SpaceToDepth"):
        list(sample_instances(rule("f: SpaceToDepth(x, blocksize=b) => SpaceToDepth(x, blocksize=b)"), 1, seed=0))


def test_a_window_without_elements_is_no_instance() -> None:
    pool = BY_KEY["AveragePool"]
    image = TensorType("float", (1, 1, 3))
    attrs = {"kernel_shape": (2,), "pads": (1, 1)}
    assert averages_nothing(signature(pool, {**attrs, "dilations": (4,)}, [image]))
    assert not averages_nothing(signature(pool, {**attrs, "dilations": (4,), "count_include_pad": 1}, [image]))
    assert not averages_nothing(signature(pool, attrs, [image]))


@pytest.mark.parametrize("condition", ["rank(x) == 16", "dim(x, 0) == 5000000"])
def test_conditions_that_ask_for_too_much_have_no_instances(condition: str) -> None:
    with pytest.raises(EquivalenceError, match="found 0 in 25 tries"):
        list(sample_instances(rule(f"r: Relu(Relu(x)) => Relu(x) if {condition}"), 1, seed=0, tries=25))
