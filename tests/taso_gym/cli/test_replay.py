from __future__ import annotations

import onnx
import pytest
from command_line import run
from model_texts import parsed

from taso_gym.env import TasoGraphEnv
from taso_gym.replay import Replay


@pytest.mark.parametrize(("target", "what"), [("game.json", "is the replay"), ("m.onnx", "is the model")])
def test_neither_replay_nor_model_is_written_over(target, what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    onnx.save(parsed("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Neg(a) }"), "m.onnx")
    env = TasoGraphEnv("m.onnx")
    env.reset()
    Replay.of(env).save("game.json")
    before = (tmp_path / target).read_bytes()
    assert run("replay", "game.json", "-o", target) == 2
    assert f"expected another file to write than {target}, which {what}" in capsys.readouterr().err
    assert (tmp_path / target).read_bytes() == before
    assert run("replay", "game.json", "-o", "out.onnx") == 0
