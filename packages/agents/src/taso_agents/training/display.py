"""Progress of training on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from taso_agents.training.run_callback import Point


class Reports(NamedTuple):
    """What `taso_agents.training.ppo.train` calls: after every step, and after every update."""

    on_step: Callable[[int], None]
    on_point: Callable[[Point], None]


class TrainingProgress(Progress):
    """A bar, and below it what each task says is saved: a narrow terminal hasn't room for both in a line."""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the lines."""
        yield from super().get_renderables()
        yield from (task.fields["saved"] for task in self.tasks)


@contextmanager
def training_bar(console: Console, steps: int) -> Generator[Reports]:
    """Show a bar over the steps with the latest point of the curve: what is saved of the start graph's cost."""
    columns = TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with TrainingProgress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps, saved="no episode yet")

        def on_point(point: Point) -> None:
            saved = f"policy saves {100 * (1 - point.policy):.2f} %, best seen {100 * (1 - point.best_seen):.2f} %"
            progress.update(task, completed=point.steps, saved=saved)

        yield Reports(lambda done: progress.update(task, completed=done), on_point)
