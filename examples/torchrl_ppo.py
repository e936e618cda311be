"""TorchRL's PPO with the graph network of taso-agents: a distribution over candidates, exact for every state.

pip install -e "packages/agents[torchrl]"
python examples/torchrl_ppo.py [TasoGraph-SqueezeNet1.1-v0] --steps 2048
"""

import argparse

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import Compose, GymWrapper, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import taso_gym
from taso_agents.policies.pointer import CandidatePolicy
from taso_agents.policies.policy_file import build_policy
from taso_gym.wrappers import CandidateAction

gym.register_envs(taso_gym)


def make_gym(env_id: str, max_steps: int) -> gym.Env:
    """An action is the number of a candidate."""
    return CandidateAction(gym.make(env_id, location_counts=True, max_steps=max_steps, max_matches=256))


def make(env_id: str, max_steps: int) -> GymWrapper:
    """The same for TorchRL; what the info says comes along in the data, ``invalid_action`` among it."""
    return GymWrapper(make_gym(env_id, max_steps), categorical_action_encoding=True).auto_register_info_dict()


class Head(nn.Module):
    """One output of a policy of taso-agents, for any batch dimensions."""

    def __init__(self, policy: CandidatePolicy, keys: list[str], value: bool) -> None:
        super().__init__()
        self.policy, self.keys, self.value = policy, keys, value

    def forward(self, *arrays: Tensor) -> Tensor:
        """Return log-probabilities (..., M + 1) of candidates and NO-OP, or values (..., 1)."""
        batch = arrays[self.keys.index("nodes")].shape[:-2]
        rows = (array.flatten(0, len(batch) - 1) if batch else array[None] for array in arrays)
        flat = dict(zip(self.keys, rows, strict=True))
        if self.value:
            return self.policy.predict_values(flat).view(*batch, 1)
        scores = self.policy.get_distribution(flat).log_probs.clamp(min=-1e9)  # finite, so that gradients are too
        return scores.view(*batch, scores.shape[-1])


def build(env: gym.Env, spec: object) -> tuple[ProbabilisticActor, ValueOperator]:
    """Actor and critic that share a graph network."""
    policy = build_policy("pointer", env.observation_space, env.action_space, {"hidden": 32})
    keys = list(env.observation_space.spaces)
    scores = TensorDictModule(Head(policy, keys, value=False), in_keys=keys, out_keys=["logits"])
    actor = ProbabilisticActor(
        scores, in_keys=["logits"], distribution_class=Categorical, return_log_prob=True, spec=spec
    )
    return actor, ValueOperator(Head(policy, keys, value=True), in_keys=keys)


def main() -> None:
    """Train, and print what the episodes gained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("id", nargs="?", default="TasoGraph-SqueezeNet1.1-v0")
    parser.add_argument("--steps", type=int, default=2048)
    parser.add_argument("--max-steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    check_env_specs(make(options.id, options.max_steps))
    envs = SerialEnv(4, lambda: make(options.id, options.max_steps))
    env = TransformedEnv(envs, Compose(RewardSum(), StepCounter()))
    actor, critic = build(make_gym(options.id, options.max_steps), env.action_spec)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic, deactivate_vmap=True)
    loss = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    collector = Collector(env, actor, frames_per_batch=256, total_frames=options.steps)
    done, invalid = 0, 0
    for data in collector:
        done += data.numel()
        invalid += int(data["next", "invalid_action"].sum())
        for _ in range(4):
            with torch.no_grad():
                advantage(data)
            flat = data.reshape(-1)
            for rows in torch.randperm(len(flat)).split(64):
                losses = loss(flat[rows])
                optimizer.zero_grad()
                sum(losses[key] for key in ("loss_objective", "loss_critic", "loss_entropy")).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        returns = data["next", "episode_reward"][data["next", "done"]]
        print(f"{done:6d} steps, mean improvement {returns.mean() if len(returns) else float('nan'):.2f} %")
    collector.shutdown()
    assert invalid == 0
    print("0 invalid actions")


if __name__ == "__main__":
    main()
