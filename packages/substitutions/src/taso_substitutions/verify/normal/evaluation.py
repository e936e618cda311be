"""Evaluating the sides of a rule on index forms: terms, attributes and conditions over symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from taso_gym.ops import OPERATORS, Operator
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.functions import Operand
from taso_gym.rules.lists import Undefined
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Var
from taso_gym.symbolic import Poly
from taso_gym.tensor import TensorType
from taso_substitutions.verify.normal.attributes import fix_needed, run_body
from taso_substitutions.verify.normal.axes import UnprovableError, atoms_of
from taso_substitutions.verify.normal.index_module import IndexModule
from taso_substitutions.verify.normal.index_tensor import START, IndexTensor

OPERATORS_BY_KEY: dict[str, Operator] = {op.key: op for op in OPERATORS.values()}


class SymbolicWeight:
    """The value of a constant as an element: what ``value(c)`` is to the prover."""

    def __init__(self, tensor: IndexTensor) -> None:
        self._tensor = tensor

    @property
    def splat(self) -> Any:
        """The one element of a tensor of size 1, as a scalar.

        Raises:
            Undefined: there are more.
        """
        if any(axis != ((),) for axis in self._tensor.axes):
            raise Undefined("the value of a tensor of several elements")
        first = (START,) * len(self._tensor.axes)
        return IndexTensor(self._tensor.sizes, (), lambda _: self._tensor.at(first))


class Evaluator:
    """Computes terms of a rule.

    Args:
        xp: index forms over the sizes as refined so far.
        example: types, attributes and constants that the proof generalises.
    """

    def __init__(self, xp: IndexModule, example: Binding) -> None:
        self.xp, self.sizes, self.example = xp, xp.sizes, example
        self.attrs: dict[str, Any] = dict(example.attrs)
        self._results: dict[Call, tuple[IndexTensor, ...]] = {}
        self.tensors: dict[str, IndexTensor | tuple[IndexTensor, ...]] = {}
        for name, operand in example.tensors.items():
            if isinstance(operand, Operand):
                self.tensors[name] = self._variable(name, operand)
            else:
                self.tensors[name] = tuple(self._variable(f"{name}.{i}", o) for i, o in enumerate(operand))

    def _variable(self, name: str, operand: Operand) -> IndexTensor:
        axes = [self.sizes.fresh(f"{name}.{i}", d) for i, d in enumerate(_static(operand.type))]
        return self.xp.variable(name, axes)

    def inputs(self) -> Iterator[tuple[str, IndexTensor]]:
        """Yield the name of every input, as `Instance.leaves` says it, and its index form."""
        for name, found in self.tensors.items():
            if isinstance(found, tuple):
                yield from ((f"{name}.{i}", t) for i, t in enumerate(found))
            else:
                yield name, found

    def roots(self, roots: Sequence[Root]) -> list[IndexTensor]:
        """Return the outputs of a side."""
        return [t for root in roots for t in self._terms(root)]

    def _terms(self, term: Root) -> tuple[IndexTensor, ...]:
        match term:
            case Var(name) | Rest(name):
                found = self.tensors[name]
                return found if isinstance(found, tuple) else (found,)
            case Constant(value):
                return (self._literal(self.evaluate(value)),)
            case AllOutputs(call):
                return self._call(call)
            case Output(call, index):
                return (self._call(call)[index],)
            case Call():
                return (self._call(term)[0],)
            case Absent():
                raise UnprovableError("expected a tensor, found an absent input")

    def _literal(self, value: Any) -> IndexTensor:
        if not isinstance(value, tuple):
            return self.xp.constant(value, None)
        items = cast("tuple[Any, ...]", value)
        return self.xp.concatenate([self.xp.reshape(self.xp.constant(item, None), (1,)) for item in items], 0)

    def _call(self, call: Call) -> tuple[IndexTensor, ...]:
        if call not in self._results:
            self._results[call] = self._apply(call)
        return self._results[call]

    def _apply(self, call: Call) -> tuple[IndexTensor, ...]:
        op = OPERATORS_BY_KEY[call.op]
        args: list[IndexTensor | None] = []
        for arg in call.args:
            args.extend([None] if isinstance(arg, Absent) else self._terms(arg))
        given = {name: self.evaluate(expr) for name, expr in call.attrs}
        others = {k: v for k, v in self.attrs[call.others].items() if k not in given} if call.others else {}
        attrs = {**op.defaults, **others, **given}
        present = [a for a in args if a is not None]
        fix_needed(op, present, attrs)
        return run_body(op, self.xp, args, attrs)

    def binding(self) -> Binding:
        """Return what expressions read: shapes over symbols, constants as elements."""

        def operand(t: IndexTensor | tuple[IndexTensor, ...], like: Any) -> Any:
            if isinstance(t, tuple):
                return tuple(operand(x, o) for x, o in zip(t, like, strict=True))
            weight = None if like.weight is None else SymbolicWeight(t)
            return Operand(like.type._replace(shape=t.shape), weight)  # pyright: ignore[reportArgumentType]

        tensors = {k: operand(t, self.example.tensors[k]) for k, t in self.tensors.items()}
        return Binding(tensors, self.attrs, self.example.opset)

    def evaluate(self, expr: Expr) -> Any:
        """Return the value of an expression; a quotient of whole numbers or sizes is an element.

        Raises:
            UnprovableError: it has none over symbolic sizes.
        """
        binding = self.binding()
        try:
            if expr.kind == "/":
                a, b = [evaluate(arg, binding) for arg in expr.args]
                if all(isinstance(v, int | Poly) for v in (a, b)) or isinstance(b, Poly):
                    return self.xp.constant(a, None) / self.xp.constant(b, None)
            return evaluate(expr, binding)
        except Undefined as error:
            atoms = [a for size in _sizes_in(expr, binding) for a in atoms_of([self.sizes.axis_of(size)])]
            raise UnprovableError(f"expected an expression over sizes and attributes: {error}", atoms) from error


def _static(type_: TensorType) -> list[int]:
    dims = [d for d in type_.shape or () if isinstance(d, int)]
    assert len(dims) == len(type_.shape or ()), f"an example has numbers for sizes, found {type_}"
    return dims


def _sizes_in(expr: Expr, binding: Binding) -> list[Poly]:
    """Return the symbolic sizes that an expression reads."""
    try:
        value = evaluate(expr, binding)
    except (Undefined, KeyError):
        value = None
    found = [d for d in (value if isinstance(value, tuple) else (value,)) if isinstance(d, Poly)]
    return found + [d for arg in expr.args for d in _sizes_in(arg, binding)]


def calls_of(roots: Sequence[Root]) -> list[Call]:
    """Return all calls of a side, operands first."""
    result: list[Call] = []
    for root in roots:
        call = root.call if isinstance(root, Output | AllOutputs) else root
        if isinstance(call, Call):
            result += [*calls_of(call.args), call]
    return result
