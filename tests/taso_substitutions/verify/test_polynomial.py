"""Normal forms as terms with bound variables: names don't matter, and none is captured."""

from taso_substitutions.verify.normal.polynomial import Polynomial, atom, opaque


def element(name: str, *indices: str) -> Polynomial:
    return atom(("x", name, tuple((0, ((1, index, 0),)) for index in indices)))


ROW_SUM = element("x", "i", "j").sum_over("j", "n")
((BOUND, _),) = next(iter(ROW_SUM.terms.values())).bound


def test_bound_variables_are_not_replaced() -> None:
    assert ROW_SUM.substitute({BOUND: (0, "", 3)}) == ROW_SUM


def test_a_product_has_one_form_however_deep_its_factors_are() -> None:
    flat = element("y", "k").sum_over("k", "m")
    deep = opaque("tanh", ROW_SUM).sum_over("i", "n")
    assert flat * deep == deep * flat
    captured = element("y", "k") * opaque("tanh", atom(("n", "n")) * element("x", "i", "k"))
    assert flat * deep != captured.sum_over("k", "m").sum_over("i", "n")
