"""Progress of training."""

from io import StringIO

from rich.console import Console

from taso_agents.training.display import training_bar
from taso_agents.training.run_callback import Point


def test_the_bar_says_what_is_saved_as_the_summary_does() -> None:
    console = Console(file=StringIO(), width=120)
    with training_bar(console, 8) as reports:
        reports.on_point(Point(8, 0, 1.0, policy=0.9, best_seen=0.875))
    assert "policy saves 10.00 %, best seen 12.50 %" in console.file.getvalue()
