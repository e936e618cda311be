"""The policies: exact probabilities, never an illegal action, nothing that depends on an order."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_batches import Batch, walk
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from taso_agents.policies import POLICIES, policy_named
from taso_agents.policies.pointer import CandidatePolicy, logsumexp_by
from taso_gym.errors import OptionError
from taso_gym.wrappers import CandidateAction, FlattenAction, TwoStage

EVERY = pytest.mark.parametrize("name", list(POLICIES))


def make_policy(name: str, env: gym.Env, action_space: spaces.Space | None = None) -> CandidatePolicy:
    torch.manual_seed(0)
    return policy_named(name)(
        env.observation_space, action_space or env.action_space, lambda _: 1e-3, hidden=16, rounds=2
    )


def sharpen(policy: CandidatePolicy) -> CandidatePolicy:
    """Give a fresh policy opinions: its heads begin near zero."""
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if name.startswith(("score", "choose")):
                parameter.normal_(0, 1)
    return policy


@EVERY
@pytest.mark.parametrize("wrapper", [FlattenAction, TwoStage])
def test_actions_that_are_no_candidates_are_refused(name: str, wrapper: type, squeezenet: gym.Env) -> None:
    with pytest.raises(OptionError, match=r"or of CandidateAction, Discrete\(\d+\), found Discrete"):
        make_policy(name, squeezenet, wrapper(squeezenet).action_space)
    candidates = CandidateAction(squeezenet).action_space
    assert make_policy(name, squeezenet, candidates).action_space == candidates


@EVERY
def test_pairs_of_other_substitutions_are_refused(name: str, squeezenet: gym.Env) -> None:
    with pytest.raises(OptionError, match=r"expected actions .substitution, location. of \d+ substitutions"):
        make_policy(name, squeezenet, spaces.MultiDiscrete([3, 200]))


@EVERY
def test_probabilities_sum_to_one_over_what_is_legal(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    log_probs = sharpen(make_policy(name, squeezenet)).get_distribution(batch).log_probs
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(len(log_probs)))
    assert torch.equal(log_probs[:, :-1].isfinite(), batch["match_mask"].bool())


@EVERY
@pytest.mark.parametrize("flat", [False, True], ids=["pairs", "candidates"])
def test_rollout_and_update_agree(name: str, flat: bool, squeezenet: gym.Env, batch: Batch) -> None:
    """The probability that an action was taken with is the one that the update computes for it."""
    space = spaces.Discrete(batch["matches"].shape[1] + 1) if flat else None
    policy = sharpen(make_policy(name, squeezenet, space))
    actions, values, taken = policy(batch)
    again, log_prob, entropy = policy.evaluate_actions(batch, actions.float())
    torch.testing.assert_close(log_prob, taken)
    torch.testing.assert_close(again, values)
    torch.testing.assert_close(policy.predict_values(batch), values)
    assert values.shape == (len(actions), 1) and log_prob.shape == entropy.shape == (len(actions),)


@EVERY
def test_entropy_is_that_of_the_samples(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    policy = sharpen(make_policy(name, squeezenet))
    many = {key: tensor[:1].expand(3000, *tensor.shape[1:]) for key, tensor in batch.items()}
    found = policy.get_distribution({key: tensor[:1] for key, tensor in batch.items()})
    drawn = torch.multinomial(found.log_probs.exp()[0], len(many["nodes"]), replacement=True)
    assert found.entropy().item() == pytest.approx(-found.log_probs[0][drawn].mean().item(), abs=0.1)


@EVERY
def test_no_illegal_action_in_episodes(name: str, squeezenet: gym.Env) -> None:
    torch.manual_seed(1)
    policy = sharpen(make_policy(name, squeezenet))
    for _ in range(2):
        observation, _ = squeezenet.reset()
        ended = False
        while not ended:
            action, _ = policy.predict(observation)
            observation, _, terminated, truncated, info = squeezenet.step(action)
            assert not info["invalid_action"]
            ended = terminated or truncated


@EVERY
def test_order_of_candidates_doesn_t_matter(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    policy = sharpen(make_policy(name, squeezenet))
    order = torch.randperm(batch["matches"].shape[1], generator=torch.Generator().manual_seed(0))
    changed = {**batch, **{key: batch[key][:, order] for key in ("matches", "match_mask", "cost_changes")}}
    expected, found = policy.get_distribution(batch).log_probs, policy.get_distribution(changed).log_probs
    torch.testing.assert_close(found[:, :-1], expected[:, order], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[:, -1], expected[:, -1], rtol=1e-4, atol=1e-5)


@EVERY
def test_location_masks_and_counts_are_the_same_to_it(name: str, squeezenet: gym.Env, masks_env: gym.Env) -> None:
    counts = walk(squeezenet, 3)
    counts.pop("cost_changes")
    masks = walk(masks_env, 3)
    space = spaces.Dict({key: squeezenet.observation_space[key] for key in counts})
    torch.manual_seed(0)
    with_counts = policy_named(name)(space, squeezenet.action_space, lambda _: 1e-3, hidden=16)
    with_masks = policy_named(name)(masks_env.observation_space, masks_env.action_space, lambda _: 1e-3, hidden=16)
    with_masks.load_state_dict(with_counts.state_dict())
    found = with_masks.get_distribution(masks).log_probs
    torch.testing.assert_close(found, with_counts.get_distribution(counts).log_probs)


@EVERY
def test_noop_is_rare_at_the_start_but_possible(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    noop = make_policy(name, squeezenet).get_distribution(batch).log_probs[:, -1].exp()
    assert (noop < 0.02).all() and (noop > 0).all()


@EVERY
def test_it_tells_locations_apart(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    """Two candidates of one substitution at different places have different probabilities."""
    found = sharpen(make_policy(name, squeezenet)).get_distribution(batch)
    xfer, counts = batch["matches"][0, :, 0], batch["location_counts"][0, :-1]
    several = int((counts > 1).nonzero()[0, 0])
    assert len(set(found.log_probs[0, :-1][xfer == several].tolist())) > 1


@EVERY
def test_every_parameter_is_trained(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    policy = sharpen(make_policy(name, squeezenet))
    actions, _, _ = policy(batch)
    values, log_prob, entropy = policy.evaluate_actions(batch, actions)
    (values.square().sum() - log_prob.sum() - entropy.sum()).backward()
    assert [n for n, p in policy.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []


@EVERY
@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_both_algorithms_of_stable_baselines3_train_it(name: str, algorithm: type, squeezenet: gym.Env) -> None:
    arguments = {"hidden": 8, "rounds": 1}
    model = algorithm(
        policy_named(name), squeezenet, n_steps=16, batch_size=8, n_epochs=1, policy_kwargs=arguments, seed=0
    )
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(16)
    assert any(not torch.equal(b, p) for b, p in zip(before, model.policy.parameters(), strict=True))
    observation, _ = squeezenet.reset()
    action, _ = model.predict(observation, deterministic=True)
    assert not squeezenet.step(action)[4]["invalid_action"]


@EVERY
def test_most_probable_action_has_the_highest_probability(name: str, squeezenet: gym.Env, batch: Batch) -> None:
    policy = sharpen(make_policy(name, squeezenet))
    found = policy.get_distribution(batch)
    torch.testing.assert_close(found.log_prob(found.mode()), found.log_probs.max(1).values)


def test_the_autoregressive_marginal_is_that_of_its_substitution_head(squeezenet: gym.Env, batch: Batch) -> None:
    """The sum over the locations of a substitution is p(xfer), and a legal xfer mask is all that it looks at."""
    found = sharpen(make_policy("autoregressive", squeezenet)).get_distribution(batch)
    legal, p = batch["match_mask"].bool(), found.log_probs[:, :-1].exp()
    marginal = torch.zeros(len(p), batch["xfer_mask"].shape[1] - 1)
    graph, slot = legal.nonzero(as_tuple=True)
    marginal.index_put_((graph, batch["matches"][graph, slot, 0].long()), p[legal], accumulate=True)
    assert torch.equal(marginal > 0, batch["xfer_mask"][:, :-1] > 0)


def test_logsumexp_by_is_stable() -> None:
    found = logsumexp_by(torch.tensor([1000.0, 1000.0, -1000.0]), torch.tensor([1, 1, 0]), 2)
    torch.testing.assert_close(found, torch.tensor([-1000.0, 1000.0 + np.log(2).item()]))
