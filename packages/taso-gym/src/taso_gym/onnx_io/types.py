"""Types of a file's values as types of a graph, and the names of dimensions that the file leaves open."""

from __future__ import annotations

from collections.abc import Container, Iterable

from onnx import ModelProto, TensorShapeProto, TypeProto, ValueInfoProto

from taso_gym.onnx_io.shape_values import ShapeValue
from taso_gym.onnx_io.tensors import dtype_of
from taso_gym.symbolic import Dim, Poly, symbol
from taso_gym.tensor import OtherType, TensorType, ValueType, dtype_code

UNKNOWN = OtherType(b"")
"""Type of a value of which the file says nothing and nothing can be inferred."""


class TypeReader:
    """Reads types; gives a name to every dimension that has neither size nor name.

    The name is made of the value's name and the axis, so that it is the same when the file is saved and loaded.
    """

    def __init__(self, model: ModelProto) -> None:
        """Take the model whose dimension names are in use."""
        graph = model.graph
        self._of_inputs = _dimension_names(graph.input)
        declared = self._of_inputs | _dimension_names(graph.output) | _dimension_names(graph.value_info)
        self._mark = "#"
        while any(self._mark in name for name in declared):
            self._mark += "#"
        self._inferred: dict[str, Dim] = {}

    def read(self, proto: TypeProto, name: str) -> ValueType:
        """Return the declared type of the value ``name``.

        A negative size counts as none, as in onnxruntime.

        Raises:
            ModelError: the element type is none of ONNX.
        """
        if proto.WhichOneof("value") != "tensor_type":
            return OtherType(self._without_made_up(proto).SerializeToString(deterministic=True))
        tensor = proto.tensor_type
        if not tensor.elem_type and not tensor.HasField("shape"):
            return UNKNOWN
        dtype = dtype_of(tensor.elem_type, f"value {name!r}")
        if not tensor.HasField("shape"):
            return TensorType(dtype, None)
        dims = enumerate(map(_dim, tensor.shape.dim))
        return TensorType(dtype, tuple(self._fresh(name, i) if d is None else d for i, d in dims))

    def adopt(self, proto: TypeProto | None, name: str) -> ValueType:
        """Return the type that inference on the whole model found for a value, or that nothing is known.

        Where it made up a name for a dimension, that is what `note` was told of the name, else a fresh symbol.
        """
        inferred = UNKNOWN if proto is None or _is_untyped(proto) else self.read(proto, name)
        if not isinstance(inferred, TensorType) or inferred.shape is None:
            return inferred
        dims = list(inferred.shape)
        for axis, dim in enumerate(dims):
            if self._is_made_up(made_up := str(dim)):
                dims[axis] = self._inferred.get(made_up, self._fresh(name, axis))
        return inferred._replace(shape=tuple(dims))

    def note(self, proto: TypeProto | None, type_: ValueType) -> None:
        """Remember what the names stand for that inference made up for a value, whose type is settled now."""
        shape = type_.shape if isinstance(type_, TensorType) else None
        declared = () if proto is None else proto.tensor_type.shape.dim
        if shape is not None and len(shape) == len(declared):
            for dim, own in zip(declared, shape, strict=True):
                if self._is_made_up(dim.dim_param):
                    self._inferred.setdefault(dim.dim_param, own)

    def refine(self, type_: ValueType, proto: TypeProto | None, name: str, given: Iterable[ValueType]) -> ValueType:
        """Return the type of a value with what inference on its node alone found out besides.

        Args:
            type_: what is known.
            proto: what was found out.
            name: of the value.
            given: types that the inference started from; dimensions are named as in them.
        """
        if proto is None or proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
            return type_
        if not proto.tensor_type.elem_type:
            return type_
        dims = (d for t in given if isinstance(t, TensorType) for d in t.shape or ())
        names = {str(d): d for d in dims if isinstance(d, Poly)}  # a dimension may be called "3"
        found = [d if isinstance(d, int) else names.get(str(d)) for d in map(_dim, proto.tensor_type.shape.dim)]
        shape = type_.shape if isinstance(type_, TensorType) else None
        if shape is None or len(shape) != len(found):
            shape = tuple(self._fresh(name, axis) for axis in range(len(found)))
        dims = tuple(own if new is None or isinstance(own, int) else new for own, new in zip(shape, found, strict=True))
        return TensorType(dtype_of(proto.tensor_type.elem_type, f"value {name!r}"), dims)

    @staticmethod
    def reshaped(type_: ValueType, shape: ShapeValue | None) -> ValueType:
        """Return the type of what is reshaped, with the sizes that the wanted shape states."""
        if shape is None or not isinstance(type_, TensorType) or len(type_.shape or ()) != len(shape):
            return type_
        wanted = (d if isinstance(d, Poly) else int(d) for d in shape)
        dims = zip(type_.shape or (), wanted, strict=True)
        return type_._replace(shape=tuple(own if isinstance(new, int) and new < 1 else new for own, new in dims))

    def has_unknowns(self, type_: ValueType, name: str) -> bool:
        """Whether the rank of a value isn't known, or a dimension isn't known in terms of others."""
        if not isinstance(type_, TensorType) or type_.shape is None:
            return True
        own = {self._fresh(name, axis) for axis in range(len(type_.shape))}
        return not own.isdisjoint(type_.shape)

    def _fresh(self, name: str, axis: int) -> Poly:
        """Return the symbol for an axis of a value whose size only running the model can tell."""
        return symbol(f"{name}{self._mark}{axis}")

    def _is_made_up(self, name: str) -> bool:
        """Whether onnx's shape inference made this name up for a dimension of unknown size.

        A file that has been through it before, in onnx's version converter for one, has names of that time for
        values inside, which say nothing of what goes by the same names now.
        """
        return name.startswith("unk__") and name not in self._of_inputs

    def _without_made_up(self, proto: TypeProto) -> TypeProto:
        result = TypeProto()
        result.CopyFrom(proto)
        inner = result
        while (kind := inner.WhichOneof("value")) in ("sequence_type", "optional_type", "map_type"):
            inner = inner.map_type.value_type if kind == "map_type" else getattr(inner, kind).elem_type
        for dim in inner.tensor_type.shape.dim if inner.HasField("tensor_type") else ():
            if self._is_made_up(dim.dim_param):
                dim.ClearField("dim_param")
        return result


