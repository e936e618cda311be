"""A fragment: inputs and operator instances that are combined, with the sizes at which tensors are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from taso_gym.errors import OptionError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.symbolic import Dim, Poly, symbol
from taso_gym.tensor import TensorType

BY_KEY = {op.key: op for op in OPERATORS.values()}
WINDOWED = frozenset({"Conv", "AveragePool", "MaxPool", "GlobalAveragePool", "BatchNormalization"})
"""Operators on images; what has numbers as spatial sizes is a kernel, and no image."""

ALONG_AXES = frozenset(
    {"MatMul", "Transpose", "Concat", "Softmax", "ReduceSum", "ReduceMean", "Reshape", "Slice", "Split"}
)
"""Operators that aren't applied to what a reduction left, whose axis of size 1 makes many of them equal."""
BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})
Item = TypeVar("Item")


class Instance(NamedTuple):
    """An operator with attributes, as it takes part in a fragment.

    Attributes:
        key: operator, as rules write it.
        arity: operands that are chosen, at most 3.
        attrs: attributes that aren't at their default; sizes may be letters.
        extra: names of the inputs that are its further operands.
        places: where the chosen operands stand among all; first, if it is empty.
        shape: of the first operand that it is applied to, in letters and numbers, ? for any; of any, if it is empty.
        output: which output is meant.
        alike: whether the operands have one shape, so that none is broadcast.
        column: whether the second operand is the first's shape with one element along the last axis, which has more.
    """

    key: str
    arity: int
    attrs: tuple[tuple[str, Any], ...] = ()
    extra: tuple[str, ...] = ()
    output: int = 0
    alike: bool = False
    column: bool = False
    places: tuple[int, ...] = ()
    shape: str = ""

    @property
    def op(self) -> Operator:
        """Row of the operator table."""
        return BY_KEY[self.key]

    @property
    def swaps(self) -> bool:
        """Whether the order of the operands makes no difference."""
        return self.op.commutative and self.arity == 2

    def arranged(self, chosen: Iterable[Item], extra: Iterable[Item]) -> list[Item]:
        """Return all operands in the operator's order."""
        first, second, places = iter(chosen), iter(extra), self.places or range(self.arity)
        return [next(first if i in places else second) for i in range(self.arity + len(self.extra))]

    def parted(self, operands: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        """Return the chosen operands and the further ones."""
        places = self.places or range(self.arity)
        return [operands[i] for i in places], [o for i, o in enumerate(operands) if i not in places]

    def takes(self, types: Sequence[TensorType]) -> bool:
        """Whether operands make sense: a window slides over an image, whose sizes hold letters, and is a kernel.

        Of two operands that are broadcast one has the shape of the result: a row and a column make no matrix.
        A convolution pads such that each element is the middle of a window: at the small sizes that tensors have here,
        what is left without that is equal by accident.
        """
        shapes = [t.shape or () for t in types]
        if self.alike and len(set(shapes)) > 1:
            return False
        fits = len(self.shape) == len(shapes[0]) and all(
            a in ("?", str(b)) for a, b in zip(self.shape, shapes[0], strict=True)
        )
        if self.shape and not fits:
            return False
        if self.column and (not shapes[0] or shapes[0][-1] == 1 or shapes[1] != (*shapes[0][:-1], 1)):
            return False
        if self.key in BROADCASTING and _broadcast(*shapes) not in shapes:
            return False
        if self.key in WINDOWED and not all(isinstance(d, Poly) for d in shapes[0][2:]):
            return False
        if self.key == "Conv":
            kernel, pads = shapes[1][2:], dict(self.attrs).get("pads", (0,) * (2 * len(shapes[1][2:])))
            return all(isinstance(d, int) for d in kernel) and pads == tuple(int(str(d)) // 2 for d in kernel) * 2
        columns = 1 in shapes[0] or (self.key == "MatMul" and 1 in shapes[1][:-1])
        return not (columns and self.key in ALONG_AXES) and (self.key != "MatMul" or min(map(len, shapes)) > 1)


MOST_OPERATORS = 6
"""Operators up to which a fragment is searched at all."""
Share = tuple[float, float]
"""Share of the largest size that a letter is, in the first and the second binding."""
DEFAULT_SHARES: Mapping[str, Share] = {
    "A": (0.5, 1.0),
    "B": (1.0, 0.75),
    "C": (0.75, 0.5),
    "N": (0.25, 0.25),
    "H": (1.0, 0.75),
}


@dataclass(frozen=True)
class Fragment:
    """Inputs and operators that are combined.

    Attributes:
        name: as ``--fragments`` takes it.
        inputs: name -> shape in letters and numbers.
        instances: the operators.
        shares: size of each letter as a share of the largest that ``--max-shape`` allows it, in both bindings.
        usual: whether it is one of ``--fragments all``.
        sizes: the two bindings of the letters; `sized` works them out.
    """

    name: str
    inputs: Mapping[str, str]
    instances: tuple[Instance, ...]
    shares: Mapping[str, Share]
    usual: bool = True
    sizes: tuple[Mapping[str, int], ...] = ()

    @cached_property
    def types(self) -> Mapping[str, TensorType]:
        """The inputs' types over symbols."""
        return {name: TensorType("float", _shape(text)) for name, text in self.inputs.items()}

    def example(self) -> dict[str, int]:
        """Return a different number for each letter, at which proofs start."""
        return {letter: 2 * i + 2 for i, letter in enumerate(sorted(self.shares))}

    def sized(self, largest: Sequence[int]) -> Fragment:
        """Return it with its letters bound; ``largest`` bounds the axes, counted from the right.

        Raises:
            OptionError: an input has more axes, or a fixed size (a kernel's) is larger.
        """
        most: dict[str, int] = {}
        for name, text in self.inputs.items():
            if len(text) > len(largest):
                raise OptionError(f"expected {len(text)} axes in --max-shape for {self.name}, found {len(largest)}")
            for letter, bound in zip(reversed(text), reversed(largest), strict=False):
                if letter.isdigit() and int(letter) > bound:
                    raise OptionError(
                        f"expected at least {text} in --max-shape for {self.name}'s {name}, found {bound}"
                    )
                most[letter] = min(bound, most.get(letter, bound))
        bind = {k: [max(1, round(share * most[k])) for share in self.shares[k]] for k in most if not k.isdigit()}
        return replace(self, sizes=tuple({k: v[i] for k, v in bind.items()} for i in range(2)))

    def only(self, operators: Sequence[str]) -> Fragment:
        """Return it with some operators left."""
        return replace(self, instances=tuple(i for i in self.instances if i.key in operators))


def _shape(text: str) -> tuple[Dim, ...]:
    return tuple(int(c) if c.isdigit() else symbol(c) for c in text)


def _broadcast(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape of two operands together, whose sizes are equal where neither is 1."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def op(
    key: str,
    arity: int = 1,
    *,
    extra: Sequence[str] = (),
    output: int = 0,
    alike: bool = False,
    column: bool = False,
    places: Sequence[int] = (),
    of: str = "",
    **attrs: Any,
) -> Instance:
    """Return an operator instance; the arguments are those of `Instance`.

    Args:
        key: operator, as rules write it.
        arity: operands that are chosen.
        extra: inputs of the fragment that are its further operands.
        output: which output is meant.
        alike: the operands have one shape.
        column: the second operand is the first's shape with one element along the last axis.
        places: where the chosen operands stand among all; first by default.
        of: shape of the first operand that it is applied to; any by default.
        attrs: attributes that aren't at their default.
    """
    return Instance(key, arity, tuple(sorted(attrs.items())), tuple(extra), output, alike, column, tuple(places), of)


def fragment(
    name: str, inputs: str, *instances: Instance, usual: bool = True, shares: Mapping[str, Share] | None = None
) -> Fragment:
    """Return a fragment; inputs are written ``x y: AB, s:``."""
    named: dict[str, str] = {}
    for group in inputs.split(","):
        names, _, shape = group.partition(":")
        named |= dict.fromkeys(names.split(), shape.strip())
    letters = sorted({c for shape in named.values() for c in shape if not c.isdigit()})
    bound = {**{k: DEFAULT_SHARES[k] for k in letters}, **(shares or {})}
    return Fragment(name, named, instances, bound, usual)
