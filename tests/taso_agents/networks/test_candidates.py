"""Legal candidates and distributions over them."""

import math

import gymnasium as gym
import pytest
import torch
from agent_batches import Batch, walk, without_first
from gymnasium import spaces

from taso_agents.networks.candidates import CandidateDistribution, find_candidates


def test_candidates_are_the_legal_pairs(batch: Batch) -> None:
    found = find_candidates(batch)
    assert torch.equal(found.legal, batch["match_mask"].bool())
    per_xfer = torch.zeros_like(batch["location_counts"][:, :-1]).long()
    per_xfer.index_put_((found.graph, found.xfer), torch.tensor(1), accumulate=True)
    assert torch.equal(per_xfer, batch["location_counts"][:, :-1].long())


@pytest.mark.parametrize("key", ["match_mask", "xfer_mask", "location_masks"])
def test_any_mask_may_forbid(masks_env: gym.Env, key: str) -> None:
    batch = walk(masks_env, 3)
    assert torch.equal(find_candidates(batch).legal, batch["match_mask"].bool())
    narrowed = find_candidates(without_first(batch, key)).legal
    assert not narrowed[:, 0].any()
    assert narrowed[:, -1].tolist() == batch["match_mask"][:, -1].bool().tolist()


def test_counts_may_forbid(batch: Batch) -> None:
    assert not find_candidates(without_first(batch, "location_counts")).legal[:, 0].any()


def test_masks_of_sb3_contrib_narrow_pairs(masks_env: gym.Env) -> None:
    batch = walk(masks_env, 0)
    masks = torch.from_numpy(masks_env.unwrapped.action_masks())[None].clone()
    first = int(batch["matches"][0, 0, 0])
    masks[0, first] = False
    found = find_candidates(batch, masks)
    assert first not in found.xfer.tolist()
    assert len(found.xfer) == int((batch["matches"][0, :, 0][batch["match_mask"][0] > 0] != first).sum())


def test_masks_of_sb3_contrib_narrow_candidates(batch: Batch) -> None:
    masks = torch.ones(len(batch["matches"]), batch["matches"].shape[1] + 1, dtype=torch.bool)
    masks[:, 0] = False
    assert not find_candidates(batch, masks, by_candidate=True).legal[:, 0].any()


def test_masks_of_pairs_may_be_as_many_as_those_of_candidates(batch: Batch) -> None:
    slots, xfers = batch["matches"].shape[1], batch["xfer_mask"].shape[1]
    pairs = torch.ones(len(batch["matches"]), slots + 1, dtype=torch.bool)
    first, location = batch["matches"][0, 0, :2].long().tolist()
    assert xfers + location < slots + 1
    pairs[0, first] = False
    assert first not in find_candidates(batch, pairs).xfer[find_candidates(batch, pairs).graph == 0].tolist()


def test_change_is_that_of_the_candidate(batch: Batch) -> None:
    found = find_candidates(batch)
    assert found.change is not None
    assert torch.equal(found.change, batch["cost_changes"][batch["match_mask"] > 0])


M = 3
MATCHES = torch.tensor([[[0, 0, 4], [0, 1, 5], [2, 0, 6]]])
PAIRS = spaces.MultiDiscrete([4, 2])


def distribution(probabilities: list[float], space: spaces.Space) -> CandidateDistribution:
    return CandidateDistribution(torch.tensor([probabilities]).log(), MATCHES, space)


def test_pairs_are_read_off_the_matches() -> None:
    found = distribution([0.1, 0.2, 0.3, 0.4], PAIRS)
    probability = {(0, 0): 0.1, (0, 1): 0.2, (2, 0): 0.3, (3, 0): 0.4, (3, 1): 0.4}
    for pair, expected in probability.items():
        assert found.log_prob(torch.tensor([pair])).exp().item() == pytest.approx(expected)


def test_an_illegal_pair_has_probability_zero() -> None:
    found = distribution([0.1, 0.0, 0.5, 0.4], PAIRS)
    assert found.log_prob(torch.tensor([[0, 1]])).item() == -math.inf
    assert found.log_prob(torch.tensor([[1, 0]])).item() == -math.inf


def test_mode_of_pairs_and_of_candidates() -> None:
    assert distribution([0.1, 0.2, 0.4, 0.3], PAIRS).mode().tolist() == [[2, 0]]
    assert distribution([0.1, 0.2, 0.3, 0.4], PAIRS).mode().tolist() == [[3, 0]]
    assert distribution([0.1, 0.2, 0.3, 0.4], spaces.Discrete(M + 1)).mode().tolist() == [M]


def test_entropy_is_exact_with_zeros() -> None:
    found = distribution([0.5, 0.0, 0.25, 0.25], PAIRS)
    assert found.entropy().item() == pytest.approx(1.5 * math.log(2))


def test_samples_follow_the_probabilities() -> None:
    torch.manual_seed(0)
    log_probs = torch.tensor([[0.5, 0.0, 0.2, 0.3]]).log().expand(4000, -1)
    actions = CandidateDistribution(log_probs, MATCHES.expand(4000, -1, -1), PAIRS).sample()
    share = [float((actions == torch.tensor(pair)).all(1).float().mean()) for pair in ([0, 0], [0, 1], [2, 0], [3, 0])]
    assert share == pytest.approx([0.5, 0.0, 0.2, 0.3], abs=0.03)
