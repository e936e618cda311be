"""Networks of the `transformers` package, exported by torch: what users' files look like.

    python benchmarks/support/exported.py FOLDER [network ...] [--exporter dynamo|script] [--full]

Weights are random (nothing is downloaded), and no norm is left as it begins, since one that does nothing hides errors.
Each network exists in two sizes: "small" has two layers or so and serves tests, "full" is the published architecture.
Other scripts call `export(name, folder)`, which returns the path of the file and writes it only once.
"""

import argparse
import contextlib
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

OPSET = 20
EXPORTERS = ("dynamo", "script")
Shapes = Mapping[str, tuple[int | str, ...]]


class Network(NamedTuple):
    """How a network is made.

    Attributes:
        config, model: classes of transformers.
        inputs: name -> shape, of sizes and names of open dimensions.
        small: arguments of the config that make it quick to export and run.
        full: arguments of the config for the published size, where its defaults aren't that.
        part: attribute of the model that is exported instead of the whole.
        small_inputs: inputs of the small size, where they differ.
        exporters: those that can write it.
        eager: attention is written out by "dynamo", too, which can't write the other kind.
    """

    config: str
    model: str
    inputs: Shapes
    small: Mapping[str, Any]
    full: Mapping[str, Any] = {}
    part: str = ""
    small_inputs: Mapping[str, tuple[int | str, ...]] = {}
    exporters: tuple[str, ...] = EXPORTERS
    eager: bool = False


TEXT = {"input_ids": ("batch", "sequence"), "attention_mask": ("batch", "sequence")}
IDS = {"input_ids": ("batch", "sequence")}
IMAGE = {"pixel_values": ("batch", 3, 224, 224)}
SMALL_IMAGE = {"pixel_values": ("batch", 3, 64, 64)}
ENCODER = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99,
}  # fmt: skip
STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32]}

