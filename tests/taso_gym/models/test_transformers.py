"""Attention is alive and right: what an output depends on, and PyTorch's layers with the same weights."""

from collections.abc import Callable

import numpy as np
import pytest
from network_runs import random_inputs, session, small

from taso_gym.models.layers import Net
from taso_gym.models.t5 import relative_buckets
from taso_gym.models.transducer import by_key, sinusoids

Change = Callable[[dict[str, np.ndarray]], None]


def changed(name: str, change: Change, **inputs: np.ndarray) -> np.ndarray:
    """Return the absolute change of the first output when ``change`` edits the inputs."""
    graph = small(name)
    runner = session(graph)
    given = {**random_inputs(graph), **inputs}
    before = runner.run(None, given)[0]
    change(given)
    return np.abs(runner.run(None, given)[0] - before)


def other_token(position: int, name: str = "input_ids") -> Change:
    """Change one token."""

    def change(inputs: dict[str, np.ndarray]) -> None:
        inputs[name][0, position] = (inputs[name][0, position] + 1) % 29

    return change


@pytest.mark.parametrize("name", ["BERT", "T5Encoder"])
def test_a_token_changes_every_position(name: str) -> None:
    assert (changed(name, other_token(3)).max(axis=-1) > 1e-4).all()


@pytest.mark.parametrize("name", ["BERT", "T5Encoder"])
def test_a_masked_token_changes_its_own_position_only(name: str) -> None:
    mask = np.ones((1, 8), np.int64)
    mask[0, 3] = 0
    effect = changed(name, other_token(3), attention_mask=mask).max(axis=-1)[0]
    assert effect[3] > 1e-2
    assert (np.delete(effect, 3) == 0).all()


def test_order_matters_to_bert() -> None:
    def swap(inputs: dict[str, np.ndarray]) -> None:
        inputs["input_ids"][0, :2] = inputs["input_ids"][0, 1::-1]

    tokens = np.arange(8)[None]
    assert changed("BERT", swap, input_ids=tokens, token_type_ids=np.zeros_like(tokens))[0, 5:].max() > 1e-3


def test_gpt2_reads_earlier_tokens_only() -> None:
    effect = changed("GPT2", other_token(3)).max(axis=-1)[0]
    assert (effect[:3] == 0).all()
    assert (effect[3:] > 1e-4).all()


def test_transducer_reads_all_audio_and_earlier_labels() -> None:
    def louder(inputs: dict[str, np.ndarray]) -> None:
        inputs["audio"][0, 2] *= 2

    assert (changed("TransformerTransducer", louder).max(axis=-1) > 1e-4).all()
    effect = changed("TransformerTransducer", other_token(1, "labels")).max(axis=(0, 1, 3))
    assert effect[0] == 0
    assert (effect[1:] > 1e-4).all()


def test_vit_reads_every_patch() -> None:
    def darken(inputs: dict[str, np.ndarray]) -> None:
        inputs["input"][:, :, -16:, -16:] = 0

    assert changed("ViT-B16", darken).max() > 1e-3


def test_scores_by_distance_become_scores_by_key() -> None:
    net, T = Net(0), 3
    graph = net.build(y=by_key(net, net.input("x", (1, 1, T, 2 * T - 1))))
    x = np.arange(T * (2 * T - 1), dtype=np.float32).reshape(1, 1, T, -1)
    (y,) = session(graph).run(None, {"x": x})
    assert y[0, 0].tolist() == [[x[0, 0, t, T - 1 - t + s] for s in range(T)] for t in range(T)]


def test_row_of_sinusoids_is_its_distance() -> None:
    rows = sinusoids(4, 8)
    assert rows.shape == (7, 8)
    assert rows[3].tolist() == [0.0] * 4 + [1.0] * 4
    np.testing.assert_allclose(rows[0, 0], np.sin(3), rtol=1e-6)


def test_relative_buckets_are_exact_near_and_logarithmic_far() -> None:
    buckets = relative_buckets(200)
    assert buckets[0, :10].tolist() == [0, 17, 18, 19, 20, 21, 22, 23, 24, 24]
    assert buckets[10:0:-1, 0].tolist()[-7:] == [7, 6, 5, 4, 3, 2, 1]
    assert (buckets[0, 32], buckets[0, 199], buckets[199, 0]) == (28, 31, 15)


def test_bert_computes_what_pytorch_does() -> None:
    torch = pytest.importorskip("torch")
    graph = small("BERT")
    weights = {leaf.name: torch.from_numpy(leaf.weight.array()) for leaf in graph.leaves.values() if leaf.weight}
    given = random_inputs(graph)
    given["attention_mask"][0, 5:] = 0
    tokens = {name: torch.from_numpy(values) for name, values in given.items()}
    x = weights["embeddings.word_embeddings.weight"][tokens["input_ids"]]
    x = x + weights["embeddings.token_type_embeddings.weight"][tokens["token_type_ids"]]
    x = x + weights["embeddings.position_embeddings.weight"][:8]
    norm = [weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")]
    x = torch.nn.functional.layer_norm(x, (64,), *norm, eps=1e-12)
    layer = torch.nn.TransformerEncoderLayer(64, 2, 256, 0.0, "gelu", 1e-12, batch_first=True)
    for i in range(2):
        layer.load_state_dict(torch_layer(weights, f"encoder.layer.{i}", torch.cat))
        with torch.no_grad():
            x = layer(x, src_key_padding_mask=tokens["attention_mask"] == 0)
    np.testing.assert_allclose(session(graph).run(None, given)[0], x.numpy(), atol=1e-5)  # sums of 256 in float32


def torch_layer(weights: dict, name: str, cat: Callable) -> dict:
    """Return a layer's weights under the names and in the layout of PyTorch's encoder layer."""
    projections = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    result = {
        "self_attn.in_proj_weight": cat([weights[f"{p}.weight"].t() for p in projections]),
        "self_attn.in_proj_bias": cat([weights[f"{p}.bias"] for p in projections]),
    }
    for theirs, ours in (
        *(("self_attn.out_proj", "attention.output.dense"), ("norm1", "attention.output.LayerNorm")),
        *(("linear1", "intermediate.dense"), ("linear2", "output.dense"), ("norm2", "output.LayerNorm")),
    ):
        result[f"{theirs}.weight"] = weights[f"{name}.{ours}.weight"].t()
        result[f"{theirs}.bias"] = weights[f"{name}.{ours}.bias"]
    return result
