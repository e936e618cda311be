"""Tianshou's DQN on the candidates of a state: it reads the mask that `MaskInObs` puts beside the observation.

pip install -e "packages/agents[tianshou]"
python examples/tianshou_dqn.py [TasoGraph-SqueezeNet1.1-v0] --steps 2000
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from tianshou.utils.torch_utils import policy_within_training_step

import taso_gym
from taso_gym.wrappers import CandidateAction, MaskInObs

gym.register_envs(taso_gym)


def make(env_id: str, max_steps: int) -> gym.Env:
    """A `Discrete` action for each candidate, the observation as one vector under "obs", the mask under "mask"."""
    env = gym.make(env_id, location_counts=True, max_steps=max_steps, max_matches=256)
    return MaskInObs(CandidateAction(env), preset="tianshou")


def build(env: gym.Env, seed: int) -> DQN:
    """Q-values of all candidates from the flat observation; a small network, since this is about the interface."""
    torch.manual_seed(seed)
    net = Net(state_shape=env.observation_space["obs"].shape, action_shape=env.action_space.n, hidden_sizes=[64, 64])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.3, eps_inference=0.0)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.99, target_update_freq=50)


def main() -> None:
    """Collect and learn in turns, then play greedily."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--max-steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    env = make(options.id, options.max_steps)
    algorithm = build(env, options.seed)
    envs = DummyVectorEnv([lambda: make(options.id, options.max_steps) for _ in range(4)])
    buffer = VectorReplayBuffer(total_size=2000, buffer_num=4)
    collector = Collector[CollectStats](algorithm, envs, buffer, exploration_noise=True)
    collector.reset()
    collected, invalid = 0, 0
    while collected < options.steps:
        with policy_within_training_step(algorithm.policy):
            stats = collector.collect(n_step=200)
            for _ in range(10):
                algorithm.update(buffer=buffer, sample_size=64)
        collected += stats.n_collected_steps
        invalid += int(np.sum(buffer.info.invalid_action[buffer.sample_indices(0)]))
        recent = stats.returns.mean() if stats.n_collected_episodes else float("nan")
        print(f"{collected:6d} steps, mean improvement {recent:.2f} %")
    assert invalid == 0
    greedy = Collector[CollectStats](algorithm, DummyVectorEnv([lambda: env]))
    greedy.reset()
    print(f"greedy policy: {greedy.collect(n_episode=1).returns.mean():.2f} % saved by the cost model")
    print("0 invalid actions")


if __name__ == "__main__":
    main()
