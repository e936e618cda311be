import pytest
from rule_discovery import sized

from taso_gym.errors import OptionError
from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragment import fragment, op
from taso_substitutions.enumeration.fragments import FRAGMENTS, chosen_fragments

USUAL = [f for f in FRAGMENTS.values() if f.usual]
NOT_OF_INPUTS = {
    "linear": {"Split"},  # of two joined tensors, each of which is a part
    "movement": {"Reshape"},  # of permutations: a file can't state A4A as (4 A, A), as two open sizes move
}
"""Operators that no graph of one operator has."""


@pytest.mark.parametrize("name", list(FRAGMENTS))
def test_letters_have_two_sizes_within_bounds(name: str) -> None:
    (fragment,) = chosen_fragments(name, (4, 4, 4, 4))
    assert len(fragment.sizes) == 2
    assert all(1 <= size <= 4 for sizes in fragment.sizes for size in sizes.values())


@pytest.mark.parametrize("name", [f.name for f in USUAL])
def test_what_an_operator_takes_besides_is_an_input(name: str) -> None:
    fragment = FRAGMENTS[name]
    assert {extra for instance in fragment.instances for extra in instance.extra} <= set(fragment.inputs)


def test_operators_are_many() -> None:
    assert len({instance.key for fragment in FRAGMENTS.values() for instance in fragment.instances}) >= 20
    assert len({instance.key for fragment in USUAL for instance in fragment.instances}) >= 15
    assert len(USUAL) >= 3


def test_sizes_grow_with_the_bound() -> None:
    (small,), (large,) = (chosen_fragments("matrix", (size,) * 2) for size in (4, 8))
    assert all(large.sizes[0][k] == 2 * v for k, v in small.sizes[0].items())


@pytest.mark.parametrize(
    ("names", "largest", "operators", "message"),
    [
        ("matrices", (4, 4), (), "expected fragments of"),
        ("matrix", (4,), (), "expected 2 axes"),
        ("convolution", (4, 4, 2, 2), (), "expected at least"),
        ("matrix", (4, 4), ("Convolve",), "expected operators of the fragments"),
        ("matrix", (4, 4), ("Conv",), "expected operators that matrix have, found Conv"),
    ],
)
def test_bad_settings(names: str, largest: tuple[int, ...], operators: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        chosen_fragments(names, largest, operators)


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values()])
def test_letters_are_in_order_so_that_other_processes_go_on_with_the_same_work(name: str) -> None:
    letters = list(FRAGMENTS[name].shares)
    assert letters == sorted(letters)


@pytest.mark.parametrize(("first", "second", "fits"), [("AB", "B", True), ("AB", "A1", True), ("A1", "B", False)])
def test_a_row_and_a_column_make_no_matrix(first: str, second: str, fits: bool) -> None:
    inputs = fragment("some", f"x: {first}, y: {second}", op("Add", 2)).types
    assert op("Add", 2).takes([inputs["x"], inputs["y"]]) is fits


@pytest.mark.parametrize("name", ["movement", "attention"])
def test_permutations_are_closed_under_composition(name: str) -> None:
    perms = [dict(i.attrs)["perm"] for i in FRAGMENTS[name].instances if i.key == "Transpose"]
    identity = tuple(range(len(perms[0])))
    assert {tuple(p[i] for i in q) for p in perms for q in perms} == {identity, *perms}


def test_a_fragment_that_is_named_twice_is_one() -> None:
    assert [f.name for f in chosen_fragments("matrix, matrix,scalar", (4, 4))] == ["matrix", "scalar"]


@pytest.mark.parametrize("name", list(FRAGMENTS))
def test_operators_apply_to_inputs_but_for_those_that_are_listed(name: str) -> None:
    table, _ = enumerate_fragment(sized(name), 1)
    applied = set(table.instance.tolist())
    left = {instance.key for i, instance in enumerate(FRAGMENTS[name].instances) if i not in applied}
    assert left == NOT_OF_INPUTS.get(name, set())
