import numpy as np
import pytest
from rule_discovery import sized

from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.candidates import Classes, Orders, candidates
from taso_substitutions.equalities.terms import Equality


def found(name: str, ops: int = 2) -> list[Equality]:
    fragment = sized(name)
    table, evaluator = enumerate_fragment(fragment, ops)
    return [equality for _, equality in candidates(Classes(fragment, table, evaluator.trivial), ops)]


def test_orders_list_inputs_by_first_use() -> None:
    orders = Orders(FRAGMENTS["matrix"])  # x, y, a, b, c
    x, y, a = (np.array([i + 1]) for i in range(3))
    assert orders.join(x, y).tolist() == [1 | 2 << 5]
    assert orders.join(orders.join(x, y), x).tolist() == [1 | 2 << 5]
    assert orders.in_order(orders.join(x, y)).all()
    assert not orders.in_order(orders.join(y, x)).any()
    assert orders.in_order(orders.join(a, x)).all()
    assert not orders.in_order(y).any()


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values() if f.usual])
def test_candidates_are_distinct_modulo_renaming(name: str) -> None:
    keys = [equality.key for equality in found(name)]
    assert keys
    assert len(set(keys)) == len(keys)


def test_known_equalities_are_found() -> None:
    bodies = {e.body for e in found("matrix")}
    assert "Transpose(Transpose(x0, perm=[1, 0]), perm=[1, 0]) => x0" in bodies
    assert "Add(Add(x0, x1), x2) => Add(x0, Add(x1, x2))" in bodies or any(
        b.startswith(("Add(x0, Add(x1, x2)) =>", "Add(Add(x0, x1), x2) =>")) for b in bodies
    )


def test_differences_of_a_tensor_and_itself_take_no_part() -> None:
    assert not any("Sub(x0, x0)" in equality.body for equality in found("softmax"))
