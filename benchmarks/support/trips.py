"""What a model goes through, and whether it gives afterwards what it gave before."""

import contextlib
import io
import random
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from support.suites import Case

from taso_gym import cli
from taso_gym.equivalence import validate
from taso_gym.equivalence.compare import Value, compare
from taso_gym.equivalence.runtime import Feeds, run_model
from taso_gym.graph import check
from taso_gym.onnx_io import from_model, to_model
from taso_gym.onnx_io.scope import RANDOM
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

SUBSTITUTIONS = 50
STEPS = 200
"""Rewrites that `taso-gym optimize` weighs."""
EQUAL, EQUAL_IN_REFERENCE, NOT_RUN = "equal", "equal in onnx.reference", "not run"


class Arrival(NamedTuple):
    """A model that came back.

    Attributes:
        model: what was saved.
        changed: whether it was rewritten.
        refused: why the command refused to write it without --force.
    """

    model: ModelProto
    changed: bool = False
    refused: str = ""


class Outcome(NamedTuple):
    """What became of a model.

    Attributes:
        result: `EQUAL` in onnxruntime, `EQUAL_IN_REFERENCE` where onnxruntime doesn't run the original, `NOT_RUN` where
            neither does or the model is random; else what is wrong.
        changed, refused: of the `Arrival`.
    """

    result: str
    changed: bool = False
    refused: str = ""


def round_trip(model: ModelProto, _folder: Path) -> Arrival:
    """Load and save."""
    graph = from_model(model)
    check(graph)
    saved = to_model(graph)
    assert from_model(saved).canonical_digest() == graph.canonical_digest(), "the digest changed"
    return Arrival(saved)


@cache
def _rules() -> RuleSet:
    return RuleSet.load("default")


def rewritten(model: ModelProto, _folder: Path) -> Arrival:
    """Apply random legal substitutions."""
    graph = from_model(model)
    state, rng = RewriteState(graph, _rules()), random.Random(0)
    for _ in range(SUBSTITUTIONS):
        if legal := [match for matches in state.matches for match in matches]:
            state = state.apply(rng.choice(legal))
    check(state.graph)
    return Arrival(to_model(state.graph), state.graph is not graph)


def optimised(model: ModelProto, folder: Path) -> Arrival:
    """Run the command ``taso-gym optimize``; by force where it refuses, so that the result can be looked at.

    What onnxruntime doesn't run is judged by ``onnx.reference``, which knows the standard's operators only.
    """
    source, target = folder / "model.onnx", folder / "fast.onnx"
    source.write_bytes(model.SerializeToString())
    target.unlink(missing_ok=True)
    arguments = ["optimize", source, "-o", target, "--no-measure", "--steps", STEPS]
    refused = _command(*arguments)
    if refused:
        assert not target.exists(), f"a file was written in spite of: {refused}"
        failure = _command(*arguments, "--force", "--portable")
        assert not failure, f"--force ended in: {failure}"
    return Arrival(onnx.load(target), target.read_bytes() != source.read_bytes(), refused)


def _command(*arguments: object) -> str:
    """Run taso-gym in this process and return its error, if any."""
    said, before = io.StringIO(), sys.argv
    sys.argv = ["taso-gym", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            cli.main()
    except SystemExit as ended:
        return f"{' '.join(said.getvalue().split())} (exit code {ended.code})" if ended.code else ""
    finally:
        sys.argv = before


TRIPS: Mapping[str, Callable[[ModelProto, Path], Arrival]] = {
    "round trip": round_trip,
    "rewritten": rewritten,
    "optimised": optimised,
}


def travel(case: Case, trip: str, folder: Path) -> Outcome:
    """Send a model on a trip and compare the results with the original's.

    Args:
        case: the model.
        trip: a row of `TRIPS`.
        folder: for temporary files.
    """
    try:
        arrival = TRIPS[trip](case.model, folder)
        onnx.checker.check_model(arrival.model)
        result = _judge(case, arrival.model)
    except Exception as error:  # whatever ends a trip is what came of it
        return Outcome(f"{type(error).__name__}: {error}")
    return Outcome(result, arrival.changed, arrival.refused)


def _judge(case: Case, saved: ModelProto) -> str:
    if case.feeds is None:
        report = validate(case.model, saved)
        return EQUAL if report.ok else report.verdict
    if _is_random(case.model):
        return NOT_RUN
    for run, name in ((_onnxruntime, EQUAL), (_reference, EQUAL_IN_REFERENCE)):
        expected = run(case.model, case.feeds)
        if expected is not None:
            found = run(saved, case.feeds)
            assert found is not None, "doesn't run any more"
            assert all(compare(a, b).ok for a, b in zip(expected, found, strict=True)), "gives other results"
            return name
    return NOT_RUN


def _onnxruntime(model: ModelProto, feeds: Feeds) -> list[Value] | None:
    (result,) = run_model(model.SerializeToString(), [feeds])
    return None if isinstance(result, str) else result


def _reference(model: ModelProto, feeds: Feeds) -> list[Value] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it computes with infinities
        try:
            return ReferenceEvaluator(model).run(None, dict(feeds))
        except Exception:  # whatever NumPy raises where the reference lacks a case
            return None


def _is_random(model: ModelProto) -> bool:
    """Whether the same model gives other results the next time."""
    operators = {n.op_type for n in model.graph.node} | {n.op_type for f in model.functions for n in f.node}
    return bool(operators & RANDOM) or "training" in model.graph.name
