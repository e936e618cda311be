"""Calibration on made-up figures, and once for real."""

from pathlib import Path

import numpy as np
import pytest
from cost_graphs import mlp, table_of

from taso_gym.cost.calibrate import Calibration, calibrate, rank_correlation
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.cost.recorded import RecordedCost
from taso_gym.cost.variants import neighbourhood, random_variants
from taso_gym.errors import OptionError
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

MEASURED = np.array([1.0, 1.1, 0.9, 1.2, 0.8])


def calibration(predicted: np.ndarray, noise: float = 0.001) -> Calibration:
    """A calibration with halves that differ by a given part."""
    return Calibration(predicted, MEASURED, np.stack([MEASURED, MEASURED * (1 + noise)]))


def test_a_constant_factor_is_bias_and_no_error() -> None:
    found = calibration(MEASURED * 0.9)
    assert found.bias == pytest.approx(-0.1)
    assert found.errors.max() < 1e-12
    assert (found.spearman, found.right_signs) == (pytest.approx(1.0), 1.0)


def test_errors_remain_after_the_constant() -> None:
    found = calibration(MEASURED * np.array([1.0, 1.0, 1.0, 1.0, 1.05]))
    assert found.errors.max() == pytest.approx(0.05, rel=0.25) and found.errors.mean() > 0.01


def test_backward_predictions_are_seen() -> None:
    found = calibration(2 - MEASURED)
    assert found.spearman == pytest.approx(-1.0) and found.right_signs == 0.0


def test_the_noise_is_that_of_variants() -> None:
    """The start's times are what the others are compared with: its halves are the same."""
    halves = np.array([[1.0, 1.0], [1.0, 1.1]])
    assert Calibration(np.ones(2), np.ones(2), halves).noise == pytest.approx(1 - 1 / 1.1)


def test_what_is_within_the_noise_counts_neither_for_signs_nor_for_ranks() -> None:
    assert calibration(2 - MEASURED, noise=0.2).clear.tolist() == [True, False, False, False, False]
    assert calibration(2 - MEASURED, noise=0.2).right_signs == 1.0
    predicted = np.array([1.0, 0.99, 1.01, 1.2, 0.8])  # the two nearest to the start are the wrong way round
    assert calibration(predicted, noise=0.06).spearman == pytest.approx(1.0)
    assert calibration(predicted).spearman == pytest.approx(0.6)
    assert (calibration(predicted, noise=0.06).right_signs, calibration(predicted).right_signs) == (1.0, 0.5)


def test_it_is_written_for_people() -> None:
    text = str(calibration(MEASURED * 0.9))
    assert text.startswith("bias -10.0%, error after one constant 0.00% (at most 0.00%), noise 0.10%; of the 4 that")


def test_that_nothing_differs_is_said() -> None:
    assert str(calibration(MEASURED, noise=0.5)).endswith("; none differs from the start by more than twice the noise")


@pytest.mark.parametrize(
    ("a", "b", "expected"), [([1, 2, 3], [2, 4, 9], 1.0), ([1, 2, 3], [3, 2, 1], -1.0), ([1, 1, 2, 2], [1, 2, 1, 2], 0)]
)
def test_rank_correlation(a: list[int], b: list[int], expected: float) -> None:
    assert rank_correlation(np.array(a, float), np.array(b, float)) == pytest.approx(expected)


def test_rank_correlation_of_a_constant_is_undefined() -> None:
    assert np.isnan(rank_correlation(np.ones(3), np.arange(3.0)))


def test_a_model_that_predicts_a_constant_ranks_nothing_and_one_that_has_nothing_to_rank_is_right() -> None:
    assert calibration(np.ones(5)).spearman == 0.0
    assert calibration(2 - MEASURED, noise=0.2).spearman == 1.0


def test_ties_share_their_rank() -> None:
    assert rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(3**0.5 / 2)


def test_a_network_is_calibrated(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    done: list[tuple[int, int]] = []
    model = OnnxRuntimeCost(cache=tmp_path / "cache.sqlite")
    start, wider = mlp(64, 128), [mlp(64, 256), mlp(64, 512)]
    found = calibrate(start, wider, model, sessions=1, rounds=2, progress=lambda *at: done.append(at))
    assert found.predicted_ms.shape == found.measured_ms.shape == (3,) and done == [(2, 2)]
    assert found.spearman == pytest.approx(1.0) and found.right_signs == 1.0


def test_no_variant_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected at least one variant"):
        calibrate(mlp(), [], OnnxRuntimeCost(cache=tmp_path / "cache.sqlite"))


def test_variants_are_distinct_and_reproducible() -> None:
    rules = RuleSet.load("default")
    first, second = (list(random_variants(mlp(), rules, 5)) for _ in range(2))
    digests = [graph.canonical_digest() for graph in first]
    assert len(set(digests)) == len(digests) > 1
    assert digests == [graph.canonical_digest() for graph in second]


def test_a_neighbourhood_has_the_regions_of_the_graph_and_of_its_children(tmp_path: Path) -> None:
    model, rules = RecordedCost(str(table_of(tmp_path / "t.json.gz"))), RuleSet.load("default")
    state = RewriteState(mlp(), rules)
    graphs = [mlp(), *(state.child_graph(match) for row in state.matches for match in row)]
    assert len(graphs) > 1
    expected = {region for graph in graphs for region in model.regions(graph)}
    found = neighbourhood(mlp(), rules, model, walks=0)
    assert set(found) == expected and len(found) == len(expected)
    assert set(neighbourhood(mlp(), rules, model, walks=2)) > expected
