"""Lifting: from an equality with literal attributes to one rule for all of them, where that can be shown.

What both sides' windows have in common becomes ``**k``; an axis, a permutation or a list of axes becomes a variable,
and an axis on the other side of a permutation ``p[a]`` or ``inverse(p)[a]``. The lifted rule holds for other ranks too,
so its conditions say no ranks but which are equal, which shapes are, or which axes. It has to pass T3 and T1 on sampled
attributes, ranks and sizes; where it doesn't, less is lifted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from taso_gym.rules.rule import Call, Expr, Output, Root
from taso_gym.rules.unparse import unparse, unparse_term
from taso_substitutions.equalities.forms import Lifted, Literals, conditions_of
from taso_substitutions.equalities.generalise import General
from taso_substitutions.equalities.statement import first_that_passes, statement_of
from taso_substitutions.equalities.terms import Equality, literal, subterms

WINDOWS = {"Conv": "k", "AveragePool": "j", "MaxPool": "i", "Slice": "h", "Pad": "g"}
"""Operator -> name of the attributes that its calls share."""
VARIABLES = {"axis": "a", "perm": "p", "axes": "d", "starts": "b", "ends": "e"}
"""Attribute -> first letter of its variable."""
BOUNDS = frozenset({"starts", "ends"})
"""Attributes that may be lifted where the axes that they belong to can't."""
TURNS = ("p[a]", "inverse(p)[a]")
"""What an axis on the right may be, of a permutation and an axis on the left."""
COMPOSED = "compose(p, q)"
"""What a permutation on the right may be, of two on the left."""


def lifted(general: General, name: str) -> list[str]:
    """Return the rules of an equality as lines, each direction lifted as far as can be shown."""
    found: list[str] = []
    for equality, proof, end in general.directions():
        rules = (
            first_that_passes(f"{name}{end}", form.body, conditions_of(equality, proof, form))
            for form in liftings(equality)
        )
        rule = next(filter(None, rules), None) or statement_of(equality, proof, f"{name}{end}")
        found += [unparse(rule)] if rule else []
    return found


def liftings(equality: Equality) -> Iterator[Lifted]:
    """Yield the ways to lift an equality, those that lift more first; each that differs from the equality."""
    calls = [c for side in (equality.left, equality.right) for c in subterms(side)]
    windows = {op for op in WINDOWS if len({c.attrs for c in calls if c.op == op}) == 1}
    names = _variables(calls)
    bounds = {attr: name for attr, name in names.items() if attr[0] in BOUNDS}
    single = {attr: name for attr, name in names.items() if attr[0] != "axes"}
    chosen_names = [names, *([single] if bounds and single != bounds else []), bounds, {}]
    kinds = [windows, windows - {"Slice"}] if "Slice" in windows else [windows]
    seen = {equality.body}
    for shared, groups, chosen in product(kinds, (True, False) if "Conv" in windows else (True,), chosen_names):
        left = unparse_term(_written(equality.left, shared, chosen, groups=groups))
        known = {k: v for k, v in chosen.items() if _is_used(k, subterms(equality.left))}
        for turn in (*TURNS, COMPOSED, ""):
            other = _composed(known, calls) if turn == COMPOSED else _turned(known, calls, turn)
            turned = {**known, **other}
            if turn and turned == known:
                continue
            body = f"{left} => {unparse_term(_written(equality.right, shared, turned, groups=groups))}"
            if body not in seen:
                seen.add(body)
                yield Lifted(body, known, bool(shared), bool(turn))


def _is_used(attr: tuple[str, Expr], calls: Iterator[Call]) -> bool:
    return any(attr in call.attrs for call in calls)


def _turned(known: Literals, calls: Sequence[Call], turn: str) -> dict[tuple[str, Expr], Expr]:
    """Return axes as a permutation takes them there from an axis on the left."""
    form = Lifted("", known)
    found: dict[tuple[str, Expr], Expr] = {}
    if not turn:
        return found
    for (perm, p), (axis, a) in product(form.perms().items(), form.axes().items()):
        if axis >= len(perm):
            continue
        goal = perm[axis] if turn == TURNS[0] else perm.index(axis)
        source = Expr("name", p) if turn == TURNS[0] else Expr("call", "inverse", (Expr("name", p),))
        for call in calls:
            for attr in call.attrs:
                if attr[0] == "axis" and literal(attr[1]) == goal:
                    found[attr] = Expr("[]", None, (source, Expr("name", a)))
    return found


def _composed(known: Literals, calls: Sequence[Call]) -> dict[tuple[str, Expr], Expr]:
    """Return permutations that two of those on the left make one after the other."""
    found: dict[tuple[str, Expr], Expr] = {}
    for (first, p), (second, q) in product(Lifted("", known).perms().items(), repeat=2):
        if len(first) != len(second):
            continue
        goal = tuple(first[axis] for axis in second)
        composed = Expr("call", "compose", (Expr("name", p), Expr("name", q)))
        for attr in (attr for call in calls for attr in call.attrs if attr not in known):
            if attr[0] == "perm" and literal(attr[1]) == goal:
                found.setdefault(attr, composed)
    return found


def _written(term: Root, shared: set[str], names: Literals, *, groups: bool) -> Any:
    """Return a side with its attributes lifted; where groups aren't, the group of a convolution is 1."""
    if isinstance(term, Output):
        return Output(_written(term.call, shared, names, groups=groups), term.index)
    if not isinstance(term, Call):
        return term
    args = tuple(_written(a, shared, names, groups=groups) for a in term.args)
    if term.op in shared:
        kept = (("group", Expr("number", 1)),) if term.op == "Conv" and not groups else ()
        return Call(term.op, args, kept, WINDOWS[term.op])
    return Call(term.op, args, tuple((k, names.get((k, e), e)) for k, e in term.attrs))


def _variables(calls: Sequence[Call]) -> dict[tuple[str, Expr], Expr]:
    """Return a variable for each value of an attribute that may vary."""
    found: dict[tuple[str, Expr], Expr] = {}
    for call in calls:
        for attr in call.attrs:
            if attr[0] in VARIABLES and attr[1].kind != "name":
                found.setdefault(attr, Expr("name", f"{VARIABLES[attr[0]]}{len(found)}"))
    return found
