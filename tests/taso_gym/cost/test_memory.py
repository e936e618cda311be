"""Peak memory against figures worked out by hand."""

from cost_graphs import folded, mlp, symbolic_mlp, weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims
from taso_gym.cost.memory import peak_bytes
from taso_gym.ops import OPERATORS
from taso_gym.tensor import TensorType


def test_a_chain_holds_two_activations_at_once() -> None:
    # Resident: x 4x8, w 8x8, b 8; then two of the 4x8 activations.
    assert peak_bytes(mlp(), Dims()) == 4 * (32 + 64 + 8 + 2 * 32)


def test_a_folded_constant_is_resident_and_its_operands_are_not() -> None:
    assert peak_bytes(folded(), Dims()) == 4 * (16 + 16 + 16)


def test_a_value_lives_to_its_last_use() -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (10,)))
    first = b.add("Relu", x)
    second = b.add("Relu", first)
    third = b.add("Relu", second)
    b.output("y", b.add("Add", third, first))
    # x; and at the third Relu and at the Add three activations each.
    assert peak_bytes(b.build(), Dims()) == 4 * (10 + 30)


def test_outputs_live_to_the_end() -> None:
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (10,)))
    for i in range(5):
        b.output(f"y{i}", b.add("Add", x, weight(b, f"w{i}", 10)))
    assert peak_bytes(b.build(), Dims()) == 4 * (10 + 50 + 50)


def test_a_weight_that_is_read_twice_is_counted_once() -> None:
    b = GraphBuilder({"": 20})
    x, w = b.input("x", TensorType("float", (8, 8))), weight(b, "w", 8, 8)
    b.output("y", b.add("MatMul", b.add("MatMul", x, w), w))
    assert peak_bytes(b.build(), Dims()) == 4 * 4 * 64


def test_a_view_takes_no_memory_and_keeps_its_source_alive() -> None:
    assert OPERATORS["", "Reshape"].view
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (10,)))
    first = b.add("Relu", x)
    view = b.add("Reshape", first, shape=(2, 5))
    b.output("y", b.add("Relu", b.add("Relu", view)))
    # x; then Relu(view) while the view's source lives, and the last two.
    assert peak_bytes(b.build(), Dims()) == 4 * (10 + 20)
    second = GraphBuilder({"": 20})
    x = second.input("x", TensorType("float", (10,)))
    second.output("y", second.add("Reshape", x, shape=(2, 5)))
    assert peak_bytes(second.build(), Dims()) == 40


def test_symbols_are_bound() -> None:
    assert peak_bytes(symbolic_mlp(), Dims({"batch": 4})) == peak_bytes(mlp(), Dims())
