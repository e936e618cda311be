"""Searching a fragment for a basis: rules are added, smallest first, until they derive every equality.

An equality that neither closure nor saturation derives from the rules so far is generalised, proved and stated; what
it says then takes part in deriving the next. So what is proved is about as much as there are rules, however many
equalities there are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.rules.unparse import unparse
from taso_substitutions.derivation.closure import Closure, Edges
from taso_substitutions.derivation.components import Web, joined
from taso_substitutions.derivation.derive import BATCH, Deriver
from taso_substitutions.derivation.elsewhere import Elsewhere
from taso_substitutions.derivation.everywhere import everywhere, is_of, typed
from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragment import Fragment
from taso_substitutions.equalities.candidates import Classes, Terms, candidates, size_attributes
from taso_substitutions.equalities.generalise import Generaliser, typed_rule
from taso_substitutions.equalities.lift import lifted
from taso_substitutions.equalities.splitting import split_rule
from taso_substitutions.equalities.statement import state
from taso_substitutions.equalities.terms import Equality, attribute_variables, call_of, canonical, variables

Ints = NDArray[np.int64]
SMALL = 3
"""Operators up to which every equality is generalised, for the full set."""
DIRECTLY = 2000
"""Open equalities up to which those of most operators are derived one by one, rather than generalised first."""
LOOKED_AT = 3000
"""Open equalities among which the next one to be stated is chosen."""


@dataclass(frozen=True)
class Statement:
    """An equality with the rules that state it.

    Attributes:
        equality: the most general equality.
        lines: its rules; one for each direction, and one with several outputs.
        instances: what it says in the fragment, for each choice of types and attributes.
    """

    equality: Equality
    lines: tuple[str, ...]
    instances: tuple[Equality, ...] = ()

    @property
    def key(self) -> str:
        """What it says."""
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Found:
    """What is found in a fragment.

    Attributes:
        counts: as TASO's table 3 states them: "graphs", "tensors", "raw" equalities, those "modulo renaming" of inputs,
            and after removal of a "common subgraph".
        small: equalities of DAGs of up to `SMALL` operators.
        statements: they derive all others.
        exceptions: equalities that aren't proved, or can't be stated.
        enumeration_s: CPU time of the enumeration, fingerprints included.
    """

    counts: Mapping[str, int]
    small: list[Equality] = field(repr=False)
    statements: list[Statement]
    exceptions: list[Equality]
    enumeration_s: float = field(default=0.0, compare=False)


def stated(equality: Equality, example: Mapping[str, int], *, lift: bool) -> list[str]:
    """Return the rules of a most general equality as lines whose name is still to be given; none where none holds.

    Args:
        equality: the equality.
        example: the letters' sizes in the example that proofs start from.
        lift: state it for all attributes, where that can be shown, and with its form of several outputs.
    """
    generaliser = Generaliser(example)
    general = generaliser.proofs(equality)
    if not lift:
        return [unparse(rule) for rule in state(general, "rule")]
    lines = lifted(general, "rule")
    split = split_rule(general, generaliser, "split") if lines else None
    return [*lines, *([unparse(split)] if split else [])]


class Search:
    """Searches a fragment; see `search`."""

    def __init__(self, fragment: Fragment, ops: int) -> None:
        self.fragment, self.ops = fragment, ops
        self.types = list(dict.fromkeys(fragment.types.values()))
        self._sizes = size_attributes(fragment)
        begin = time.process_time()
        self.table, evaluator = enumerate_fragment(fragment, ops)
        self.enumeration_s = time.process_time() - begin
        self.classes = Classes(fragment, self.table, evaluator.trivial)
        self.closure = Closure(self.classes, evaluator)
        self.terms, self.generaliser = Terms(self.classes), Generaliser(fragment.example())
        count, rows = len(self.table), self.closure.roots
        value = self.table.value[rows] + count
        self.web = Web(count + len(self.classes.representative), rows, value, self.table.size[rows])
        standing = np.flatnonzero(self.classes.representative >= 0)
        self.web.give(np.stack([self.classes.representative[standing], standing + count], axis=1))
        self.statements: dict[str, Statement] = {}
        self.deriver = Deriver()
        self.lemmas: dict[str, Equality] = {}
        self.exceptions: list[Equality] = []
        self._equalities: dict[int, Equality] = {}
        self._tried: dict[int, int] = {}

    def run(self) -> Found:
        """Search all numbers of operators, one after the other."""
        for level in range(1, self.ops + 1):
            self._level(level)
        # What was left while statements were still missing may follow from all of them
        self.exceptions = [e for e in self.exceptions if not all(self.deriver.derives([e]))]
        raw = len(self.table) - len(np.unique(self.table.value))
        small = [equality for _, equality in candidates(self.classes, SMALL)]
        counts = {
            "graphs": sum(self.table.dags),
            "tensors": len(self.table),
            "raw": raw,
            "modulo renaming": int(self.classes.is_pair.sum()),
            "common subgraph": len(self.classes.pairs()),
        }
        return Found(counts, small, list(self.statements.values()), self.exceptions, self.enumeration_s)

    def _level(self, level: int) -> None:
        label, together = self.web.labels(self.web.ends, level), 1
        while len(waiting := self.web.open_rows(label, level)):
            if level == self.ops and len(waiting) <= DIRECTLY:
                direct = self._derived(self.web.rows[waiting])
                if len(direct):
                    self.web.give(direct)
                    label = joined(label, direct)
                    continue
            rows = self._first(self.web.rows[waiting], together)
            general = [self.generaliser.run(self.equality(row)) for row in rows]
            settled = self._settled({g.key: g for g in general if g}, self.web.rows[waiting])
            together = 1 if settled & self.statements.keys() else min(2 * together, BATCH)
            label = joined(label, np.concatenate([self._edges(name, level) for name in ("", *settled)]))
            stated = {self.statements[name].equality.key for name in settled & self.statements.keys()}
            for row, found in zip(rows, general, strict=True):
                node = np.array([[row, self.table.value[row] + len(self.table)]])
                done = found is None or found.key in settled | stated or not settled
                if done and label[node[0, 0]] != label[node[0, 1]]:
                    self.exceptions.append(self.equality(row))
                    self.web.give(node)
                    label = joined(label, node)

    def _derived(self, rows: Ints) -> Ints:
        """Return the edges of equalities that saturation derives as they are; nothing of more operators needs more."""
        new = [row for row in rows.tolist() if self._tried.get(row) != len(self.statements)]
        self._tried |= dict.fromkeys(new, len(self.statements))
        done = self.deriver.derives([self.equality(row) for row in new])
        found = np.array([row for row, known in zip(new, done, strict=True) if known], np.int64)
        return np.stack([found, self.table.value[found] + len(self.table)], axis=1)

    def _first(self, rows: Ints, count: int) -> list[int]:
        """Return the applications of the smallest and most general of open equalities."""
        return sorted(rows[:LOOKED_AT].tolist(), key=lambda row: self._rank(self.equality(row)))[:count]

    def _settled(self, general: Mapping[str, Equality], rows: Ints) -> set[str]:
        """Derive equalities, or else state the first that isn't derived; return the names of what this adds edges of.

        Args:
            general: the equalities by their keys.
            rows: applications that are to be connected.
        """
        new = [g for key, g in general.items() if key not in self.lemmas]
        self.lemmas |= {g.key: g for g, done in zip(new, self.deriver.derives(new), strict=True) if done}
        derived = {key: g for key, g in general.items() if key in self.lemmas}
        for key, equality in derived.items():
            sides = [side for side in (equality, equality.flipped()) if call_of(side.left) and is_rule(side)]
            self._add(key, [self.closure.edges(typed_rule(side), rows) for side in sides])
        if derived:
            return set(derived)
        for equality in general.values():
            lines = stated(equality, self.fragment.example(), lift=True)
            if lines:
                statement = Statement(equality, tuple(lines))
                self.add(statement)
                return {statement.key}
        return set()

    def _edges(self, name: str, level: int) -> Ints:
        if name not in self.web.ends:
            return np.zeros((0, 2), np.int64)
        return self.web.ends[name][self.web.levels[name] <= level]

    @staticmethod
    def _rank(equality: Equality) -> tuple[int, int, int, str]:
        return equality.size, -len(equality.types), len(equality.key), equality.key

    def equality(self, row: int) -> Equality:
        """Return the equality of an application and its class's representative."""
        if row not in self._equalities:
            sides = self.terms.of(row), self.terms.of_value(int(self.table.value[row]))
            self._equalities[row] = canonical(*sides, self.fragment.types, self._sizes.items())
        return self._equalities[row]

    def add(self, statement: Statement) -> None:
        """Let a statement take part."""
        rules = [rule for line in statement.lines for rule in parse_rules(line)]
        edges = [self.closure.edges(rule) for rule in rules]
        instances = {e.key: e for edge in edges for e in edge.instances}
        instances |= {e.key: e for rule in rules for e in everywhere(rule, self.types)}
        self.deriver.add(instances.values())
        self.statements[statement.key] = replace(statement, instances=tuple(instances[k] for k in sorted(instances)))
        self._add(statement.key, edges)

    def _add(self, name: str, edges: Sequence[Edges]) -> None:
        old = [(self.web.ends[name], self.web.levels[name])] if name in self.web.ends else []
        pairs = [*old, *((e.ends, e.level) for e in edges)]
        self.web.add(name, np.concatenate([ends for ends, _ in pairs]), np.concatenate([level for _, level in pairs]))

    def covers(self, rule: Rule) -> bool:
        """Whether what has been found derives a rule wherever it applies to graphs of the fragment.

        Where it applies to none of them, it is derived by saturation for the types of inputs that it takes. Where it
        has constants, several results, or operands that the fragment hasn't, it is derived at its own types, and with
        what is known besides (`Elsewhere`).
        """
        edges = self.closure.edges(rule).ends
        if len(edges):
            label = self.web.labels(self.web.ends, self.ops)
            return bool((label[edges[:, 0]] == label[edges[:, 1]]).all())
        said = list(typed(rule, self.types))
        own = [e for e in said if is_of(e, self.fragment)]
        if said and all(all(self.deriver.derives([e])) for e in own or said):
            return True
        return not own and self._elsewhere.derives(rule)

    @cached_property
    def _elsewhere(self) -> Elsewhere:
        """What has been found so far, for graphs that the fragment hasn't."""
        rules = [rule for s in self.statements.values() for line in s.lines for rule in parse_rules(line)]
        return Elsewhere(rules, [type_.bind(self.fragment.example()) for type_ in self.types])


def is_rule(equality: Equality) -> bool:
    """Whether an equality can be read from left to right: nothing appears on the right from nowhere."""
    tensors = set(variables(equality.right)) <= set(variables(equality.left))
    return tensors and set(attribute_variables(equality.right)) <= set(attribute_variables(equality.left))


def search(fragment: Fragment, ops: int) -> Found:
    """Return what a fragment's graphs of up to ``ops`` operators say, and a basis of it."""
    return Search(fragment, ops).run()
