"""Where a search stands is checked when it is read from a checkpoint, not steps later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taso_gym import cost, models
from taso_gym.errors import OptionError
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import Budget, run
from taso_gym.search.saved_tree import check_frontier


@pytest.fixture(scope="module")
def start() -> RewriteState:
    graph = models.build("BERT", layers=1, hidden=48, heads=4, sequence=16)
    return RewriteState(graph, RuleSet.load("default"), cost.load("roofline"))


MATCH = [0, [1], 0]
"""A rule, nodes and the variant."""


@pytest.mark.parametrize(
    ("search", "frontier", "message"),
    [
        ("greedy", [None], "None as a value"),
        ("greedy", [float("nan")], "nan as a value"),
        ("beam", [[10**6], [], 0, 0, []], "state 1000000 of "),
        ("beam", [[-1], [], 0, 0, []], "-1 in the frontier"),
        ("beam", [["0"], [], 0, 0, []], "'0' in the frontier"),
        ("beam", [[0], ["a"], 0, 0, []], "'a' in the frontier"),
        ("beam", [[0], [], "0", 0, []], "'0' in the frontier"),
        ("beam", [[0], [], 0, None, []], "None in the frontier"),
        ("beam", [[0], [], 0, 0, [[5, 1, 10**6, *MATCH]]], "state 1000000 of "),
        ("beam", [[0], [], 0, 0, [[5, "1", 0, *MATCH]]], "'1' as a value"),
        ("beam", [[0], [], 0, 0, [[5, 1, 0, 10**6, [1], 0]]], "a match of rule 1000000 of "),
        ("beam", [[0], [], 0, 0, [[5, 1, 0, 0, ["1"], 0]]], "'1' in a match of the frontier"),
        ("random", [10**6, 0], "state 1000000 of "),
        ("random", [0, -1], "-1 in the frontier"),
        ("ranked", {"rejected": [[10**6, [1], 0]], "in vain": 0, "learnt": [], "start": 1}, "a match of rule 1000000"),
        ("ranked", {"rejected": [], "in vain": None, "learnt": [], "start": 1}, "None in the frontier"),
        ("taso", {"open": [10**6]}, "state 1000000 of "),
        ("taso", {"opened": -1}, "-1 in the frontier"),
        ("taso", {"queue": [[5, 1, 0, 10**6, [1], 0]]}, "a match of rule 1000000 of "),
        ("taso", {"queue": [[5, 1, 10**6, *MATCH]]}, "state 1000000 of "),
        ("taso", {"waiting": [[*MATCH, "5"]]}, "'5' as a value"),
        ("taso", {"doubtful": [[10**6, [1], 0, 5]]}, "a match of rule 1000000 of "),
        ("taso", {"lowest": 10**6}, "state 1000000 of "),
    ],
)
def test_a_frontier_that_no_search_writes_is_refused(
    start: RewriteState, tmp_path: Path, search: str, frontier: Any, message: str
) -> None:
    file = tmp_path / "search.json"
    run(start, search, Budget(steps=3), checkpoint=file)
    data = json.loads(file.read_text())
    kept = data["searcher"]["frontier"]
    data["searcher"]["frontier"] = {**kept, **frontier} if isinstance(kept, dict) else frontier
    file.write_text(json.dumps(data))
    with pytest.raises(OptionError, match=rf"search\.json: expected a checkpoint of .*: {message}"):
        run(start, search, Budget(steps=4), checkpoint=file)


def test_what_searches_write_is_taken() -> None:
    check_frontier(2, 1, matches=[Match(0, (1, 2), 3)], indices=[0, 1], counts=[0, 10**9], values=[-1, 0.5])
    check_frontier(1, 0)
