"""Seeds of a batch of dreams, which draw from one stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taso_gym.checks import check_seed, items_of


def one_seed(seed: int | Sequence[int | None] | None, dreams: int) -> int | None:
    """Return a seed of all dreams: the first of consecutive ones, as a vector of environments takes an integer.

    Raises:
        OptionError: another number of seeds, or one that is no whole number of 0 or more.
    """
    if seed is None or isinstance(seed, int | np.integer):
        return None if seed is None else check_seed(seed)
    seeds = items_of(seed, object, f"{dreams} seeds, one for each dream", dreams)
    if all(each is None for each in seeds):
        return None
    numbers = [check_seed(each) for each in seeds]
    if numbers == list(range(numbers[0], numbers[0] + dreams)):
        return numbers[0]
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
