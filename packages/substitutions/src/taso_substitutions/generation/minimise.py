"""Minimising the statements of all fragments: those whose every use the others derive are left out.

A statement is used in the fragment that it was found in, as equalities of that fragment's types. What the others say
there, found by closure, derives them by saturation; so what followed from it follows without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from taso_substitutions.derivation.derive import Deriver
from taso_substitutions.equalities.encoding import decode, encode
from taso_substitutions.generation.search import Statement

Uses = Mapping[str, Sequence[str]]
"""Key of a statement -> what it says in a fragment, as encoded equalities."""


def minimal(
    own: Mapping[str, Sequence[Statement]], uses: Mapping[str, Uses], on_progress: Callable[[int, int], None]
) -> list[str]:
    """Return the keys of statements that derive all others.

    Args:
        own: fragment -> the statements that were found in it, with what they say there.
        uses: fragment -> what every statement says in it.
        on_progress: told how many statements have been tried, and of how many.
    """
    every = {s.key: s for statements in own.values() for s in statements}
    local = [_Local(statements, uses[name]) for name, statements in own.items()]
    kept = sorted(every, key=lambda key: rank(every[key]))
    order = kept[::-1]
    for number, key in enumerate(order, 1):
        others = [k for k in kept if k != key]
        if all(fragment.derives(key, others) for fragment in local):
            kept = others
        on_progress(number, len(order))
    return kept


def rank(statement: Statement) -> tuple[int, int, int, str]:
    """Order statements: small ones first, and of those such as have few conditions."""
    return statement.equality.size, statement.key.count(" if "), len(statement.key), statement.key


class _Local:
    """A fragment: what was found in it, and what all statements say in it."""

    def __init__(self, statements: Sequence[Statement], uses: Uses) -> None:
        self.deriver = Deriver()
        self.found = {s.key: s.instances for s in statements}
        # A statement says at least what the whole search found that it says.
        self.uses = {key: set(texts) for key, texts in uses.items()}
        for key, instances in self.found.items():
            self.uses[key] = self.uses.get(key, set()) | set(map(encode, instances))
        texts = sorted(set[str]().union(*self.uses.values()))
        self.rewrites = {text: self.deriver.lines(decode(text)) for text in texts}

    def derives(self, key: str, others: Sequence[str]) -> bool:
        """Whether other statements derive what a statement of the fragment says in it."""
        said = set[str]().union(*(self.uses[other] for other in others))
        left = [e for e in self.found.get(key, ()) if encode(e) not in said and encode(e.flipped()) not in said]
        if not left:
            return True
        lines = dict.fromkeys(line for text in sorted(said) for line in self.rewrites[text])
        # Together they may be too many for one saturation
        return all(all(self.deriver.derives([equality], lines=lines)) for equality in left)
