import numpy as np
import pytest

from taso_gym.ops import OPERATORS
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.modular import MERSENNE_31, ModularModule
from taso_gym.signature import signature
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.batched import BatchedModule, BatchedResidues
from taso_substitutions.enumeration.fragments import FRAGMENTS

CASES = [
    ("MatMul", [(2, 4), (4, 3)], {}),
    ("MatMul", [(2, 3, 4), (4, 2)], {}),
    ("MatMul", [(4,), (4, 3)], {}),
    ("MatMul", [(2, 4), (4,)], {}),
    ("MatMul", [(4,), (4,)], {}),
    ("Gemm", [(2, 4), (4, 3), (3,)], {}),
    ("Add", [(2, 4), (4,)], {}),
    ("Mul", [(), (2, 4)], {}),
    ("Softmax", [(2, 4)], {"axis": 1}),
    ("LayerNormalization", [(2, 4), (4,), (4,)], {"axis": 1}),
    ("Concat", [(2, 4), (2, 3)], {"axis": 1}),
    ("Transpose", [(2, 4)], {"perm": (1, 0)}),
    ("Reshape", [(2, 4)], {"shape": (8, 1)}),
    ("Unsqueeze", [(4,)], {"axes": (1, 2)}),
    ("Split", [(2, 4)], {"axis": 1, "split": (1, 3)}),
    ("Conv", [(1, 2, 4, 4), (3, 2, 3, 3)], {"pads": (1, 1, 1, 1)}),
    ("Conv", [(1, 4, 4, 4), (6, 2, 3, 3)], {"group": 2, "strides": (2, 2)}),
    ("AveragePool", [(1, 2, 4, 4)], {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
    ("MaxPool", [(1, 2, 4, 4)], {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
]


@pytest.mark.parametrize(("name", "shapes", "attrs"), CASES)
def test_a_batch_gives_what_each_tensor_gives(name: str, shapes: list[tuple[int, ...]], attrs: dict) -> None:
    rng = np.random.default_rng(0)
    op = OPERATORS["", name]
    sig = signature(op, attrs, [TensorType("float", shape) for shape in shapes])
    values = [rng.integers(1, MERSENNE_31, (*shape, 3)) for shape in shapes]
    batch = evaluate(op, dict(sig.attrs), [BatchedResidues(v, MERSENNE_31) for v in values], BatchedModule())
    for i in range(3):
        single = evaluate(op, dict(sig.attrs), [v[..., i] for v in values], ModularModule())
        for a, b in zip(batch, single, strict=True):
            np.testing.assert_array_equal(np.broadcast_to(a.values, (*a.shape, 3))[..., i], b.values)


def test_each_operator_of_a_fragment_is_a_case() -> None:
    elementwise = {"Div", "Exp", "Relu", "Sigmoid", "Sub"}
    reductions = {"BatchNormalization", "GlobalAveragePool", "ReduceMean", "ReduceSum", "Slice", "Pad"}
    known = {name for name, _, _ in CASES} | elementwise | reductions
    assert {i.key for f in FRAGMENTS.values() for i in f.instances} <= known
