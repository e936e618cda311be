"""Timing a result against the file as given: with the threads that it was searched for, and on all cores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from taso_gym.console import progress_bar, say
from taso_gym.cost.measure import SessionSettings, measure
from taso_gym.cost.measurement import Measurement
from taso_gym.cost.session_settings import DEFAULT
from taso_gym.errors import CostError

ORIGINAL, RESULT = "original", "optimised"
SET = "original with the settings of the optimised one"


def timed(
    model: Path, result: Path, settings: SessionSettings, threads: int, provider: str, dims: Mapping[str, int]
) -> Measurement:
    """Measure the file as given and the result side by side, at the sizes that were costed, and print both.

    Where the result has session settings of its own, the file as given is measured with these, too.

    Raises:
        CostError: one of them can't be timed.
    """
    files = {ORIGINAL: model, RESULT: result} | ({SET: model} if settings != DEFAULT and result != model else {})
    with progress_bar() as bar:
        task = bar.add_task("measuring", best="")
        found = measure(
            files,
            settings={RESULT: settings, SET: settings},
            threads=threads,
            provider=provider,
            dims=dims,
            progress=lambda done, total: bar.update(task, best=f"round {done} of {total}"),
        )
    for name in files:
        say(f"{name}: {found.time_ms(name):.3f} ms in onnxruntime ({found.conditions})")
    if found.unstable:
        say("the machine was busy: halves of the measurement differ by over 2 %")
    return found


def say_on_all_cores(model: Path, result: Path, settings: SessionSettings, cores: int, dims: Mapping[str, int]) -> None:
    """Say how a result does with a thread on each core of the CPU: what is faster on one may be slower on several."""
    try:
        faster = timed(model, result, settings, cores, "cpu", dims).speedup(RESULT)
    except CostError as error:
        say(f"not timed with {cores} threads: {error}")
        return
    advice = f", slower than {model}: --threads {cores} looks for what is faster there" if faster.high < 1 else ""
    say(f"with {cores} threads, one on each core: {faster}{advice}")
