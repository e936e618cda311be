"""What is weighed first: each rule where it moves least, then what gained there, then the others."""

from taso_gym.cost_model import Cost
from taso_gym.rules.state import Match
from taso_gym.search.sweep import Gains, Sweep

GAINING, BETTER, LOSING = 0, 1, 2


def match(rule: int, mebibytes: int) -> Match:
    """A match that replaces a node which moves so much."""
    return Match(rule, (mebibytes,), 0)


def replaced(found: Match) -> Cost:
    return Cost(time_ps=10**6 * found.nodes[0], bytes_moved=found.nodes[0] << 20)


def change(found: Match) -> int:
    share = {GAINING: -0.2, BETTER: -0.5, LOSING: 0.1}[found.rule]
    return round(share * replaced(found).time_ps)


def weigh(sweep: Sweep, count: int) -> list[Match]:
    """Weigh the next few matches."""
    found = [m for m, _ in zip(sweep.upcoming(), range(count), strict=False)]
    sweep.weighed((m, change(m)) for m in found)
    return found


ALL = [match(rule, size) for rule in (GAINING, BETTER, LOSING) for size in (5, 3, 4)]


def test_each_rule_is_tried_where_it_moves_least_and_goes_on_by_what_it_gained() -> None:
    gains: Gains = {}
    sweep = Sweep(ALL, replaced, gains)
    assert weigh(sweep, 9) == [match(rule, 3) for rule in (GAINING, BETTER, LOSING)]
    assert len(sweep) == 6 and set(gains) == {GAINING, BETTER, LOSING}
    assert weigh(sweep, 5) == [match(rule, size) for rule in (BETTER, GAINING) for size in (4, 5)] + [match(LOSING, 4)]
    assert weigh(sweep, 5) == [match(LOSING, 5)] and not sweep
    assert gains[BETTER] == (-6 * 10**6, 12 * 10**6)


def test_what_a_rule_gains_where_it_takes_longer_says_more() -> None:
    gains: Gains = {GAINING: (-(10**6), 2 * 10**6), BETTER: (-(10**6), 3 * 10**6), LOSING: (1, 0)}
    sweep = Sweep([match(BETTER, 90), match(BETTER, 30), match(GAINING, 60)], replaced, gains)
    assert weigh(sweep, 1) == [match(GAINING, 60)]
    assert list(sweep.upcoming()) == [match(BETTER, 30), match(BETTER, 90)]


def test_what_promises_nothing_is_weighed_in_the_order_of_bytes_whatever_its_rule() -> None:
    sweep = Sweep(ALL, replaced, dict.fromkeys((GAINING, BETTER, LOSING), (0, 10**6)))
    assert [m.nodes[0] for m in sweep.upcoming()] == [3, 3, 3, 4, 4, 4, 5, 5, 5]


def test_where_costs_are_known_matches_come_by_rule_and_nodes() -> None:
    gains: Gains = {}
    sweep, ordered = Sweep(ALL, None, gains), sorted(ALL)
    assert weigh(sweep, 4) == ordered[:4]
    assert list(sweep.upcoming()) == ordered[4:] and len(sweep) == 5
