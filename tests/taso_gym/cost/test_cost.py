"""Contracts that every cost model keeps, and `load`."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cost_graphs import folded, mlp, table_of

from taso_gym.cost import COST_MODELS, Cost, load, options_of
from taso_gym.cost.roofline import RooflineCost
from taso_gym.cost_model import CostModel
from taso_gym.errors import CostError, MissingPackageError, OptionError


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], CostModel]:
    """Makes a model of the table, or skips the test where its package or device is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table = table_of(tmp_path / "table.json.gz", mlp(256, 256), folded())

    def make(name: str) -> CostModel:
        try:
            return load(f"recorded:{table}" if name == "recorded" else name)
        except (MissingPackageError, CostError) as error:
            pytest.skip(str(error))

    return make


def test_costs_add_and_subtract_by_element() -> None:
    a, b = Cost(10, 2, 30, 1), Cost(1, 5, 3, 1)
    assert a + b == Cost(11, 7, 33, 2)
    assert a - b == Cost(9, -3, 27, 0)
    assert sum([a, b], Cost()) == a + b
    assert Cost(1_500_000_000).time_ms == 1.5


@pytest.mark.parametrize("name", COST_MODELS)
def test_costs_are_integers_that_add_up(name: str, model: Callable[[str], CostModel]) -> None:
    found, graph = model(name), mlp(256, 256)  # small products take less than what is taken off for the call
    nodes = [found.node(node.sig, found.context(graph, i)) for i, node in graph.operators()]
    assert all(type(part) is int and part >= 0 for cost in nodes for part in cost)
    assert found.graph(graph) == sum(nodes, Cost())
    assert found.graph(graph).time_ps > 0 and found.peak_bytes(graph) > 0


@pytest.mark.parametrize("name", COST_MODELS)
def test_constants_are_free(name: str, model: Callable[[str], CostModel]) -> None:
    found, graph = model(name), folded()
    assert [found.node(n.sig, found.context(graph, i)) == Cost() for i, n in graph.operators()] == [True, False]


@pytest.mark.parametrize("name", COST_MODELS)
def test_a_pickled_model_agrees(name: str, model: Callable[[str], CostModel]) -> None:
    found = model(name)
    copy = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert (copy.name, copy.key, copy.contextual) == (found.name, found.key, found.contextual)
    assert copy.graph(mlp()) == found.graph(mlp())


@pytest.mark.parametrize("name", COST_MODELS)
def test_a_deterministic_model_says_the_same_each_time(name: str, model: Callable[[str], CostModel]) -> None:
    first, second = model(name), model(name)
    if first.deterministic:
        assert first.graph(mlp()) == second.graph(mlp())


def test_an_unknown_model_names_the_choices() -> None:
    with pytest.raises(OptionError, match=r"expected a cost model among roofline.*, found 'rooflin:h200'"):
        load("rooflin:h200")


def test_an_unknown_option_names_the_choices() -> None:
    with pytest.raises(OptionError, match="expected no options for roofline, found 'threads'"):
        load("roofline", threads=2)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (5, {}, "expected a name or CostModel as cost, found 5"),
        ("roofline", {"dims": 5}, "expected a mapping from names to sizes as dims, found 5"),
        ("roofline", {"dims": {5: 5}}, "expected a mapping from names to sizes as dims, found {5: 5}"),
        ("onnxruntime", {"cache": 5}, "expected the path of a cache, found 5"),
        (RooflineCost, {}, "expected a name or CostModel as cost, found <class"),
        ("roofline", {"dims": {"a": "x"}}, "expected a non-negative integer as dimension 'a', found 'x'"),
        ("roofline", {"dims": {"a": 1.5}}, "expected a non-negative integer as dimension 'a', found 1.5"),
        ("onnxruntime", {"threads": "2"}, "expected a whole number from 1 to 4096 as threads, found '2'"),
        ("onnxruntime", {"threads": 1.5}, "expected a whole number from 1 to 4096 as threads, found 1.5"),
        ("onnxruntime", {"threads": 0}, "expected a whole number from 1 to 4096 as threads, found 0"),
        ("onnxruntime", {"outside": 7.0}, "expected outside from 0 to 1, found 7.0"),
    ],
)
def test_what_a_model_cannot_be_made_of_is_named(spec: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(spec, **options)


@pytest.mark.parametrize("spec", [None, 5, RooflineCost()])
def test_only_names_have_options(spec: Any) -> None:
    with pytest.raises(OptionError, match="expected a name as cost, found"):
        options_of(spec)


def test_load_passes_dims_on() -> None:
    found = load("roofline", dims={"batch": 3})
    assert isinstance(found, RooflineCost) and found.dims == {"batch": 3}


def test_a_given_model_is_told_the_sizes_that_it_has_none_for() -> None:
    given = RooflineCost(dims={"batch": 3})
    found = load(given, dims={"batch": 4, "time": 5})
    assert isinstance(found, RooflineCost) and found.dims == {"batch": 3, "time": 5}
    assert given.dims == {"batch": 3} and load(given, dims={"batch": 4}) is given


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strict": True}, "expected no options beside a cost model that is made, found strict"),
        ({"dims": {"a": 1.5}}, "expected a non-negative integer as dimension 'a', found 1.5"),
        ({"dims": 5}, "expected a mapping from names to sizes as dims, found 5"),
    ],
)
def test_what_a_given_model_does_not_take_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(RooflineCost(), **options)
