"""What is measured of a CUDA device, which these tests don't need; `test_cupy.py` has those that do."""

from types import SimpleNamespace

import pytest

from taso_gym.cost import cuda_device


def test_the_device_is_busy_while_the_host_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of several kernels takes what these take, not what launching them does."""
    now, fills = [0.0], [0]

    def fill(_: int) -> None:
        fills[0] += 1

    def run() -> None:
        now[0] += 1 / 256  # of the host

    def took(*_: object) -> float:
        return 0.5

    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDeviceProperties=lambda _: {"l2CacheSize": 1}),
        Event=lambda: event,
        get_elapsed_time=took,
    )
    package = SimpleNamespace(cuda=cuda, uint8=None, empty=lambda *_: SimpleNamespace(fill=fill))
    monkeypatch.setattr(cuda_device, "require", lambda _: package)
    monkeypatch.setattr(cuda_device.time, "monotonic", lambda: now[0])
    assert cuda_device.time_ms(run) == 0.5
    warm_ups, runs, while_launching = 6, 60, 8
    assert fills[0] == warm_ups + while_launching * runs
