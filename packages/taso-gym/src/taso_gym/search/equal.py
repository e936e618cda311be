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
        differs: whether a graph computes something else than the start. One that does so after some of the rewrites is
            taken to do so after more of them.
    """
    if differs(found.start.graph):
        return None
    culprits: list[str] = []
    while found.found.path and differs(found.graph):
        graphs = found.graphs()
        first = bisect_left(range(len(graphs) - 1), True, key=lambda i: differs(graphs[i]))
        culprits.append(found.way[first].rule)
        found = found.without(culprits[-1:])
    return found, tuple(culprits)