def _is_untyped(proto: TypeProto) -> bool:
    """Whether inference knows of a tensor's shape at most: what it is copied from has an unknown type."""
    return proto.HasField("tensor_type") and not proto.tensor_type.elem_type


def _dimension_names(infos: Iterable[ValueInfoProto]) -> set[str]:
    return {d.dim_param for info in infos for d in info.type.tensor_type.shape.dim}


def _dim(dim: TensorShapeProto.Dimension) -> Dim | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return symbol(dim.dim_param) if dim.dim_param else None


def element_of(type_: ValueType) -> str | None:
    """Return the element type of a tensor, or which other kind of value a type is of."""
    return type_.dtype if isinstance(type_, TensorType) else TypeProto.FromString(type_.proto).WhichOneof("value")


def proto_of(type_: ValueType, named: Container[str] | None = None) -> TypeProto:
    """Return a type as a file holds it.

    Args:
        type_: the type.
        named: dimension names that may be written; the others are left open. None: all may.
    """
    if isinstance(type_, OtherType):
        return TypeProto.FromString(type_.proto)
    result = TypeProto()
    result.tensor_type.elem_type = dtype_code(type_.dtype)
    if type_.shape is not None:
        result.tensor_type.shape.SetInParent()
        for dim in type_.shape:
            entry = result.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                entry.dim_value = dim
            elif named is None or str(dim) in named:
                entry.dim_param = str(dim)
    return result
