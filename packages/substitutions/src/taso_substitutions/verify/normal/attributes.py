"""Attributes as the bodies of operators read them, where sizes are symbolic and constants are elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import Operator
from taso_gym.symbolic import Dim, Poly
from taso_gym.tensor import TensorType
from taso_substitutions.verify.normal.axes import UNIT, Axis, UnprovableError, atoms_of
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.index_tensor import IndexTensor
from taso_substitutions.verify.normal.sizes import Sizes

KERNELS = {"Conv": 1, "ms.FusedConv": 1}
"""Operand whose spatial axes are windows and have to be numbers."""
HEADS = {"ms.MultiHeadAttention": "num_heads"}
"""Operator -> attribute that says into how many parts the last axes of its first three operands are divided."""
STAND_IN = 0.7368421
"""What an attribute that is an element is taken for while the others are normalised."""


def fix_needed(op: Operator, args: Sequence[IndexTensor], attrs: Mapping[str, Any]) -> None:
    """Fix the sizes that an operator needs as numbers: kernels, groups, and what ``ceil_mode`` rounds."""
    axes: list[Axis] = []
    if op.key in KERNELS:
        axes += args[KERNELS[op.key]].axes[2:]
        if isinstance(attrs["group"], Poly):
            axes.append(args[0].sizes.axis_of(attrs["group"]))
    if attrs.get("ceil_mode"):
        axes += args[0].axes[2:]
    for atom in atoms_of(axes):
        args[0].sizes.fix(atom)
    if op.key in HEADS:
        _divide_heads(args[:3], attrs[HEADS[op.key]])


def _divide_heads(args: Sequence[IndexTensor], heads: Dim) -> None:
    """Make the last axes of query, key and value multiples of the heads; the operator's types say that they are."""
    for x in args:
        axis, sizes = x.axes[-1], x.sizes
        whole = axis[0][0] if len(x.axes) == 3 and len(axis) == 1 and len(axis[0]) == 1 else ""
        if (
            isinstance(heads, int)
            and heads > 1
            and whole
            and sizes.is_free(whole)
            and sizes.size_of((whole,)) % heads == 0
        ):
            sizes.divide(whole, str(heads), sizes.size_of((whole,)) // heads)


def run_body(
    op: Operator, xp: IndexModule, args: Sequence[IndexTensor | None], attrs: Mapping[str, Any]
) -> tuple[IndexTensor, ...]:
    """Return what the body of an operator computes.

    Raises:
        UnprovableError: it needs numbers, or something else that index forms don't have.
    """
    try:
        if op.key == "Pad" and any(isinstance(p, Poly) for p in attrs["pads"]):
            found = _padded_by_sizes(xp, args, attrs)
        else:
            found = op.body(xp, *args, **body_attributes(op, args, attrs))
    except (TypeInferenceError, TypeError, AttributeError, ValueError) as error:
        atoms = atoms_of(axis for a in args if a is not None for axis in a.axes)
        raise UnprovableError(f"{op.key}: {error}", atoms) from error
    return found if isinstance(found, tuple) else (found,)


def _padded_by_sizes(xp: IndexModule, args: Sequence[IndexTensor | None], attrs: Mapping[str, Any]) -> IndexTensor:
    """Pad by sizes, which are never negative."""
    pads, rank = tuple(attrs["pads"]), len(attrs["pads"]) // 2
    negative = [p for p in pads if (any(c < 0 for _, c in p.terms) if isinstance(p, Poly) else p < 0)]
    if negative or attrs["axes"] is not None:
        raise UnprovableError(f"expected pads of all axes that aren't negative, found {pads}")
    return xp.pad(
        args[0], list(zip(pads[:rank], pads[rank:], strict=True)), attrs["constant_value"] or 0, attrs["mode"]
    )


def body_attributes(op: Operator, args: Sequence[IndexTensor | None], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return normalised attributes; numbers that a rule computes keep all their digits.

    Raises:
        TypeInferenceError: they don't suit the operands.
    """
    first = args[0]
    if op.key == "Slice" and first is not None and (plain := _slice_attributes(first, attrs)):
        return plain
    if op.key == "Expand" and first is not None:
        return {"shape": _broadcast(first, attrs["shape"])}
    symbolic = {k: v for k, v in attrs.items() if isinstance(v, IndexTensor)}
    types = [None if a is None else TensorType("float", a.shape) for a in args]
    found = op.normalize({**attrs, **dict.fromkeys(symbolic, STAND_IN)}, types)
    for name, value in symbolic.items():
        if found.get(name) != STAND_IN:
            raise TypeInferenceError(f"expected {name} as a number, found {value}")
    exact = {k: v for k, v in attrs.items() if isinstance(v, float) and isinstance(found.get(k), float)}
    if op.key == "Split" and first is not None:
        _cut(first, found)
    return {**found, **exact, **symbolic}


def _slice_attributes(x: IndexTensor, attrs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return positions that lie within the example's axes as they are; other ones only for axes that are numbers."""
    axes = attrs["axes"] or tuple(range(len(attrs["starts"])))
    steps = attrs["steps"] or (1,) * len(axes)
    sizes = x.sizes
    for start, end, step, axis in zip(attrs["starts"], attrs["ends"], steps, axes, strict=True):
        own = x.axes[axis]
        size = sizes.value(sizes.dim(own))
        inside = all(isinstance(p, Poly) or 0 <= p <= size for p in (start, end)) and step > 0
        if not inside or sizes.value(start) > sizes.value(end):
            for atom in atoms_of([own]):
                sizes.numbers.append(atom)  # where it is cut off elsewhere, at other sizes it isn't
                sizes.fix(atom)
            return None
    return {"starts": attrs["starts"], "ends": attrs["ends"], "axes": axes, "steps": steps}


def _broadcast(x: IndexTensor, shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return the shape that a tensor and a shape broadcast to; sizes that must be equal are unified."""
    sizes = x.sizes
    wanted = [sizes.axis_of(d) for d in shape]
    rank = max(len(wanted), len(x.axes))
    pairs = zip(_padded(wanted, rank), _padded(x.axes, rank), strict=True)
    return tuple(sizes.dim(a if b == UNIT else b if a == UNIT else sizes.unify(a, b)) for a, b in pairs)


def _padded(axes: Sequence[Axis], rank: int) -> list[Axis]:
    return [UNIT] * (rank - len(axes)) + list(axes)


def _cut(x: IndexTensor, attrs: Mapping[str, Any]) -> None:
    """Cut the axis that is split at its parts."""
    sizes: Sizes = x.sizes
    parts: Axis = tuple(s for d in attrs["split"] for s in sizes.axis_of(d))
    sizes.unify(x.axes[attrs["axis"]], parts)
