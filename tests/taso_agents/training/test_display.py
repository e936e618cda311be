"""Progress of training."""

import re
from io import StringIO

import pytest
from rich.console import Console

from taso_agents.training.display import training_bar
from taso_agents.training.run_callback import Point


def test_the_bar_says_what_is_saved_as_the_summary_does() -> None:
    console = Console(file=StringIO(), width=120)
    with training_bar(console, 8) as reports:
        reports.on_point(Point(8, 0, 1.0, policy=0.9, best_seen=0.875))
    assert "policy saves 10.00 %, best seen 12.50 %" in console.file.getvalue()


@pytest.mark.parametrize("steps", [8, 1_000_000])
@pytest.mark.parametrize("terminal", [False, True])
def test_80_columns_show_the_whole_count_a_bar_and_what_is_saved(steps: int, terminal: bool) -> None:
    console = Console(file=StringIO(), width=80, force_terminal=terminal, color_system=None, legacy_windows=False)
    with training_bar(console, steps) as reports:
        reports.on_point(Point(steps, 0, 1.0, policy=13.3456, best_seen=-0.0))
    printed = console.file.getvalue()
    assert f" {steps}/{steps} " in printed and "━" * 20 in printed
    assert "\npolicy saves -1234.56 %, best seen 100.00 %\n" in printed
    assert all(len(line) <= 80 for line in re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", printed).splitlines())
