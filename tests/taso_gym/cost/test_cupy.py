"""CUDA kernels on CuPy's memory; tests of what is measured need a CUDA device."""

import pickle
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Self
from unittest.mock import Mock

import numpy as np
import pytest
from cost_graphs import mlp, weight

from taso_gym.builder import GraphBuilder
from taso_gym.cost import cuda_device, load
from taso_gym.cost import cupy as cupy_module
from taso_gym.cost.cuda_kernels import kernel, normalization
from taso_gym.cost.cupy import CupyCost, graph_time_ms
from taso_gym.cost.regional import NEVER_PS
from taso_gym.errors import CostError, MissingPackageError
from taso_gym.graph import Graph
from taso_gym.ops import OPERATORS
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType


def product(rows: int, dtype: str = "float") -> Signature:
    """Signature of a square product."""
    return signature(OPERATORS["", "MatMul"], {}, [TensorType(dtype, (rows, rows))] * 2)


def image_graph() -> Graph:
    """A convolution with bias, a pool and an activation."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (1, 64, 56, 56)))
    made = b.add("Conv", x, weight(b, "w", 64, 64, 3, 3), weight(b, "b", 64), pads=(1, 1, 1, 1))
    b.output("y", b.add("Relu", b.add("MaxPool", made, kernel_shape=(3, 3), strides=(2, 2))))
    return b.build()


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    advice = r"pip install 'taso-gym\[gpu\]' brings it, in an environment without 'taso-gym\[cpu\]'"
    with pytest.raises(MissingPackageError, match=rf"expected the package cupy.* {advice}$"):
        load("cupy")


class UnsupportedError(Exception):
    """As cuDNN's: of no common base."""


class LostError(RuntimeError):
    """As CUDA's."""


class Device:
    """A device that works until it is lost."""

    lost = False

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self) -> None:
        """Wait, and say whether something went wrong."""
        if self.lost:
            raise LostError("no device")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[Device]:
    """A device without CUDA, whose kernels do nothing."""
    kind = type("Own", (Device,), {})
    facts = {"name": b"a device"}
    runtime = SimpleNamespace(
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda _: facts,
        runtimeGetVersion=lambda: 1,
        CUDARuntimeError=LostError,
    )
    package = SimpleNamespace(__version__="0", cuda=SimpleNamespace(Device=kind, runtime=runtime))
    monkeypatch.setattr(cuda_device, "require", lambda _: package)
    monkeypatch.setattr(cuda_device, "_precision", lambda _: nullcontext())
    monkeypatch.setattr(cuda_device, "time_ms", lambda prepared, _: 1.0)
    monkeypatch.setattr(cuda_device, "expect_libraries", lambda _: None)
    library = SimpleNamespace(cudnnGraphNotSupportedError=UnsupportedError, backend_version=lambda: 92600)
    monkeypatch.setitem(sys.modules, "cudnn", library)
    return kind


def refused(error: Exception | None, monkeypatch: pytest.MonkeyPatch, cache: Path, start: Graph | None = None) -> int:
    """Cost of a product whose kernel fails so, or works."""

    def made(_: Signature, tf32: bool) -> None:
        if error:
            raise error

    monkeypatch.setattr(cupy_module, "kernel", made)
    return CupyCost(cache=cache, start=start).node(product(8)).time_ps


