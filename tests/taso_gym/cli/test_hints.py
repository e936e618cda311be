"""What `taso-gym optimize` says of what it wasn't asked to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from taso_gym import models, optimize
from taso_gym.cli.hints import more_time
from taso_gym.cost.onnxruntime import OnnxRuntimeCost
from taso_gym.search import Budget


@pytest.mark.parametrize("measured", [False, True])
def test_a_search_that_was_still_finding_may_have_more_time(measured: bool, tmp_path: Path) -> None:
    if measured:
        pytest.importorskip("onnxruntime")
    cost = OnnxRuntimeCost(cache=tmp_path / "c") if measured else "roofline"
    graph = models.build("BERT", layers=1, hidden=8, heads=2, sequence=4)
    result = optimize(graph, cost=cost, budget=Budget(steps=1))
    assert not more_time(result)
    said = more_time(replace(result, search=replace(result.search, cut_short=True)))
    assert "a longer --budget may find more" in said and ("begins with the times" in said) == measured
