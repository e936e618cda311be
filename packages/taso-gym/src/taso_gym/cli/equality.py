"""Whether a result computes what the file as given does, and which of its rules make it differ where it doesn't."""

from __future__ import annotations

from pathlib import Path

from taso_gym import onnx_io
from taso_gym.console import console, say
from taso_gym.equivalence import Baseline
from taso_gym.equivalence import validate as compare
from taso_gym.errors import CostError, EquivalenceError
from taso_gym.result import Result


class DifferenceError(EquivalenceError):
    """The result computes something else than the original."""


def compared(model: Path, written: Path, result: Result, provider: str, *, force: bool) -> bool:
    """Compare the file as given and the result, print how far they differ, and return whether they could be run.

    Where the result is a loop over samples, what it runs for one is compared first: its Softmax can be left out.

    Raises:
        EquivalenceError: they differ or can't be compared, and nothing forces us.
    """
    rewritten = result.rewriting
    try:
        report = compare(*rewritten, rewritten=rewritten) if result.is_loop else None
        if report is None or report.ok:
            report = compare(model, written, dims=result.original.info.dims, rewritten=rewritten)
    except (EquivalenceError, CostError, MemoryError) as error:  # a custom operator perhaps, or no room
        why = str(error) or "memory is short"
        if not force:
            raise EquivalenceError(f"{why}; nothing was written") from error
        say(f"not compared: {why}")
        return False
    console.print(report)
    if provider != "cpu":
        say("compared on the CPU: taso-gym compares nothing on a GPU")
    if not report.ok and not force:
        raise DifferenceError(report.verdict)
    return True


def equal_part(model: Path, result: Result, error: DifferenceError) -> tuple[Result, tuple[str, ...]]:
    """Return what is left of a result without the tiles or the rules that make it differ, and these.

    Raises:
        EquivalenceError: there are none, the model itself isn't read as it is run, or memory is too short to find out.
    """
    dims = result.original.info.dims
    try:
        _expect_read(model, result, error)
        if result.tiles:
            result = result.without_tiles()
            if compare(model, result.graph, dims=dims, rewritten=result.rewriting).ok:
                return result, ("tiles",)
        say(f"{error}: looking for the rule that makes it differ")
        rest = result.equal_part(Baseline(model, dims).differs)  # its sites were equal, each by itself
        if rest and not rest[1]:  # only logits or whole numbers show it
            first = result.start if result.is_loop else model
            rest = result.equal_part(lambda graph: not compare(first, graph, dims=dims).ok, for_one=True)
    except MemoryError as short:
        raise EquivalenceError(f"{error}; memory is too short to find out why: nothing was written") from short
    if rest is None or not rest[1]:
        raise EquivalenceError(f"{error}; nothing was written") from error
    return rest


def _expect_read(model: Path, result: Result, error: DifferenceError) -> None:
    """Refuse a model that isn't equal to itself as it was read: it isn't for a rule that the result differs.

    Raises:
        EquivalenceError: it isn't.
    """
    dims = result.original.info.dims
    if compare(model, result.original, dims=dims).ok:
        return
    same = onnx_io.load(model).info.opsets == result.original.info.opsets
    what = (
        "the model itself isn't read as onnxruntime runs it" if same else "conversion changes what the model computes"
    )
    raise EquivalenceError(f"{error}: {what}; nothing was written")
