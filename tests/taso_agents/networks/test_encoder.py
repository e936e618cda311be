"""The graph encoder."""

import gymnasium as gym
import pytest
import torch
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from taso_agents.environment.real_env import make_env
from taso_agents.networks.encoder import Encoding, GraphEncoder, sum_by
from taso_gym.errors import OptionError

Batch = dict[str, torch.Tensor]


def padded(encoding: Encoding, node_mask: torch.Tensor) -> torch.Tensor:
    """Node embeddings as (B, N, H), zero where ``node_mask`` (B, N) says there is no node."""
    result = encoding.nodes.new_zeros(*node_mask.shape, encoding.nodes.shape[1])
    result[node_mask.bool()] = encoding.nodes
    return result


@pytest.fixture
def encoder(squeezenet: gym.Env) -> GraphEncoder:
    torch.manual_seed(0)
    return GraphEncoder(squeezenet.observation_space, hidden=16, rounds=2)


def test_sum_by_adds_rows_of_one_index() -> None:
    values = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    assert sum_by(values, torch.tensor([2, 0, 2]), 3).tolist() == [[10.0, 20.0], [0.0, 0.0], [101.0, 202.0]]


def test_normalised_observations_are_refused(encoder: GraphEncoder) -> None:
    env = DummyVecEnv([lambda: make_env("TasoGraph-SqueezeNet1.1-v0")])
    encoder.encode(obs_as_tensor(VecNormalize(env, norm_obs=False).reset(), "cpu"))
    for keys in (None, ["nodes"]):
        with pytest.raises(OptionError, match="norm_obs=False"):
            encoder.encode(obs_as_tensor(VecNormalize(env, norm_obs_keys=keys).reset(), "cpu"))


def test_shapes(encoder: GraphEncoder, batch: Batch) -> None:
    encoding = encoder.encode(batch)
    B, N = batch["node_mask"].shape
    assert encoding.globals.shape == encoder(batch).shape == (B, 16)
    assert padded(encoding, batch["node_mask"]).shape == (B, N, 16)
    assert len(encoding.nodes) == int(batch["node_mask"].sum())


def test_padding_has_no_influence(encoder: GraphEncoder, batch: Batch) -> None:
    changed = {key: tensor.clone() for key, tensor in batch.items()}
    changed["nodes"][batch["node_mask"] == 0] = 1.0
    changed["edge_features"][batch["edge_mask"] == 0] = 1.0
    changed["edges"][batch["edge_mask"] == 0] = 3
    assert torch.equal(encoder(changed), encoder(batch))


def test_a_graph_doesn_t_depend_on_its_batch(encoder: GraphEncoder, batch: Batch) -> None:
    alone = {key: tensor[3:4] for key, tensor in batch.items()}
    torch.testing.assert_close(encoder(alone)[0], encoder(batch)[3], rtol=1e-5, atol=1e-5)


def test_order_of_rows_doesn_t_matter(encoder: GraphEncoder, batch: Batch) -> None:
    changed = {key: tensor.clone() for key, tensor in batch.items()}
    N = batch["nodes"].shape[1]
    order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    new_row = torch.empty(N, dtype=torch.long)
    new_row[order] = torch.arange(N)
    for key in ("nodes", "node_mask"):
        changed[key] = batch[key][:, order]
    changed["edges"] = new_row[batch["edges"].long()]
    before, permuted = encoder.encode(batch), encoder.encode(changed)
    torch.testing.assert_close(permuted.globals, before.globals, rtol=1e-4, atol=1e-5)
    expected = padded(before, batch["node_mask"])[:, order]
    torch.testing.assert_close(padded(permuted, changed["node_mask"]), expected, rtol=1e-4, atol=1e-5)


def test_a_node_sees_as_far_as_there_are_rounds(squeezenet: gym.Env, batch: Batch) -> None:
    """Without the global's way, a change of a node reaches its neighbours in one round and theirs in two."""
    torch.manual_seed(0)
    one = {key: tensor[:1] for key, tensor in batch.items()}
    first, second = one["edges"][0, 0].tolist()
    changed = {key: tensor.clone() for key, tensor in one.items()}
    changed["nodes"][0, first, 5] += 0.5
    encoder = GraphEncoder(squeezenet.observation_space, hidden=16, rounds=1)
    moved = (encoder.encode(changed).nodes - encoder.encode(one).nodes).abs().sum(1) > 0
    rows = encoder.encode(one).packed.row_of
    assert moved[rows[first]] and moved[rows[second]]
    ends = one["edges"][0][one["edge_mask"][0] > 0]
    neighbours = {int(b if a == first else a) for a, b in ends.tolist() if first in (a, b)} | {first}
    assert {int(i) for i in moved.nonzero()} == {int(rows[n]) for n in neighbours}


def test_every_parameter_gets_a_gradient(encoder: GraphEncoder, batch: Batch) -> None:
    encoding = encoder.encode(batch)
    (encoding.nodes.square().sum() + encoding.globals.square().sum()).backward()
    assert [name for name, p in encoder.named_parameters() if p.grad is None or not p.grad.any()] == []
