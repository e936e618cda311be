"""Plain PPO of Stable-Baselines3: the masks travel in the observation, so nothing of it has to know about them.

python examples/sb3_ppo.py [TasoGraph-SqueezeNet1.1-v0]
"""

import sys

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import taso_gym
from taso_agents.policies.pointer import AutoregressivePolicy

gym.register_envs(taso_gym)


def main(model: str = "TasoGraph-SqueezeNet1.1-v0", steps: int = 4096) -> float:
    """Train, and return the mean improvement of the deterministic policy in %."""
    env = Monitor(gym.make(model, location_counts=True))
    settings = {"n_steps": 512, "batch_size": 64, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01}
    algorithm = PPO(AutoregressivePolicy, env, **settings, policy_kwargs={"hidden": 32}, seed=0, verbose=1)
    algorithm.learn(steps)
    improvement, _ = evaluate_policy(algorithm, env, n_eval_episodes=1)
    print(f"{model}: {improvement:.2f} % faster by the cost model")
    return float(improvement)


if __name__ == "__main__":
    main(*sys.argv[1:])
