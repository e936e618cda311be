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


@pytest.mark.parametrize(
    "patch",
    [Patch(((0, ~5),), (), (), ()), Patch((), (0,), (), ()), Patch((), (0,), (), ((1, 2, ((0, 0),)),))],
    ids=["a node that isn't there", "a node that is still used", "an input that is gone"],
)
def test_a_patch_that_does_not_fit_is_not_applied(patch: Patch) -> None:
    assert apply_patch(chain(1, 2, 3), (0, 1), patch, 9) is None
