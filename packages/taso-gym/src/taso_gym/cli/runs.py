"""What is asked of a model before it is searched: that onnxruntime takes it, runs it and can time it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from taso_gym.cli.deliver import Wanted
from taso_gym.cli.timing import ORIGINAL
from taso_gym.cost import bind_dims
from taso_gym.cost.measure import measure
from taso_gym.cost.packages import require_provider
from taso_gym.cost.runtime import Runtime
from taso_gym.equivalence import Baseline
from taso_gym.equivalence.subject import subject
from taso_gym.errors import CostError, EquivalenceError, one_line
from taso_gym.graph import Graph

UNCOMPARED = "--force writes a result that wasn't compared"


def expect_runs(model: Path, graph: Graph, opset: int | None) -> None:
    """Refuse a model whose result couldn't be compared: before it is searched.

    Args:
        model: the file.
        graph: what is searched, with the sizes that are given.
        opset: what the file was converted to, if it was.

    Raises:
        EquivalenceError: onnxruntime doesn't take it, converted or not, or runs it on no inputs that are drawn for it,
            or there is too little memory for that.
    """
    runtime = Runtime("cpu", 1)
    try:
        runtime.open(str(model), optimise=False)
        Baseline(model, graph.info.dims).run()
    except (CostError, EquivalenceError, MemoryError) as error:
        raise EquivalenceError(f"{model}: {one_line(error) or 'too little memory'}; {UNCOMPARED}") from error
    if opset is None:
        return
    with ExitStack() as stack:
        content = subject(graph, stack).content
        try:
            runtime.open(content if isinstance(content, bytes) else str(content), optimise=False)
        except CostError as error:
            said = str(error).replace(str(content), "it")
            raise EquivalenceError(f"{model} converted to opset {opset}: {said}; {UNCOMPARED}") from error


def expect_timed(model: Path, graph: Graph, wanted: Wanted) -> None:
    """Refuse a search whose result couldn't be timed: the provider isn't there, or the model doesn't run on it.

    Raises:
        CostError: it can't.
    """
    if wanted.force or not (wanted.timed or wanted.settings):
        return
    advice = f"{wanted.untimed} writes a result without timing it"
    try:
        require_provider(wanted.provider)
    except CostError as error:
        raise CostError(f"{error}; {advice}") from error
    dims = bind_dims(graph)
    try:
        measure({ORIGINAL: model}, threads=wanted.threads, provider=wanted.provider, dims=dims, sessions=1, rounds=1)
    except CostError as error:
        if not dims:
            raise CostError(f"{error}; {advice}") from error
        sizes = ", ".join(f"{name}={size}" for name, size in dims.items())
        raise CostError(f"at {sizes}, {error}; --dim sets other sizes, and {advice}") from error
