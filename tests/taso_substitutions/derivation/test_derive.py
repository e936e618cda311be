import pytest
from rule_discovery import discovered

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_substitutions.derivation.derive import Deriver
from taso_substitutions.equalities.terms import Equality, canonical


def named(name: str, start: str) -> Equality:
    return next(e for e in discovered(name).general if e.body.startswith(start))


def test_an_equality_follows_from_itself() -> None:
    equality = named("matrix", "MatMul(MatMul(x0, x1), x2)")
    assert Deriver([equality]).derives([equality]) == [True]


def test_an_equality_does_not_follow_from_nothing() -> None:
    assert Deriver([]).derives([named("matrix", "MatMul(MatMul(x0, x1), x2)")]) == [False]


def test_targets_do_not_help_each_other() -> None:
    targets = [named("matrix", "MatMul(MatMul(x0, x1), x2)"), named("matrix", "Transpose(Transpose(")]
    assert Deriver([targets[0]]).derives(targets) == [True, False]


@pytest.mark.parametrize("name", ["matrix", "scalar"])
def test_what_statements_say_derives_everything(name: str) -> None:
    result = discovered(name)
    said = [e for statement in result.statements for e in statement.instances]
    assert all(Deriver(said).derives(result.general))


def test_what_cancels_is_given() -> None:
    vector = TensorType("float", (symbol("B"),))
    negative = "Sub(Sub({0}, x1), {0})"
    first, second = negative.format("x0"), negative.format("x2")
    rule, false = parse_rules(f"r: Add({first}, x2) => Add({second}, x2)\nf: Add({first}, x2) => Add(x1, x2)")
    types = {f"x{i}": vector for i in range(3)}
    targets = [canonical(r.lhs[0], r.rhs[0], types) for r in (rule, false)]  # pyright: ignore[reportArgumentType]
    assert Deriver([named("matrix", "MatMul(MatMul(x0, x1), x2)")]).derives(targets) == [True, False]


def test_what_holds_for_an_axis_of_two_is_not_said_of_four() -> None:
    """A piece from 2 on is the second operand only where the first has two elements there."""
    rule, other = parse_rules(
        "r: Slice(Concat(x0, x1, axis=1), starts=[2], ends=[4], axes=[1]) => x1\n"
        "f: Slice(Concat(x0, x1, axis=1), starts=[2], ends=[4], axes=[1]) => Slice(x0, starts=[2], ends=[4], axes=[1])"
    )

    def sized(size: int, sides: Rule) -> Equality:
        types = {name: TensorType("float", (symbol("A"), size, symbol("A"))) for name in ("x0", "x1")}
        return canonical(sides.lhs[0], sides.rhs[0], types)  # pyright: ignore[reportArgumentType]

    two, four = sized(2, rule), sized(4, rule)
    assert Deriver([two]).derives([two, four]) == [True, False]
    assert Deriver([two]).derives([sized(4, other)]) == [False]
