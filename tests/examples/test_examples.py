"""The examples run, on small models and for a few steps."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from example_runs import run
from onnx import TensorProto, numpy_helper

from taso_gym.errors import OptionError

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """Import an example by its path."""
    spec = spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def two_products(tmp_path: Path) -> Path:
    """A file in which two products share an input, and a network's tail: there is something to gain."""
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(64, 64)).astype(np.float32) for name in "abc"}
    nodes = [
        oh.make_node("MatMul", ["x", "a"], ["p"]),
        oh.make_node("MatMul", ["x", "b"], ["q"]),
        oh.make_node("Relu", ["p"], ["r"]),
        oh.make_node("Add", ["r", "q"], ["s"]),
        oh.make_node("MatMul", ["s", "c"], ["y"]),
    ]
    shape = [8, 64]
    graph = oh.make_graph(
        nodes,
        "two products",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [oh.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 20)], ir_version=10), path)
    return path


def test_maskable_ppo(
    two_products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = example("maskable_ppo")
    monkeypatch.setattr(module, "TASO_SECONDS", 1.0)
    module.main(str(two_products), steps=64, seed=0, output=tmp_path / "fast.onnx")
    printed = capsys.readouterr().out
    for expected in ("original", "greedy", "TASO", "policy", "best seen", "is equal", "in onnxruntime", "speed-up"):
        assert expected in printed
    onnx.checker.check_model(tmp_path / "fast.onnx")


def test_sb3_ppo(capsys: pytest.CaptureFixture[str]) -> None:
    """So few steps needn't teach anything, so only what holds whatever was learned is asserted."""
    found = example("sb3_ppo").main(steps=512)
    assert found.steps == 512
    assert found.best >= max(found.policy - 1e-5, 0.0)  # returns are rounded to six digits
    printed = capsys.readouterr().out
    assert f"the policy saves {found.policy:.2f} %, the best graph seen {found.best:.2f} %" in printed


def test_cleanrl_style() -> None:
    """It takes more steps in each environment than an episode has at most (300): each that ended is one return."""
    module = example("cleanrl_style")
    args = module.Args(total_timesteps=640, num_envs=2, num_steps=320, num_minibatches=2, update_epochs=1)
    assert module.main(args)


@pytest.mark.parametrize(
    ("wrong", "message"), [({"output": Path()}, "the name of a file to write"), ({"seed": -1}, "expected a seed")]
)
def test_maskable_ppo_refuses_what_is_wrong_before_it_trains(
    wrong: dict, message: str, two_products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("maskable_ppo")
    monkeypatch.setattr(module, "learn", lambda *_: pytest.fail("it trains"))
    with pytest.raises(OptionError, match=message):
        module.main(str(two_products), **{"steps": 8, "seed": 0, "output": tmp_path / "fast.onnx", **wrong})


@pytest.mark.parametrize("name", ["maskable_ppo", "sb3_ppo", "cleanrl_style"])
def test_help_says_what_an_example_takes(name: str) -> None:
    assert "--steps" in run(f"examples/{name}.py", "--help")
