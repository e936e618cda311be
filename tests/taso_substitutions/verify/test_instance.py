import numpy as np
import pytest

from taso_gym.errors import TypeInferenceError
from taso_gym.ops.floating import FLOAT64, NUMPY
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.tensor import TensorType
from taso_gym.weights import ArrayWeight
from taso_substitutions.verify.instance import Evaluation, Instance, Side, literal_shape


def rule(text: str) -> Rule:
    return parse_rules(text)[0]


def instance(literals: str = "scalar", **shapes: tuple[int, ...]) -> Instance:
    return Instance({name: TensorType("float", shape) for name, shape in shapes.items()}, {}, {}, literals, 20)


def test_it_is_written_for_people() -> None:
    weight = ArrayWeight(np.array([2.0], np.float32), "float")
    found = Instance({"x": TensorType("float", (2, 3))}, {"k": {"group": 2}}, {"c": weight}, "scalar", 20)
    assert str(found) == "x float[2, 3], k = {'group': 2}, c = [2.0]"


def test_any_number_of_tensors_are_leaves_of_their_own() -> None:
    types = (TensorType("float", (1,)), TensorType("float", (2,)))
    assert [name for name, _ in Instance({"xs": types}, {}, {}, "scalar", 20).leaves()] == ["xs.0", "xs.1"]


@pytest.mark.parametrize(("how", "shape"), [("scalar", ()), ("ones", (1, 1)), ("full", (2, 3))])
def test_a_literal_of_the_left_side_has_several_shapes(how: str, shape: tuple[int, ...]) -> None:
    assert literal_shape(how, [(3,), (2, 3)]) == shape


def test_a_literal_of_the_right_side_is_a_scalar() -> None:
    left, right = (Side(instance("full", x=(2, 3)), left=side) for side in (True, False))
    args = rule("f: Mul(x, 2) => x").lhs[0].args  # pyright: ignore[reportAttributeAccessIssue]
    assert [side.operands(args)[1].shape for side in (left, right)] == [(2, 3), ()]  # pyright: ignore[reportOptionalMemberAccess]


def test_outputs_of_all_kinds() -> None:
    found = Side(instance(x=(4, 2)), left=True).outputs(rule("f: *Split(x, axis=0, split=[1, 3]) => x, x").lhs)
    assert [t.shape for t in found] == [(1, 2), (3, 2)]


def test_a_missing_output_is_a_type_error() -> None:
    with pytest.raises(TypeInferenceError, match="expected output 1 of Relu, found 1 outputs"):
        Side(instance(x=(2,)), left=True).outputs(rule("f: Relu(x)[1] => x").lhs)


def test_an_attribute_without_a_value_is_a_type_error() -> None:
    side = Side(instance(x=(2,)), left=False)
    with pytest.raises(TypeInferenceError, match="expected a value for each attribute of Transpose"):
        side.outputs(rule("f: Transpose(x, perm=p) => Transpose(x, perm=inverse(p))").rhs)


def test_literals_and_attributes_have_all_digits_unless_rounded() -> None:
    body = rule("f: Mul(HardSigmoid(x, alpha=1/3, beta=0), 1/3) => x").lhs
    x = {"x": np.array([1.0])}
    exact = Evaluation(Side(instance(x=(1,)), left=True), FLOAT64, x).outputs(body)[0]
    rounded = Evaluation(Side(instance(x=(1,)), left=True), NUMPY, {"x": x["x"].astype(np.float32)}, rounded=True)
    assert exact[0] == 1 / 3 * (1 / 3)
    assert rounded.outputs(body)[0].dtype == np.float32
