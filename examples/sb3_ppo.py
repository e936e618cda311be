"""Plain PPO of Stable-Baselines3: the masks travel in the observation, so nothing of it has to know about them.

python examples/sb3_ppo.py [TasoGraph-SqueezeNet1.1-v0] --steps 4096

It isn't shown what candidates would save and has to find that out, so after few steps the policy may still end with a
dearer graph than it began with. The best graph that was seen on the way is never dearer than the start.
"""

import argparse
from typing import Any, NamedTuple

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import taso_gym
from taso_agents.policies.pointer import AutoregressivePolicy

gym.register_envs(taso_gym)


class Outcome(NamedTuple):
    """What training came to; improvements are in % of the start graph's cost.

    Attributes:
        steps: environment steps of training.
        policy: what the deterministic policy saves by the end of its episode.
        best: what the cheapest graph saves that training or that episode came across.
    """

    steps: int
    policy: float
    best: float


class BestSeen(gym.Wrapper):
    """Remembers the cheapest graph that any episode came across; ``best`` is what it saves in %, 0 for the start."""

    best = 0.0

    def step(self, action: Any) -> Any:
        """Make a move."""
        moved = self.env.step(action)
        self.best = max(self.best, float(moved[-1]["improvement_percent"]))
        return moved


def main(model: str = "TasoGraph-SqueezeNet1.1-v0", steps: int = 4096) -> Outcome:
    """Train, play the deterministic policy once, and say what both came to."""
    seen = BestSeen(gym.make(model, location_counts=True))
    env = Monitor(seen)
    settings = {"n_steps": 512, "batch_size": 64, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01}
    algorithm = PPO(AutoregressivePolicy, env, **settings, policy_kwargs={"hidden": 32}, seed=0, verbose=1)
    algorithm.learn(steps)
    improvement, _ = evaluate_policy(algorithm, env, n_eval_episodes=1)
    found = Outcome(algorithm.num_timesteps, float(improvement), seen.best)
    print(f"{model}, {found.steps} steps: by the cost model the policy saves {found.policy:.2f} %,", end=" ")
    print(f"the best graph seen {found.best:.2f} %")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--steps", type=int, default=4096)
    options = parser.parse_args()
    main(options.id, options.steps)
