"""Outcomes by context."""

import random
from collections import Counter

from taso_agents.world_models.graph.recall import Recall, choose


def recall(*cases: tuple[tuple[int, ...], str]) -> Recall:
    found = Recall(2)
    for keys, outcome in cases:
        found.learn("group", keys, outcome)
    found.settle()
    return found


def test_the_narrowest_context_that_tells_outcomes_apart_is_used() -> None:
    """The wide one never matters, so an unknown one is answered as well."""
    found = recall(((1, 10), "a"), ((1, 11), "a"), ((2, 12), "b"))
    assert found.level["group"] == 0 and found.find("group", (1, 99)) == {"a": 2}


def test_a_wide_context_is_used_where_narrow_ones_mix_outcomes() -> None:
    found = recall(((1, 10), "a"), ((1, 11), "b"))
    assert found.level["group"] == 1 and found.find("group", (1, 11)) == {"b": 1}


def test_an_unknown_wide_context_falls_back_on_the_narrow_one() -> None:
    assert recall(((1, 10), "a"), ((1, 11), "b")).find("group", (1, 12)) == {"a": 1, "b": 1}


def test_what_was_never_met_has_no_outcome() -> None:
    found = recall(((1, 10), "a"))
    assert found.find("group", (2, 10)) is None and found.find("other", (1, 10)) is None


def test_rows_say_all_that_was_learned() -> None:
    first, again = recall(((1, 10), "a"), ((1, 10), "a"), ((2, 11), "b")), Recall(2)
    for row in first.rows():
        again.learn(*row)
    again.settle()
    assert again.cells == first.cells and again.level == first.level


def test_temperature_divides_the_logarithms_of_counts() -> None:
    cell, rng = {"a": 16, "b": 1}, random.Random(0)
    assert {choose(cell, 0.0, rng) for _ in range(50)} == {"a"}
    assert {choose({"a": 900, "b": 1}, 1e-3, rng) for _ in range(50)} == {"a"}  # 900 to the thousandth is no number
    drawn = {t: Counter(choose(cell, t, rng) for _ in range(4000))["b"] / 4000 for t in (1.0, 2.0)}
    assert abs(drawn[1.0] - 1 / 17) < 0.015 and abs(drawn[2.0] - 1 / 5) < 0.03
