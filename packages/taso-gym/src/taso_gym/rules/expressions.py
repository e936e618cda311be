"""Reading expressions and error positions from Python's syntax trees; nothing is ever evaluated by Python."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from taso_gym.errors import RuleError
from taso_gym.rules.functions import FUNCTIONS
from taso_gym.rules.rule import Expr

_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.USub: "-",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}

DEEPEST = 100
"""Levels of a syntax tree that a part of a rule may have: each takes some calls within each other to read and write."""


@dataclass(frozen=True)
class Piece:
    """A part of a rule's line: what stands between two signs.

    Attributes:
        text: the part; ``begin`` is its zero-based column in ``line``.
        line: the whole line.
        where: ``file:line``.
    """

    text: str
    begin: int
    line: str
    where: str

    def parse(self) -> list[ast.expr]:
        """Return the syntax trees of the comma-separated items.

        Raises:
            RuleError: it isn't Python's grammar, or is nested too deep.
        """
        try:
            # In brackets, so that `*F(...)` is allowed and leading blanks don't count as indentation.
            tree = ast.parse(f"[{self.text}]", mode="eval").body
        except SyntaxError as error:
            raise self.fail_at(f"expected an expression, found {error.msg}", (error.offset or 1) - 2) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise self.fail_at(f"expected an expression, found {error}", 0) from error
        if not isinstance(tree, ast.List):
            raise self.fail_at("expected one list of terms, found several", 0)
        if len(self.text) > DEEPEST and _is_deep(tree):
            raise self.fail_at(f"expected an expression of at most {DEEPEST} levels, found more", 0)
        return tree.elts

    def column(self, node: ast.expr | ast.keyword) -> int:
        """Return the column in the line at which a tree begins."""
        prefix = f"[{self.text}".encode()[: node.col_offset]
        return self.begin + len(prefix.decode(errors="replace")) - 1

    def fail(self, message: str, node: ast.expr | ast.keyword) -> RuleError:
        """Return an error with a caret under a tree."""
        return self.fail_at(message, self.column(node) - self.begin)

    def fail_at(self, message: str, offset: int) -> RuleError:
        """Return an error with a caret ``offset`` columns into the piece."""
        column = min(max(self.begin + offset, 0), len(self.line))
        return RuleError(message, line=self.line, where=self.where, column=column)


def _is_deep(tree: ast.expr) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


@dataclass
class Scope:
    """What a rule's left side binds.

    Attributes:
        kinds: name -> "tensor", "tensors" (written ``*xs``), "attribute" or "attributes" (written ``**k``).
        others: ``**k`` -> names of the attributes it stands for: those that aren't written out on the left and that
            every operator with ``**k`` has; what it can't stand for must have its ONNX default.
    """

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    others: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def hold(self, name: str, attributes: frozenset[str]) -> None:
        """Let ``**name`` stand for no other attributes than these."""
        self.others[name] = self.others.get(name, attributes) & attributes

    def kind(self, name: str) -> str:
        """Return what a name stands for; "" for nothing."""
        return self.kinds.get(name, "")


CONSTANTS: Mapping[str, float] = {"pi": math.pi}
"""Names of numbers; reserved."""


class ExpressionReader:
    """Reads the expressions of one piece; names are checked against a scope."""

    def __init__(self, piece: Piece, scope: Scope) -> None:
        """Read from ``piece``; ``scope`` holds what may be named."""
        self.piece, self.scope = piece, scope

    def read(self, node: ast.expr) -> Expr:
        """Return the expression of a tree.

        Raises:
            RuleError: a construct, name or function that a rule can't have.
        """
        column = self.piece.column(node)
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return Expr("number", number, (), column)
            case ast.Constant(value=str() as text):
                return Expr("string", text, (), column)
            case ast.Constant(value=None):
                return Expr("none", None, (), column)
            case ast.Name(id=name):
                return self._name(name, node, column)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return Expr("list", None, tuple(map(self.read, items)), column)
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                return self._field(name, attr, node, column)
            case ast.Call():
                return self._call(node, column)
            case _:
                return self._operation(node, column)

    def _operation(self, node: ast.expr, column: int) -> Expr:
        match node:
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _SIGNS:
                return Expr(_SIGNS[type(op)], None, (self.read(a), self.read(b)), column)
            case ast.UnaryOp(op=ast.USub() | ast.Not() as op, operand=a):
                return Expr(_SIGNS[type(op)], None, (self.read(a),), column)
            case ast.BoolOp(op=op, values=values):
                return Expr(_SIGNS[type(op)], None, tuple(map(self.read, values)), column)
            case ast.Compare() if all(type(op) in _SIGNS for op in node.ops):
                return self._comparison(node, column)
            case ast.Subscript(value=a, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                ends = tuple(Expr("none") if e is None else self.read(e) for e in (lower, upper))
                return Expr("[:]", None, (self.read(a), *ends), column)
            case ast.Subscript(value=a, slice=index) if not isinstance(index, ast.Slice):
                return Expr("[]", None, (self.read(a), self.read(index)), column)
            case _:
                raise self.piece.fail(f"expected an expression, found {ast.unparse(node)!r}", node)

    def _comparison(self, node: ast.Compare, column: int) -> Expr:
        operands = [self.read(e) for e in (node.left, *node.comparators)]
        links = tuple(
            Expr(_SIGNS[type(op)], None, (a, b), column)
            for op, a, b in zip(node.ops, operands[:-1], operands[1:], strict=True)
        )
        return links[0] if len(links) == 1 else Expr("and", None, links, column)

    def _name(self, name: str, node: ast.expr, column: int) -> Expr:
        if name in CONSTANTS:
            return Expr("number", CONSTANTS[name], (), column)
        kind = self.scope.kind(name)
        if kind.startswith("tensor"):
            raise self.piece.fail(f"expected a number or list, found the tensor {name!r}", node)
        if kind == "attributes":
            raise self.piece.fail(f"expected one attribute of {name!r} ({name}.group), found all of them", node)
        if not kind and name != "opset":
            raise self.piece.fail(f"expected an attribute variable of the left side, found {name!r}", node)
        return Expr("name", name, (), column)

    def _field(self, name: str, attr: str, node: ast.expr, column: int) -> Expr:
        if name not in self.scope.others:
            raise self.piece.fail(f"expected **{name} on the left side, found none", node)
        if attr not in self.scope.others[name]:
            choices = ", ".join(sorted(self.scope.others[name])) or "nothing"
            raise self.piece.fail(f"expected an attribute that **{name} holds ({choices}), found {attr!r}", node)
        return Expr("field", attr, (Expr("name", name),), column)

    def _call(self, node: ast.Call, column: int) -> Expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS:
            raise self.piece.fail(f"expected a function ({', '.join(FUNCTIONS)}), found {name!r}", node)
        function = FUNCTIONS[name]
        if node.keywords:
            raise self.piece.fail(f"expected positional arguments of {name}, found a keyword", node)
        if not function.accepts(len(node.args)):
            expected = f"{len(function.parameters)}{' or more' if function.variadic else ''}"
            raise self.piece.fail(f"expected {expected} arguments of {name}, found {len(node.args)}", node)
        args = tuple(
            self.read(arg) if function.parameter(i) == "value" else self._tensor(arg, function.parameter(i))
            for i, arg in enumerate(node.args)
        )
        return Expr("call", name, args, column)

    def _tensor(self, node: ast.expr, kind: str) -> Expr:
        name = node.id if isinstance(node, ast.Name) else ast.unparse(node)
        if not self.scope.kind(name).startswith("tensor"):
            raise self.piece.fail(f"expected a tensor variable of the left side, found {name!r}", node)
        if self.scope.kind(name) == "tensors" and kind != "tensors":
            raise self.piece.fail(f"expected one tensor, found any number of them: *{name}", node)
        return Expr("name", name, (), self.piece.column(node))
