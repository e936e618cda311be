"""What cost models share: memoised nodes, sums over graphs, and peak memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from typing import Any, Self

from taso_gym.cost.dims import Dims
from taso_gym.cost.memory import peak_bytes
from taso_gym.cost.work import Work, work
from taso_gym.cost_model import Cost
from taso_gym.errors import CostError
from taso_gym.graph import Graph
from taso_gym.signature import Signature

FREE = Cost()


class SummedCost(ABC):
    """Base of the cost models: a subclass says how long a signature takes in a context.

    Attributes:
        name: specification that it was made from.
        deterministic: whether every process finds the same numbers.
        contextual: whether costs depend on contexts.
        options: what it was made with besides ``name`` and dims, where that isn't the default: keywords of
            `taso_gym.cost.load`.
    """

    deterministic = True
    contextual = False

    def __init__(self, name: str, dims: Mapping[str, int] | None, **options: Any) -> None:
        """Bind the symbols in ``dims``; the others are costed as 1 (leading axis) or 128, see `unbound`."""
        self.name = name
        self.options = {name: value for name, value in options.items() if value is not None and value is not False}
        self._dims = Dims(dims)
        self._nodes: dict[tuple[Signature, Hashable], Cost] = {}

    @property
    @abstractmethod
    def key(self) -> str:
        """Everything that its numbers depend on."""

    @abstractmethod
    def time(self, sig: Signature, context: Hashable, load: Work) -> tuple[int, int]:
        """Return time in picoseconds and number of kernels of a node that does ``load``.

        Raises:
            CostError: it can't be costed.
        """

    @property
    def dims(self) -> dict[str, int]:
        """Values of dimension symbols that were given."""
        return dict(self._dims.given)

    def bound(self, dims: Mapping[str, int]) -> Self:
        """Return the model with these values of dimension symbols: itself, or a copy."""
        if dims == self.dims:
            return self
        other = copy(self)
        other._dims, other._nodes = Dims(dims), {}
        return other

    @property
    def unbound(self) -> tuple[str, ...]:
        """Dimension symbols that were costed by default so far."""
        return self._dims.unbound

    def node(self, sig: Signature, context: Hashable = None) -> Cost:
        """Return the cost of a node; zero for a constant's, which is folded."""
        cost = self._nodes.get((sig, context))
        if cost is None:
            found = FREE if sig.const else self.view(sig) if sig.op.view else self._cost(sig, context)
            cost = self._nodes[sig, context] = found
        return cost

    def least_ps(self, sig: Signature, context: Hashable = None) -> int:
        """Return the picoseconds of a node."""
        return self.node(sig, context).time_ps

    def expect(self, nodes: Iterable[tuple[Signature, Hashable]]) -> None:  # noqa: B027 - most models know costs
        """Prepare to be asked for the costs of nodes, each with its context: what is measured, may be together.

        Raises:
            CostError: a cache can't be used, or a provider doesn't work.
        """

    def view(self, sig: Signature) -> Cost:  # noqa: ARG002
        """Return the cost of a node that moves nothing: zero, unless a model knows better."""
        return FREE

    def _cost(self, sig: Signature, context: Hashable) -> Cost:
        load = work(sig, self._dims)
        time_ps, kernels = self.time(sig, context, load)
        return Cost(time_ps, load.flops, load.bytes_moved, kernels)

    def context(self, graph: Graph, node_id: int) -> Hashable:  # noqa: ARG002
        """Return what the cost of a node depends on besides its signature."""
        return None

    def affected(self, before: Graph, after: Graph, node_ids: Iterable[int]) -> set[int]:  # noqa: ARG002
        """Return the operators whose contexts may differ: none without contexts."""
        return set()

    def graph(self, graph: Graph) -> Cost:
        """Return the sum over all operators.

        Raises:
            CostError: an operator can't be costed; the message names its node.
        """
        total, nodes = FREE, [(i, node.sig, self.context(graph, i)) for i, node in graph.operators()]
        self.expect((sig, context) for _, sig, context in nodes)
        for node_id, sig, context in nodes:
            try:
                total += self.node(sig, context)
            except CostError as error:
                raise CostError(f"node {node_id}: {error}") from error
        return total

    def peak_bytes(self, graph: Graph) -> int:
        """Return the peak of weights and activations; see `taso_gym.cost.memory`."""
        return peak_bytes(graph, self._dims)

    def __getstate__(self) -> dict[str, object]:
        """Leave what is memoised behind when pickled: it is found again."""
        return {**self.__dict__, "_nodes": {}}
