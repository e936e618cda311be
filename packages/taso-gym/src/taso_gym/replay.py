"""Replays: how a graph was optimised, as a small JSON file that is checked bit for bit in another process.

A replay names model, rules and cost model with their digests, and holds the rewrites as (rule, node ids, variant), with
the cost after each. It holds no weights: whoever plays it back brings the model, and it must be the same one.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from taso_gym.atomic import write_text
from taso_gym.checks import check_kind
from taso_gym.env.game import GraphGame
from taso_gym.env.source import Model, Source
from taso_gym.errors import MatchError, ReplayError, RuleError
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState

FORMAT = 1
PACKAGES = ("taso-gym", "gymnasium", "numpy", "onnx")


class Move(NamedTuple):
    """A rewrite: rule by name, ids of the matched operators, operand order, and the graph's run time after it."""

    rule: str
    nodes: tuple[int, ...]
    variant: int
    time_ps: int


@dataclass(frozen=True)
class Replay:
    """A game that was played.

    Attributes:
        source: of the start state.
        model_digest, final_digest: canonical digests of first and last graph.
        rules_digest: of the rule set.
        cost_key: what the cost model's numbers depend on.
        start_ps: run time of the first graph.
        moves: the rewrites.
        versions: of Python and of packages; for people, not compared.
    """

    source: Source
    model_digest: str
    final_digest: str
    rules_digest: str
    cost_key: str
    start_ps: int
    moves: tuple[Move, ...]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, env: GraphGame) -> Replay:
        """Return the replay of an environment's episode so far.

        Raises:
            OptionError: it is another environment, or a wrapper.
        """
        check_kind("env", env, (GraphGame,), "a TasoGraphEnv without wrappers (env.unwrapped)")
        return cls.record(env.episode.start.state, env.path, env.source())

    @classmethod
    def record(cls, start: RewriteState, path: Sequence[Match], source: Source) -> Replay:
        """Return the replay of rewrites from a start state; it applies them.

        Raises:
            MatchError: one isn't legal.
        """
        state, moves = start, list[Move]()
        for match in path:
            state = state.apply(match)
            moves.append(Move(start.rules[match.rule].name, match.nodes, match.variant, state.cost.time_ps))
        versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
        digests = start.graph.canonical_digest(), state.graph.canonical_digest(), start.rules.digest
        return cls(source, *digests, _key(start), start.cost.time_ps, tuple(moves), versions)

    def apply(self, start: RewriteState) -> RewriteState:
        """Make the moves from a start state and return the last state.

        Raises:
            ReplayError: other rules, other costs, or a move that isn't legal; says which.
            OptionError: it is no state.
        """
        check_kind("start", start, (RewriteState,), "a RewriteState")
        self._expect("rule set", self.rules_digest, start.rules.digest)
        self._expect("cost of the start", self.start_ps, start.cost.time_ps)
        state = start
        for number, move in enumerate(self.moves, 1):
            where = f"move {number} ({move.rule})"
            try:
                state = state.apply(Match(start.rules.index(move.rule), move.nodes, move.variant))
            except (MatchError, RuleError) as error:
                raise ReplayError(f"{where}: expected a legal substitution, found none: {error}") from error
            self._expect(f"cost after {where}", move.time_ps, state.cost.time_ps)
        return state

    def validate(self, model: Model | None = None, rules: str | Path | RuleSet | None = None) -> RewriteState:
        """Load what the replay names, make its moves, compare digests and costs, and return the last state.

        Args:
            model: in place of the one that is named (its path may be another here).
            rules: likewise.

        Raises:
            ReplayError: something differs; says what was expected and found.
            TasoError: what is named can't be loaded.
        """
        start = self.source.start(model, rules)
        self._expect("model", self.model_digest, start.graph.canonical_digest())
        self._expect("cost model", self.cost_key, _key(start))
        state = self.apply(start)
        self._expect("last graph", self.final_digest, state.graph.canonical_digest())
        return state

    def save(self, path: str | Path) -> None:
        """Write the replay as JSON, whole or not at all."""
        write_text(path, json.dumps({"format": FORMAT, **asdict(self)}, indent=1, default=_plain) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Replay:
        """Read a replay.

        Raises:
            ReplayError: the file is missing, damaged or of another format.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT:
                raise ReplayError(f"{path}: expected a replay of format {FORMAT}, found another; update taso-gym")
            source, moves = data.pop("source"), data.pop("moves")
            _expect_types(source)
            return cls(source=Source(**source), moves=tuple(_move(*row) for row in moves), **data)
        except OSError as error:
            raise ReplayError(f"expected a replay, found none at {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ReplayError(f"{path}: expected a replay, found something else: {error}") from error

    def _expect(self, what: str, expected: object, found: object) -> None:
        if expected != found:
            raise ReplayError(f"{what}: the replay has {expected}, found {found}")


MAPPINGS = ("model_kwargs", "cost_options", "dims", "limits")
SOURCE_TYPES = {**dict.fromkeys(("model", "rules", "cost"), str), **dict.fromkeys(MAPPINGS, dict)}
LIMITS = ("max_locations", "max_nodes", "max_edges")


def _expect_types(source: Mapping[str, Any]) -> None:
    """Raise a TypeError for a field of a source that isn't of its kind."""
    for name, value in source.items():
        kind = SOURCE_TYPES.get(name)
        if kind and not isinstance(value, kind):
            raise TypeError(f"expected {name} as {kind.__name__}, found {value!r}")
    for name, limit in source.get("limits", {}).items():
        if name not in LIMITS or not (limit is None or type(limit) is int):
            raise TypeError(f"expected whole numbers as limits {', '.join(LIMITS)}, found {name}: {limit!r}")


def _move(rule: Any, nodes: Any, variant: Any, time_ps: Any) -> Move:
    """Return a move of a file; a TypeError says what isn't of its kind."""
    made = Move(rule, tuple(nodes), variant, time_ps)
    if not isinstance(rule, str) or any(type(number) is not int for number in (*made.nodes, variant, time_ps)):
        raise TypeError(f"expected a move as a name, numbers of nodes and two numbers, found {made}")
    return made


def _key(state: RewriteState) -> str:
    return state.cost_model.key if state.cost_model else ""


def _plain(value: Any) -> Any:
    """Return a NumPy number as Python's, which JSON has."""
    if isinstance(value, np.number | np.bool_):
        return cast(Any, value).item()
    raise ReplayError(f"expected numbers, text and lists of these in a replay, found {value!r:.200}")
