"""A process that holds one model in memory, and is asked by lines of JSON (`taso_gym.cost.latency_child`)."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from taso_gym.errors import CostError, one_line

CHILD = Path(__file__).with_name("latency_child.py")


class Child:
    """A process that holds one model in memory and times runs of it on demand."""

    def __init__(self, name: str, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._name, self._timeout = name, min(timeout_s, threading.TIMEOUT_MAX)
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "OMP_NUM_THREADS": str(settings["threads"])}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", settings.get("script", str(CHILD))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                process_group=0,  # Ctrl-C is for us, who then end it; it ends by itself where its input does
            )
        except OSError as error:
            self._errors.close()
            raise CostError(f"expected to start a process for {name}, found {one_line(error)}") from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._ask(settings)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def run(self, runs: int) -> list[int]:
        """Return the times of so many runs in nanoseconds."""
        return self._ask({"runs": runs})["times"]

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put(b"")

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self._timeout)
        except queue.Empty:
            raise CostError(
                f"expected {self._name} to answer within {self._timeout:g} s while it is measured, found nothing"
            ) from None
        except BrokenPipeError:
            line = b""
        if not line:
            raise CostError(f"expected {self._name} to run, found that its process ended: {self._last_words()}")
        try:
            answer = json.loads(line)
        except ValueError:
            said = one_line(line.decode(errors="replace"))
            raise CostError(f"expected an answer of {self._name} as JSON, found {said[:200]!r}") from None
        if "error" in answer:
            raise CostError(f"expected {self._name} to run, found {one_line(answer['error'])}")
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        said = [line for line in lines if line.strip()]
        return f"exit status {code}{', ' + said[-1].strip() if said else ''}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        with suppress(BrokenPipeError):  # a request that a dead process didn't read
            self._process.stdin.close()
        self._errors.close()
