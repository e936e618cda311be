"""What is left of a result that computes something else than its start when both are run.

Rules are proved, but a kernel may not be as ONNX says: onnxruntime's Attention gives zeros for a query whose keys are
all masked by the lowest float, where the operators that it stands for give the mean of the values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from taso_gym.graph import Graph
from taso_gym.search.finalist import Finalist


def equal_part(found: Finalist, differs: Callable[[Graph], bool]) -> tuple[Finalist, tuple[str, ...]] | None:
    """Return what is left without the rules that make a result differ, and their names; None where nothing can be.

    Args:
        found: the result.
        differs: whether a graph computes something else than the start. One that does so with some of the rules is
            taken to do so with more of them.
    """
    culprits: list[str] = []
    while found.found.path and differs(found.graph):
        if not culprits and differs(found.start.graph):
            return None
        rules = list(dict.fromkeys(rewrite.rule for rewrite in found.way))  # as they came in
        with_first = range(1, len(rules))
        enough = bisect_left(with_first, True, key=lambda n: differs(found.without(rules[n:]).graph))
        culprits.append(rules[enough])
        found = found.without(culprits[-1:])
    return found, tuple(culprits)
