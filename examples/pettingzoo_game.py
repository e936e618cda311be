"""The environment as a PettingZoo game of one player, with the mask where PettingZoo's agents look for it.

    pip install -e "packages/agents[pettingzoo]"
    python examples/pettingzoo_game.py [TasoGraph-SqueezeNet1.1-v0] --games 3

`OnePlayer` is an `AECEnv` around any Gymnasium environment; it passes PettingZoo's `api_test`.
"""

import argparse
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from pettingzoo import AECEnv
from pettingzoo.test import api_test

import taso_gym
from taso_gym.wrappers import CandidateAction, MaskInObs

gym.register_envs(taso_gym)
PLAYER = "optimiser"


class OnePlayer(AECEnv):
    """A game in which one agent moves until its environment is over."""

    metadata: ClassVar = {
        "name": "taso_graph_v0",
        "render_modes": ["ansi", "svg", "rgb_array"],
        "is_parallelizable": False,
    }

    def __init__(self, env: gym.Env) -> None:
        super().__init__()
        self.env, self.render_mode = env, env.render_mode
        self.possible_agents = [PLAYER]
        self.observation_spaces, self.action_spaces = {PLAYER: env.observation_space}, {PLAYER: env.action_space}

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        known = {"model": options["model"]} if options and "model" in options else None  # `api_test` passes others
        self._observation, info = self.env.reset(seed=seed, options=known)
        self.agents, self.agent_selection = [PLAYER], PLAYER
        self.rewards, self._cumulative_rewards = {PLAYER: 0.0}, {PLAYER: 0.0}
        self.terminations, self.truncations, self.infos = {PLAYER: False}, {PLAYER: False}, {PLAYER: info}

    def observe(self, agent: str) -> Any:  # noqa: ARG002 - there is one
        return self._observation

    def step(self, action: Any) -> None:
        if self.terminations[PLAYER] or self.truncations[PLAYER]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[PLAYER] = 0.0
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        self.rewards, self.infos = {PLAYER: reward}, {PLAYER: info}
        self.terminations, self.truncations = {PLAYER: terminated}, {PLAYER: truncated}
        self._accumulate_rewards()

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()


def play(game: OnePlayer, rng: np.random.Generator, seed: int) -> tuple[float, int]:
    """Play random legal moves; return the improvement in % and the number of illegal moves."""
    game.reset(seed=seed)
    total, invalid = 0.0, 0
    for agent in game.agent_iter():
        observation, reward, terminated, truncated, info = game.last()
        total += reward
        invalid += int(info["invalid_action"])
        legal = np.flatnonzero(observation["action_mask"])
        game.step(None if terminated or truncated else rng.choice(legal))
        assert agent == PLAYER
    return total, invalid


def main() -> None:
    """Check the interface, then play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--games", type=int, default=3)
    parser.add_argument("--max-steps", type=int, default=50)
    options = parser.parse_args()
    env = gym.make(options.id, location_counts=True, max_steps=options.max_steps)
    game = OnePlayer(MaskInObs(CandidateAction(env), preset="pettingzoo"))
    api_test(game, num_cycles=100)
    rng, invalid = np.random.default_rng(0), 0
    for seed in range(options.games):
        total, wrong = play(game, rng, seed)
        invalid += wrong
        print(f"game {seed}: {total:.2f} % saved by the cost model")
    assert invalid == 0
    print("0 invalid actions")


if __name__ == "__main__":
    main()
