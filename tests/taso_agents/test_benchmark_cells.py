"""What a benchmark measured is kept, and never taken for something else."""

from pathlib import Path

import pytest
from support.cells import cell


def test_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    asked: list[int] = []

    def measure() -> dict[str, int]:
        asked.append(1)
        return {"steps": 3}

    found = [cell(tmp_path, "ppo/0", {"most": (1, 2)}, measure) for _ in range(2)]
    assert len(asked) == 1
    assert found[0]["steps"] == found[1]["steps"] == 3


def test_other_settings_are_refused(tmp_path: Path) -> None:
    cell(tmp_path, "0", {"most": 1}, dict)
    with pytest.raises(SystemExit, match=r"other settings .*'most': \(2, 1\)"):
        cell(tmp_path, "0", {"most": 2}, dict)
