"""Rules as data: a rule rewrites the graph that its left side describes into the one that its right side describes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar

from taso_gym.errors import OptionError

T = TypeVar("T")


class _Nested:
    """Base of records that contain others of their kind: the hash is worked out once, not at each look-up."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the hash, which is another one in another process."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}


@dataclass(frozen=True)
class Var:
    """A tensor variable; the same name is the same tensor."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A literal: on the left a constant all of whose elements have this value, on the right such a scalar or a list.

    A list is a tensor of one axis: of indices (int64) if all its items are whole, as in ``[0, 2]``; ``[0.0, 2.0]`` has
    the element type of the tensors beside it.
    """

    value: Expr


@dataclass(frozen=True)
class Absent:
    """An optional input that isn't given, written ``_``."""


@dataclass(frozen=True)
class Rest:
    """Any number of tensors, written ``*xs``."""

    name: str


@dataclass(frozen=True)
class Call(_Nested):
    """An operator applied to terms.

    Attributes:
        op: key of the operator, ``MatMul`` or ``ms.FusedMatMul``.
        args: operands in order; `AllOutputs` stands for as many operands as the inner call has outputs.
        attrs: (name, expression) of the attributes that are written out; the others have their ONNX default,
            unless ``others`` names them.
        others: the ``k`` of ``**k``, or None: the attributes that aren't written out, as one variable. It stands for
            those that every operator with ``**k`` in the rule has (see `taso_gym.rules.pattern.held_attributes`).
    """

    op: str
    args: tuple[Root, ...]
    attrs: tuple[tuple[str, Expr], ...] = ()
    others: str | None = None

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.args, self.attrs, self.others))

    def __hash__(self) -> int:
        """Agree with ``==``."""
        return self._hash


@dataclass(frozen=True)
class Output:
    """One output of a call, ``F(...)[i]``; a bare call is its output 0."""

    call: Call
    index: int


@dataclass(frozen=True)
class AllOutputs:
    """All outputs of a call as that many roots, ``*F(...)``."""

    call: Call


Term = Var | Constant | Absent | Rest | Call | Output
Root = Term | AllOutputs


@dataclass(frozen=True)
class Expr(_Nested):
    """An expression over attributes, shapes and constants: evaluated by `taso_gym.rules.conditions`, never by Python.

    Attributes:
        kind: "number" (booleans too), "string", "none", "list", "name" (an attribute variable, a tensor, or ``opset``),
            "field" (``k.group``; its argument is the name), "call" (``dim(a, 0)``), "[]" (index), "[:]" (slice with
            begin and end, "none" where left out), or an operator sign such as "+", "==", "and", "not", "in", "not in".
        value: the number, string, name, field or function name.
        args: operands.
        column: where it begins in the rule's text, for error messages; not part of its identity.
    """

    kind: str
    value: int | float | str | bool | None = None
    args: tuple[Expr, ...] = ()
    column: int = field(default=0, compare=False)

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.value, self.args))

    def __hash__(self) -> int:
        """Agree with ``==``."""
        return self._hash


Numerics = Literal["exact", "reassociate", "fast"]
NUMERICS: tuple[Numerics, ...] = ("exact", "reassociate", "fast")


def numerics_named(name: str) -> Numerics:
    """Return a class of numerics.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in NUMERICS:
        raise OptionError(f"expected numerics among {', '.join(NUMERICS)}, found {name!r}")
    return name


@dataclass(frozen=True)
class Rule:
    """One direction of a line in a ``.rules`` file.

    Attributes:
        name: unique in its set; the second direction of ``<=>`` is called ``name.reverse``.
        lhs, rhs: roots; the i-th output of the left is replaced by the i-th of the right.
        conditions: what must hold besides; all of them.
        numerics: "exact" gives the same bits, "reassociate" reorders roundings, "fast" uses identities that hold
            over the reals and lose some accuracy or the treatment of infinities.
        any_type: holds for every element type; else for floating types only.
        text: the line it was read from.
        where: ``file:line``.
    """

    name: str
    lhs: tuple[Root, ...]
    rhs: tuple[Root, ...]
    conditions: tuple[Expr, ...]
    numerics: Numerics = "reassociate"
    any_type: bool = False
    text: str = ""
    where: str = ""

    @cached_property
    def kept(self) -> dict[Hashable, Any]:
        """What was found of it (see `kept`): with the rule itself, as rules may be equal and differ, by 1 and 1.0."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is kept: another process finds it again."""
        return {name: value for name, value in self.__dict__.items() if name != "kept"}


def kept(function: Callable[[Rule], T]) -> Callable[[Rule], T]:
    """Let a function of a rule keep what it returns with the rule."""

    @wraps(function)
    def known(rule: Rule) -> T:
        if function not in rule.kept:
            rule.kept[function] = function(rule)
        return rule.kept[function]

    return known
