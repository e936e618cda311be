"""Ordered sets of rules, and where they are read from."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import overload

from taso_gym.checks import items_of
from taso_gym.errors import OptionError, RuleError
from taso_gym.ops import MICROSOFT, PREFIXES
from taso_gym.rules.files import DEFAULT, files_of, folder, read_certificates, reader_of
from taso_gym.rules.notation import unparse
from taso_gym.rules.pattern import distinct_calls, pattern_of
from taso_gym.rules.rule import NUMERICS, Numerics, Root, Rule, numerics_named
from taso_gym.rules.unparse import unparse_body

SHOWN = 3
"""Rules without certificate that a warning names."""

TASO = ".pb"
"""Suffix of TASO's rule files; ``taso.certificates.jsonl`` says which rules of the file that it ships hold."""

TESTED = "tested"
"""Status of a rule that was tested at sampled sizes only."""


def rule_digest(rule: Rule) -> str:
    """Return the hash of what a rule claims (its body and tags, not its name): the key of its certificate."""
    return blake2b(f"{rule.numerics} {rule.any_type} {unparse_body(rule)}".encode(), digest_size=16).hexdigest()


def operators_of(roots: Iterable[Root]) -> frozenset[str]:
    """Return the keys of the operators in terms."""
    return frozenset(call.op for call in distinct_calls(roots))


def is_portable(rule: Rule) -> bool:
    """Whether a rule makes standard ONNX operators only."""
    return not any(key.startswith(PREFIXES[MICROSOFT]) for key in operators_of(rule.rhs))


def only_reorders(rule: Rule) -> bool:
    """Whether a rule only reorders: both sides have the same operators, each as often."""
    removed = Counter(node.op.key for node in pattern_of(rule).nodes)  # of two that are equal both
    return removed == Counter(call.op for call in dict.fromkeys(distinct_calls(rule.rhs)))


class RuleSet(Sequence[Rule]):
    """An ordered set of directed rules; equal sets have equal digests.

    Attributes:
        certificates: rule name -> how it was shown: "proved", "bounded", "analytic" or "tested"; rules that nobody
            vouches for are absent.
    """

    def __init__(self, rules: Iterable[Rule], certificates: Mapping[str, str] | None = None) -> None:
        """Hold rules in order.

        Args:
            rules: the rules; names are unique.
            certificates: digest of a rule -> status, as sidecar files state them.

        Raises:
            RuleError: two rules have one name.
            OptionError: something else than rules.
        """
        self._rules = items_of(rules, Rule, "rules (RuleSet.load takes a name or path)")
        self._places = {rule.name: i for i, rule in enumerate(self._rules)}
        if len(self._places) != len(self._rules):
            twice = next(r for i, r in enumerate(self._rules) if self._places[r.name] != i)
            raise RuleError(f"expected different names, found {twice.name!r} twice", line=twice.text, where=twice.where)
        known = certificates or {}
        digests = {rule.name: rule_digest(rule) for rule in self._rules}
        self.certificates: Mapping[str, str] = {
            name: known[digest] for name, digest in digests.items() if digest in known
        }

    @cached_property
    def uncertified(self) -> tuple[str, ...]:
        """Names of the rules that nobody vouches for: without a certificate, or one that says that they were tested."""
        return tuple(rule.name for rule in self if self.certificates.get(rule.name, TESTED) == TESTED)

    @cached_property
    def digest(self) -> str:
        """Hash of all rules with their names, in order."""
        return blake2b("\n".join(map(unparse, self._rules)).encode(), digest_size=16).hexdigest()

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Rule, ...]: ...
    def __getitem__(self, index: int | slice) -> Rule | tuple[Rule, ...]:
        return self._rules[index]

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.digest == other.digest

    def __repr__(self) -> str:
        return f"<RuleSet: {len(self)} rules, {self.digest[:8]}>"

    def index(self, value: str | Rule, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a rule, given by name.

        Raises:
            RuleError: there is none of that name.
        """
        name = value.name if isinstance(value, Rule) else value
        place = self._places.get(name)
        if place is None or not start <= place < (len(self) if stop is None else stop):
            raise RuleError(f"expected a rule of the set, found {name!r}")
        return place

    @classmethod
    def load(
        cls,
        source: str | Path = DEFAULT,
        *,
        portable: bool = False,
        numerics: Numerics = "reassociate",
        reorders: bool = True,
    ) -> RuleSet:
        """Return the rules of a set by name, or of a file.

        Args:
            source: "default" for all hand-written sets of the package, the name of a set ("basis" and "full" are
                generated), or a path with a known suffix. Of a file of TASO's only the rules that were shown to hold.
            portable: leave out rules that make com.microsoft operators.
            numerics: the most that results may change: "exact", "reassociate" or "fast".
            reorders: keep rules that only reorder operators.

        Raises:
            RuleError: no such set or file, or a rule in it isn't well formed.
            OptionError: no such class of numerics, or neither a name nor a path.
        """
        allowed = NUMERICS[: NUMERICS.index(numerics_named(numerics)) + 1]
        rules: list[Rule] = []
        certificates: dict[str, str] = {}
        for path in files_of(source):
            found, known = reader_of(path)(path), read_certificates(path)
            if path.suffix == TASO:
                known |= read_certificates(folder() / f"taso{TASO}")
                found = _shown(found, known, path)
            rules += found
            certificates |= known
        kept = [r for r in rules if r.numerics in allowed and not (portable and not is_portable(r))]
        return cls([r for r in kept if reorders or not only_reorders(r)], certificates)


def load_checked(source: RuleSet | str | Path, *, portable: bool, numerics: Numerics) -> RuleSet:
    """Return a rule set to rewrite models with; the arguments are those of `RuleSet.load`.

    One that is given is taken as it is, whatever ``numerics`` says by default.

    Raises:
        OptionError: it has rules that aren't portable, or aren't exact, where only such are wanted.

    Warns:
        UserWarning: rules of a file have no certificate, so that they may be false; once for each set and process.
    """
    if isinstance(source, RuleSet):
        if portable:
            _expect_all(source, "portable", is_portable)
        if numerics == "exact":
            _expect_all(source, "exact", lambda rule: rule.numerics == "exact")
        return source
    rules = RuleSet.load(source, portable=portable, numerics=numerics)
    if rules.uncertified:
        _warn_of(rules.digest, str(source), rules.uncertified, len(rules))
    return rules


def _expect_all(rules: RuleSet, called: str, wanted: Callable[[Rule], bool]) -> None:
    if other := next((rule.name for rule in rules if not wanted(rule)), ""):
        raise OptionError(f"expected a RuleSet of {called} rules only, found {other}: RuleSet.load leaves such out")


@lru_cache(maxsize=1024)
def _warn_of(_digest: str, source: str, names: tuple[str, ...], count: int) -> None:
    some = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    warnings.warn(
        f"{len(names)} of {count} rules in {source} aren't shown to hold ({some}), and may change what a model "
        f"computes: `taso-gen-subst recheck {source} --write` proves each, or prints where it is false",
        stacklevel=4,
    )


def _shown(rules: list[Rule], known: Mapping[str, str], path: Path) -> list[Rule]:
    """Return the rules with a certificate: TASO's format has none, and the file that it ships holds false rules."""
    shown = [rule for rule in rules if rule_digest(rule) in known]
    if rules and not shown:
        hint = f"`taso-gen-subst import {path} -o FILE.rules` shows which hold"
        raise RuleError(f"expected rules that were shown to hold, found none in {path}: {hint}")
    return shown
