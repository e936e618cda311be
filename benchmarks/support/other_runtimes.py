"""Times a model in OpenVINO, or its torch module in torch.compile, by the protocol of taso_gym.cost.latency_child.

A file that ends in .onnx is OpenVINO's; torch.compile's is the text of a name in benchmarks/networks.toml, and a batch.
At one thread the process's CPU time is taken, since OpenVINO works in a thread of its own; else wall time.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.cost.latency_child import LEADING, OTHER, Requests, main, rounds


def serve(settings: Mapping[str, Any], requests: Requests) -> Iterator[dict[str, Any]]:
    run = (openvino if settings["model"].endswith(".onnx") else compiled)(settings)
    cpu = settings["threads"] == 1 and settings["provider"] == "CPUExecutionProvider"
    return rounds(run, time.process_time_ns if cpu else time.perf_counter_ns, requests)


def openvino(settings: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a run in OpenVINO at full float32 precision."""
    import openvino

    threads = settings["threads"]
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(settings["model"], "CPU", options)
    rng, feeds = np.random.default_rng(settings["seed"]), {}
    for i, port in enumerate(model.inputs):
        shape = [d.get_length() if d.is_static else (OTHER if j else LEADING) for j, d in enumerate(port.partial_shape)]
        feeds[i] = draw(port.get_element_type().to_dtype(), shape, rng)
    request = model.create_infer_request()
    for i, value in feeds.items():
        request.set_input_tensor(i, openvino.Tensor(value))
    return partial(request.infer, share_outputs=True)


def compiled(settings: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a run of torch.compile (inductor, frozen weights); on a GPU with TF32, as onnxruntime computes there."""
    import torch
    import torch._inductor.config as inductor
    from support.networks import example_of, module_of, networks

    name, batch = Path(settings["model"]).read_text().split()
    network = next(n for n in networks() if n.name == name)
    torch.set_num_threads(settings["threads"])
    inductor.freezing = True
    cuda = settings["provider"] == "CUDAExecutionProvider"
    if cuda:
        torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if cuda else "cpu")
    module = torch.compile(module_of(network).to(device))
    values = [value.to(device) for value in example_of(network, int(batch))]

    def run() -> Any:
        with torch.inference_mode():
            found = module(*values)
        if cuda:
            torch.cuda.synchronize()
        return found

    return run


def draw(dtype: Any, shape: list[int], rng: np.random.Generator) -> Any:
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main(serve)
