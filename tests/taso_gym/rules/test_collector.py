import gc

import pytest

from taso_gym.rules.collector import paused, seldom


def test_the_collector_runs_again_afterwards() -> None:
    with paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), paused():
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


def test_it_runs_seldom_and_then_as_before() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
