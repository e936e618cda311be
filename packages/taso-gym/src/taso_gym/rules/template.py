"""Templates: the right side of a rule for given signatures of the matched nodes, with all types inferred.

A template is found once per (rule, operand order, signatures, equalities among the bound values, digests of weights
whose value the rule asks for) and kept; a match then costs a dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from taso_gym.errors import TypeInferenceError
from taso_gym.graph import OUTPUT_BITS, Node, Weight
from taso_gym.rules.acyclic import dependencies, guards
from taso_gym.rules.binding import Binder, floating_type
from taso_gym.rules.conditions import holds
from taso_gym.rules.covered import covered
from taso_gym.rules.lists import Undefined
from taso_gym.rules.pattern import Pattern
from taso_gym.rules.rightside import LiteralValue, Ref, Refused, RightSide
from taso_gym.rules.rule import Expr, Rule
from taso_gym.signature import HASH_MODULUS, Signature, mixed


class Step(NamedTuple):
    """How to make a new node.

    Values and semantic ids are taken from lists that hold those of the slots, then None or 0 for absent operands, then
    those of the outputs of the new nodes before it.

    Attributes:
        hash, symmetric: of the signature.
        read: takes the operands from a list, as a tuple.
        heirs: for each output the (matched node, output) that it replaces, whose id it inherits, or None.
        unnamed: names of the outputs if none replaces another, else None.
    """

    hash: int
    symmetric: bool
    read: Callable[[Sequence[Any]], tuple[Any, ...]]
    heirs: tuple[tuple[int, int] | None, ...]
    unnamed: tuple[None, ...] | None

    def enter(self, sems: list[int], records: Sequence[Node]) -> int:
        """Append the semantic ids of the outputs to ``sems``, and return the node's part of the graph hash.

        Args:
            sems: the semantic ids so far.
            records: the matched nodes.
        """
        own, symmetric, read, heirs, _ = self
        found = mixed(own, symmetric, read(sems))
        for output, heir in enumerate(heirs):
            sems.append(hash((found, output)) % HASH_MODULUS if heir is None else records[heir[0]].sems[heir[1]])
        return found

    def names(self, records: Sequence[Node]) -> tuple[str | None, ...]:
        """Return the names of the outputs; ``records`` are the matched nodes."""
        if self.unnamed is not None:
            return self.unnamed
        return tuple([None if heir is None else records[heir[0]].names[heir[1]] for heir in self.heirs])


@dataclass(frozen=True, eq=False)
class Template:
    """What a match is rewritten into. Slots are the bound values in pattern order, then the literals.

    Attributes:
        binder: reads the bound values off the matched nodes.
        sigs: signatures of the new nodes, producers first.
        literals: scalars that become leaves.
        outputs: (matched node, output, what replaces it) of each replaced output.
        guards: (number in ``outputs``, slot) pairs: a cycle closes if that value depends on that output.
        preserving: each output depends on the same values as before, so reachability elsewhere stays as it is.
        exchanges: every replaced output gets a new node's output of its own, so that consumers' hashes stay.
        unused: bound values that the right side doesn't use; what computes them may die with the match.
        inside: places of the matched nodes whose uses matter, see `Pattern.inside`.
        readers: for each replaced output the matched node, the output, and how many of its uses are inside the match.
        steps: how the new nodes are made.
    """

    binder: Binder
    sigs: tuple[Signature, ...]
    literals: tuple[LiteralValue, ...]
    outputs: tuple[tuple[int, int, int], ...]
    guards: tuple[tuple[int, int], ...]
    preserving: bool
    exchanges: bool
    unused: tuple[int, ...]
    inside: frozenset[int]
    readers: tuple[tuple[int, int, int], ...]
    steps: tuple[Step, ...]

    def bound(self, records: Sequence[Node]) -> tuple[int, ...]:
        """Return the values of the rule's variables in a row; ``records`` are the matched nodes."""
        return self.binder.values(records)


class Source(NamedTuple):
    """What the templates of one rule, in one order of operands, are made from.

    Attributes:
        rule: the rule.
        pattern: the order of operands.
        binder: of the pattern.
        conditions: the rule's, those that read a weight last, so that it is only read for matches that hold otherwise.
        opsets: of the graph.
    """

    rule: Rule
    pattern: Pattern
    binder: Binder
    conditions: tuple[Expr, ...]
    opsets: Mapping[str, int]


