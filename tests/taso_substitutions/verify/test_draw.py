import math
from collections.abc import Callable

import numpy as np
import pytest

from taso_gym.ops.shapes import broadcast
from taso_substitutions.verify.draw import HIGHEST, MAX_ELEMENTS, Draw, Unfit


def many(make: Callable[[Draw], object], count: int = 300) -> list[object]:
    draw = Draw(np.random.default_rng(0))
    return [make(draw) for _ in range(count)]


def test_shapes_stay_small_and_within_their_ranks() -> None:
    for shape in [*many(lambda draw: draw.shape(2, 3)), *many(lambda draw: draw.shape(2))]:
        assert 2 <= len(shape) <= 6 and math.prod(shape) <= MAX_ELEMENTS


def test_sizes_have_three_multiples_of_a_divisor_at_least() -> None:
    draw = Draw(np.random.default_rng(0), {3})
    assert {3, 9, 12} <= {draw.size() for _ in range(300)}


def test_parts_are_positive_and_add_up() -> None:
    for parts in many(lambda draw: draw.parts(7, 3)):
        assert len(parts) == 3 and min(parts) > 0 and sum(parts) == 7


def test_a_rank_above_the_highest_is_unfit() -> None:
    with pytest.raises(Unfit):
        Draw(np.random.default_rng(0)).shape(HIGHEST + 1, HIGHEST + 1)


def test_more_parts_than_elements_are_unfit() -> None:
    with pytest.raises(Unfit):
        Draw(np.random.default_rng(0)).parts(2, 3)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1, 5), (2, 3, 4, 5)])
def test_broadcastable_shapes_broadcast_and_enlarge_some_times(shape: tuple[int, ...]) -> None:
    results = [broadcast(shape, other) for other in many(lambda draw: draw.broadcastable(shape))]
    assert shape in results
    assert any(result != shape for result in results)


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4), (4, 1, 6)])
def test_regrouped_shapes_have_as_many_elements(shape: tuple[int, ...]) -> None:
    found = many(lambda draw: draw.regrouped(shape))
    assert {math.prod(s) for s in found} == {math.prod(shape)}
    assert len(set(found)) > 1


def test_familiar_shapes_come_again() -> None:
    draw = Draw(np.random.default_rng(0))
    draw.shapes.append((2, 3, 5))
    assert sum(draw.familiar() == (2, 3, 5) for _ in range(100)) > 20
