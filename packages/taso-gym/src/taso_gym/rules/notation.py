"""The one-line notation of rules: ``name [tags]: left => right if conditions``, in Python's expression grammar.

A line is split into its pieces here; `taso_gym.rules.terms` and `taso_gym.rules.expressions` read them from Python's
syntax tree by a white-list of their own. Nothing is evaluated by Python. A term that a right side uses more than once
may be named where it stands first, ``Mul(y := Exp(x), y)`` (`taso_gym.rules.named`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from taso_gym.checks import check_kind
from taso_gym.errors import RuleError
from taso_gym.rules.expressions import ExpressionReader, Piece
from taso_gym.rules.functions import FUNCTIONS
from taso_gym.rules.named import written_out
from taso_gym.rules.pattern import pattern_of
from taso_gym.rules.rule import NUMERICS, AllOutputs, Call, Expr, Numerics, Output, Rest, Root, Rule, Var
from taso_gym.rules.terms import KEYS, RESERVED, TermReader, bind_scope, narrow_scope
from taso_gym.rules.unparse import unparse

__all__ = ["parse_rules", "unparse"]

_HEAD = re.compile(r"\s*(?P<name>[A-Za-z][\w.+-]*)\s*(\[(?P<tags>[^\]]*)\])?\s*:")


class _Line(NamedTuple):
    """One line, cut into pieces."""

    name: str
    numerics: Numerics
    any_type: bool
    left: Piece
    right: Piece
    conditions: Piece | None
    both_ways: bool


def parse_rules(text: str, where: str = "") -> list[Rule]:
    """Return the rules of a ``.rules`` text in order; ``<=>`` gives two, the second called ``name.reverse``.

    Args:
        text: one rule a line; blank lines and comments (``#``) are skipped.
        where: name of the file, for error messages.

    Raises:
        RuleError: a line isn't a well-formed rule; quotes it with a caret under the fault.
        OptionError: it is no text.
    """
    check_kind("rules", text, (str,), "text")
    rules: list[Rule] = []
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        for rule in _parse_line(line, f"{where or '<rules>'}:{number}"):
            if rule.name in names:
                raise RuleError(f"expected a new name, found a second {rule.name!r}", line=line, where=rule.where)
            names.add(rule.name)
            rules.append(rule)
    return rules


def _parse_line(line: str, where: str) -> Iterator[Rule]:
    parts = _cut(line, where)
    yield _direction(parts, parts.name, parts.left, parts.right)
    if parts.both_ways:
        yield _direction(parts, f"{parts.name}.reverse", parts.right, parts.left)


def _cut(line: str, where: str) -> _Line:
    head = _HEAD.match(line)
    if not head:
        raise RuleError("expected `name: left => right`, found no name", line=line, where=where, column=0)
    numerics, any_type = _tags(head, line, where)
    body = Piece(line[head.end() :], head.end(), line, where)
    arrow, condition, end = _signs(body)
    left = Piece(body.text[: arrow.start], body.begin, line, where)
    stop = end if condition is None else condition.start
    right = Piece(body.text[arrow.end : stop], body.begin + arrow.end, line, where)
    tail = None if condition is None else Piece(body.text[condition.end : end], body.begin + condition.end, line, where)
    for piece, what in ((left, "left side"), (right, "right side"), (tail, "condition")):
        if piece is not None and not piece.text.strip():
            raise piece.fail_at(f"expected a {what}, found nothing", 0)
    return _Line(head["name"], numerics, any_type, left, right, tail, arrow.text == "<=>")


def _tags(head: re.Match[str], line: str, where: str) -> tuple[Numerics, bool]:
    numerics: Numerics = "reassociate"
    any_type = False
    for tag in re.finditer(r"[^\s,]+", head["tags"] or ""):
        if tag[0] == "any":
            any_type = True
        elif tag[0] in NUMERICS:
            numerics = NUMERICS[NUMERICS.index(tag[0])]  # pyright: ignore[reportArgumentType]
        else:
            column = head.start("tags") + tag.start()
            choices = ", ".join([*NUMERICS, "any"])
            raise RuleError(f"expected a tag ({choices}), found {tag[0]!r}", line=line, where=where, column=column)
    return numerics, any_type


class _Sign(NamedTuple):
    """A sign of the notation and where it stands in the body."""

    text: str
    start: int
    end: int


_SIGN = re.compile(
    r"""
    (?P<comment> \#.*)
    | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<open> [(\[{]) | (?P<close> [)\]}])
    | (?P<arrow> (?<![-+*/%@&|^!:<>=]) <?=> (?![>=]))
    | (?P<word> \w+)
    """,
    re.VERBOSE,
)
"""What tells the parts of a line from each other; an arrow is none within a longer operator."""


def _signs(body: Piece) -> tuple[_Sign, _Sign | None, int]:
    """Return the arrow, the ``if`` and the column at which a comment begins."""
    arrow: _Sign | None = None
    condition: _Sign | None = None
    end = len(body.text)
    depth = 0
    for found in _SIGN.finditer(body.text):
        kind, sign = found.lastgroup, _Sign(found[0], *found.span())
        depth += (kind == "open") - (kind == "close")
        if kind == "comment":
            end = sign.start
        elif kind == "arrow" and not depth:
            if arrow:
                raise body.fail_at("expected one arrow, found a second", sign.start)
            arrow = sign
        elif sign.text == "if" and not depth and arrow and not condition:
            condition = sign
    if depth > 0:
        raise body.fail_at("expected closed brackets, found an open one", len(body.text))
    if arrow is None:
        raise body.fail_at("expected `=>` or `<=>` between two sides, found none", len(body.text))
    return arrow, condition, end


def _direction(line: _Line, name: str, left: Piece, right: Piece) -> Rule:
    left_trees = left.parse()
    scope = bind_scope(left_trees, left)
    right_trees = right.parse()
    narrow_scope(right_trees, right, scope)
    right_trees = written_out(right_trees, right, {*scope.kinds, *RESERVED, *FUNCTIONS, *KEYS})
    lhs = tuple(map(TermReader(left, scope, left=True).root, left_trees))
    rhs = tuple(map(TermReader(right, scope, left=False).root, right_trees))
    conditions = _conditions(line.conditions, ExpressionReader(line.conditions, scope)) if line.conditions else ()
    for root, tree in zip(lhs, left_trees, strict=True):
        if not isinstance(root, Call | Output | AllOutputs):
            raise left.fail(f"expected an operator on the left side, found {ast.unparse(tree)!r}", tree)
    spreads = any(isinstance(root, AllOutputs | Rest) for root in (*lhs, *rhs))
    if not spreads and len(lhs) != len(rhs):
        raise right.fail_at(f"expected {len(lhs)} outputs as on the left side, found {len(rhs)}", _blanks(right))
    for root, tree in zip(rhs, right_trees, strict=True):
        _check_right_root(root, right, tree)
    rule = Rule(name, lhs, rhs, conditions, line.numerics, line.any_type, left.line.strip(), left.where)
    pattern_of(rule)
    return rule


def _conditions(piece: Piece, reader: ExpressionReader) -> tuple[Expr, ...]:
    trees = piece.parse()
    if len(trees) != 1:
        raise piece.fail_at("expected one condition (join several by `and`), found a list", _blanks(piece))
    return tuple(_conjuncts(reader.read(trees[0])))


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    if condition.kind != "and":
        yield condition
    for arg in condition.args if condition.kind == "and" else ():
        yield from _conjuncts(arg)


def _check_right_root(root: Root, piece: Piece, tree: ast.expr) -> None:
    if isinstance(root, Call | Output | AllOutputs | Rest | Var):
        return
    raise piece.fail(f"expected a tensor with an element type, found {ast.unparse(tree)!r}", tree)


def _blanks(piece: Piece) -> int:
    return len(piece.text) - len(piece.text.lstrip())