def build(
    source: Source, sigs: Sequence[Signature], same: Sequence[int], weights: Mapping[str, Weight | None]
) -> Template | None:
    """Return the template of a rule for matched signatures, or None where it doesn't apply.

    Args:
        source: the rule.
        sigs: of the matched nodes in pattern order.
        same: for each bound value the first slot that holds the same value.
        weights: of the variables that ``value(...)`` asks for.
    """
    # A rule for floating types meets exactly one of them; indices and truth values may stand beside it.
    dtype = floating_type(sigs)
    if (not dtype and not source.rule.any_type) or not covered(source.rule, sigs):
        return None
    binding = source.binder.bind(sigs, weights, source.opsets.get("", 0))
    if binding is None or not all(holds(c, binding) for c in source.conditions):
        return None
    spans, types = source.binder.spans(sigs), source.binder.row([sig.inputs for sig in sigs])
    side = RightSide(binding, source.opsets, spans, types, same, dtype)
    try:
        refs = [ref for root in source.rule.rhs for ref in side.refs(root)]
    except (Undefined, TypeInferenceError, Refused):
        return None
    replaced = _replaced(source.pattern, sigs)
    if len(refs) != len(replaced):
        return None
    if any(side.type_of(ref) != sigs[node].outputs[out] for ref, (node, out) in zip(refs, replaced, strict=True)):
        return None
    outputs = tuple((node, out, ref) for (node, out), ref in zip(replaced, refs, strict=True) if ref is not None)
    return _finish(source, side, outputs, dependencies(source.pattern, spans, same))


def _replaced(pattern: Pattern, sigs: Sequence[Signature]) -> list[tuple[int, int]]:
    """Return (matched node, output) of every output that the right side replaces."""
    found: list[tuple[int, int]] = []
    for root in pattern.roots:
        outputs = range(len(sigs[root.node].outputs)) if root.output is None else (root.output,)
        found += [(root.node, output) for output in outputs]
    return found


def _finish(
    source: Source, side: RightSide, outputs: tuple[tuple[int, int, int], ...], before: Sequence[frozenset[int]]
) -> Template:
    """Return the template of a finished right side; ``before`` is what each matched node depends on."""
    inputs = tuple(operands for _, operands in side.nodes)
    after: list[frozenset[int]] = []
    for operands in inputs:
        after.append(frozenset[int]().union(*(_slots(ref, after) for ref in operands)))
    varying = frozenset(i for i, t in enumerate(side.types) if t is not None and not t.const)
    old = [before[node] & varying for node, _, _ in outputs]
    new = [_slots(ref, after) & varying for _, _, ref in outputs]
    refs = [ref for _, _, ref in outputs]
    used = {ref for operands in inputs for ref in operands} | set(refs)
    pattern = source.pattern
    return Template(
        source.binder,
        tuple(side.sigs),
        tuple(side.literals),
        outputs,
        tuple(guards(old, new)),
        old == new,
        all(ref < 0 for ref in refs) and len(set(refs)) == len(refs),
        tuple(slot for slot in sorted(set(side.same)) if slot not in used),
        pattern.inside,
        tuple((node, out, pattern.uses_inside(node, out)) for node, out, _ in outputs),
        tuple(_steps(side, outputs)),
    )


def _steps(side: RightSide, outputs: Sequence[tuple[int, int, int]]) -> Iterator[Step]:
    heirs = {ref: (node, out) for node, out, ref in reversed(outputs)}
    absent = len(side.types)
    place: dict[Ref, int] = {None: absent}
    for number, (sig, operands) in enumerate(side.nodes):
        reads = tuple(place[ref] if ref is None or ref < 0 else ref for ref in operands)
        born = [~(number << OUTPUT_BITS | output) for output in range(len(sig.outputs))]
        for ref in born:
            place[ref] = absent + len(place)
        inherited = tuple(map(heirs.get, born))
        unnamed = None if any(inherited) else (None,) * len(born)
        yield Step(sig.hash, sig.symmetric, _reader(reads), inherited, unnamed)


def _reader(places: tuple[int, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what takes the items at some places of a sequence as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda _: ()
    place = places[0]
    return lambda items: (items[place],)


def _slots(ref: Ref, nodes: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the slots that an operand depends on."""
    if ref is None:
        return frozenset()
    return frozenset([ref]) if ref >= 0 else nodes[~ref >> OUTPUT_BITS]
