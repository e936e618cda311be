"""RLlib's PPO (new API stack, on Ray) with the graph network of taso-agents, on one machine or on a cluster.

    pip install -e "packages/agents[rllib]"        # pins its own gymnasium: take a virtual environment of its own
    OMP_NUM_THREADS=1 python examples/rllib_ppo.py [TasoGraph-SqueezeNet1.1-v0] --steps 4096 --runners 2
    OMP_NUM_THREADS=1 python examples/rllib_ppo.py --nodes 2          # a cluster of two nodes on this machine

Without OMP_NUM_THREADS=1 torch's threads wait for each other, and an iteration takes 50 times as long.
Ray wants a token on every node since 2.60 (`ray get-auth-token`), or RAY_AUTH_MODE=disabled on a network of your own.
"""

import argparse
from typing import Any

import gymnasium as gym
import ray
from ray.cluster_utils import Cluster
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.tune.registry import register_env
from torch import Tensor

import taso_gym
from taso_agents.policies.policy_file import build_policy
from taso_gym.wrappers import CandidateAction

gym.register_envs(taso_gym)


class NeverIllegal(gym.Wrapper):
    """Stops the training at the first illegal action; the module below can't choose one."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        result = self.env.step(action)
        assert not result[-1]["invalid_action"], f"{action} is illegal"
        return result


def make(config: dict[str, Any]) -> gym.Env:
    """An action is the number of a candidate."""
    env = gym.make(config["id"], location_counts=True, max_steps=config["max_steps"], max_matches=256)
    return NeverIllegal(CandidateAction(env))


class CandidateModule(TorchRLModule, ValueFunctionAPI):
    """A policy of taso-agents as RLlib's module; it reads what is legal from the observation."""

    def setup(self) -> None:
        super().setup()
        self.policy = build_policy("pointer", self.observation_space, self.action_space, {"hidden": 32})

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Tensor]:
        scores = self.policy.get_distribution(batch[Columns.OBS]).log_probs
        return {Columns.ACTION_DIST_INPUTS: scores.clamp(min=-1e9)}  # finite, so that gradients are too

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:  # noqa: ARG002
        return self.policy.predict_values(batch[Columns.OBS]).squeeze(-1)


def start_ray(nodes: int) -> Cluster | None:
    """Start Ray here, or a cluster of several nodes with one processor each."""
    settings = {"object_store_memory": 150_000_000, "include_dashboard": False}
    if nodes == 1:
        ray.init(log_to_driver=False, **settings)
        return None
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **settings})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1, object_store_memory=150_000_000)
    ray.init(address=cluster.address, log_to_driver=False)
    return cluster


def main() -> None:
    """Train, and print what the episodes gained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--steps", type=int, default=4096)
    parser.add_argument("--max-steps", type=int, default=50)
    parser.add_argument("--runners", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=1)
    options = parser.parse_args()
    cluster = start_ray(options.nodes)
    register_env("taso", make)
    config = (
        PPOConfig()
        .environment("taso", env_config={"id": options.id, "max_steps": options.max_steps})
        .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=2)
        .learners(num_learners=0)
        .training(train_batch_size=512, minibatch_size=128, num_epochs=2, lr=1e-3, entropy_coeff=0.01)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=CandidateModule))
    )
    algorithm = config.build_algo()
    for step in range(512, max(options.steps, 512) + 1, 512):
        result = algorithm.train()
        print(
            f"{step:6d} steps, mean improvement {result['env_runners'].get('episode_return_mean', float('nan')):.2f} %"
        )
    group = algorithm.env_runner_group
    where = group.foreach_env_runner(lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False)
    print(f"{len(where)} environment runners on {len(set(where))} of {len(ray.nodes())} nodes")
    algorithm.stop()
    ray.shutdown()
    if cluster:
        cluster.shutdown()
    print("0 invalid actions")


if __name__ == "__main__":
    main()