@pytest.mark.parametrize(
    "error", [UnsupportedError("not supported"), LostError("cuBLAS"), TypeError("type"), ValueError("kind")]
)
def test_what_libraries_refuse_never_pays(
    error: Exception, device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(error, monkeypatch, tmp_path / "cache") == NEVER_PS
    assert refused(None, monkeypatch, tmp_path / "cache") == NEVER_PS  # which is remembered


def test_what_fails_of_the_start_costs_its_bound(
    device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all gains would be nothing beside it, and taking it away would gain all."""
    b = GraphBuilder({"": 20})
    x, w = (b.input(name, t) for name, t in zip("xw", product(8).inputs, strict=True) if isinstance(t, TensorType))
    b.output("y", b.add("MatMul", x, w))
    start = b.build()
    assert 0 < refused(ValueError("kind"), monkeypatch, tmp_path / "cache", start) < 10**9
    other = GraphBuilder({"": 20})
    other.output("y", other.add("Relu", other.input("x", TensorType("float", (4,)))))
    whole = CupyCost(cache=tmp_path / "cache", start=other.build()).graph(other.build()).time_ps
    assert refused(ValueError("kind"), monkeypatch, tmp_path / "cache", other.build()) > whole


@pytest.mark.parametrize("error", [MemoryError(), LostError("CUBLAS_STATUS_ALLOC_FAILED")])
def test_memory_that_is_short_fails_for_now(
    error: Exception, device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(error, monkeypatch, tmp_path / "cache") == NEVER_PS
    assert refused(None, monkeypatch, tmp_path / "cache") == 10**9


def test_a_device_that_is_lost_is_no_kernels_fault(
    device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.lost = True
    with pytest.raises(CostError, match="expected the CUDA device 0 to work, found no device"):
        refused(LostError("no device"), monkeypatch, tmp_path / "cache")
    assert refused(None, monkeypatch, tmp_path / "cache") == 10**9


def test_a_library_that_is_missing_is_no_kernels_fault(
    device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy looks for its compiler when it is needed: all kernels would be remembered as failing."""
    missing = RuntimeError("CuPy failed to load libnvrtc.so.13")
    with monkeypatch.context() as without:
        without.setattr(cuda_device, "expect_libraries", Mock(side_effect=missing))
        with pytest.raises(CostError, match=r"expected the CUDA device 0 to work, found .*libnvrtc\.so\.13"):
            refused(missing, monkeypatch, tmp_path / "cache")
    assert refused(None, monkeypatch, tmp_path / "cache") == 10**9


def test_other_sizes_are_other_costs(device: type[Device], tmp_path: Path) -> None:
    """What a model says that its numbers depend on names the sizes that it is bound to."""
    model = CupyCost(dims={"N": 1}, cache=tmp_path / "cache")
    assert "[N=1]" in model.key and "[N=8]" in model.bound({"N": 8}).key


def test_times_are_of_a_cudnn(device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version took, or none, isn't what this one takes."""
    one = CupyCost(cache=tmp_path / "cache").key
    monkeypatch.setattr(sys.modules["cudnn"], "backend_version", lambda: 92601)
    other = CupyCost(cache=tmp_path / "cache").key
    monkeypatch.setitem(sys.modules, "cudnn", None)
    assert len({one, other, CupyCost(cache=tmp_path / "cache").key}) == 3


def test_another_machine_has_another_device(
    device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = CupyCost(cache=tmp_path / "cache")
    assert here.key.startswith("a device|")
    sent = pickle.dumps(here)
    facts = {"name": b"another device"}
    monkeypatch.setattr(cuda_device.require("cupy").cuda.runtime, "getDeviceProperties", lambda _: facts)
    assert pickle.loads(sent).key.startswith("another device|")  # noqa: S301


def test_a_resize_is_costed_by_its_bytes(device: type[Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which its body, hundreds of kernels, would be far from."""
    monkeypatch.setattr(cupy_module, "kernel", None)
    image = TensorType("float", (1, 64, 64, 64))
    sig = signature(OPERATORS["", "Resize"], {"scales": (1.0, 1.0, 2.0, 2.0), "mode": "linear"}, [image])
    assert 10**6 < CupyCost(cache=tmp_path / "cache").node(sig).time_ps < 10**8


@pytest.mark.gpu
def test_more_work_takes_longer(tmp_path: Path) -> None:
    model = CupyCost(cache=tmp_path / "cache.sqlite")
    small, large = (model.node(product(rows)).time_ps for rows in (1024, 8192))
    assert 0 < 50 * small < large  # 512 times the work


@pytest.mark.gpu
def test_tensor_cores_are_faster(tmp_path: Path) -> None:
    single = CupyCost(cache=tmp_path / "cache.sqlite")
    rounded = CupyCost(cache=tmp_path / "cache.sqlite", tf32=True)
    assert rounded.key != single.key
    times = [m.node(product(8192, t)).time_ps for m, t in ((single, "float"), (rounded, "float"), (single, "float16"))]
    assert times[0] > 2 * times[1] > 2 * times[2]


@pytest.mark.gpu
def test_a_graph_is_measured_and_read_back(tmp_path: Path) -> None:
    asked: list[str] = []
    first = CupyCost(cache=tmp_path / "cache.sqlite", progress=asked.append).graph(image_graph())
    assert first.kernels == 3 and 0 < first.time_ms < 10 and len(asked) == 3
    assert CupyCost(cache=tmp_path / "cache.sqlite", progress=asked.append).graph(image_graph()) == first
    assert len(asked) == 3


@pytest.mark.gpu
@pytest.mark.parametrize("group", [1, 64])
def test_a_convolution_by_cudnn_is_right(group: int) -> None:
    import cupy

    types = [
        TensorType("float", (1, 64, 14, 14)),
        TensorType("float", (64, 64 // group, 3, 3)),
        TensorType("float", (64,)),
    ]
    sig = signature(OPERATORS["", "Conv"], {"pads": (1, 1, 1, 1), "group": group}, types)
    found = cupy.asnumpy(kernel(sig)())
    rng = np.random.default_rng(0)
    from taso_gym.cost.small_model import draw
    from taso_gym.ops.floating import FLOAT64

    op = OPERATORS["", "Conv"]
    expected = op.body(FLOAT64, *(FLOAT64.asarray(draw(t, rng)) for t in types), **dict(sig.attrs))
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)  # no operand was rounded to TF32


@pytest.mark.gpu
def test_a_normalization_is_right_and_one_kernel(tmp_path: Path) -> None:
    import cupy

    from taso_gym.cost.small_model import draw
    from taso_gym.ops.floating import FLOAT64

    image, channels = TensorType("float", (8, 64, 112, 112)), TensorType("float", (64,))
    types, op = [image, *[channels] * 4], OPERATORS["", "BatchNormalization"]
    sig = signature(op, {}, types)
    rng = np.random.default_rng(0)
    arrays = [draw(t, rng) for t in types]
    arrays[4] = np.abs(arrays[4])
    run = normalization([cupy.asarray(a) for a in arrays], sig.attr("epsilon"))
    expected = op.body(FLOAT64, *map(FLOAT64.asarray, arrays), **dict(sig.attrs))
    np.testing.assert_allclose(cupy.asnumpy(run()), expected, rtol=1e-5, atol=1e-6)
    model = CupyCost(cache=tmp_path / "cache.sqlite")
    assert model.node(sig).time_ps < 2 * model.node(signature(OPERATORS["", "Relu"], {}, [image])).time_ps


@pytest.mark.gpu
def test_a_whole_graph_runs_in_the_cuda_provider() -> None:
    assert 0 < graph_time_ms(image_graph()) < 10
    assert 0 < graph_time_ms(mlp()) < 10


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises(CostError, match="expected a CUDA device from 0 to"):
        load("cupy:99")
