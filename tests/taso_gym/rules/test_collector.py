import gc

import pytest

from taso_gym.rules.collector import paused


def test_the_collector_runs_again_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), paused():
        assert not gc.isenabled()
        _ = 1 / 0
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
