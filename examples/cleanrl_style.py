"""PPO on one page, after CleanRL's ``ppo.py``: everything that happens is here, but for the network.

python examples/cleanrl_style.py [TasoGraph-SqueezeNet1.1-v0] --steps 4096
"""

import argparse
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics

import taso_gym
from taso_agents.policies.policy_file import build_policy

gym.register_envs(taso_gym)


@dataclass
class Args:
    """The same names as in CleanRL."""

    env_id: str = "TasoGraph-SqueezeNet1.1-v0"
    total_timesteps: int = 4096
    seed: int = 0
    learning_rate: float = 1e-3
    num_envs: int = 4
    num_steps: int = 128
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 8
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    reward_scale: float = 0.1


def to_torch(observation):
    return {key: torch.from_numpy(array) for key, array in observation.items()}


def rollout(args, envs, agent, next_obs, returns):
    """Play ``num_steps`` steps; the masks are in the observation, so `agent` can't choose what is illegal."""
    observations, steps = [], []
    for _ in range(args.num_steps):
        with torch.no_grad():
            action, value, logprob = agent(to_torch(next_obs))
        observations.append(next_obs)
        next_obs, reward, terminated, truncated, info = envs.step(action.numpy())
        reward = torch.tensor(reward * args.reward_scale, dtype=torch.float32)
        if truncated.any():  # cut off, not over: what would have come counts
            final = {key: np.stack([o[key] for o in info["final_obs"][truncated]]) for key in next_obs}
            with torch.no_grad():
                reward[truncated] += args.gamma * agent.predict_values(to_torch(final))[:, 0]
        done = torch.tensor(terminated | truncated, dtype=torch.float32)
        steps.append((action, logprob, value[:, 0], reward, done))
        if "final_info" in info:
            returns += info["final_info"]["episode"]["r"][info["_final_info"]].tolist()
    stacked = {key: torch.from_numpy(np.stack([o[key] for o in observations])) for key in next_obs}
    return next_obs, stacked, [torch.stack(column) for column in zip(*steps, strict=True)]


def estimate_advantages(args, rewards, values, dones, next_value):
    """Generalised advantage estimation (Schulman et al. 2016)."""
    advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
    for t in reversed(range(args.num_steps)):
        following = next_value if t == args.num_steps - 1 else values[t + 1]
        delta = rewards[t] + args.gamma * following * (1 - dones[t]) - values[t]
        advantages[t] = last = delta + args.gamma * args.gae_lambda * (1 - dones[t]) * last
    return advantages


def update(args, agent, optimizer, obs, actions, logprobs, advantages, returns, rng):
    """Several epochs of minibatches with the clipped objective."""
    for _ in range(args.update_epochs):
        for rows in np.array_split(rng.permutation(len(returns)), args.num_minibatches):
            batch = {key: tensor[rows] for key, tensor in obs.items()}
            newvalue, newlogprob, entropy = agent.evaluate_actions(batch, actions[rows])
            ratio, advantage = (newlogprob - logprobs[rows]).exp(), advantages[rows]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
            value_loss = 0.5 * (newvalue[:, 0] - returns[rows]).square().mean()
            loss = policy_loss - args.ent_coef * entropy.mean() + args.vf_coef * value_loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()


def main(args: Args) -> list[float]:
    """Train, and return the improvement in % of every episode."""
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    made = {"vector_kwargs": {"autoreset_mode": AutoresetMode.SAME_STEP}, "wrappers": [RecordEpisodeStatistics]}
    envs = gym.make_vec(args.env_id, args.num_envs, "sync", **made, location_counts=True)
    spaces = envs.single_observation_space, envs.single_action_space
    agent = build_policy("autoregressive", *spaces, {"hidden": 32})
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    returns: list[float] = []
    next_obs, _ = envs.reset(seed=args.seed)
    iterations = max(args.total_timesteps // (args.num_envs * args.num_steps), 1)
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - iteration / iterations)
        next_obs, obs, (actions, logprobs, values, rewards, dones) = rollout(args, envs, agent, next_obs, returns)
        with torch.no_grad():
            next_value = agent.predict_values(to_torch(next_obs))[:, 0]
        advantages = estimate_advantages(args, rewards, values, dones, next_value)
        flat_obs = {key: tensor.flatten(0, 1) for key, tensor in obs.items()}
        flat = (part.flatten(0, 1) for part in (actions, logprobs, advantages, advantages + values))
        update(args, agent, optimizer, flat_obs, *flat, rng)
        recent = np.mean(returns[-20:]) if returns else float("nan")
        print(f"{(iteration + 1) * args.num_envs * args.num_steps:6d} steps, mean improvement {recent:.2f} %")
    envs.close()
    return returns


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default=Args.env_id)
    parser.add_argument("--steps", type=int, default=Args.total_timesteps)
    options = parser.parse_args()
    main(Args(options.id, options.steps))
