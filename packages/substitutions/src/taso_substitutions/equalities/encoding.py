"""Equalities as JSON, for the files between stages."""

from __future__ import annotations

import json
from typing import Any

from taso_gym.errors import RuleError
from taso_gym.rules.rule import Call, Expr, Output, Root, Term, Var
from taso_gym.symbolic import Dim, floor_div, quotient_of, symbol
from taso_gym.tensor import TensorType
from taso_substitutions.equalities.candidates import expression
from taso_substitutions.equalities.terms import Equality, literal


def encode(equality: Equality) -> str:
    """Return an equality as JSON text."""
    values = {
        "left": _encode_term(equality.left),
        "right": _encode_term(equality.right),
        "types": [[_encode_dim(d) for d in t.shape or ()] for t in equality.types],
        "attrs": [[name, [_encode_dim(d) for d in value]] for name, value in equality.attrs],
    }
    return json.dumps(values, separators=(",", ":"))


def decode(text: str) -> Equality:
    """Return the equality of JSON text.

    Raises:
        RuleError: it isn't what `encode` makes.
    """
    try:
        row = json.loads(text)
        types = tuple(TensorType("float", tuple(_decode_dim(d) for d in shape)) for shape in row["types"])
        attrs = tuple((str(name), tuple(_decode_dim(d) for d in value)) for name, value in row["attrs"])
        return Equality(_decode_term(row["left"]), _decode_term(row["right"]), types, attrs)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RuleError(f"expected an equality, found {text[:80]!r}: {error!r}") from error


def _encode_term(term: Root) -> Any:
    match term:
        case Var(name):
            return name
        case Output(call, index):
            return [*_encode_term(call), index]
        case Call():
            attrs = [[k, {"name": e.value} if e.kind == "name" else literal(e)] for k, e in term.attrs]
            return [term.op, attrs, [_encode_term(a) for a in term.args]]
        case _:
            raise AssertionError(f"no term of an equality: {term}")


def _decode_term(row: Any) -> Term:
    if isinstance(row, str):
        return Var(row)
    key, attrs, args, *output = row
    found = tuple((str(k), _decode_attr(v)) for k, v in attrs)
    call = Call(str(key), tuple(_decode_term(a) for a in args), found)
    return Output(call, int(output[0])) if output else call


def _decode_attr(value: Any) -> Any:
    if isinstance(value, dict):
        return Expr("name", str(value["name"]))  # pyright: ignore[reportUnknownArgumentType]
    return expression(tuple(value) if isinstance(value, list) else value)  # pyright: ignore[reportUnknownArgumentType]


def _encode_dim(dim: Dim) -> Any:
    if isinstance(dim, int):
        return dim
    return [[factor, [_encode_symbol(name) for name in monomial]] for monomial, factor in dim.terms]


def _encode_symbol(name: str) -> Any:
    quotient = quotient_of(name)
    return name if quotient is None else [_encode_dim(d) for d in quotient]


def _decode_dim(row: Any) -> Dim:
    if isinstance(row, int):
        return row
    total: Dim = 0
    for factor, names in row:
        term: Dim = int(factor)
        for name in names:
            term = term * (symbol(name) if isinstance(name, str) else floor_div(*map(_decode_dim, name)))
        total = total + term
    return total
