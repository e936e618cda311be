"""The roofline model against figures worked out by hand."""

import pytest
from cost_graphs import folded, mlp, symbolic_mlp

from taso_gym.cost import load
from taso_gym.cost.roofline import RooflineCost
from taso_gym.cost_model import Cost
from taso_gym.errors import OptionError
from taso_gym.ops import OPERATORS
from taso_gym.signature import OpaqueOperator, Signature, opaque_signature, signature
from taso_gym.tensor import OtherType, TensorType


def matmul(rows: int, inner: int, columns: int, dtype: str = "float") -> Signature:
    """Signature of a matrix product with a constant."""
    types = [TensorType(dtype, (rows, inner)), TensorType(dtype, (inner, columns), const=True)]
    return signature(OPERATORS["", "MatMul"], {}, types)


def test_a_kernel_bound_by_arithmetic() -> None:
    # 2·128·768·768 = 150,994,944 operations at 256 per ns are 589.824 µs; 3,145,728 bytes need only 52 µs.
    cost = load("roofline").node(matmul(128, 768, 768))
    assert cost == Cost(589_824_000 + 1_500_000, 150_994_944, 4 * (2 * 128 * 768 + 768 * 768), 1)
    assert cost.time_ms == 0.591324


def test_a_kernel_bound_by_memory() -> None:
    # Relu of 6000 elements: 24,000 bytes in and out at 60 per ns are 0.8 µs.
    sig = signature(OPERATORS["", "Relu"], {}, [TensorType("float", (60, 100))])
    assert load("roofline").node(sig) == Cost(800_000 + 1_500_000, 6000, 48_000, 1)


def test_devices_and_element_types_differ() -> None:
    slow, fast = matmul(4096, 4096, 4096), matmul(4096, 4096, 4096, "float16")
    h200, v100 = load("roofline:h200"), load("roofline:v100")
    flops = 2 * 4096**3
    assert h200.node(slow).time_ps == flops * 1000 // 67_000 + 2_000_000
    assert h200.node(fast).time_ps == flops * 1000 // 989_000 + 2_000_000
    assert v100.node(fast).time_ps == flops * 1000 // 125_000 + 4_000_000


def test_an_unlisted_element_type_runs_at_the_rate_of_float() -> None:
    model = load("roofline")
    assert model.node(matmul(512, 512, 512, "int32")) == model.node(matmul(512, 512, 512))


def test_a_graph_is_the_sum_of_its_operators() -> None:
    # MatMul: 512 operations, (32 + 64 + 32)·4 bytes; Add: 32, (32 + 8 + 32)·4; Relu: 32, (32 + 32)·4.
    times = [512 * 1000 // 60, 288 * 1000 // 60, 256 * 1000 // 60]
    assert load("roofline").graph(mlp()) == Cost(sum(times) + 3 * 1_500_000, 576, 1056, 3)


def test_a_constant_costs_nothing() -> None:
    # Only the Add remains.
    assert load("roofline").graph(folded()) == Cost(192 * 1000 // 60 + 1_500_000, 16, 192, 1)


def test_symbols_are_bound() -> None:
    model = RooflineCost(dims={"batch": 4})
    assert model.graph(symbolic_mlp()) == load("roofline").graph(mlp())
    assert model.unbound == () and model.key == "roofline:epyc-zen5-1t[batch=4]"
    default = RooflineCost()
    assert default.graph(symbolic_mlp()) == load("roofline").graph(mlp(rows=1))
    assert default.unbound == ("batch",)


def test_an_opaque_operator_is_costed_by_its_bytes() -> None:
    op = OpaqueOperator("my.domain", "Mystery", b"", pure=True)
    tensor = TensorType("float", (30, 100))
    sig = opaque_signature(op, (tensor, None, OtherType(b"")), (tensor, TensorType("float", None)))
    assert load("roofline").node(sig) == Cost(24_000 * 1000 // 60 + 1_500_000, 0, 24_000, 1)


def test_an_unknown_device_names_the_choices() -> None:
    with pytest.raises(OptionError, match="expected a device among epyc-zen5-1t, h200, h200-tf32, v100, found 'tpu'"):
        load("roofline:tpu")
