"""Generated graphs with a planted optimum: small random networks made worse by substitutions applied backwards.

A name such as ``generated/linear/17`` is a family and a seed. The network that the seed draws is the planted optimum;
from it random substitutions are undone, each of which a rule of the default set makes good again, so the way back is
known and so is the least that a search can gain. "Optimum" is meant by the roofline cost model, by which no single rule
of the default set improves it; another cost model may rank otherwise. `taso_gym.models.splits` says which graphs are
for training, validation and test.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from taso_gym.errors import OptionError
from taso_gym.graph import Graph
from taso_gym.models.families import grow
from taso_gym.models.splits import FAMILIES, PREFIX, is_generated
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

MAX_NODES, MAX_EDGES = 60, 100
"""Operators that a generated graph has at most, and inputs of operators; constants count as neither."""
STEPS = 10, 25
"""How many substitutions are undone: at least and at most."""

TRADES = """
relu-idempotent: Relu(Relu(x)) <=> Relu(x)
relu-of-concat: Concat(Relu(x), Relu(y), axis=a) <=> Relu(Concat(x, y, axis=a))
relu-of-max-pool: MaxPool(Relu(x), **k) <=> Relu(MaxPool(x, **k))
gelu-fuse: Mul(Mul(x, Add(Erf(Div(x, sqrt(2))), 1)), 0.5) <=> Gelu(x)
sigmoid-fuse: Reciprocal(Add(Exp(Neg(x)), 1)) <=> Sigmoid(x)
mish-fuse: Mul(x, Tanh(Softplus(x))) <=> Mish(x)
hard-swish-fuse: Mul(x, HardSigmoid(x, alpha=1/6, beta=0.5)) <=> HardSwish(x)
mul-factor: Add(Mul(x, y), Mul(x, z)) <=> Mul(x, Add(y, z))
softmax-fuse: Div(Exp(x), ReduceSum(Exp(x), axes=[a])) <=> Softmax(x, axis=a)
matmul-associate.reverse: MatMul(MatMul(x, y), z) <=> MatMul(x, MatMul(y, z)) if const(y) and const(z)
matmul-factor-left: Add(MatMul(x, y), MatMul(x, z)) <=> MatMul(x, Add(y, z)) if const(y) and const(z) and shape(y) == shape(z)
matmul-split-columns: Split(MatMul(x, w), axis=-1, split=s)[0], Split(MatMul(x, w), axis=-1, split=s)[1] <=> MatMul(x, Split(w, axis=-1, split=s)[0]), MatMul(x, Split(w, axis=-1, split=s)[1]) if rank(w) == 2 and rank(x) == 2 and len(s) == 2 and const(w)
conv-split: Split(Conv(x, w, group=1, **k), axis=1, split=s)[0], Split(Conv(x, w, group=1, **k), axis=1, split=s)[1] <=> Conv(x, Split(w, axis=0, split=s)[0], group=1, **k), Conv(x, Split(w, axis=0, split=s)[1], group=1, **k) if len(s) == 2 and const(w)
conv-add-kernels: Add(Conv(x, a, **k), Conv(x, b, **k)) <=> Conv(x, Add(a, b), **k) if shape(a) == shape(b)
add-associate: Add(Add(x, y), z) => Add(x, Add(y, z))
"""  # noqa: E501
"""What is worse, and what is better; the names are those of the rules of the default set that improve. The last one is
neutral and its own reverse, since operands commute; it takes terms apart, so that a greedy search can miss them."""


class Planted(NamedTuple):
    """A generated graph and the way to its planted optimum.

    Attributes:
        graphs: from the start to the optimum; each comes from the one before it by one substitution.
        rules: names in the default set of these substitutions, one less than graphs.
    """

    graphs: tuple[Graph, ...]
    rules: tuple[str, ...]

    @property
    def start(self) -> Graph:
        """What a game begins with."""
        return self.graphs[0]

    @property
    def optimum(self) -> Graph:
        """The network before it was made worse."""
        return self.graphs[-1]


@cache
def planted(name: str) -> Planted:
    """Make a generated graph and the way to its optimum.

    Raises:
        OptionError: not the name of a generated graph.
    """
    family, seed = _parse(name)
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    state = RewriteState(grow(family, rng, MAX_NODES), _trades(), max_nodes=MAX_NODES, max_edges=MAX_EDGES)
    graphs, rules, seen = [state.graph], list[str](), {state.hash}
    for _ in range(int(rng.integers(*STEPS))):
        undone = _undo(state, seen, rng)
        if undone is None:
            break
        state, rule = undone
        graphs.append(state.graph)
        seen.add(state.hash)
        rules.append(rule)
    start = graphs[-1]
    info = replace(start.info, digest=blake2b(name.encode(), digest_size=16).hexdigest())
    graphs[-1] = Graph(start.nodes, start.uses, start.leaves, start.next_id, start.hash, info)
    return Planted(tuple(reversed(graphs)), tuple(reversed(rules)))


@cache
def _trades() -> RuleSet:
    """Return the rules, each that improves followed by its reverse."""
    return RuleSet(parse_rules(TRADES, "generated"))


def _undo(state: RewriteState, seen: set[int], rng: np.random.Generator) -> tuple[RewriteState, str] | None:
    """Undo a random substitution, one that can be made again and leads to a new graph; return that, and its name."""
    neutral = len(state.rules) - 1
    offered = [number for number, row in enumerate(state.matches) if row and (number % 2 or number == neutral)]
    for number in map(int, rng.permutation(offered)):
        row, again = state.matches[number], number - number % 2
        child = state.apply(row[int(rng.integers(len(row)))])
        if child.hash not in seen and any(child.child_hash(m) == state.hash for m in child.matches[again]):
            return child, state.rules[again].name
    return None


def _parse(name: str) -> tuple[str, int]:
    family, _, seed = name.removeprefix(PREFIX).partition("/")
    if not is_generated(name) or family not in FAMILIES or not (seed.isascii() and seed.isdigit()):
        raise OptionError(f"expected {PREFIX}FAMILY/SEED with a family among {', '.join(FAMILIES)}, found {name!r}")
    return family, int(seed)
