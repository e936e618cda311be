import numpy as np
import pytest

from taso_gym.errors import EquivalenceError
from taso_gym.ops import OPERATORS, evaluate
from taso_gym.ops.modular import MERSENNE_31, ModularModule, Residues, residue

P = MERSENNE_31
xp = ModularModule()


def residues(*values: float) -> Residues:
    return xp.asarray(np.array(values))


def test_a_float_is_the_dyadic_rational_that_it_stands_for() -> None:
    assert residue(0.75, P) * 4 % P == 3
    assert residue(-1, P) == P - 1


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_isnt_finite_is_refused(value: float) -> None:
    with pytest.raises(EquivalenceError, match="expected a finite number"):
        residue(value, P)


def test_division_undoes_multiplication() -> None:
    a, b = residues(5, 7, -3), residues(2, 11, 13)
    assert ((a * b / b).values == a.values).all()
    assert (((1 / b) * b).values == 1).all()


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(EquivalenceError, match="other than 0"):
        residues(1) / residues(0)


def test_functions_are_told_apart_by_name_and_argument() -> None:
    x = residues(1, 2)
    values = [*xp.exp(x).values, *xp.tanh(x).values]
    assert len(set(values)) == 4
    assert (xp.exp(x).values == ModularModule().exp(x).values).all()


def test_another_key_gives_other_functions() -> None:
    assert xp.exp(residues(1)).values[0] != ModularModule(key=1).exp(residues(1)).values[0]


def test_an_extreme_depends_on_the_set_of_operands_only() -> None:
    a, b, c = residues(5), residues(9), residues(-2)
    assert xp.maximum(a, b, c).values == xp.maximum(c, c, a, b).values
    assert xp.maximum(a, a).values == a.values
    assert xp.maximum(a, b).values != xp.minimum(a, b).values
    assert xp.maximum(a, xp.constant(-np.inf, a)).values == a.values
    assert xp.minimum(a, xp.constant(-np.inf, a)).values != a.values


def test_reducing_by_an_extreme_is_the_extreme_of_the_slices() -> None:
    x = xp.asarray(np.arange(6).reshape(2, 3))
    assert (xp.reduce("max", x, [1], False).values == xp.maximum(x[:, 0], x[:, 1], x[:, 2]).values).all()


def test_powers_of_small_integers_and_roots_are_exact() -> None:
    x = residues(3, 3, 3)
    found = xp.power(x, residues(2, -1, 0.5))
    assert found.values[0] == 9
    assert found.values[1] * 3 % P == 1
    assert found.values[2] == xp.sqrt(residues(3)).values[0]


def test_other_powers_are_opaque() -> None:
    x, y = residues(3, 4), residues(2.5, 2.5)
    assert len(set(xp.power(x, y).values.tolist())) == 2


def test_indices_may_be_negative() -> None:
    assert xp.take(residues(5, 6, 7), residues(-1, 0), 0).values.tolist() == [7, 5]


def test_a_matrix_product_doesnt_overflow() -> None:
    a, b = xp.asarray(np.full((2, 1000), P - 1)), xp.asarray(np.full((1000, 2), P - 2))
    assert (xp.matmul(a, b).values == 2000).all()


def test_softmax_is_its_definition() -> None:
    """The shift that keeps floats from overflowing is left out, so that softmax equals exp(x) / sum(exp(x))."""
    x = residues(1, 2, 3)
    powers = xp.exp(x)
    (found,) = evaluate(OPERATORS["", "Softmax"], {"axis": 0}, [x], xp)
    assert (found.values == (powers / xp.sum(powers, [0])).values).all()
