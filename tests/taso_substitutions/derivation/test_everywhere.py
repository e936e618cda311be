from rule_discovery import sized

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_substitutions.derivation.everywhere import everywhere, typed

TYPES = list(dict.fromkeys(sized("layers").types.values()))  # a matrix, a column, a row


def rule(text: str) -> Rule:
    (found,) = parse_rules(f"r: {text}")
    return found


def test_what_maps_over_elements_holds_for_all_types() -> None:
    said = list(everywhere(rule("Mul(Add(x, y), z) => Add(Mul(x, z), Mul(y, z))"), TYPES))
    assert len(said) == len(TYPES) ** 3


def test_conditions_are_kept() -> None:
    said = list(everywhere(rule("Sub(Add(x, y), y) => x if broadcast(shape(x), shape(y)) == shape(x)"), TYPES))
    assert [[str(t) for t in e.types] for e in said] == [
        ["float[A, B]", "float[A, B]"],
        ["float[A, B]", "float[A, 1]"],
        ["float[A, B]", "float[B]"],
        ["float[A, 1]", "float[A, 1]"],
        ["float[B]", "float[B]"],
    ]


def test_of_other_operators_nothing_is_said() -> None:
    product = rule("MatMul(MatMul(x, y), z) => MatMul(x, MatMul(y, z))")
    assert not list(everywhere(product, TYPES))
    assert list(typed(product, list(sized("matrix").types.values())))


def test_constants_are_left_out() -> None:
    assert not list(typed(rule("Add(x, x) => Mul(x, 2)"), TYPES))
