from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from rule_discovery import sized

from taso_substitutions.enumeration import enumerate as module
from taso_substitutions.enumeration.enumerate import Table, enumerate_fragment, estimated_bytes, pack, unpack
from taso_substitutions.enumeration.fragment import Fragment, fragment, op
from taso_substitutions.enumeration.fragments import FRAGMENTS

TINY = fragment("tiny", "x y: AB", op("Add", 2, alike=True), op("Relu"))


def tiny() -> Fragment:
    return TINY.sized((4, 4))


def test_keys_hold_operands() -> None:
    operands = np.array([[0, 1, 2], [7, 3, 5]])
    instance, unpacked = unpack(pack(5, operands))
    assert instance.tolist() == [5, 5]
    np.testing.assert_array_equal(unpacked, operands)


def test_absent_operands_are_minus_one() -> None:
    assert unpack(pack(0, np.array([[4]])))[1].tolist() == [[4, -1, -1]]


def test_one_operator_is_applied_to_each_choice_of_operands_once() -> None:
    table, _ = enumerate_fragment(tiny(), 1)
    assert len(table) == 3 + 2  # x + x, x + y, y + y; relu of x and y


def graphs(ops: int) -> set[frozenset[str]]:
    """All graphs by brute force, as sets of what their operators compute; those with one result."""
    found: set[frozenset[str]] = set()

    def grow(terms: tuple[str, ...]) -> None:
        if terms and sum(all(f"({t}" not in u and f" {t})" not in u for u in terms) for t in terms) == 1:
            found.add(frozenset(terms))
        if len(terms) < ops:
            operands = ["x", "y", *terms]
            sums = {f"({' '.join(sorted(pair))})" for pair in product(operands, repeat=2)}
            for term in sums | {f"({o} )" for o in operands}:
                if term not in terms:
                    grow((*terms, term))

    grow(())
    return found


def test_graphs_of_two_operators_are_each_found_once() -> None:
    table, _ = enumerate_fragment(tiny(), 2)
    assert table.dags[-1] == len({g for g in graphs(2) if len(g) == 2})


def test_graphs_end_in_operators_of_three_operands() -> None:
    """Three values may wait for the last one, which takes all."""
    layer = fragment("layer", "x: AB, a: BC, c: C", op("Gemm", 3), op("Relu")).sized((4, 4))
    table, _ = enumerate_fragment(layer, 4)
    relus = set(table.value[(table.instance == 1) & (table.size == 1)].tolist())
    gemms = table.operands[(table.instance == 0) & (table.size == 4)]
    assert any(set(row) == relus for row in gemms.tolist()) and len(relus) == 3


def test_operators_that_apply_to_nothing_make_no_graphs() -> None:
    """Such as Concat along an axis that no input has."""
    table, _ = enumerate_fragment(fragment("none", "x: AB", op("Concat", 2, axis=2)).sized((4, 4)), 4)
    assert (len(table), table.dags) == (0, [0, 0, 0, 0])


def test_equal_tensors_have_one_number() -> None:
    table, _ = enumerate_fragment(tiny(), 2)
    assert len(set(table.value.tolist())) < len(table)  # (x + y) + x and x + (x + y) are one application already


@pytest.mark.parametrize("name", list(FRAGMENTS))
def test_every_operator_of_a_fragment_is_applied(name: str) -> None:
    ops = 3 if name == "normalised" else 2  # groups: of two joined tensors
    table, _ = enumerate_fragment(sized(name), ops)
    assert set(table.instance.tolist()) == set(range(len(FRAGMENTS[name].instances)))


def test_the_same_again() -> None:
    first, second = (enumerate_fragment(sized("scalar"), 2)[0] for _ in range(2))
    assert isinstance(first, Table)
    np.testing.assert_array_equal(first.value, second.value)
    np.testing.assert_array_equal(first.operands, second.operands)


def test_estimates_grow_with_operators_and_sizes() -> None:
    small, more = (estimated_bytes(sized("matrix"), ops) for ops in (2, 4))
    (large,) = (FRAGMENTS["matrix"].sized((10**5, 10**5)),)
    assert small < more
    assert estimated_bytes(large, 2) > 10**11


@pytest.mark.parametrize("bound", [4, 1000])
def test_tensors_are_counted_at_small_sizes_for_an_estimate(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing those of the sizes that are asked for may take minutes before anything is said."""
    counted, real = list[Sequence[Mapping[str, int]]](), enumerate_fragment

    def spy(fragment: Fragment, ops: int, on_level: Callable[[int, int], None]) -> object:
        counted.append(fragment.sizes)
        return real(fragment, ops, on_level)

    monkeypatch.setattr(module, "enumerate_fragment", spy)
    estimated_bytes(FRAGMENTS["scalar"].sized((bound, bound)), 2)
    assert counted == [sized("scalar").sizes]
