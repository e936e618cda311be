"""Each optional library trains or plays a real id, and never with an illegal action."""

import pytest
from example_runs import needs, run

SQUEEZENET = "TasoGraph-SqueezeNet1.1-v0"


@pytest.mark.pettingzoo
@needs("pettingzoo", "pettingzoo")
def test_a_pettingzoo_game_passes_its_interface_test():
    printed = run("examples/pettingzoo_game.py", SQUEEZENET, "--games", "1")
    assert "Passed API test" in printed and "0 invalid actions" in printed


@pytest.mark.tianshou
@needs("tianshou", "tianshou")
def test_tianshou_learns_q_values_of_candidates():
    assert "0 invalid actions" in run("examples/tianshou_dqn.py", SQUEEZENET, "--steps", "400")


@pytest.mark.torchrl
@needs("torchrl", "torchrl")
def test_torchrl_trains_with_ppo():
    assert "0 invalid actions" in run("examples/torchrl_ppo.py", SQUEEZENET, "--steps", "256")


@pytest.mark.rllib
@needs("ray", "rllib")
@pytest.mark.parametrize("nodes", [1, 2])
def test_rllib_trains_on_one_node_and_on_two(nodes):
    printed = run("examples/rllib_ppo.py", SQUEEZENET, "--steps", "512", "--nodes", str(nodes))
    assert f"2 environment runners on {nodes} of {nodes} nodes" in printed and "0 invalid actions" in printed


@pytest.mark.zoo
@needs("rl_zoo3", "zoo")
def test_the_zoo_trains_and_plays_unchanged(tmp_path):
    env_id = "TasoGraph-ResNet18-v0"
    which = ["--algo", "ppo", "--env", env_id, "--gym-packages", "taso_gym", "-f", str(tmp_path)]
    which += ["--env-kwargs", "location_counts:True", "max_steps:40"]
    settings = {"PYTHONPATH": "examples/rl_zoo3"}  # its wrapper raises on an illegal action
    run(
        "-m", "rl_zoo3.train", *which, "-conf", "examples/rl_zoo3/ppo.yml", "-n", "512", "--eval-freq", "-1", **settings
    )
    printed = run("-m", "rl_zoo3.enjoy", *which, "--no-render", "-n", "50", **settings)
    assert "Mean reward" in printed and (tmp_path / f"ppo/{env_id}_1/{env_id}.zip").exists()
