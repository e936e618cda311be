"""Writing a result: compared, timed against the file as given, with the session settings that it runs best with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from taso_gym import onnx_io
from taso_gym.atomic import replacing
from taso_gym.cli.equality import DifferenceError, compared, equal_part
from taso_gym.cli.settings_file import put_settings
from taso_gym.cli.timing import RESULT, SET, say_on_all_cores, timed
from taso_gym.console import say
from taso_gym.cost import bind_dims
from taso_gym.cost.measure import SessionSettings
from taso_gym.cost.measurement import MIN_GAIN, Measurement, Speedup
from taso_gym.cost.session_settings import DEFAULT, best_settings
from taso_gym.errors import CostError, EquivalenceError
from taso_gym.result import Result


@dataclass(frozen=True)
class Wanted:
    """What is asked of a result before it is written.

    Attributes:
        threads: to measure with.
        timed: measure it against the file as given.
        force: write it whatever is found.
        settings: look for session settings that pay, too.
        provider: to measure on, "cpu" or "cuda".
        cores: with so many threads, if they are more, a result is timed on the CPU once it is written, too.
        converted: the model was to another opset, before it was searched.
    """

    threads: int = 1
    timed: bool = True
    force: bool = False
    settings: bool = False
    provider: str = "cpu"
    cores: int = 0
    converted: bool = False

    @property
    def untimed(self) -> str:
        """The options that time nothing, in words."""
        return "--no-measure without --session-settings" if self.settings else "--no-measure"


class _Timing(NamedTuple):
    """Session settings that pay, and how the file as given and the result compare; of neither more than was done."""

    settings: SessionSettings = DEFAULT
    found: Measurement | None = None
    interrupted: bool = False


class _NotFaster(Exception):  # noqa: N818 - a reason to write nothing, not an error
    """The result isn't measurably faster than the original."""


def deliver(
    model: Path, output: Path, result: Result, wanted: Wanted, on_left: Callable[[Result], None] | None = None
) -> None:
    """Write the result if it is equal and better, else what is left of it without the rules that make it differ.

    Better means faster where time is the objective, else that the objective is lower, with the time that was measured
    unless that is a gain in doubt or below 2 %, or that a limit is kept which the original breaks. Where nothing is
    better, the original is written. A result whose timing is interrupted is written, too, and it is said that it may
    be slower.

    Args:
        model: the file as given.
        output: where the result goes.
        result: it.
        wanted: what is asked of it.
        on_left: called with what is left of it, if rules were left out.

    Raises:
        KeyboardInterrupt: timing was interrupted; what is left is written.
        EquivalenceError: the result differs whatever is left out, or can't be compared, and nothing forces us.
        CostError: it needs more memory than the limit, or can't be timed, and nothing forces us.
    """
    try:
        _deliver(model, output, result, wanted)
    except DifferenceError as error:
        left, culprits = equal_part(model, result, error)
        say(f"left out: {', '.join(culprits)}; {left.improvement_percent:.2f} % saved without")
        if on_left:
            on_left(left)
        try:
            _deliver(model, output, left, wanted, f"is left without {', '.join(culprits)}")
        except DifferenceError as still:
            raise EquivalenceError(f"{still}; nothing was written") from still


def _deliver(model: Path, output: Path, result: Result, wanted: Wanted, nothing: str = "was found") -> None:
    _expect_fits(result, force=wanted.force)
    if not result.applied and not result.is_loop and not result.tiles:
        _deliver_original(model, output, result, wanted, f"nothing that lowers the {_aim(result)} {nothing}")
        return
    try:
        with replacing(output) as temporary:
            onnx_io.save(result.graph, temporary, final=output)
            ran = compared(model, temporary, result, wanted.provider, force=wanted.force)
            timing = _measured(model, temporary, result, wanted) if ran else _Timing()
            if timing.interrupted and not wanted.force and _is_same(model, output):
                say(f"{model} stays as it is: what was found isn't timed, as that was interrupted")
                raise KeyboardInterrupt
            if timing.found and not wanted.force and (reason := _in_vain(result, timing.found)):
                raise _NotFaster(reason)
    except _NotFaster as error:
        _deliver_original(model, output, result, wanted, str(error))
    else:
        say(f"{output} written: {_faster(model, output, timing)}")
        put_settings(output, timing.settings, wanted.threads, wanted.provider)
        _end(timing)
        on_more = wanted.provider == "cpu" and wanted.cores > wanted.threads
        if timing.found and on_more and not _is_same(model, output):
            say_on_all_cores(model, output, timing.settings, wanted.cores, bind_dims(result.original))


