"""Statistics over runs."""

import numpy as np
import pytest

from taso_agents.stats import iqm, iqm_estimate, known_mean


def test_iqm_drops_a_quarter_at_each_end() -> None:
    assert iqm([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -100.0]) == pytest.approx(3.5)


def test_iqm_of_five_runs_is_the_mean_of_the_middle_three() -> None:
    assert iqm([9.0, 1.0, 2.0, 3.0, -9.0]) == pytest.approx(2.0)


def test_interval_holds_the_estimate_and_narrows_with_more_runs() -> None:
    rng = np.random.default_rng(0)
    few, many = iqm_estimate(rng.normal(size=8)), iqm_estimate(rng.normal(size=200))
    assert few.low <= few.value <= few.high
    assert many.high - many.low < few.high - few.low


def test_interval_covers_the_true_value_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    inside = [low <= 0.0 <= high for _, low, high in (iqm_estimate(rng.normal(size=20)) for _ in range(100))]
    assert 85 <= sum(inside) <= 100


def test_same_seed_same_interval() -> None:
    assert iqm_estimate([1.0, 2.0, 4.0]) == iqm_estimate([1.0, 2.0, 4.0])


def test_one_run_has_no_spread() -> None:
    assert iqm_estimate([2.5]) == (2.5, 2.5, 2.5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "mean"), [([1.0, np.nan, 3.0], 2.0), ([True, False], 0.5), ([np.nan], np.nan), ([], np.nan)]
)
def test_what_is_not_known_is_not_averaged(values, mean):
    assert known_mean(values) == pytest.approx(mean, nan_ok=True)
