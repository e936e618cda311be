"""Rules of ours in TASO's format, where it can say them.

Written are products and transposes of matrices, element-wise sums, products and activations, and concatenations of two
tensors on a literal axis; a rule with other operators, attributes or several outputs isn't. TASO knows no
preconditions, and its element-wise operators take operands of one shape: a rule that needs more than the ranks which
its left side says by that isn't either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taso_gym.rules.pattern import calls_of
from taso_gym.rules.rule import Call, Expr, Root, Rule, Var
from taso_gym.rules.taso_terms import ACTIVATION, AXIS, CONCAT, MATMUL, NUM_DIM, NUM_INPUTS, PERM, SHUFFLE, TRANSPOSE
from taso_gym.rules.taso_wire import TasoOperator, TasoRule, TasoTensor
from taso_substitutions.equalities.terms import literal, variables
from taso_substitutions.verify.facts import is_call

PLAIN = {"Add": 16, "Mul": 17, "Relu": 8, "Sigmoid": 9, "Tanh": 10}


class _InexpressibleError(Exception):
    """The format has no such operator."""


def record_of(rule: Rule) -> TasoRule | None:
    """Return a rule as TASO's record; None where the format can't say it."""
    ranks = _ranks(rule)
    if ranks is None or len(rule.lhs) != 1 or len(rule.rhs) != 1 or not _is_said(rule.lhs[0], ranks):
        return None
    try:
        source, target = _Side(rule, ranks), _Side(rule, ranks)
        result = (source.tensor(rule.lhs[0]), target.tensor(rule.rhs[0]))
    except _InexpressibleError:
        return None
    if min(t.op for t in result) < 0:
        return None
    return TasoRule(tuple(source.ops), tuple(target.ops), (result,))


def _ranks(rule: Rule) -> dict[str, int] | None:
    """Return the ranks that conditions say; None where one says something else."""
    found: dict[str, int] = {}
    for condition in rule.conditions:
        if condition.kind != "==" or not is_call(condition.args[0], "rank") or condition.args[1].kind != "number":
            return None
        found[str(condition.args[0].args[0].value)] = int(condition.args[1].value or 0)
    return found


def _is_said(pattern: Root, ranks: Mapping[str, int]) -> bool:
    """Whether a pattern says these ranks of variables by the operators that TASO has of matrices, and no others."""
    found: dict[Root, int] = {}
    calls = list(calls_of((pattern,)))
    while True:
        before = len(found)
        for call in calls:
            terms = [call, *call.args]
            known = {2} if call.op in ("MatMul", "Transpose") else {found[t] for t in terms if t in found}
            if call.op == "Concat" and (rank := _rank(call, ranks)):
                known |= {rank}
            if len(known) > 1 or any(found.get(t, rank) != rank for rank in known for t in terms):
                return False
            found |= {t: rank for rank in known for t in terms}
        if len(found) == before:
            return all(found.get(Var(name)) == rank for name, rank in ranks.items())


class _Side:
    def __init__(self, rule: Rule, ranks: Mapping[str, int]) -> None:
        self.names = variables(*rule.lhs)  # pyright: ignore[reportArgumentType]
        self.ranks = ranks
        self.ops: list[TasoOperator] = []

    def tensor(self, term: Root) -> TasoTensor:
        if isinstance(term, Var):
            return TasoTensor(-1 - self.names.index(term.name), 0)
        if not isinstance(term, Call) or term.others:
            raise _InexpressibleError
        inputs = tuple(self.tensor(arg) for arg in term.args)
        op = TasoOperator(*self._kind(term, inputs, {k: _value(e) for k, e in term.attrs}))
        if op not in self.ops:
            self.ops.append(op)
        return TasoTensor(self.ops.index(op), 0)

    def _kind(
        self, term: Call, inputs: tuple[TasoTensor, ...], attrs: Mapping[str, Any]
    ) -> tuple[int, tuple[TasoTensor, ...], dict[int, int]]:
        rank = _rank(term, self.ranks)
        if term.op in PLAIN and not attrs:
            return PLAIN[term.op], inputs, {}
        if term.op == "MatMul" and rank == 2:
            return MATMUL, inputs, {ACTIVATION: 0}
        if term.op == "Concat" and len(inputs) == 2 and rank:
            return CONCAT, inputs, {NUM_INPUTS: 2, AXIS: attrs["axis"] % rank, NUM_DIM: rank}
        if term.op == "Transpose" and tuple(attrs.get("perm", ())) == (1, 0):
            return TRANSPOSE, inputs, {NUM_DIM: 2, PERM: 2, SHUFFLE: 1}
        raise _InexpressibleError


def _rank(term: Root, ranks: Mapping[str, int]) -> int | None:
    """Return the rank of a term whose operands have one shape, by what is known of one of its variables."""
    if isinstance(term, Var):
        return ranks.get(term.name)
    found = [_rank(arg, ranks) for arg in term.args] if isinstance(term, Call) else []
    return next((rank for rank in found if rank is not None), None)


def _value(expr: Expr) -> Any:
    if expr.kind not in ("number", "list", "-"):
        raise _InexpressibleError
    return literal(expr)
