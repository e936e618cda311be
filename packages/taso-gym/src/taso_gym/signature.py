"""Signatures: operators with attributes and input types, interned, so that what follows from them is found once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, cast

from taso_gym.errors import TypeInferenceError
from taso_gym.ops import OPERATORS, Operator
from taso_gym.tensor import TensorType, ValueType

HASH_MODULUS = (1 << 61) - 1
"""Hashes of graphs and of their nodes are taken modulo this prime."""
_FLOATING = frozenset((float, tuple))


def stable_hash(*parts: object) -> int:
    """Return a 64-bit hash that is the same in every process (`hash` of a string isn't)."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class OpaqueOperator:
    """An operator without an entry in `taso_gym.ops`: carried along whole, matched by no rule.

    Attributes:
        domain, name: as in the file.
        proto: the serialised ``NodeProto`` without names, inputs and outputs; its attributes hold any subgraphs.
        pure: deterministic and stateless, so that it may be merged with its equal, folded, or removed when unused.
        captures: names of outer values that its subgraphs read; they are its last inputs, in this order.
        context: what else of the file gives it its meaning: opset versions, and digests of the functions it calls.
    """

    domain: str
    name: str
    proto: bytes
    pure: bool
    captures: tuple[str, ...] = ()
    context: str = ""
    view: bool = False

    @property
    def key(self) -> str:
        """Name in brackets: an opaque Conv isn't taken for the table's, whose attributes it doesn't have."""
        return f"[{self.domain}.{self.name}]" if self.domain else f"[{self.name}]"


class Signature:
    """An operator applied to attributes and input types; interned, so compare with ``is``.

    Attributes:
        op: the operator.
        attrs: normalised attributes, sorted by name; values are hashable (lists are tuples).
        inputs, outputs: types; None stands for an absent optional input.
        const: the node depends on no graph input: it is folded on save and costs nothing at run time.
        symmetric: the first two operands may be swapped.
        hash: 64-bit, the same in every process and for both orders of operands that may be swapped.
    """

    __slots__ = ("__weakref__", "attrs", "const", "hash", "inputs", "op", "outputs", "symmetric")

    def __init__(
        self,
        op: Operator | OpaqueOperator,
        attrs: tuple[tuple[str, Any], ...],
        inputs: tuple[ValueType | None, ...],
        outputs: tuple[ValueType, ...],
        const: bool,
    ) -> None:
        self.op, self.attrs, self.inputs, self.outputs, self.const = op, attrs, inputs, outputs, const
        identity = (op.proto, op.context) if isinstance(op, OpaqueOperator) else b""
        self.symmetric = isinstance(op, Operator) and op.commutative and len(inputs) > 1
        operands = (*sorted(inputs[:2], key=repr), *inputs[2:]) if self.symmetric else inputs
        self.hash = stable_hash(op.domain, op.name, identity, attrs, operands, outputs)

    def __repr__(self) -> str:
        """Write it for people: ``Conv[group=1, …](float[…], const float[…])``."""
        attrs = ", ".join(f"{k}={v}" for k, v in self.attrs)
        return f"{self.op.key}[{attrs}]({', '.join(map(str, self.inputs))})"

    def attr(self, name: str) -> Any:
        """Return an attribute; raises KeyError where the operator has none of that name."""
        return dict(self.attrs)[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by meaning, so that loading interns it again."""
        if isinstance(self.op, OpaqueOperator):
            return opaque_signature, (self.op, self.inputs, self.outputs)
        return _interned, (self.op.domain, self.op.name, self.attrs, self.inputs)


def signature(op: Operator, attrs: Mapping[str, Any], inputs: Sequence[ValueType | None]) -> Signature:
    """Return the one signature of an operator with these attributes and input types.

    Attributes left out have their ONNX default; lists become tuples.

    Raises:
        TypeInferenceError: the operator doesn't take these operands or attributes.
    """
    if unknown := set(attrs) - set(op.defaults):
        raise TypeInferenceError(f"{op.key} has no attribute {sorted(unknown)[0]!r}; it has {sorted(op.defaults)}")
    given: dict[str, Any] = {k: tuple(cast(list[Any], v)) if isinstance(v, list) else v for k, v in attrs.items()}
    attributes = tuple(sorted(given.items()))
    return _normalized(op.domain, op.name, attributes, strip_absent(inputs), _floats(attributes))


def _floats(attrs: tuple[tuple[str, Any], ...]) -> str:
    """Return the floats among attributes as text: caches tell apart what isn't equal, and -0.0 equals 0.0."""
    found: list[object] = [v for _, v in attrs if _may_be_floats(v)]
    return repr(found) if found else ""


def _may_be_floats(value: object) -> bool:
    return isinstance(value, float) or (
        isinstance(value, tuple) and not _FLOATING.isdisjoint(map(type, cast(tuple[object, ...], value)))
    )


def strip_absent(inputs: Sequence[ValueType | None]) -> tuple[ValueType | None, ...]:
    """Drop absent optional inputs at the end, which mean the same as none."""
    end = len(inputs)
    while end and inputs[end - 1] is None:
        end -= 1
    return tuple(inputs[:end])


@cache
def _normalized(
    domain: str, name: str, attrs: tuple[tuple[str, Any], ...], inputs: tuple[ValueType | None, ...], _floats_text: str
) -> Signature:
    op = OPERATORS[domain, name]
    if len(inputs) < op.min_inputs or (op.max_inputs is not None and len(inputs) > op.max_inputs):
        most = "any number" if op.max_inputs is None else op.max_inputs
        raise TypeInferenceError(f"{op.key} takes {op.min_inputs} to {most} inputs, found {len(inputs)}")
    for i, t in enumerate(inputs):
        if t is None and i >= op.min_inputs:
            continue
        if not isinstance(t, TensorType) or t.shape is None:
            raise TypeInferenceError(f"{op.key} needs a tensor of known rank as input {i}, found {t}")
    full = op.normalize({**op.defaults, **dict(attrs)}, inputs)  # pyright: ignore[reportArgumentType]
    return _interned(domain, name, tuple(sorted(full.items())), inputs)


def _interned(
    domain: str, name: str, attrs: tuple[tuple[str, Any], ...], inputs: tuple[ValueType | None, ...]
) -> Signature:
    return _intern(domain, name, attrs, inputs, _floats(attrs))


@cache
def _intern(
    domain: str, name: str, attrs: tuple[tuple[str, Any], ...], inputs: tuple[ValueType | None, ...], _floats_text: str
) -> Signature:
    op = OPERATORS[domain, name]
    const = bool(inputs) and all(t is None or t.const for t in inputs)
    outputs = tuple(t._replace(const=const) for t in op.infer(inputs, dict(attrs)))  # pyright: ignore[reportArgumentType]
    return Signature(op, attrs, inputs, outputs, const)


@cache
def opaque_signature(
    op: OpaqueOperator, inputs: tuple[ValueType | None, ...], outputs: tuple[ValueType, ...]
) -> Signature:
    """Return the one signature of an operator that the table doesn't know; its output types are given."""
    return Signature(op, (), inputs, outputs, const=False)


def symbols_of(types: Iterable[ValueType | None]) -> frozenset[str]:
    """Return the dimension symbols that occur in types."""
    dims = (d for t in types if isinstance(t, TensorType) for d in t.shape or ())
    return frozenset(s for d in dims if not isinstance(d, int) for s in d.symbols)


def node_hash(sig: Signature, input_sems: tuple[int, ...]) -> int:
    """Return a node's part of the graph hash, from its signature and its inputs' semantic ids."""
    return mixed(sig.hash, sig.symmetric, input_sems)


def mixed(sig_hash: int, symmetric: bool, input_sems: tuple[int, ...]) -> int:
    """Return `node_hash` of a signature with that hash.

    The order of a commutative operator's operands makes no difference. Python's hash of a pair is nearly linear in the
    last: hashes of two operators with the same operands would differ by the same at many places, and the graph hash,
    their sum, wouldn't say at which of them one took the other's place. Hence the square.
    """
    if symmetric and input_sems[0] > input_sems[1]:
        input_sems = (input_sems[1], input_sems[0], *input_sems[2:])
    return hash((sig_hash, input_sems)) ** 2 % HASH_MODULUS
