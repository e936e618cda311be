"""The models of ONNX's own backend tests, with the inputs that come with them."""

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from taso_gym.equivalence.compare import Value, compare
from taso_gym.equivalence.runtime import Feeds, run_model
from taso_gym.errors import TasoError
from taso_gym.graph import Graph, check
from taso_gym.onnx_io import from_model, to_model
from taso_gym.onnx_io.scope import RANDOM
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


@dataclass(frozen=True)
class Case:
    """A model and one set of inputs for it."""

    name: str
    model: ModelProto
    feeds: Feeds


@cache
def _tests() -> Sequence[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute with infinities
        return [test for kind in KINDS for test in load_model_tests(kind=kind)]


def cases(stride: int = 1) -> Iterator[Case]:
    """Yield every so many-th model, in the suite's order."""
    for test in _tests()[::stride]:
        model = test.model or onnx.load(Path(test.model_dir) / "model.onnx")
        if test.data_sets is None:
            folder = Path(test.model_dir) / "test_data_set_0"
            count = len(list(folder.glob("input_*.pb")))
            values = [_read(model, i, (folder / f"input_{i}.pb").read_bytes()) for i in range(count)]
        else:
            values = [_value(v) for v in test.data_sets[0][0]]
        yield Case(test.name, model, {i.name: v for i, v in zip(model.graph.input, values, strict=False)})


def _value(value: Any) -> Value:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)


def _read(model: ModelProto, index: int, data: bytes) -> Value:
    kind = model.graph.input[index].type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


@dataclass
class Tally:
    """What became of a list of models.

    Attributes:
        models: how many there are.
        changed: were rewritten.
        equal: give in onnxruntime what the original gives.
        equal_in_reference: can't be run by onnxruntime, and give in ``onnx.reference`` what the original gives.
        not_run: can be run by neither, or are random.
        faults: what went wrong, one line each.
    """

    models: int = 0
    changed: int = 0
    equal: int = 0
    equal_in_reference: int = 0
    not_run: int = 0
    faults: list[str] = field(default_factory=list)


def round_trips(stride: int = 1) -> Tally:
    """Load and save models; compare the results with the originals'."""
    return _trips(stride, lambda graph: graph)


def rewritten_trips(rules: RuleSet, stride: int = 1, steps: int = 20) -> Tally:
    """Load models, apply random substitutions, save them, and compare the results with the originals'."""

    def rewrite(graph: Graph) -> Graph:
        state, rng = RewriteState(graph, rules), random.Random(0)
        for _ in range(steps):
            if legal := [match for matches in state.matches for match in matches]:
                state = state.apply(rng.choice(legal))
        return state.graph

    return _trips(stride, rewrite)


def _trips(stride: int, change: Callable[[Graph], Graph]) -> Tally:
    tally = Tally()
    for case in cases(stride):
        tally.models += 1
        try:
            graph = from_model(case.model)
            check(graph)
            changed = change(graph)
            tally.changed += changed is not graph
            saved = to_model(changed)
            onnx.checker.check_model(saved)
            again = from_model(saved)
            assert changed is not graph or again.canonical_digest() == graph.canonical_digest(), "the digest changed"
            _compare(case, saved, tally)
        except (TasoError, AssertionError, onnx.checker.ValidationError) as error:
            tally.faults.append(f"{case.name}: {error}")
    return tally


def _compare(case: Case, saved: ModelProto, tally: Tally) -> None:
    expected = None if _is_random(case.model) else _onnxruntime(case.model, case.feeds)
    if expected is not None:
        found = _onnxruntime(saved, case.feeds)
        tally.equal += 1
    else:
        expected = None if _is_random(case.model) else _reference(case.model, case.feeds)
        if expected is None:
            tally.not_run += 1
            return
        found = _reference(saved, case.feeds)
        tally.equal_in_reference += 1
    assert found is not None, "doesn't run any more"
    assert all(compare(a, b).ok for a, b in zip(expected, found, strict=True)), "gives other results"


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
