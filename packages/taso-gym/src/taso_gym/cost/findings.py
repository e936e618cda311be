"""What was found by running something on a device, kept in the cache on disk as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from taso_gym.cost.cache import Cache
from taso_gym.cost.cuda_device import CudaDevice
from taso_gym.cost.runtime import Runtime
from taso_gym.errors import CostError, KernelError, OutOfMemoryError

METHOD = 19
"""How costs are measured; what an earlier version of the package put into a cache isn't taken for the same."""


class Findings:
    """Values by name, of a device as it is here.

    Attributes:
        path: file of the cache.
    """

    def __init__(self, device: Runtime | CudaDevice, path: str | Path | None) -> None:
        """Begin with what a cache has; None for the user's."""
        self._device, self._cache = device, Cache(path)
        self.path = self._cache.path

    def recall(self, name: str) -> dict[str, Any] | None:
        """Return what the cache has under a name.

        Raises:
            CostError: it can't be read.
        """
        text = self._cache.get(self._key(name))
        return None if text is None else self._parsed(text)

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return json.loads(text)
        except ValueError as error:
            raise CostError(
                f"expected a measurement as JSON, found {text[:40]!r} in {self.path}: delete that file"
            ) from error

    def remember(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """Put something into the cache, and return what it has: another process may have been first.

        Raises:
            CostError: it can't be written.
        """
        return json.loads(self._cache.put(self._key(name), json.dumps(value)))

    def found(self, name: str, measure: Callable[[], dict[str, Any]], anew: bool = False) -> dict[str, Any]:
        """Return what the cache has under a name, measured now if it has nothing: {"failed": why} of what doesn't run.

        A kernel that fails is remembered, too; where memory is short it fails for now only.

        Args:
            name: what it is called.
            measure: measures it.
            anew: measure it whatever the cache has, and remember that instead.

        Raises:
            CostError: the cache can't be used, or the device doesn't work.
        """
        known = None if anew else self.recall(name)
        if known is not None:
            return known
        try:
            value = measure()
        except KernelError as error:
            self._device.expect_working()  # else what is remembered would be the device's fault
            value = {"failed": str(error)}
        except (MemoryError, OutOfMemoryError) as error:
            return {"failed": str(error) or "out of memory"}
        if anew:
            self.replace(name, value)
            return value
        return self.remember(name, value)

    def replace(self, name: str, value: dict[str, Any]) -> None:
        """Put something into the cache, whatever it has under that name.

        Raises:
            CostError: it can't be written.
        """
        self._cache.replace(self._key(name), json.dumps(value))

    def change(self, name: str, change: Callable[[dict[str, Any] | None], dict[str, Any]]) -> None:
        """Put what becomes of a value, or of None, into the cache, while no other process does.

        Raises:
            CostError: it can't be written.
        """
        parsed = self._parsed
        self._cache.change(self._key(name), lambda text: json.dumps(change(None if text is None else parsed(text))))

    def beginning(self, start: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rest of each name that begins so, and what the cache has under it.

        Raises:
            CostError: it can't be read.
        """
        for rest, text in self._cache.beginning(self._key(start)):
            yield rest, self._parsed(text)

    def _key(self, name: str) -> str:
        return f"{self._device.key}|method {METHOD}|{name}"
