"""The operator table: one decorated function per ONNX operator is its semantics, its types and its work.

A body is written over an array module ``xp`` (see `taso_gym.ops.modules`), so that the same lines run on NumPy, on
float64, on integers modulo a prime, on z3 terms and on CuPy. Its keywords are the ONNX attributes with ONNX defaults.
Inputs that ONNX takes as small tensors but that shape the result (the ``axes`` of ReduceSum, the ``shape`` of Reshape)
are keywords too; ``inputs_as_attrs`` says at which input, and from which opset on, a file holds them.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, cast

import numpy as np

from taso_gym.errors import TypeInferenceError
from taso_gym.symbolic import Dim, product
from taso_gym.tensor import TensorType

Attrs = Mapping[str, Any]
Types = Sequence[TensorType | None]
Infer = Callable[[Types, Attrs], tuple[TensorType, ...]]
Normalize = Callable[[dict[str, Any], Types], dict[str, Any]]
Export = Callable[[dict[str, Any], Types, tuple[TensorType, ...], int], dict[str, Any]]
Work = Callable[[Types, tuple[TensorType, ...], Attrs], Dim]


@dataclass(frozen=True, eq=False)
class Operator:
    """One row of the operator table.

    Attributes:
        domain: ONNX domain, "" for ai.onnx.
        name: ONNX op type.
        since: first opset of ``domain`` in which the body's meaning holds; in older files the node is opaque.
        body: ``body(xp, *inputs, **attributes)`` returns an array or a tuple of them; its attributes are normalised.
            None where only types are known.
        infer: output types from input types and normalised attributes; raises `TypeInferenceError`. Its results'
            ``const`` is overwritten by `taso_gym.graph.signature`.
        normalize: brings attributes to one form per meaning (defaults filled in, axes non-negative, "auto_pad" as
            explicit pads, floats rounded to float32 and written shortest: 1e-05), so that equal operators have equal
            signatures; raises `TypeInferenceError`.
        export: ``export(attrs, input types, output types, opset)`` turns normalised attributes into those of a file,
            where the two differ; None where an attribute is left out.
        flops: floating-point operations, from input types, output types and attributes; a multiply-add is two.
        defaults: ONNX default of each attribute, read off the body's keywords.
        min_inputs, max_inputs: operands; ``max_inputs`` is None for a variadic operator.
        inputs_as_attrs: keyword -> (ONNX input index, opset from which on it is an input).
        commutative: the first two operands may be swapped.
        view: moves no data at run time (Reshape, Squeeze, …).

    """

    domain: str
    name: str
    since: int
    body: Callable[..., Any]
    infer: Infer
    normalize: Normalize
    export: Export
    flops: Work
    defaults: Mapping[str, Any]
    min_inputs: int
    max_inputs: int | None
    inputs_as_attrs: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    commutative: bool = False
    view: bool = False

    @property
    def key(self) -> str:
        """Name as rules write it: ``MatMul``, ``ms.FusedMatMul``."""
        return f"{PREFIXES[self.domain]}{self.name}" if self.domain else self.name

    def __str__(self) -> str:
        return self.key


MICROSOFT = "com.microsoft"
PREFIXES = {MICROSOFT: "ms."}
OPERATORS: dict[tuple[str, str], Operator] = {}
"""(domain, op type) -> operator; filled by importing `taso_gym.ops`."""


def operator(
    name: str,
    *,
    infer: Infer,
    since: int = 1,
    domain: str = "",
    normalize: Normalize | None = None,
    export: Export | None = None,
    flops: Work | None = None,
    inputs_as_attrs: Mapping[str, tuple[int, int]] | None = None,
    commutative: bool = False,
    view: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated body into `OPERATORS`; see `Operator` for the arguments.

    The number of operands and the attribute defaults are read off the body's signature; an attribute without a default
    must be given.
    """
    taken_from_inputs = inputs_as_attrs or {}

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        parameters = list(inspect.signature(body).parameters.values())[1:]
        inputs = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(inputs)
        attributes = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        defaults = {k: None if v is inspect.Parameter.empty else v for k, v in attributes.items()}
        required = [k for k, v in attributes.items() if v is inspect.Parameter.empty]
        kinds = {p.name: kind_of(p.annotation) for p in parameters if p.name in attributes}
        OPERATORS[domain, name] = Operator(
            domain,
            name,
            since,
            body,
            _with_sizes(name, infer),
            _completed(name, required, defaults, kinds, taken_from_inputs, normalize),
            export or keep_attrs,
            flops or one_per_element,
            defaults,
            sum(p.default is p.empty for p in inputs),
            most,
            taken_from_inputs,
            commutative,
            view,
        )
        return body

    return enter


