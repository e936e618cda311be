"""Where costs are measured, TASO's search looks at what pays only together with what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from taso_gym.builder import GraphBuilder
from taso_gym.cost.roofline import RooflineCost
from taso_gym.cost.work import Work
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search import Budget, run, searcher
from taso_gym.search.taso import Taso
from taso_gym.signature import Signature
from taso_gym.tensor import TensorType

PLACES = 4
RULES = """
dearer: Abs(x) => Max(x, Neg(x))
follows: Max(x, Neg(x)) => Sqrt(Mul(x, x))
in-the-way: Neg(Abs(x)) => Min(x, Neg(x))
"""
US = 1_000_000
TIMES_PS = {"Abs": 10 * US, "Max": 6 * US, "Neg": 6 * US, "Sqrt": US, "Mul": US, "Min": 10 * US - 1000}


class Given(RooflineCost):
    """Times by operator that count as measured."""

    deterministic = False

    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
        return TIMES_PS[sig.op.name], 1


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> RewriteState:
    monkeypatch.setattr(searcher, "NOISE", 0.0)
    builder = GraphBuilder({"": 20})
    value = builder.input("x", TensorType("float", (2, 3)))
    for _ in range(PLACES):
        value = builder.add("Neg", builder.add("Abs", value))
    builder.output("y", value)
    return RewriteState(builder.build(), RuleSet(parse_rules(RULES)), Given())


def operators(state: RewriteState) -> Counter[str]:
    return Counter(node.sig.op.name for _, node in state.graph.operators())


def test_what_pays_only_with_what_follows_is_taken_at_all_places(start: RewriteState) -> None:
    search = Taso(start, np.random.default_rng(0))
    while not search.settled:
        search.step()
    assert operators(search.state(search.best)) == {"Neg": PLACES, "Mul": PLACES, "Sqrt": PLACES}


def test_what_never_pays_is_looked_at_once(start: RewriteState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TIMES_PS, "Sqrt", 20 * US)
    search = Taso(start, np.random.default_rng(0))
    added: list[str] = []
    add = search.add

    def counted(parent: int, match: Match) -> tuple[int, RewriteState]:
        added.append(start.rules[match.rule].name)
        return add(parent, match)

    monkeypatch.setattr(search, "add", counted)
    while not search.settled:
        search.step()
    assert Counter(added) == {"dearer": 1, "in-the-way": PLACES}
    assert operators(search.state(search.best)) == {"Neg": PLACES, "Min": PLACES}


def test_a_look_that_was_interrupted_goes_on(start: RewriteState, tmp_path: Path) -> None:
    whole = run(start, "taso", Budget(steps=60))
    for steps in (10, 14, 18, 22):
        file = tmp_path / f"{steps}.json"
        assert not run(start, "taso", Budget(steps=steps), checkpoint=file).exhausted
        resumed = run(start, "taso", Budget(steps=60), checkpoint=file)
        assert (resumed.path, resumed.explored) == (whole.path, whole.explored)
