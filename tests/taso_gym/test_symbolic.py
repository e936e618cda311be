"""Dimensions: what a polynomial over symbols is between, how it is written, how far it grows."""

from __future__ import annotations

from math import inf

import pytest

from taso_gym.errors import TypeInferenceError
from taso_gym.symbolic import Dim, bounds, product, symbol, total

N, M = symbol("N"), symbol("M")


@pytest.mark.parametrize(
    ("dim", "least", "expected"),
    [
        (3, 1, (3, 3)),
        (0, 0, (0, 0)),
        (N, 0, (0, inf)),
        (N, 1, (1, inf)),
        (2 * N * M + M + 1, 1, (4, inf)),
        (2 - N, 1, (-inf, 1)),
        (N - M, 1, (-inf, inf)),
    ],
)
def test_bounds_hold_for_all_sizes_from_the_least_on(dim: Dim, least: int, expected: tuple[float, float]) -> None:
    assert bounds(dim, least) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((symbol("2"),), (2,)),
        ((symbol("-2"),), (-2,)),
        ((symbol("a, b"), N), (symbol("a"), symbol("b"), N)),
        ((symbol("'2'"),), (symbol("2"),)),
    ],
)
def test_shapes_that_differ_do_so_as_text(one: tuple[Dim, ...], other: tuple[Dim, ...]) -> None:
    assert one != other and repr(one) != repr(other)


@pytest.mark.parametrize("name", ["batch", "x#0", "past + 1", "floor((N + 1)/2)", "/layer.0/Concat_output_0#1"])
def test_usual_names_are_written_as_they_are(name: str) -> None:
    """Digests of graphs and keys of recorded costs are made of it."""
    assert repr((2 * symbol(name) + 1, N)) == f"(2*{name} + 1, N)"


def test_products_do_not_grow_without_end() -> None:
    sums = [total([symbol(f"a{i}"), symbol(f"b{i}")]) for i in range(20)]
    assert str(product(sums[:2])) == "b0*b1 + a1*b0 + a0*b1 + a0*a1"
    with pytest.raises(TypeInferenceError, match="at most 65536 terms"):
        product(sums)
    with pytest.raises(TypeInferenceError, match="of degree 256"):
        product(257 * [N])
