"""Checking a walk of rewrites site by site: what each match changed, alone, on normal data, in float64.

Sites of one rule with the same signatures compute the same up to the values of their weights, so that one of them
stands for all: the twelve layers of BERT are checked once.
"""

from __future__ import annotations

from typing import NamedTuple

from taso_gym.equivalence.site import check_site, operations
from taso_gym.errors import EquivalenceError, ModelError
from taso_gym.graph import Graph
from taso_gym.rules.state import Match, RewriteState
from taso_gym.signature import Signature

MAX_FLOPS = 20_000_000_000
"""Work of a site above which it isn't computed in float64: some seconds."""


class SiteError(EquivalenceError):
    """A rewritten site that gives something else.

    Attributes:
        rule: name of the rule.
    """

    def __init__(self, rule: str, verdict: str) -> None:
        """Say which rule, and what was found."""
        super().__init__(f"expected {rule} to change nothing, found at one of its sites: {verdict}")
        self.rule = rule


class SiteChecks(NamedTuple):
    """What was found at the sites of a walk.

    Attributes:
        applied: rewrites of the walk.
        computed: how many of them were computed, or have the rule and the signatures of one that was.
        error: largest error of a value relative to its magnitude.
        unknown: rules of the sites that weren't computed: an operator without a reference, too much work, or a value
            that is too large.
    """

    applied: int = 0
    computed: int = 0
    error: float = 0.0
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write it for people."""
        left = f"; not computed: {', '.join(self.unknown)}" if self.unknown else ""
        return f"{self.computed} of {self.applied} rewritten sites computed in float64, error {self.error:.1e}{left}"


class WalkChecker:
    """Checks the rewrites of a walk as they are replayed."""

    def __init__(self) -> None:
        """Begin with nothing checked."""
        self._known: dict[tuple[str, int, tuple[Signature, ...]], float | None] = {}
        self._errors: list[float | None] = []
        self._unknown: dict[str, None] = {}

    def check(self, state: RewriteState, match: Match, child: Graph) -> None:
        """Compute the site of a match before and after.

        Args:
            state: before.
            match: what is applied.
            child: the graph after it.

        Raises:
            SiteError: the site gives something else; the message names the rule and the output.
        """
        name = state.rules[match.rule].name
        key = (name, match.variant, tuple(state.graph.nodes[i].sig for i in match.nodes))
        if key not in self._known:
            self._known[key] = _error(name, state.graph, child, operations(key[2]))
        error = self._known[key]
        self._errors.append(error)
        if error is None:
            self._unknown[name] = None

    def result(self) -> SiteChecks:
        """Return what was found so far."""
        found = [error for error in self._errors if error is not None]
        return SiteChecks(len(self._errors), len(found), max(found, default=0.0), tuple(self._unknown))


def _error(rule: str, before: Graph, after: Graph, flops: int) -> float | None:
    if flops > MAX_FLOPS:
        return None
    try:
        report = check_site(before, after, draws=1)
    except (EquivalenceError, ModelError, MemoryError):
        return None
    if not report.ok:
        raise SiteError(rule, report.verdict)
    return report.max_relative_error
