"""Symbols get their given value, or 1 on a leading axis and 128 elsewhere."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from cost_graphs import symbolic_mlp

from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims, bind_dims, size_bytes
from taso_gym.errors import OptionError
from taso_gym.models import parameters
from taso_gym.symbolic import Dim, floor_div, symbol
from taso_gym.tensor import OtherType, TensorType

BATCH, TIME = symbol("batch"), symbol("time")


def bound(dims: Dims, *shape: Dim) -> tuple[Dim, ...] | None:
    """Bind one float tensor."""
    (found,) = dims.bind([TensorType("float", shape)])
    assert isinstance(found, TensorType)
    return found.shape


def test_given_values_are_used() -> None:
    assert bound(Dims({"batch": 2, "time": 3}), BATCH, TIME * 2 + 1) == (2, 7)


def test_unbound_symbols_are_costed_by_axis_and_reported() -> None:
    dims = Dims()
    assert bound(dims, BATCH, TIME, BATCH * TIME) == (1, 128, 128)
    assert dims.unbound == ("batch", "time")


def test_one_symbol_is_one_number_within_a_signature() -> None:
    first, second = Dims().bind([TensorType("float", (BATCH, 4)), TensorType("float", (4, BATCH))])
    assert isinstance(first, TensorType) and first.shape == (1, 4)
    assert isinstance(second, TensorType) and second.shape == (4, 1)


def test_a_rounded_quotient_is_evaluated() -> None:
    halved = floor_div(TIME - 1, 2)
    assert bound(Dims({"time": 10}), halved, floor_div(halved * 3 + 1, 4)) == (4, 3)


def test_a_symbol_with_a_strange_name_is_a_symbol() -> None:
    assert bound(Dims({"floor((": 3}), symbol("floor((")) == (3,)
    assert bound(Dims(), 4, symbol("floor((a b)/2)")) == (4, 128)


def test_sizes_are_never_negative() -> None:
    assert bound(Dims({"time": 1}), TIME - 7) == (0,)


@pytest.mark.parametrize("value", [-1, 1.5, True])
def test_a_value_that_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match="expected a non-negative integer as dimension 'batch'"):
        Dims({"batch": value})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("size", [np.int64(4), 4.0])
def test_whole_numbers_of_any_type_are_sizes(size: Any) -> None:
    dims = Dims({"batch": size})
    assert bound(dims, BATCH) == (4,) and dims.key == "batch=4"


def test_sizes_that_a_graph_is_bound_to_are_plain_integers() -> None:
    (size,) = bind_dims(symbolic_mlp(), {"batch": np.int64(5)}).values()  # pyright: ignore[reportArgumentType]
    assert size == 5 and type(size) is int


@pytest.mark.parametrize("given", [5, "batch=5", {5: 5}])
def test_what_is_no_mapping_of_sizes_is_refused(given: Any) -> None:
    for take in (Dims, partial(bind_dims, symbolic_mlp())):
        with pytest.raises(OptionError, match="expected a mapping from names to sizes as dims, found"):
            take(given)


def test_what_is_no_graph_has_no_dims() -> None:
    for count in (bind_dims, parameters):
        with pytest.raises(OptionError, match=r"expected a Graph as graph, found 'model\.onnx'"):
            count("model.onnx")  # pyright: ignore[reportArgumentType]


def test_bind_dims_completes_the_bindings_of_a_graph() -> None:
    assert bind_dims(symbolic_mlp()) == {"batch": 1}
    assert bind_dims(symbolic_mlp(), {"batch": 5}) == {"batch": 5}


def test_sizes_in_bytes() -> None:
    assert size_bytes(TensorType("float16", (3, 5))) == 30
    assert size_bytes(TensorType("int4", (3,))) == 2
    assert size_bytes(TensorType("float", None)) == size_bytes(OtherType(b"")) == size_bytes(None) == 0


def test_a_symbol_that_is_called_a_sum_is_one() -> None:
    """As exporters name what a cache and a new token have together; what is given for it by name counts."""
    b = GraphBuilder({"": 20})
    types = [TensorType("float", (1, symbol(name))) for name in ("past + 1", "past", "past + of", "one + two")]
    b.output("y", b.add("Concat", *(b.input(f"x{i}", t) for i, t in enumerate(types)), axis=1))
    graph = b.build()
    expected = {"past + 1": 129, "past": 128, "past + of": 128, "one + two": 128}
    assert bind_dims(graph) == expected
    assert bind_dims(graph, {"past": 16}) == expected | {"past": 16, "past + 1": 17}
    assert bind_dims(graph, {"past + 1": 5})["past + 1"] == 5
