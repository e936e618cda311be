"""Sessions: what fails is told apart, and what is written."""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cost_graphs import WIDTH, product
from onnx import ModelProto

from taso_gym.cost import beside, sessions
from taso_gym.cost.sessions import Sessions, kernel_events
from taso_gym.errors import CostError, KernelError

pytest.importorskip("onnxruntime")


def test_a_provider_that_does_not_work_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    monkeypatch.setattr(sessions, "require_provider", lambda _: onnxruntime)  # as if it came with CUDA
    with pytest.raises(CostError, match="expected the provider CUDAExecutionProvider to work, found") as caught:
        Sessions("cuda", 1)
    assert type(caught.value) is CostError  # nothing that a cache would remember


def test_a_model_that_onnxruntime_refuses_is_its_own_fault() -> None:
    with pytest.raises(KernelError, match="expected a model that onnxruntime takes, found"):
        Sessions("cpu", 1).optimised(b"no model")


def test_want_of_room_is_not_the_models_fault(tmp_path: Path) -> None:
    """Though the disk may have some, and a quota or a limit on the size of files be in the way."""
    dump = tmp_path / "optimised.onnx"
    dump.symlink_to("/dev/full")
    with pytest.raises(CostError, match=r"expected room for a model in .*, found") as caught:
        Sessions("cpu", 1)._dumped(product(), dump)  # pyright: ignore[reportPrivateUsage]
    assert type(caught.value) is CostError


def test_a_missing_folder_for_temporary_files_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(CostError, match=r"expected room for a model in .*none, found .*No such file"):
        Sessions("cpu", 1).optimised(product())


def test_large_weights_beside_a_model_are_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = np.ones((WIDTH, 2 * beside.LARGE_BYTES // WIDTH), np.float32)
    model = ModelProto.FromString(product())
    model.graph.initializer.append(beside.declared("y", values))
    del model.graph.input[1], model.graph.output[0].type.tensor_type.shape.dim[:]
    runtime, sizes = Sessions("cpu", 1), list[int]()

    def spied(dump: Path) -> bytes:
        sizes.append(sum(path.lstat().st_size for path in dump.parent.iterdir()))
        return read(dump)

    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", spied)
    found = runtime.optimised(beside.Serialised(model.SerializeToString(), {"y": runtime.place_weight(values)}))
    assert [w.external_data[0].value for w in found.graph.initializer] == [beside.ELSEWHERE]
    assert max(sizes) < 10_000 < values.nbytes


def test_the_processor_is_asked_for_its_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["this one", "another machine's"])
    monkeypatch.setattr(sessions, "cpu_name", lambda: next(names))
    runtime = Sessions("cpu", 1)
    assert runtime.key == runtime.key and runtime.key.startswith("this one|")
    assert pickle.loads(pickle.dumps(runtime)).key.startswith("another machine's|")  # noqa: S301


def test_a_string_is_no_value_on_a_device() -> None:
    with pytest.raises(KernelError, match=r"expected a value that onnxruntime takes, found .* non-string"):
        Sessions("cpu", 1).place(np.full(2, "a", object))


def test_only_kernels_of_a_profile_count(tmp_path: Path) -> None:
    kernel = {"cat": "Node", "name": "0 0_kernel_time", "dur": 3}
    others = [{"cat": "Session", "name": "model_run_kernel_time"}, {"cat": "Node", "name": "0 0_fence_before"}]
    (tmp_path / "profile").write_text(json.dumps([*others, kernel]))
    session = SimpleNamespace(end_profiling=lambda: str(tmp_path / "profile"))
    assert kernel_events(session) == [{**kernel, "name": "0 0"}]
