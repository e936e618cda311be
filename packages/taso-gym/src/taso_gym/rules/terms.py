"""Reading the terms of a rule (operators applied to tensors) from Python's syntax trees."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable

from taso_gym.ops import OPERATORS, Operator
from taso_gym.rules.expressions import CONSTANTS, ExpressionReader, Piece, Scope
from taso_gym.rules.functions import FUNCTIONS
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Term, Var

KEYS = {op.key: op for op in OPERATORS.values()}
"""Operators by the name that rules write: ``MatMul``, ``ms.FusedMatMul``."""

RESERVED = frozenset({"opset", *CONSTANTS})


def operator_of(node: ast.Call, piece: Piece) -> Operator:
    """Return the operator that a call names.

    Raises:
        RuleError: the operator table has none of that name.
    """
    key = ast.unparse(node.func)
    if key not in KEYS:
        close = difflib.get_close_matches(key, KEYS, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise piece.fail(f"expected an operator of the table, found {key!r}{hint}", node)
    return KEYS[key]


def bind_scope(roots: Iterable[ast.expr], piece: Piece) -> Scope:
    """Return what the left side binds: its tensors, attribute variables and ``**k``.

    Raises:
        RuleError: one name for two kinds of things.
    """
    scope = Scope()
    for root in roots:
        _bind(root, piece, scope)
    return scope


def _bind(node: ast.expr, piece: Piece, scope: Scope) -> None:
    match node:
        case ast.Subscript(value=inner) | ast.Starred(value=ast.Call() as inner):
            _bind(inner, piece, scope)
        case ast.Name(id=name) if name != "_":
            _enter(name, "tensor", node, piece, scope)
        case ast.Starred(value=ast.Name(id=name)):
            _enter(name, "tensors", node, piece, scope)
        case ast.Call(args=args, keywords=keywords) if _is_operator(node):
            for arg in args:
                _bind(arg, piece, scope)
            _bind_attributes(operator_of(node, piece), keywords, piece, scope)
        case _:
            pass


def _bind_attributes(op: Operator, keywords: list[ast.keyword], piece: Piece, scope: Scope) -> None:
    written = {keyword.arg for keyword in keywords}
    for keyword in keywords:
        values = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else [keyword.value]
        for value in values:
            if isinstance(value, ast.Name):
                _enter(value.id, "attribute" if keyword.arg else "attributes", value, piece, scope)
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            scope.hold(keyword.value.id, frozenset(op.defaults) - written)


def narrow_scope(roots: Iterable[ast.expr], piece: Piece, scope: Scope) -> None:
    """Let each ``**k`` stand only for attributes that every operator on the right which takes it has too."""
    for root in roots if scope.others else ():
        for node in ast.walk(root):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg is None and isinstance(keyword.value, ast.Name) and keyword.value.id in scope.others:
                    assert isinstance(node, ast.Call)
                    scope.hold(keyword.value.id, frozenset(operator_of(node, piece).defaults))


def _enter(name: str, kind: str, node: ast.expr, piece: Piece, scope: Scope) -> None:
    if name in RESERVED or scope.kinds.setdefault(name, kind) != kind:
        raise piece.fail(f"expected a name that stands for one thing, found {name!r} in a second meaning", node)


def _is_operator(node: ast.Call) -> bool:
    return not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS)


class TermReader:
    """Reads the terms of one side of a rule."""

    def __init__(self, piece: Piece, scope: Scope, left: bool) -> None:
        """Read from ``piece``; ``scope`` is what the left side binds, ``left`` whether this is the left side."""
        self.piece, self.scope, self.left = piece, scope, left
        self.expressions = ExpressionReader(piece, scope)
        self._calls: dict[int, Call] = {}

    def root(self, node: ast.expr) -> Root:
        """Return a root: a term, or all outputs of a call.

        Raises:
            RuleError: the term isn't well formed; the message says what was expected and found.
        """
        match node:
            case ast.Starred(value=ast.Call() as call):
                return AllOutputs(self.call(call))
            case ast.Starred(value=ast.Name(id=name)):
                if self.scope.kind(name) != "tensors":
                    raise self.piece.fail(f"expected *{name} on the left side, found none", node)
                return Rest(name)
            case _:
                return self.term(node)

    def term(self, node: ast.expr) -> Term:
        """Return a term of one output."""
        match node:
            case ast.Name(id="_"):
                return Absent()
            case ast.Name(id=name):
                return self._variable(name, node)
            case ast.Subscript(value=ast.Call() as inner, slice=ast.Constant(value=int() as index)) if index >= 0:
                return Output(self.call(inner), index) if index else self.call(inner)
            case ast.Call() if _is_operator(node):
                return self.call(node)
            case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Call() | ast.Attribute() | ast.List():
                return Constant(self.expressions.read(node))
            case _:
                raise self.piece.fail(f"expected a tensor, found {ast.unparse(node)!r}", node)

    def _variable(self, name: str, node: ast.expr) -> Term:
        kind = self.scope.kind(name)
        if kind == "attribute":
            return Constant(self.expressions.read(node))
        if kind == "tensors":
            raise self.piece.fail(f"expected *{name}, found {name!r} without the star", node)
        if kind != "tensor":
            raise self.piece.fail(f"expected a variable that the left side binds, found {name!r}", node)
        return Var(name)

    def call(self, node: ast.Call) -> Call:
        """Return an operator applied to terms: one object for a tree that stands in several places."""
        if id(node) not in self._calls:
            op = operator_of(node, self.piece)
            args = tuple(map(self.root, node.args))
            self._check_operands(op, args, node)
            self._calls[id(node)] = Call(op.key, args, *self._attributes(op, node))
        return self._calls[id(node)]

    def _attributes(self, op: Operator, node: ast.Call) -> tuple[tuple[tuple[str, Expr], ...], str | None]:
        attrs: dict[str, Expr] = {}
        others: str | None = None
        for keyword in node.keywords:
            if keyword.arg is None and others is not None:
                raise self.piece.fail(f"expected one ** in {op.key}, found several", keyword.value)
            if keyword.arg is None:
                others = self._others(keyword)
            elif keyword.arg not in op.defaults:
                choices = ", ".join(sorted(op.defaults)) or "none"
                raise self.piece.fail(f"expected an attribute of {op.key} ({choices}), found {keyword.arg!r}", keyword)
            else:
                attrs[keyword.arg] = self.expressions.read(keyword.value)
        return tuple(sorted(attrs.items())), others

    def _others(self, keyword: ast.keyword) -> str:
        name = keyword.value.id if isinstance(keyword.value, ast.Name) else ast.unparse(keyword.value)
        if name not in self.scope.others:
            raise self.piece.fail(
                f"expected **name with a name that the left side binds, found **{name}", keyword.value
            )
        return name

    def _check_operands(self, op: Operator, args: tuple[Root, ...], node: ast.Call) -> None:
        spreads = sum(isinstance(arg, Rest | AllOutputs) for arg in args)
        fixed = len(args) - spreads
        if self.left and spreads > 1:
            raise self.piece.fail("expected at most one starred operand on the left side, found several", node)
        least = 0 if spreads else op.min_inputs
        if fixed < least or (op.max_inputs is not None and fixed > op.max_inputs):
            most = "or more" if op.max_inputs is None else f"to {op.max_inputs}"
            count = f"{op.min_inputs}" if op.max_inputs == op.min_inputs else f"{op.min_inputs} {most}"
            raise self.piece.fail(f"expected {count} operands of {op.key}, found {fixed}", node)
        if not spreads and any(isinstance(arg, Absent) for arg in args[: op.min_inputs]):
            raise self.piece.fail(f"expected the first {op.min_inputs} operands of {op.key}, found an absent one", node)