def _completed(
    op: str,
    required: Sequence[str],
    defaults: Mapping[str, Any],
    kinds: Mapping[str, str],
    taken_from_inputs: Mapping[str, Any],
    normalize: Normalize | None,
) -> Normalize:
    """Normalise attributes only once the required ones are there and each has its one form."""

    def complete(attrs: dict[str, Any], types: Types) -> dict[str, Any]:
        if missing := sorted(k for k in required if attrs.get(k) is None):
            raise TypeInferenceError(f"expected the attribute {missing[0]!r} of {op}, found none")
        for name, value in attrs.items():
            _check_kind(name, value, kinds[name])
        tidied = {k: v if k in taken_from_inputs else tidy(k, v, defaults[k]) for k, v in attrs.items()}
        return normalize(tidied, types) if normalize else tidied

    return complete


def _with_sizes(op: str, infer: Infer) -> Infer:
    """Refuse results of negative size."""

    def infer_sizes(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
        outputs = infer(types, attrs)
        if negative := [t for t in outputs if any(isinstance(d, int) and d < 0 for d in t.shape or ())]:
            raise TypeInferenceError(f"expected sizes of 0 or more from {op}, found {negative[0]}")
        return outputs

    return infer_sizes


def kind_of(annotation: str) -> str:
    """Return what an attribute is by its annotation in a body: a number, a whole one, a string, a list of these."""
    name, _, item = annotation.partition(" | ")[0].partition("[")
    kind = {"int": "whole number", "float": "number", "str": "string", "tuple": "list", "Axes": "list"}[name]
    return f"{kind} of whole numbers" if name == "Axes" or item.startswith(("int", "Dim")) else kind


def _check_kind(name: str, value: Any, kind: str) -> None:
    """Refuse a number for a list and the like; a number may be a size, or a term of a prover."""
    if value is None:
        return
    parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    refused = (str, bytes, tuple, NoneType, *((float,) if "whole" in kind else ()))
    listed = isinstance(value, (tuple, np.ndarray)) == kind.startswith("list")
    if not (isinstance(value, str) if kind == "string" else listed and not any(isinstance(p, refused) for p in parts)):
        raise TypeInferenceError(f"expected {name} to be a {kind}, found {value!r}")


def tidy(name: str, value: Any, default: Any) -> Any:
    """Return an attribute's value in the one form that signatures hold.

    Raises:
        TypeInferenceError: a value of another type than the default's.
    """
    if isinstance(value, bool):
        value = int(value)
    if isinstance(default, float) and isinstance(value, int):
        try:
            value = float(value)
        except OverflowError:
            raise TypeInferenceError(f"expected {name} that a float holds, found over {sys.float_info.max}") from None
    if default is not None and value is not None and not isinstance(value, type(default)):
        raise TypeInferenceError(f"expected {name} of type {type(default).__name__}, found {value!r}")
    if isinstance(value, tuple):
        return tuple(shortest(v) if isinstance(v, float) else v for v in cast("tuple[Any, ...]", value))
    return shortest(value) if isinstance(value, float) else value


def shortest(value: float, dtype: Any = np.float32) -> float:
    """Return the number with the fewest decimal digits that rounds to the same ``dtype`` as ``value`` does.

    A file holds 9.99999974737875e-06 where its author wrote 1e-05; both become 1e-05, so that a rule may say 1e-05.
    """
    return float(str(dtype(value))) if math.isfinite(value) else value


def whole(value: float, dtype: np.dtype[Any]) -> int:
    """Return a number as one of an integer type, or bool; an infinity is the extreme value.

    Raises:
        TypeInferenceError: it is no number.
    """
    if value != value:
        raise TypeInferenceError(f"expected a number of type {dtype}, found {value}")
    if dtype.kind == "b":
        return int(bool(value))
    if value in (math.inf, -math.inf):
        bounds = np.iinfo(dtype)
        return int(bounds.max if value > 0 else bounds.min)
    return int(value)


def keep_attrs(attrs: dict[str, Any], _in: Types, _out: tuple[TensorType, ...], _opset: int) -> dict[str, Any]:
    """Return attributes that a file holds as they are."""
    return attrs


def one_per_element(_inputs: Types, outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """One floating-point operation per element of the first output."""
    return product(outputs[0].shape or ())


def no_work(_inputs: Types, _outputs: tuple[TensorType, ...], _attrs: Attrs) -> Dim:
    """No floating-point operation: data is only moved."""
    return 0
