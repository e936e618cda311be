"""Many graphs are compared with a model that is run once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from model_texts import parsed

from taso_gym.equivalence import Baseline, baseline, subject, validate, validation
from taso_gym.errors import EquivalenceError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model

pytest.importorskip("onnxruntime")

F32 = np.float32


def graph(body: str, **weights: Any) -> Graph:
    return from_model(parsed(f"g (float[4] x) => (y) {{ {body} }}", **weights))


@pytest.mark.parametrize("file_bytes", [0, 10**9])
def test_what_gives_something_else_differs(file_bytes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether graphs are run from memory or from disk, and from a graph as from a file."""
    monkeypatch.setattr(subject, "FILE_BYTES", file_bytes)
    model = parsed("g (float[4] x) => (y) { y = Mul(x, w) }", w=F32([1, 2, 3, 4]))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for given in (path, from_model(model)):
        same = Baseline(given)
        assert not same.differs(graph("a = Neg(x)\n b = Neg(a)\n y = Mul(b, w)", w=F32([1, 2, 3, 4])))
        assert same.differs(graph("y = Mul(x, w)", w=F32([1, 2, 3, 5])))
        assert not same.differs(graph("y = Mul(w, x)", w=F32([1, 2, 3, 4])))


def test_the_model_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In onnxruntime and, where something differs, in float64, for each draw."""
    ran: list[object] = []
    computed: list[int] = []
    run_there, run_here = baseline.run_on_drawn, baseline.reference_of
    monkeypatch.setattr(baseline, "run_on_drawn", lambda *args: ran.append(args) or run_there(*args))
    monkeypatch.setattr(baseline, "reference_of", lambda *args: computed.append(args[-1]) or run_here(*args))
    same = Baseline(graph("y = Neg(x)"))
    assert not ran
    bodies = {
        "y = Neg(x)": False,
        "y = Abs(x)": True,
        "a = Neg(x)\n b = Neg(a)\n y = Neg(b)": False,
        "y = Exp(x)": True,
    }
    assert {body: same.differs(graph(body)) for body in bodies} == bodies
    assert len(ran) == 1 and computed == [0, 1, 2]


def test_rounding_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that cancel lose the same digits in either order; where weights are large, that isn't computed."""
    loses = "a = Add(x, big)\n b = Sub(a, big)\n y = Mul(b, one)"
    gains = "a = Sub(x, big)\n b = Add(a, big)\n y = Mul(b, one)"
    first, second = graph(loses, big=F32(1e4), one=F32(1)), graph(gains, big=F32(7777), one=F32(1))
    assert validate(first, second, tolerance=1e-4).max_relative_error > 1e-4
    assert not Baseline(first).differs(second)
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 1)
    assert Baseline(first).differs(second)


def test_what_doesnt_run_differs_and_other_inputs_are_an_error() -> None:
    same = Baseline(graph("y = Neg(x)"))
    assert same.differs(graph("y = Reshape(x, s)", s=np.int64([5])))
    with pytest.raises(EquivalenceError, match="expected models with the same inputs"):
        same.differs(from_model(parsed("g (float[4] z) => (y) { y = Neg(z) }")))


def test_wrong_logits_beside_a_mask_differ() -> None:
    body, mask = "s = Sigmoid(x)\n t = Mul(s, k)\n y = Add(t, m)", F32([0, 0, -1e9, -1e9])
    same = Baseline(graph(body, k=F32(1), m=mask))
    assert same.differs(graph(body, k=F32(1.5), m=mask))
    assert not same.differs(graph(body.replace("(s, k)", "(k, s)"), k=F32(1), m=mask))
