"""By how much rewrites change the cost of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from taso_gym.cost_model import Cost, Costed, CostModel, costed, total
from taso_gym.graph import SINK, Graph
from taso_gym.rules.rewrite import Rewriting, Site, rewrite
from taso_gym.rules.template import Template

HOPELESS = 0.5
"""A rewrite is hopeless that makes what it takes away dearer by more than this part."""


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

    def of(
        self, graph: Graph, site: Site, applied: tuple[Rewriting, Graph] | None = None, *, bounded: bool = False
    ) -> Callable[[], Cost]:
        """Return the change by a rewrite of a graph.

        Args:
            graph: it.
            site: where it is rewritten.
            applied: the rewrite and what it leads to, if that is made.
            bounded: a change of time that is too small is enough of a hopeless rewrite: nothing is measured for it.
        """
        model = self.model
        if model is None:
            return Cost
        if not model.contextual:
            return self._local(model, graph, site)
        rewriting, after = applied or _applied(graph, site)
        changed = {*rewriting.touched, *rewriting.removed, *rewriting.rewired, *rewriting.added}
        around = changed.union(model.affected(graph, after, changed)) - {SINK}
        old, new = costed(model, graph, around), costed(model, after, around)
        if bounded and (hopeless := _hopeless(model, old, new)):
            return lambda: hopeless
        model.expect(new)
        return lambda: total(model, new) - total(model, old)

    def _local(self, model: CostModel, graph: Graph, site: Site) -> Callable[[], Cost]:
        """Return the change where contexts play no part: the same wherever a template takes the place of like nodes."""
        template = site.template
        change = self._of_templates.get(template)
        if change is None:
            new = sum((model.node(sig) for sig in template.sigs), Cost())
            change = new - sum((model.node(graph.nodes[i].sig) for i in site.match.nodes), Cost())
            self._of_templates[template] = change
        found = change - sum(map(model.node, site.dead), Cost()) if site.dead else change
        return lambda: found


def _applied(graph: Graph, site: Site) -> tuple[Rewriting, Graph]:
    rewriting = rewrite(graph, site)
    return rewriting, rewriting.finish()


def _hopeless(model: CostModel, old: Costed, new: Costed) -> Cost | None:
    """Return a change that is too small, if a rewrite is hopeless even so; or None."""
    before, after = Counter(old), Counter(new)
    gone_ps = sum(count * model.node(*node).time_ps for node, count in (before - after).items())
    made_ps = sum(count * model.least_ps(*node) for node, count in (after - before).items())
    return Cost(made_ps - gone_ps) if made_ps > (1 + HOPELESS) * gone_ps else None
