import pytest
from rule_discovery import discovered, sized

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Call
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.generalise import Generaliser
from taso_substitutions.equalities.terms import Equality, canonical


def equality(text: str) -> Equality:
    """An equality of square matrices."""
    (rule,) = parse_rules(f"e: {text}")
    left, right = rule.lhs[0], rule.rhs[0]
    assert isinstance(left, Call)
    square = TensorType("float", (symbol("B"), symbol("B")))
    return canonical(left, right, {f"x{i}": square for i in range(4)})  # pyright: ignore[reportArgumentType]


@pytest.fixture
def generaliser() -> Generaliser:
    return Generaliser(sized("matrix").example())


def test_shared_terms_become_variables(generaliser: Generaliser) -> None:
    found = generaliser.run(
        equality("Relu(Transpose(Relu(x0), perm=[1, 0])) => Transpose(Relu(Relu(x0)), perm=[1, 0])")
    )
    assert found is not None
    assert found.body == "Relu(Transpose(x0, perm=[1, 0])) => Transpose(Relu(x0), perm=[1, 0])"


def test_a_term_that_is_a_side_becomes_a_variable(generaliser: Generaliser) -> None:
    found = generaliser.run(equality("Transpose(Transpose(Relu(x0), perm=[1, 0]), perm=[1, 0]) => Relu(x0)"))
    assert found is not None
    assert found.body == "Transpose(Transpose(x0, perm=[1, 0]), perm=[1, 0]) => x0"


def test_occurrences_become_variables(generaliser: Generaliser) -> None:
    found = generaliser.run(equality("MatMul(MatMul(x0, x0), x0) => MatMul(x0, MatMul(x0, x0))"))
    assert found is not None
    assert found.body == "MatMul(MatMul(x0, x1), x2) => MatMul(x0, MatMul(x1, x2))"


def test_what_is_shared_once_occurrences_are_apart_becomes_a_variable(generaliser: Generaliser) -> None:
    product = "MatMul(x0, x1)"
    found = generaliser.run(equality(f"MatMul(Add({product}, x0), x1) => Add(MatMul({product}, x1), {product})"))
    assert found is not None
    assert found.body == "MatMul(Add(x0, x1), x2) => Add(MatMul(x0, x2), MatMul(x1, x2))"


def test_some_occurrences_become_another_variable(generaliser: Generaliser) -> None:
    found = generaliser.run(equality("MatMul(Add(x0, x0), x0) => MatMul(x0, Add(x0, x0))"))
    assert found is not None
    assert found.body == "MatMul(Add(x0, x0), x1) => MatMul(x0, Add(x1, x1))"


def test_what_holds_for_equal_operands_only_keeps_them(generaliser: Generaliser) -> None:
    found = generaliser.run(equality("Add(x0, x0) => Add(x0, x0)"))
    assert found is not None


def test_what_is_false_is_not_generalised(generaliser: Generaliser) -> None:
    assert generaliser.run(equality("MatMul(x0, x1) => MatMul(x1, x0)")) is None


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values() if f.usual])
def test_what_a_fragment_finds_is_proved(name: str) -> None:
    result = discovered(name)
    generaliser = Generaliser(FRAGMENTS[name].example())
    assert result.general
    assert all(generaliser.holds(e) for e in result.general[:20])