def _faster(model: Path, output: Path, timing: _Timing) -> str:
    """Return what is known of how fast a result is."""
    if timing.interrupted:
        return (
            f"not timed, as that was interrupted; it may be slower than {model}: "
            f"taso-gym measure {model} {output} says whether it is"
        )
    return str(timing.found.speedup(RESULT)) if timing.found else "not timed"


def _end(timing: _Timing) -> None:
    if timing.interrupted:
        raise KeyboardInterrupt


def _deliver_original(model: Path, output: Path, result: Result, wanted: Wanted, reason: str) -> None:
    """Write the file as given, with session settings that it gains by where they are asked for.

    They are measured on the file where it is: a copy of it goes straight to its place, which is looked at for other
    files of the names that it refers to.
    """
    timing = _measured(model, model, result, wanted) if wanted.settings else _Timing()
    if timing.found and not timing.found.gain(RESULT) and not wanted.force:
        timing = timing._replace(settings=DEFAULT)
    onnx_io.copy(model, output)
    say(f"{output} is {model} unchanged{', not converted' if wanted.converted else ''}: {reason}")
    if not _is_same(model, output) or (wanted.settings and not timing.interrupted):  # else any are the model's own
        put_settings(output, timing.settings, wanted.threads, wanted.provider)
    _end(timing)


def _is_same(model: Path, output: Path) -> bool:
    """Whether a model is to be replaced by what becomes of it."""
    return output.exists() and output.samefile(model)


def _in_vain(result: Result, found: Measurement) -> str:
    """Return why a result isn't better now that it is timed; empty where it is, or is needed to keep the limit."""
    goal = result.objective
    if goal.max_memory is not None and result.quantities["memory"][0] > goal.max_memory:
        return ""
    if SET in found.rounds and (found.gain(RESULT) or not goal.lowers_time):  # by itself, or by its settings?
        found = found.beside(SET, RESULT)
    if goal.lowers_time:
        return "" if found.gain(RESULT) else _too_little(found.speedup(RESULT))
    before, after = ({name: pair[i] for name, pair in result.quantities.items()} for i in (0, 1))
    saved = found.gain(RESULT) or min(1 - 1 / found.ratio(RESULT), 0.0)
    after["time"] = round(before["time"] * (1 - saved))
    lower = goal.value(after, before) < goal.value(before, before)
    return "" if lower else f"as measured it doesn't lower the {goal}"


def _too_little(faster: Speedup) -> str:
    """Return why what was measured isn't taken for a gain."""
    if 1 - 1 / faster.ratio < MIN_GAIN:
        sure = f"below {100 * MIN_GAIN:g} %"
    else:
        sure = "in doubt" if faster.low <= 1 else "that not every session shows"
    return f"a gain {sure} counts as none, and {faster} was measured"


def _aim(result: Result) -> str:
    return "cost" if result.objective.is_time else str(result.objective)


def _expect_fits(result: Result, *, force: bool) -> None:
    limit, (before, after) = result.objective.max_memory, result.quantities["memory"]
    if limit is not None and after > limit and not force:
        raise CostError(
            f"expected a result within {limit:,} bytes of memory, found none below {after:,} (the model as given: "
            f"{before:,}); nothing was written"
        )


def _measured(model: Path, written: Path, result: Result, wanted: Wanted) -> _Timing:
    """Return session settings that pay where they are asked for, and how the file as given and the result compare.

    Raises:
        CostError: onnxruntime can't time them, for the inputs that they need perhaps, and nothing forces us.
    """
    dims, settings = bind_dims(result.original), DEFAULT
    try:
        if wanted.settings:
            settings = best_settings(written, threads=wanted.threads, provider=wanted.provider, dims=dims)
        differ = written != model or settings != DEFAULT
        if not (wanted.timed and differ):
            return _Timing(settings)
        return _Timing(settings, timed(model, written, settings, wanted.threads, wanted.provider, dims))
    except KeyboardInterrupt:
        return _Timing(interrupted=True)
    except CostError as error:
        if not wanted.force:
            raise CostError(f"{error}; nothing was written: {wanted.untimed} writes it without timing it") from error
        say(f"not timed: {error}")
        return _Timing()
