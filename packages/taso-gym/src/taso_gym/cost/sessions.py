"""Sessions of onnxruntime on a provider, and the values that they run on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from taso_gym.checks import check_threads
from taso_gym.cost.beside import ELSEWHERE, LARGE_BYTES, Serialised, aligned, is_aligned
from taso_gym.cost.copies import identity
from taso_gym.cost.machine import cpu_name, gpu_name
from taso_gym.cost.packages import PROVIDERS, failure, require_provider, temporary_folder
from taso_gym.errors import CostError, KernelError, one_line

EVENT = "_kernel_time"
"""What a profile adds to the name of a node."""


class Sessions:
    """onnxruntime on one provider with a number of threads.

    Raises:
        MissingPackageError: onnxruntime isn't installed.
        OptionError: an unknown provider, or no thread, or too many.
        CostError: onnxruntime comes without the provider, or it doesn't work.
    """

    def __init__(self, provider: str, threads: int) -> None:
        self.provider, self.threads = provider, check_threads(threads)
        require_provider(provider)
        self.expect_working()

    @property
    def ort(self) -> Any:
        """The package."""
        return require_provider(self.provider)

    @cached_property
    def key(self) -> str:
        """What times depend on: device, provider, version, threads; every look into a cache asks for it."""
        device = gpu_name() if self.provider == "cuda" else cpu_name()
        return f"{device}|{PROVIDERS[self.provider]}|onnxruntime {self.ort.__version__}|{self.threads} threads"

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what machine this is when pickled: another one may read it."""
        return {name: value for name, value in self.__dict__.items() if name != "key"}

    def expect_working(self) -> None:
        """Run something small on a GPU, whose driver may be missing, and which may fail at any time.

        Raises:
            CostError: it doesn't run; that isn't the fault of what ran before.
        """
        if self.provider == "cpu":
            return
        expected = f"expected the provider {PROVIDERS[self.provider]} to work, found "
        try:
            self.bind(self.open(identity(TensorProto.FLOAT, [1]), False), {"x": self.place(np.ones(1, np.float32))})()
        except CostError as error:
            raise CostError(expected + str(error).removeprefix(expected)) from error

    def open(
        self,
        model: bytes | str | Serialised,
        optimise: bool,
        dump: Path | None = None,
        profile: Path | None = None,
        pack: bool = True,
    ) -> Any:
        """Return a session on the provider and no other.

        Args:
            model: serialised, its large weights in it or beside it, or a path.
            optimise: with all of onnxruntime's optimisations, or none.
            dump: where to write the optimised model.
            profile: beginning of the name of a file for the times of kernels.
            pack: put weights into the order in which kernels read them, which takes longer than some runs.

        Raises:
            KernelError: onnxruntime refuses the model.
            OutOfMemoryError: memory is short.
            CostError: the provider doesn't work.
        """
        ort = self.ort
        options = ort.SessionOptions()
        levels = ort.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 4  # what goes wrong is raised
        if not pack:
            options.add_session_config_entry("session.disable_prepacking", "1")
        content, weights = model if isinstance(model, Serialised) else Serialised(model, {})
        if dump:
            options.optimized_model_filepath = str(dump)
        if dump and weights:
            for entry, value in (("file_name", ELSEWHERE), ("min_size_in_bytes", str(LARGE_BYTES))):
                options.add_session_config_entry(f"session.optimized_model_external_initializers_{entry}", value)
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, str(profile)
        try:
            options.add_external_initializers(list(weights), list(weights.values()))
            session = ort.InferenceSession(content, options, providers=[PROVIDERS[self.provider]])
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise failure("a model that onnxruntime takes", error) from error
        if (found := session.get_providers()[0]) != PROVIDERS[self.provider]:
            raise CostError(f"expected the provider {PROVIDERS[self.provider]} to work, found {found} in its place")
        return session

    def optimised(self, model: bytes | str | Serialised) -> ModelProto:
        """Return the model that onnxruntime makes of one with all its optimisations: what it really executes.

        Where large weights are beside the model, those that it makes of them aren't returned: they are `ELSEWHERE`.

        Raises:
            CostError: as `open`, or it can't be written and read back.
        """
        with temporary_folder(DecodeError) as folder:
            if isinstance(model, Serialised) and model.weights:
                with suppress(OSError):  # where a link can't be made, they are written and deleted
                    (folder / ELSEWHERE).symlink_to(os.devnull)
            return self._dumped(model, folder / "optimised.onnx")

    def _dumped(self, model: bytes | str | Serialised, dump: Path) -> ModelProto:
        try:
            self.open(model, optimise=True, dump=dump, pack=False)
        except KernelError as error:
            self.open(model, optimise=True, pack=False)  # refuses it again, unless only writing it failed
            raise CostError(f"expected room for a model in {dump.parent}, found {one_line(error)}") from error
        return ModelProto.FromString(dump.read_bytes())

    def place(self, value: NDArray[Any]) -> Any:
        """Return an array as a value on the device.

        Raises:
            KernelError: onnxruntime has no values of its type, such as strings.
            OutOfMemoryError: memory is short.
        """
        try:
            return self._placed(value)
        except Exception as error:  # as above
            raise failure("a value that onnxruntime takes", error) from error

    def place_weight(self, value: NDArray[Any]) -> Any:
        """Return an array as a weight beside a model, aligned as if it had been in it: a copy unless it lies so.

        Raises:
            KernelError: onnxruntime has no weights of its type.
            OutOfMemoryError: memory is short.
        """
        try:
            return self.ort.OrtValue.ortvalue_from_numpy(value if is_aligned(value) else aligned(value), "cpu")
        except Exception as error:  # as above
            raise failure("a weight that onnxruntime takes", error) from error

    def _placed(self, value: NDArray[Any]) -> Any:
        device = "cuda" if self.provider == "cuda" else "cpu"
        if value.dtype.kind == "V" or value.dtype.name not in np.sctypeDict:  # of ml_dtypes: bfloat16, float8 …
            code = helper.np_dtype_to_tensor_dtype(value.dtype)
            raw = value.view(f"u{value.dtype.itemsize}")
            return self.ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, int(code))
        return self.ort.OrtValue.ortvalue_from_numpy(value, device)

    def bind(self, session: Any, feeds: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """Return a function that runs a session on these placed values and returns its outputs, on the device."""
        binding = session.io_binding()
        for entry in session.get_inputs():
            binding.bind_ortvalue_input(entry.name, feeds[entry.name])
        for entry in session.get_outputs():
            binding.bind_output(entry.name, "cuda" if self.provider == "cuda" else "cpu")

        def run() -> list[Any]:
            try:
                session.run_with_iobinding(binding)
            except Exception as error:  # as above
                raise failure("a model that runs", error) from error
            return binding.get_outputs()

        return run


def kernel_events(session: Any) -> list[dict[str, Any]]:
    """End a session's profile, and return what it says of each kernel that ran, in order; ``name`` is the node's.

    Raises:
        JSONDecodeError: it is cut off, as there was no room.
    """
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    of_nodes = (event for event in events if event.get("cat") == "Node" and event["name"].endswith(EVENT))
    return [{**event, "name": event["name"].removesuffix(EVENT)} for event in of_nodes]
