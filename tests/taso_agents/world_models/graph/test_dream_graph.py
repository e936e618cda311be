"""Dreamt graphs: what surrounds nodes, how they are found from each other."""

import pytest
from dream_graphs import chain, graph

from taso_agents.world_models.graph.dream_graph import (
    HUB,
    RADIUS,
    address_of,
    addresses_of,
    follow_address,
    match_at,
    with_codes,
)


def test_a_code_tells_what_is_within_its_radius() -> None:
    one, other = chain(1, 2, 3, 4, 5), chain(1, 2, 3, 4, 6)
    for x in range(5):
        distance = 4 - x
        same = [one[x].codes[r] == other[x].codes[r] for r in range(RADIUS + 1)]
        assert same == [r < distance for r in range(RADIUS + 1)]


def test_codes_do_not_depend_on_ids() -> None:
    one = chain(1, 2, 3)
    other = graph({10: 1, 20: 2, 30: 3}, [(10, 20), (20, 30)])
    assert [n.codes for n in one.values()] == [n.codes for n in other.values()]


def test_siblings_are_told_apart_by_their_place() -> None:
    nodes = graph({0: 1, 1: 2, 2: 2}, [(0, 1), (0, 2)])
    assert nodes[1].codes[0] == nodes[2].codes[0] and nodes[1].codes[1] != nodes[2].codes[1]


def test_a_hub_does_not_join_its_consumers() -> None:
    edges = [(0, x) for x in range(1, HUB + 1)]
    one = graph({0: 1, **dict.fromkeys(range(1, HUB + 1), 2)}, edges)
    other = graph({0: 1, **dict.fromkeys(range(1, HUB), 2), HUB: 3}, edges)
    assert one[1].codes == other[1].codes


def test_codes_are_patched_as_they_would_be_made_anew() -> None:
    nodes = chain(*range(9))
    nodes[4] = nodes[4]._replace(label=99)
    differ = with_codes(nodes, [4])
    assert nodes == chain(0, 1, 2, 3, 99, 5, 6, 7, 8)
    assert differ == [{x for x in range(9) if abs(x - 4) <= r} for r in range(RADIUS + 1)]


@pytest.mark.parametrize("target", [0, 2, 3, 4])
def test_an_address_leads_to_its_node(target: int) -> None:
    nodes = graph({0: 1, 1: 2, 2: 2, 3: 4, 4: 5}, [(0, 1), (0, 2), (2, 3), (3, 4)])
    address = address_of(nodes, [1], target)
    assert (follow_address(nodes, [1], address) if address else None) == (None if target == 4 else target)


def test_matches_are_found_by_their_addresses() -> None:
    nodes = chain(1, 2, 3, 1, 2, 3)
    addresses = addresses_of(nodes, (1, -1, 2))
    assert addresses is not None and match_at(nodes, 4, addresses) == (4, -1, 5)
    assert match_at(nodes, 5, addresses) is None
    assert addresses_of(nodes, (0, 5)) is None
