"""ONNX's own tests and exported networks give what they gave: loaded and saved, rewritten, optimised."""

from collections import Counter
from pathlib import Path

import pytest
from support import exported
from support.suites import BACKEND, LIGHT, case, cases
from support.trips import EQUAL, EQUAL_IN_REFERENCE, NOT_RUN, TRIPS, travel

from taso_gym.onnx_io import from_model, load, to_model

STRIDES = {"round trip": 13, "rewritten": 37, "optimised": 61}
"""Of the backend suite, so many-th models are sent on a trip in the default tests."""
CHANGED = {"round trip": 0.0, "rewritten": 0.1, "optimised": 0.02}
"""At least this part of the models must be rewritten for the trip to say anything."""


def expect_all_equal(trip: str, stride: int, folder: Path) -> int:
    """Send models of the backend suite on a trip; which of them onnxruntime runs is found out here, not listed."""
    outcomes = {c.name: travel(c, trip, folder) for c in cases(BACKEND, stride)}
    results = Counter(o.result for o in outcomes.values())
    faults = [
        f"{name}: {o.result}" for name, o in outcomes.items() if o.result not in (EQUAL, EQUAL_IN_REFERENCE, NOT_RUN)
    ]
    assert not faults, "\n".join(faults)
    assert results[EQUAL] > 0.7 * len(outcomes)
    assert results[NOT_RUN] < 0.1 * len(outcomes)
    assert sum(o.changed for o in outcomes.values()) >= CHANGED[trip] * len(outcomes)
    return len(outcomes)


@pytest.mark.parametrize("trip", TRIPS)
def test_a_sample_of_the_backend_suite(trip: str, tmp_path: Path) -> None:
    assert expect_all_equal(trip, STRIDES[trip], tmp_path) > 30


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("trip", TRIPS)
def test_the_backend_suite(trip: str, tmp_path: Path) -> None:
    assert expect_all_equal(trip, 1, tmp_path) > 2000


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_networks_of_the_backend_suite(path: Path) -> None:
    graph = load(path)
    assert from_model(to_model(graph)) == graph
    assert sum(leaf.weight is not None for leaf in graph.leaves.values()) > 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("trip", TRIPS)
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_networks_of_the_backend_suite_give_what_they_gave(path: Path, trip: str, tmp_path: Path) -> None:
    outcome = travel(case("light", path.stem, tmp_path), trip, tmp_path)
    assert outcome.result == EQUAL
    assert outcome.changed or trip == "round trip"


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return tmp_path_factory.mktemp("exports")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "exporter"), [(name, e) for name, network in exported.NETWORKS.items() for e in network.exporters]
)
def test_exported_networks_give_what_they_gave(name: str, exporter: str, exports: Path, tmp_path: Path) -> None:
    network = case(exporter, name, exports)
    outcomes = {trip: travel(network, trip, tmp_path) for trip in TRIPS}
    assert {trip: o.result for trip, o in outcomes.items()} == dict.fromkeys(TRIPS, EQUAL)
    assert outcomes["rewritten"].changed
    assert not outcomes["optimised"].refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "exporter"),
    [
        (name, e)
        for name, network in exported.NETWORKS.items()
        for e in exported.EXPORTERS
        if e not in network.exporters
    ],
)
def test_what_an_exporter_is_said_not_to_write_it_does_not_write(name: str, exporter: str, exports: Path) -> None:
    errors = pytest.importorskip("torch").onnx.errors
    with pytest.raises(errors.OnnxExporterError):
        exported.export(name, exports, exporter=exporter)
