"""Tokens and what steps do to them."""

import torch

from taso_agents.world_models.tokens import Edits, arrange, edits_of, lay_out

COUNTS = torch.tensor([[2, 0, 1], [0, 3, 0]])


def test_items_are_fronts_and_tokens_in_order() -> None:
    layout = lay_out(COUNTS, 4)
    assert layout.valid.tolist() == [[True] * 3 + [False]] * 2
    assert layout.rule[0, :3].tolist() == [0, 0, 2] and layout.rule[1, :3].tolist() == [1, 1, 1]
    assert layout.item_graph.tolist() == [0] * 6 + [1] * 6
    assert layout.item_rule.tolist() == [0, 0, 0, 1, 2, 2, 0, 1, 1, 1, 1, 2]
    assert layout.item_token.tolist() == [-1, 0, 1, -1, -1, 2, -1, -1, 0, 1, 2, -1]


def edits(stays: list[int], new: dict[int, int]) -> Edits:
    """Say which items stay and how many tokens come behind some."""
    found = Edits(torch.zeros(12, dtype=torch.bool), torch.zeros(12, dtype=torch.long))
    found.stays[stays] = True
    for item, count in new.items():
        found.new[item] = count
    return found


def test_new_tokens_come_behind_their_item() -> None:
    found = arrange(lay_out(COUNTS, 4), edits([1, 5, 8], {1: 1, 3: 1, 9: 2}))
    assert found.counts.tolist() == [[2, 1, 1], [0, 3, 0]]
    assert found.item.tolist() == [1, 1, 3, 5, 8, 9, 9]
    assert found.number.tolist() == [-1, 0, 0, -1, -1, 0, 1]
    assert found.graph.tolist() == [0] * 4 + [1] * 3 and found.slot.tolist() == [0, 1, 2, 3, 0, 1, 2]


def test_what_there_is_no_room_for_is_dropped() -> None:
    found = arrange(lay_out(COUNTS, 4), edits([1, 2, 5], {0: 2}))
    assert found.counts.tolist() == [[4, 0, 0], [0, 0, 0]]


def test_edits_are_read_off_where_tokens_came_from() -> None:
    expected = edits([1, 5, 8], {1: 1, 3: 1, 9: 2})
    # Item 9 goes and two come behind it: nothing tells them from two that come behind item 8, which stays.
    told = edits([1, 5, 8], {1: 1, 3: 1, 8: 2})
    following = torch.tensor([[2, 1, 1], [0, 3, 0]])
    origins = torch.tensor([[0, -1, -1, 2], [0, -1, -1, -1]])
    found = edits_of(lay_out(COUNTS, 4), following, origins)
    assert torch.equal(found.stays, told.stays) and torch.equal(found.new, told.new)
    assert arrange(lay_out(COUNTS, 4), found).counts.equal(arrange(lay_out(COUNTS, 4), expected).counts)


def test_an_empty_graph_has_fronts_only() -> None:
    layout = lay_out(torch.zeros(1, 2, dtype=torch.long), 3)
    assert not layout.valid.any() and layout.item_token.tolist() == [-1, -1]
