import pytest
from rule_discovery import discovered

from taso_substitutions.fragments import FRAGMENTS
from taso_substitutions.minimise import basis, derivable
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
def test_a_basis_derives_everything(name: str) -> None:
    general = discovered(name).general
    chosen = basis(general)
    assert len(chosen) < len(general)
    assert all(derivable(general, chosen, 4))


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values() if f.usual])
def test_what_is_not_derived_is_listed(name: str) -> None:
    result = discovered(name)
    assert result.basis
    assert all(line.startswith(("unproved: ", "underived: ")) for line in result.exceptions)
