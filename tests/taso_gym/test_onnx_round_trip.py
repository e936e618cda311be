"""Every model of ONNX's own tests is loaded and saved, and gives what it gave."""

from pathlib import Path

import pytest
from backend_models import LIGHT, Tally, rewritten_trips, round_trips

from taso_gym.equivalence import validate
from taso_gym.onnx_io import from_model, load, save, to_model
from taso_gym.rules.ruleset import RuleSet

SAMPLE_STRIDE = 13


def expect_all(tally: Tally) -> None:
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.equal + tally.equal_in_reference + tally.not_run == tally.models
    assert tally.equal > 0.7 * tally.models
    assert tally.not_run < 0.1 * tally.models


def test_a_sample_of_the_backend_suite() -> None:
    tally = round_trips(SAMPLE_STRIDE)
    assert tally.models > 150
    expect_all(tally)


@pytest.mark.slow
def test_the_backend_suite() -> None:
    tally = round_trips()
    assert tally.models > 2000
    expect_all(tally)


@pytest.mark.parametrize("stride", [37, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_rewritten_models_give_what_they_gave(stride: int) -> None:
    tally = rewritten_trips(RuleSet.load("default"), stride)
    expect_all(tally)
    assert tally.changed > 0.1 * tally.models


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_networks_of_the_backend_suite(path: Path) -> None:
    graph = load(path)
    assert from_model(to_model(graph)) == graph
    assert sum(leaf.weight is not None for leaf in graph.leaves.values()) > 10


@pytest.mark.slow
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_networks_of_the_backend_suite_run(path: Path, tmp_path: Path) -> None:
    save(load(path), tmp_path / "saved.onnx")
    assert validate(path, tmp_path / "saved.onnx", draws=1).ok
