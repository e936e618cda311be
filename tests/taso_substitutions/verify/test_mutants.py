"""Negative control: true rules are changed at random, and what T1 proves of the result, T3 must find to hold."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from support.mutants import tally


def test_no_mutant_is_proved_that_the_tester_refutes() -> None:
    found = tally(300, seed=0)
    assert found.disagreements == []
    assert found.mutants == 300
    assert found.proved > 5
    assert found.refuted > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 101))
def test_no_mutant_among_many_is_proved_that_the_tester_refutes(seed: int) -> None:
    """Each thousand in a process of its own: what is known of the types that it meets is kept as long as it lives."""
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        found = pool.submit(tally, 1000, seed).result()
    assert found.disagreements == []
    assert found.mutants == 1000
