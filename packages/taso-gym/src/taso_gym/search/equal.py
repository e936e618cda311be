"""What is left of a result that computes something else than its start when both are run.

Rules are proved, but a kernel may not be as ONNX says: onnxruntime's Attention gives zeros for a query whose keys are
all masked by the lowest float, where the operators that it stands for give the mean of the values. Searches that go on
would find another way to that kernel, so other rules that write it are left out with the one that did.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Callable

from taso_gym.errors import EquivalenceError, TasoError
from taso_gym.graph import Graph
from taso_gym.ops.operator import no_work, one_per_element
from taso_gym.rules.pattern import calls_of, operator_named
from taso_gym.rules.rule import Call, Rest, Rule, Var
from taso_gym.rules.ruleset import RuleSet, operators_of
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


def writing_the_same(name: str, rules: RuleSet) -> tuple[str, ...]:
    """Return the rules that write the kernel which a rule writes, if that is one: an operator with so many operands.

    None for what rounds differently, and where it has the kernel on its left, too: that isn't at fault.
    """
    culprit = rules[rules.index(name)]
    kernels = _written(culprit)
    if len(kernels) != 1 or culprit.numerics == "fast":
        return ()
    return tuple(rule.name for rule in rules if rule.name != name and kernels <= _written(rule))


def _written(rule: Rule) -> set[tuple[str, int]]:
    """Return the operators that only the right side has, each with its number of operands.

    But for simple ones, and those that compute weights beforehand.
    """
    fixed = {str(c.args[0].value) for c in rule.conditions if c.kind == "call" and c.value == "const"}
    read, calls = operators_of(rule.lhs), [call for call in calls_of(rule.rhs) if not _names(call) <= fixed]
    written = {(call.op, len(call.args)) for call in calls if call.op not in read}
    return {(op, count) for op, count in written if operator_named(op).flops not in (no_work, one_per_element)}


def _names(call: Call) -> set[str]:
    """Return the variables that stand for operands in a term."""
    return {arg.name for inner in calls_of([call]) for arg in inner.args if isinstance(arg, Var | Rest)}


class Screen:
    """Takes the rules out of finalists that make them differ, and remembers which do and which don't.

    Attributes:
        culprits: rules that do, and those that write the same kernel.
    """

    def __init__(self, differs: Callable[[Graph], bool] | None, say: Callable[[str], None]) -> None:
        """Begin with nothing known.

        Args:
            differs: as for `equal_part`; None where nothing does.
            say: called with what is compared.
        """
        self.culprits: tuple[str, ...] = ()
        self._differs: Callable[[Graph], bool] = differs or _never
        self._say, self._equal = say, list[frozenset[str]]()

    def passed(self, finalist: Finalist, left: Callable[[], float]) -> Finalist:
        """Return what is left of a finalist, with a warning if something is taken out.

        One all of whose rules an equal one had, too, is taken to be equal. So are all where the start can't be run or
        isn't equal to itself, and one for which there isn't time or room: whoever writes a result compares it again.

        Args:
            finalist: it.
            left: returns the seconds that are left.
        """

        def differs(graph: Graph) -> bool:
            if left() <= 0:
                raise TimeoutError
            return self._differs(graph)

        if not finalist.gains.keys().isdisjoint(self.culprits):
            finalist = finalist.without(self.culprits)
        if any(finalist.gains.keys() <= rules for rules in self._equal):
            return finalist
        rules = finalist.start.rules
        self._say(f"comparing what {finalist.name} computes")
        try:
            rest = equal_part(finalist, differs)
        except EquivalenceError:  # the start can't be run
            rest = None
        except (TasoError, MemoryError, OSError):  # no time or no room for this one
            return finalist
        if rest is None:
            self._differs = _never
            return finalist
        finalist, culprits = rest
        if culprits:
            warnings.warn(f"{', '.join(culprits)} left out: with it outputs differ when they are run", stacklevel=2)
        self._equal.append(frozenset(finalist.gains))
        alike = {other for name in culprits for other in writing_the_same(name, rules)}.difference(*self._equal)
        self.culprits = tuple(dict.fromkeys((*self.culprits, *culprits, *sorted(alike))))
        return finalist


def _never(_: Graph) -> bool:
    return False
