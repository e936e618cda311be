"""Exports the networks of benchmarks/networks.toml; `networks` reads other lists, such as unseen.toml, too.

    cd benchmarks; python -m support.networks FOLDER [network ...] [--batch 8]

Weights are random and of a realistic scale; nothing is downloaded. benchmarks/requirements.txt names the packages.
"""

import argparse
import contextlib
import io
import sys
import tomllib
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper, version_converter

LIST = Path(__file__).parent.parent / "networks.toml"
OPSET, LIGHT_OPSET = 20, 13


class Network(NamedTuple):
    """A row of networks.toml; the file says what the fields mean."""

    name: str
    maker: str
    model: str
    exporter: str = "dynamo"
    input: tuple[int, ...] = ()
    batches: tuple[int, ...] = (1, 8)
    goal: tuple[float, ...] = ()
    arguments: Mapping[str, Any] = {}


def networks(listed: Path = LIST) -> list[Network]:
    """Return the rows of a list of networks in their order."""
    rows = tomllib.loads(listed.read_text(encoding="utf-8"))["network"]
    return [Network(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in rows]


def file_of(network: Network, batch: int, folder: Path) -> Path:
    """Return the file of a network at a batch size, which is written unless it is there."""
    path = folder / f"{network.name}-b{batch}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".part")
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # the exporters warn of their own code
            MAKERS[network.maker](network, batch, written)
        written.rename(path)
    return path


def _light(network: Network, batch: int, path: Path) -> None:
    """Write a light_* file with drawn weights in place of its constant ones."""
    source = Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{network.model}.onnx"
    model = version_converter.convert_version(onnx.load(source), LIGHT_OPSET)
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
    norms = {name: i for n in graph.node if n.op_type == "BatchNormalization" for i, name in enumerate(n.input)}
    made = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    drawn = [_drawn(n.output[0], shapes[n.input[0]].tolist(), norms.get(n.output[0], 0), rng) for n in made]
    drawn += [_drawn(n, w.shape, norms[n], rng) for n, w in shapes.items() if n in norms]
    kept = [w for w in graph.initializer if w.name not in norms and w.data_type != onnx.TensorProto.FLOAT]
    biases = [w for w in graph.initializer if w.name not in norms and w.data_type == onnx.TensorProto.FLOAT]
    drawn += [_drawn(w.name, shapes[w.name].shape, 0, rng) for w in biases]
    nodes = [n for n in graph.node if n not in made]
    names = {w.name for w in [*kept, *drawn]}
    inputs = [i for i in graph.input if i.name not in names and i.name not in shapes]
    reshaped = {n.input[1] for n in nodes if n.op_type == "Reshape"}
    kept = [_batched(w, batch) if w.name in reshaped else w for w in kept]
    for value in (*inputs, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    new = helper.make_graph(nodes, network.name, inputs, list(graph.output), [*kept, *drawn])
    model = helper.make_model(new, opset_imports=[helper.make_opsetid("", LIGHT_OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def _batched(shape: onnx.TensorProto, batch: int) -> onnx.TensorProto:
    """Return the shape that a Reshape gives with another batch where it has one of 1; others are of weights."""
    sizes = numpy_helper.to_array(shape).copy()
    sizes[0] = batch if sizes[0] == 1 else sizes[0]
    return numpy_helper.from_array(sizes, shape.name)


def _drawn(name: str, shape: Any, place: int, rng: np.random.Generator) -> Any:
    """Return a weight: He's scale for kernels; for the inputs of a normalisation near 1 (scale, variance) or 0."""
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else 0
    value = rng.standard_normal(shape) * (np.sqrt(2 / fan) if fan else 0.1)
    if place in (1, 4):
        value = 1 + np.abs(value)
    return numpy_helper.from_array(value.astype(np.float32), name)


def _torch(network: Network, batch: int, path: Path) -> None:
    """Write what torch exports of a network of torchvision, timm or benchmarks/support/written.py."""
    import torch

    module, example, dynamo = module_of(network), example_of(network, batch), network.exporter == "dynamo"
    names = {"input_names": ["x"], "output_names": ["y"], "opset_version": OPSET}
    extra: dict[str, Any] = {"external_data": False, "verbose": False} if dynamo else {}
    torch.onnx.export(module, example, path, dynamo=dynamo, **names, **extra)


def example_of(network: Network, batch: int) -> tuple[Any, ...]:
    """Return the inputs of a network's torch module."""
    import torch

    if network.maker != "transformers":
        return (torch.randn(batch, *network.input),)
    from support import exported

    sizes = {"batch": batch, "sequence": 128}
    shapes = {n: [sizes.get(d, d) for d in shape] for n, shape in exported.NETWORKS[network.model].inputs.items()}
    floats = ("input_features", "input_values")
    return tuple(torch.randn(s) if n in floats else torch.ones(s, dtype=torch.int64) for n, s in shapes.items())


def module_of(network: Network) -> Any:
    """Return the torch module of a network, as it is exported."""
    import torch

    if network.maker == "transformers":
        _without_compiled_operators()
        from support import exported

        return exported.module_of(exported.NETWORKS[network.model], network.exporter, full=True)
    from support.exported import stir

    torch.manual_seed(0)
    module = _module(network).eval()
    stir(module)
    return module


def _module(network: Network) -> Any:
    if network.maker == "written":
        from support.written import WRITTEN

        return WRITTEN[network.model]()
    _without_compiled_operators()
    if network.maker == "timm":
        import timm

        return timm.create_model(network.model, pretrained=False, exportable=True, **network.arguments)
    import torchvision

    return torchvision.models.get_model(network.model, weights=None, **network.arguments)


def _without_compiled_operators() -> None:
    """Let torchvision be imported where its compiled part belongs to another build of torch; no network needs it."""
    import torch

    try:
        with contextlib.suppress(ModuleNotFoundError):  # which matters to its own networks only
            import_module("torchvision")
    except RuntimeError:  # an operator of it isn't there
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        _LIBRARIES.append(torch.library.Library("torchvision", "FRAGMENT"))
        for name in ("nms", "qnms"):
            _LIBRARIES[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_LIBRARIES: list[Any] = []


def _transformers(network: Network, batch: int, path: Path) -> None:
    """Write an export with open dimensions, those fixed: batch, and 128 tokens."""
    _without_compiled_operators()  # transformers imports torchvision where it is there
    from onnxruntime.tools.onnx_model_utils import fix_output_shapes, make_dim_param_fixed
    from support.exported import export

    model: ModelProto = onnx.load(export(network.model, path.parent, exporter=network.exporter, full=True))
    for symbol, size in (("batch", batch), ("sequence", 128)):
        make_dim_param_fixed(model.graph, symbol, size)
    del model.graph.value_info[:]
    fix_output_shapes(model)
    onnx.save(model, path)


MAKERS = {"light": _light, "torchvision": _torch, "timm": _torch, "written": _torch, "transformers": _transformers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", metavar="network")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    for network in networks():
        if (not arguments.networks or network.name in arguments.networks) and arguments.batch in network.batches:
            path = file_of(network, arguments.batch, arguments.folder)
            print(f"{path}: {path.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
