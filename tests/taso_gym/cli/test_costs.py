from __future__ import annotations

import pytest
from command_line import run
from network_runs import small

from taso_gym import onnx_io


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "squeeze.onnx"
    onnx_io.save(small("SqueezeNet1.1"), path)
    return path


def test_profile_names_the_operators_and_the_peak(model, tmp_path, capsys):
    assert run("profile", model, "--cache", tmp_path / "cache.db") == 0
    out = capsys.readouterr().out
    assert "GFLOP/s" in out
    assert "Conv" in out


def test_recorded_table_is_a_cost_model(model, tmp_path, capsys):
    table = tmp_path / "mine.json.gz"
    assert run("record", model, "-o", table, "--walks", "0", "--cache", tmp_path / "cache.db") == 0
    out = tmp_path / "fast.onnx"
    assert run("optimize", model, "-o", out, "--cost", f"recorded:{table}", "--budget", "1s", "--no-measure") == 0
    assert out.exists()


def test_calibration_prints_bias_and_ranks(model, capsys):
    assert run("calibrate", model, "--cost", "roofline", "--variants", "2", "--sessions", "1", "--rounds", "2") == 0
    assert "Spearman" in capsys.readouterr().out
