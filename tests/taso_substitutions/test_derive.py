import pytest
from rule_discovery import discovered

from taso_substitutions.derive import derivable
from taso_substitutions.terms import Equality


def named(name: str, start: str) -> Equality:
    return next(e for e in discovered(name).general if e.body.startswith(start))


def test_an_equality_follows_from_itself() -> None:
    equality = named("matrix", "MatMul(MatMul(x0, x1), x2)")
    assert derivable([equality], [equality]) == [True]


def test_an_equality_does_not_follow_from_nothing() -> None:
    assert derivable([named("matrix", "MatMul(MatMul(x0, x1), x2)")], []) == [False]


def test_targets_do_not_help_each_other() -> None:
    targets = [named("matrix", "MatMul(MatMul(x0, x1), x2)"), named("matrix", "Transpose(Transpose(")]
    assert derivable(targets, [targets[0]]) == [True, False]


@pytest.mark.parametrize("name", ["matrix", "scalar"])
def test_what_statements_say_derives_everything(name: str) -> None:
    result = discovered(name)
    said = [e for statement in result.statements for e in statement.instances]
    assert all(derivable(result.general, said))
