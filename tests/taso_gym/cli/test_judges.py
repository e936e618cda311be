"""Which provider and how many threads whole models are measured with where some costs are searched or judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost_graphs import mlp

from taso_gym import cost
from taso_gym.cli.judges import judge_of, provider_of
from taso_gym.cost.recorded import Table
from taso_gym.errors import OptionError


def recorded(path: Path, provider: str) -> str:
    """Write a table of a device with two threads, and return the cost model of it."""
    Table(f"a device|{provider}|onnxruntime 1.31.1|2 threads", 0, {}).save(path / "table.json.gz")
    return f"recorded:{path / 'table.json.gz'}"


@pytest.mark.parametrize(("provider", "short"), [("CUDAExecutionProvider", "cuda"), ("CPUExecutionProvider", "cpu")])
def test_recorded_costs_are_of_the_provider_that_they_were_recorded_on(
    tmp_path: Path, provider: str, short: str
) -> None:
    name = recorded(tmp_path, provider)
    assert provider_of(name, judge_of(name, mlp(), 2)) == short


@pytest.mark.parametrize(
    ("name", "provider"),
    [("onnxruntime:cuda", "cuda"), ("cupy", "cuda"), ("cupy:0", "cuda"), ("roofline", "cpu"), ("onnxruntime", "cpu")],
)
def test_other_costs_are_told_by_name(name: str, provider: str) -> None:
    assert provider_of(name, cost.load("roofline")) == provider


@pytest.mark.parametrize("name", ["cupy:1", "cupy:02", "cupy:10"])
def test_costs_of_another_device_than_whole_models_are_timed_on_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"expected costs of the first device, .* found {name}"):
        provider_of(name, cost.load("roofline"))
    assert provider_of(name, cost.load("roofline"), timed=False) == "cuda"


@pytest.mark.parametrize(("threads", "said"), [(1, True), (2, False)])
def test_other_threads_than_those_of_a_table_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], threads: int, said: bool
) -> None:
    name = recorded(tmp_path, "CPUExecutionProvider")
    judge_of(name, mlp(), threads)
    line = f"{name} was recorded with --threads 2, and --threads is {threads} here\n"
    assert capsys.readouterr().out == (line if said else "")


def test_a_table_that_says_nothing_of_threads_is_taken_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Table("a device", 0, {}).save(tmp_path / "table.json.gz")
    judge_of(f"recorded:{tmp_path / 'table.json.gz'}", mlp(), 3)
    assert capsys.readouterr().out == ""
