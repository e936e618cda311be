"""Names for terms that a right side uses more than once: ``Mul(y := Exp(x), y)`` is ``Mul(Exp(x), Exp(x))``.

A term is named where it stands first, with Python's own sign for that, and its name is good from there on.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

from taso_gym.rules.expressions import Piece


def written_out(roots: Iterable[ast.expr], piece: Piece, taken: Container[str]) -> list[ast.expr]:
    """Return the trees of a right side with each name replaced by what it stands for.

    Args:
        roots: the trees.
        piece: where they were read.
        taken: names that mean something else.

    Raises:
        RuleError: a name is taken, or given to two terms.
    """
    writer = _Writer(piece, taken)
    return [writer.visit(root) for root in roots]


class _Writer(ast.NodeTransformer):
    def __init__(self, piece: Piece, taken: Container[str]) -> None:
        self._piece, self._taken = piece, taken
        self._terms: dict[str, ast.expr] = {}

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = node.target.id
        if name == "_" or name in self._taken or name in self._terms:
            raise self._piece.fail(f"expected a new name for a term, found {name!r} in a second meaning", node)
        term = self.visit(node.value)
        self._terms[name] = term
        return term

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._terms.get(node.id, node)
