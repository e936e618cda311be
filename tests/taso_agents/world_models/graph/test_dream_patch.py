"""Rewrites that are done elsewhere."""

import pytest
from dream_graphs import chain, graph

from taso_agents.world_models.graph.dream_patch import Patch, apply_patch, patch_of


def test_a_patch_does_elsewhere_what_it_did_here() -> None:
    before = chain(7, 1, 2, 7, 1, 2, 7)
    after = graph({0: 7, 7: 9, 3: 7, 4: 1, 5: 2, 6: 7}, [(0, 7), (7, 3), (3, 4), (4, 5), (5, 6)])
    patch = patch_of(before, after, (1, 2))
    assert patch is not None and patch.labels == (9,)
    for start, matched in ((before, (1, 2)), (before, (4, 5))):
        found = apply_patch(start, matched, patch, 7)
        assert found is not None
        expected = graph(
            {**{x: n.label for x, n in before.items() if x not in matched}, 7: 9},
            [(a, b) for a, b in [(i, i + 1) for i in range(6)] if not {a, b} & set(matched)]
            + [(matched[0] - 1, 7), (7, matched[1] + 1)],
        )
        assert found[0] == expected
    again = apply_patch(before, (1, 2), patch, 7)
    assert again is not None and again[0] == after


def test_who_uses_the_result_is_no_part_of_a_patch() -> None:
    """One consumer or several, of whatever label: they use what took the place of the last matched node."""
    before, after = chain(7, 1, 2, 5), graph({0: 7, 4: 9, 3: 5}, [(0, 4), (4, 3)])
    patch = patch_of(before, after, (1, 2))
    assert patch is not None and patch.moved == ((1, 0, ~0, 0),) and [x for x, *_ in patch.wired] == [~0]
    elsewhere = graph({0: 7, 1: 1, 2: 2, 3: 6, 4: 8}, [(0, 1), (1, 2), (2, 3), (2, 4)])
    found = apply_patch(elsewhere, (1, 2), patch, 5)
    assert found is not None
    assert found[0] == graph({0: 7, 3: 6, 4: 8, 5: 9}, [(0, 5), (5, 3), (5, 4)])


def test_a_consumer_that_stays_is_told_apart() -> None:
    """Where only one of two consumers is moved, none is by rule, and the wiring says which."""
    before = graph({0: 7, 1: 1, 2: 5, 3: 6}, [(0, 1), (1, 2), (1, 3)])
    after = graph({0: 7, 1: 1, 2: 5, 3: 6, 4: 9}, [(0, 1), (0, 4), (1, 2), (4, 3)])
    patch = patch_of(before, after, (1,))
    assert patch is not None and not patch.moved
    found = apply_patch(before, (1,), patch, 4)
    assert found is not None and found[0] == after


@pytest.mark.parametrize(
    "patch",
    [Patch(((0, ~5),), (), (), (), ()), Patch((), (0,), (), (), ()), Patch((), (0,), (), (), ((1, 2, ((0, 0),)),))],
    ids=["a node that isn't there", "a node that is still used", "an input that is gone"],
)
def test_a_patch_that_does_not_fit_is_not_applied(patch: Patch) -> None:
    assert apply_patch(chain(1, 2, 3), (0, 1), patch, 9) is None
