"""What torch's two exporters write is loaded whole, with open dimensions, and comes out equal."""

import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnxruntime
import pytest
from model_texts import op_names

from taso_gym.equivalence import validate
from taso_gym.graph import Graph, check
from taso_gym.onnx_io import load, save
from taso_gym.signature import OpaqueOperator
from taso_gym.tensor import TensorType

torch = pytest.importorskip("torch")


class Convolutional(torch.nn.Module):
    """Convolutions with all that is usual around them."""

    axes: ClassVar = {"image": {0: "batch"}}

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(8, 8, 3, groups=4, stride=2),
            torch.nn.SiLU(),
            torch.nn.Dropout(),
            torch.nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = torch.nn.Linear(8, 5)

    def forward(self, image):
        return self.classifier(torch.flatten(self.features(image), 1))


class Transformer(torch.nn.Module):
    """Token ids and a mask to states, by attention that is written out."""

    axes: ClassVar = {name: {0: "batch", 1: "length"} for name in ("ids", "mask")}

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.qkv = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(16) for _ in range(2))
        self.feed = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))

    def forward(self, ids, mask):
        x = self.embedding(ids)
        batch, length, _ = x.shape
        q, k, v = (t.reshape(batch, length, 4, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(2, 3) / 2.0 + (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e4
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 16)
        x = self.norms[0](x + self.out(mixed))
        return self.norms[1](x + self.feed(x))


class Decoder(torch.nn.Module):
    """New tokens after those of a cache: turned by their positions, which are counted, as are those they may see."""

    axes: ClassVar = {"ids": {0: "batch", 1: "length"}, "keys": {0: "batch", 2: "past"}}

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.query, self.key, self.out = (torch.nn.Linear(16, size, bias=False) for size in (16, 8, 16))

    def forward(self, ids, keys):
        x = self.embedding(ids)
        batch, length, _ = x.shape
        past = keys.shape[2]
        positions = torch.arange(past, past + length)
        angles = torch.outer(positions.to(x.dtype), torch.tensor([1.0, 0.1]))
        turn = torch.cat([angles, angles], -1)[None, None]
        q, k = (f(x).view(batch, length, -1, 4).transpose(1, 2) for f in (self.query, self.key))
        q, k = (t * turn.cos() + torch.cat([-t[..., 2:], t[..., :2]], -1) * turn.sin() for t in (q, k))
        k = torch.cat([keys, k], 2)
        all_heads = k[:, :, None].expand(-1, -1, 2, -1, -1).reshape(batch, 4, -1, 4)
        seen = torch.arange(past + length)[None, None, None] <= positions[None, None, :, None]
        mixed = torch.nn.functional.scaled_dot_product_attention(q, all_heads, all_heads, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, 16)), k


INPUTS = {
    "image": lambda: torch.randn(2, 3, 16, 16),
    "keys": lambda: torch.randn(2, 2, 5, 4),
    "ids": lambda: torch.randint(0, 50, (2, 7)),
    "mask": lambda: torch.ones(2, 7, dtype=torch.int64),
}


@pytest.fixture(scope="module", params=["dynamo", "script"])
def exporter(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=[Convolutional, Transformer, Decoder])
def exported(request: pytest.FixtureRequest, exporter: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export a network with random weights (not those of a fresh one: norms that do nothing hide errors)."""
    torch.manual_seed(0)
    network = request.param()
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter) * 0.5
    axes = request.param.axes
    names, outputs = list(axes), ["y", "z"][: 2 if request.param is Decoder else 1]
    path = tmp_path_factory.mktemp("torch") / "network.onnx"
    arguments = tuple(INPUTS[name]() for name in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporters warn of their own code
        if exporter == "dynamo":
            shapes = tuple({k: torch.export.Dim(v) for k, v in axes[name].items()} for name in names)
            torch.onnx.export(
                network.eval(), arguments, path, input_names=names, output_names=outputs, dynamo=True,
                dynamic_shapes=shapes, verbose=False,
            )  # fmt: skip
        else:
            torch.onnx.export(
                network.eval(), arguments, path, input_names=names, output_names=outputs, dynamo=False,
                dynamic_axes={**axes, "y": axes[names[0]]},
            )  # fmt: skip
    return path


def test_exports_are_loaded_whole_and_come_out_equal(exported: Path, tmp_path: Path) -> None:
    graph = load(exported)
    check(graph)
    save(graph, tmp_path / "saved.onnx")
    assert load(tmp_path / "saved.onnx") == graph
    report = validate(exported, tmp_path / "saved.onnx")
    assert report.ok
    assert report.basis == "float64 reference"
    assert all(o.reference is not None and o.reference[0] < 1e-5 for o in report.outputs)


def test_exports_hold_no_opaque_nodes(exported: Path) -> None:
    """Their shape arithmetic is seen through, so that rules see what the author wrote.

    But for what has no entry in the table, the sizes that it needs, and what two of them move in.
    """
    graph = load(exported)
    opaque = {n.sig.op.name for _, n in graph.operators() if isinstance(n.sig.op, OpaqueOperator)}
    allowed = {"Range", "LessOrEqual", "Shape", "Reshape"} if "Range" in opaque else set()
    assert opaque <= allowed, op_names(graph)


def test_sizes_of_all_values_follow_from_those_of_the_inputs(exported: Path) -> None:
    graph = load(exported)
    given = {"batch", "length", "past"}
    for _, node in graph.operators():
        for type_ in node.sig.outputs:
            assert isinstance(type_, TensorType) and type_.shape is not None, node.sig
            assert all(isinstance(d, int) or d.free_symbols <= given for d in type_.shape), node.sig


def test_open_dimensions_stay_open(exported: Path, tmp_path: Path) -> None:
    graph = load(exported)
    output = output_type(graph)
    assert output.shape is not None
    assert not isinstance(output.shape[0], int)
    save(graph, tmp_path / "saved.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "saved.onnx", providers=["CPUExecutionProvider"])
    for batch, length in ((1, 3), (2, 7), (5, 11)):
        feeds = {
            "image": np.zeros((batch, 3, 16, 16), np.float32),
            "keys": np.zeros((batch, 2, 4, 4), np.float32),
            "ids": np.zeros((batch, length), np.int64),
            "mask": np.ones((batch, length), np.int64),
        }
        y, *_ = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
        assert y.shape == ((batch, 5) if "image" in [i.name for i in session.get_inputs()] else (batch, length, 16))


def output_type(graph: Graph) -> TensorType:
    type_ = graph.type_of(graph.outputs[0])
    assert isinstance(type_, TensorType)
    return type_