NETWORKS = {
    "BERT": Network("BertConfig", "BertModel", TEXT, ENCODER),
    "RoBERTa": Network("RobertaConfig", "RobertaModel", TEXT, ENCODER, {"vocab_size": 50265}),
    "DistilBERT": Network(
        "DistilBertConfig", "DistilBertModel", TEXT,
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 99},
    ),
    "GPT2": Network("GPT2Config", "GPT2Model", TEXT, {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99}),
    "Llama": Network(
        "LlamaConfig", "LlamaModel", IDS, {**ENCODER, "num_key_value_heads": 2},
        {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
         "num_key_value_heads": 4},
        exporters=("dynamo",),
    ),
    "T5Encoder": Network(
        "T5Config", "T5EncoderModel", TEXT,
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99},
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
        eager=True,
    ),
    "ViT": Network("ViTConfig", "ViTModel", IMAGE, {**ENCODER, "image_size": 64}),
    "Swin": Network(
        "SwinConfig", "SwinModel", IMAGE, {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4],
                                           "window_size": 4},
        eager=True,
    ),
    "MobileViT": Network(
        "MobileViTConfig", "MobileViTModel", IMAGE,
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
         "num_attention_heads": 4},
    ),
    "ResNet50": Network("ResNetConfig", "ResNetModel", IMAGE, {**STAGES, "embedding_size": 16}),
    "ConvNeXt": Network("ConvNextConfig", "ConvNextModel", IMAGE, STAGES),
    "EfficientNet": Network(
        "EfficientNetConfig", "EfficientNetModel", IMAGE,
        {"width_coefficient": 0.3, "depth_coefficient": 0.3, "image_size": 64, "hidden_dim": 384},
        {"width_coefficient": 1.0, "depth_coefficient": 1.0, "image_size": 224, "hidden_dim": 1280},
    ),
    "MobileNetV2": Network("MobileNetV2Config", "MobileNetV2Model", IMAGE, {"depth_multiplier": 0.35}),
    "WhisperEncoder": Network(
        "WhisperConfig", "WhisperModel", {"input_features": ("batch", 80, 3000)},
        {"d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_source_positions": 50},
        {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6,
         "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536},
        "encoder",
        {"input_features": ("batch", 80, 100)},
    ),
    "Wav2Vec2": Network(
        "Wav2Vec2Config", "Wav2Vec2Model", {"input_values": ("batch", 16000)},
        {**ENCODER, "conv_dim": [16] * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
        small_inputs={"input_values": ("batch", 4000)},
    ),
}  # fmt: skip


def export(name: str, folder: str | Path, *, exporter: str = "dynamo", full: bool = False) -> Path:
    """Return the path of an exported network, which is written unless it is there.

    Args:
        name: a row of `NETWORKS`.
        folder: where files are kept; it is made.
        exporter: "dynamo" (torch.export) or "script" (TorchScript).
        full: the published size instead of the small one.
    """
    path = Path(folder) / f"{name}-{exporter}-{'full' if full else 'small'}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        network = NETWORKS[name]
        written = path.with_name(f"{path.stem}.part.onnx")
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # the exporters warn of their own code
            _write(module_of(network, exporter, full=full), inputs_of(network, full=full), written, exporter)
        written.rename(path)
    return path


def inputs_of(network: Network, *, full: bool) -> Shapes:
    """Return the shapes of a network's inputs by name."""
    if not full and network.inputs is IMAGE:
        return SMALL_IMAGE
    return network.inputs if full else network.small_inputs or network.inputs


def module_of(network: Network, exporter: str, *, full: bool) -> Any:
    """Return the network as a torch module with the tensor of its last states as its only output."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, network.config)(**(network.full if full else network.small))
    kind = getattr(transformers, network.model)
    fused = exporter == "dynamo" and not network.eager and getattr(kind, "_supports_sdpa", False)
    config._attn_implementation = "sdpa" if fused else "eager"
    config.use_cache = False
    model = kind(config).eval()
    model = getattr(model, network.part) if network.part else model
    names = list(network.inputs)

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            return self.model(**dict(zip(names, values, strict=True)), return_dict=True).last_hidden_state

    stir(model)
    return States()


def stir(module: Any) -> None:
    """Move what begins as 0 or 1, in norms, activations, heads and tables: a layer that does nothing hides errors."""
    import torch

    for parameter in module.parameters():
        if parameter.dim() < 2:
            parameter.data = parameter.data + 0.2 * torch.rand_like(parameter)
        elif not parameter.any():
            parameter.data = torch.randn_like(parameter) / parameter.shape[-1] ** 0.5
    for name, buffer in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer += 0.2 * torch.rand_like(buffer)


SIZES = {"batch": 2, "sequence": 9}


def _write(module: Any, inputs: Shapes, path: Path, exporter: str) -> None:
    import torch

    values = tuple(_example(name, shape) for name, shape in inputs.items())
    names = list(inputs)
    axes = {n: {i: d for i, d in enumerate(shape) if isinstance(d, str)} for n, shape in inputs.items()}
    if exporter == "script":
        torch.onnx.export(
            module, values, path, input_names=names, output_names=["states"], dynamo=False, opset_version=OPSET,
            dynamic_axes=axes,
        )  # fmt: skip
        return
    dims = {d: torch.export.Dim(d) for d in SIZES}
    shapes = tuple({i: dims[d] for i, d in axes[n].items()} for n in names)
    torch.onnx.export(
        module, values, path, input_names=names, output_names=["states"], dynamo=True, opset_version=OPSET,
        dynamic_shapes=(shapes,), verbose=False, external_data=False,
    )  # fmt: skip


def _example(name: str, shape: tuple[int | str, ...]) -> Any:
    import torch

    sizes = [SIZES[d] if isinstance(d, str) else d for d in shape]
    if name == "input_ids":
        return torch.randint(0, 90, sizes)
    return torch.ones(sizes, dtype=torch.int64) if name == "attention_mask" else torch.randn(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", metavar="network")
    parser.add_argument("--exporter", choices=EXPORTERS, default="dynamo")
    parser.add_argument("--full", action="store_true", help="the published size instead of the small one")
    arguments = parser.parse_args()
    able = [name for name, network in NETWORKS.items() if arguments.exporter in network.exporters]
    for name in arguments.networks or able:
        path = export(name, arguments.folder, exporter=arguments.exporter, full=arguments.full)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
