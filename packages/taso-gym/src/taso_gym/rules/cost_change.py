"""By how much rewrites change the cost of a graph."""

from __future__ import annotations

from collections.abc import Callable

from taso_gym.cost_model import Cost, CostModel, costed, total
from taso_gym.graph import SINK, Graph
from taso_gym.rules.rewrite import Rewriting, Site, rewrite
from taso_gym.rules.template import Template


class CostChanges:
    """Changes of cost by one model.

    Each is returned as what tells it: where contexts play a part and many are asked for before the first is told, what
    has to be measured for them may be together (`CostModel.expect`).

    Attributes:
        model: the model; without one nothing costs anything.
    """

    __slots__ = ("_of_templates", "model")

    def __init__(self, model: CostModel | None) -> None:
        """Begin with nothing costed."""
        self.model = model
        self._of_templates: dict[Template, Cost] = {}

    def of_site(self, graph: Graph, site: Site) -> Callable[[], Cost]:
        """Return the change by a rewrite that isn't applied."""
        if self.model is None or not self.model.contextual:
            return self._local(self.model, graph, site)
        rewriting = rewrite(graph, site)
        return self.of_rewriting(site, rewriting, rewriting.finish())

    def of_rewriting(self, site: Site, rewriting: Rewriting, after: Graph) -> Callable[[], Cost]:
        """Return the change by a rewrite, given the graph that it leads to."""
        model, before = self.model, rewriting.graph
        if model is None or not model.contextual:
            return self._local(model, before, site)
        changed = {*rewriting.touched, *rewriting.removed, *rewriting.rewired, *rewriting.added}
        around = changed.union(model.affected(before, after, changed)) - {SINK}
        old, new = costed(model, before, around), costed(model, after, around)
        model.expect(new)
        return lambda: total(model, new) - total(model, old)

    def _local(self, model: CostModel | None, graph: Graph, site: Site) -> Callable[[], Cost]:
        """Return the change where contexts play no part: the same wherever a template takes the place of like nodes."""
        if model is None:
            return Cost
        template = site.template
        change = self._of_templates.get(template)
        if change is None:
            new = sum((model.node(sig) for sig in template.sigs), Cost())
            change = new - sum((model.node(graph.nodes[i].sig) for i in site.match.nodes), Cost())
            self._of_templates[template] = change
        found = change - sum(map(model.node, site.dead), Cost()) if site.dead else change
        return lambda: found
