"""A call of a rule's left side whose operands and attributes are being drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taso_gym.errors import EquivalenceError
from taso_gym.rules.conditions import evaluate
from taso_gym.rules.lists import Undefined
from taso_gym.rules.pattern import bound_names
from taso_gym.rules.rule import Absent, Call, Constant, Expr, Rest, Root, Var
from taso_gym.signature import Signature, signature
from taso_gym.tensor import TensorType
from taso_substitutions.verify.attributes import ATTRIBUTES, MEANINGLESS, ORDER
from taso_substitutions.verify.bindings import Bindings
from taso_substitutions.verify.draw import Unfit
from taso_substitutions.verify.instance import operator_of
from taso_substitutions.verify.operands import DTYPES, Shape, operand_shape


class CallSite:
    """Binds the variables of one call; a `taso_substitutions.verify.operands.Site`.

    Args:
        bindings: what is bound so far; the call's own variables are added.
        call: operands that are calls are bound already.

    Attributes:
        drew: whether anything was drawn, so that another try may fit where this one doesn't.
    """

    def __init__(self, bindings: Bindings, call: Call) -> None:
        self.bindings, self.call, self.draw = bindings, call, bindings.draw
        self.op = operator_of(call)
        self.known: list[Shape | None] = []
        self.written = dict(call.attrs)
        self.open = bindings.facts.held.get(call.others or "", frozenset[str]())
        self.facts: dict[str, Any] = {}
        self.drew = False

    def bind(self) -> None:
        """Bind the call's variables.

        Raises:
            Unfit: what was drawn doesn't fit.
            TypeInferenceError: the operator doesn't take it.
        """
        self.known = [self._shape(arg) for arg in self.call.args]
        for index, arg in enumerate(self.call.args):
            if isinstance(arg, Var) and arg.name not in self.bindings.tensors:
                self._bind_operand(arg, index)
            elif isinstance(arg, Rest) and arg.name not in self.bindings.tensors:
                self._bind_rest(arg.name, index)
        given = {name: self.attr(name) for name in self._names()}
        operands = self.bindings.side().operands(self.call.args)
        sig = signature(self.op, given, operands)
        if self._held() is None:
            self._expect_drawn(self.open.difference(given).intersection(dict(sig.attrs)))
        self._bind_attributes(sig)
        self.bindings.check()

    def attr(self, name: str) -> Any:
        """Return an attribute of the call, drawn now if need be."""
        if name not in self.facts:
            self.facts[name] = self._find(name)
        return self.facts[name]

    def items(self, name: str) -> int | None:
        """Return how many items an attribute has that the call writes as a list; None for any other."""
        expr = self.written.get(name)
        return len(expr.args) if expr is not None and expr.kind == "list" else None

    def block(self) -> int:
        """Return the block size of the DepthToSpace that makes the first operand, 1 where none does."""
        first = self.call.args[0]
        if not isinstance(first, Call) or first.op != "DepthToSpace":
            return 1
        return int(evaluate(dict(first.attrs)["blocksize"], self.bindings.binding()))

    def _names(self) -> list[str]:
        """Return the attributes that the call doesn't leave at their default, in an order that they can be drawn in."""
        order = ORDER.get(self.call.op, ())
        names = {*self.written, *(self._held() or self.open.intersection(order))}
        return [n for n in order if n in names] + sorted(names - set(order))

    def _held(self) -> dict[str, Any] | None:
        """Return what ``**k`` is bound to, if it is."""
        return self.bindings.attrs.get(self.call.others or "")

    def _find(self, name: str) -> Any:
        expr, held = self.written.get(name), self._held()
        if expr is not None:
            return self._evaluate(name, expr)
        if held is not None:
            return held.get(name, self.op.defaults[name])
        if name not in self.open:
            return self.op.defaults[name]
        defined = self.bindings.defined(("field", self.call.others or "", name))
        return self._drawn(name) if defined is None else defined

    def _evaluate(self, name: str, expr: Expr) -> Any:
        unbound = [variable for variable in bound_names(expr) if variable not in self.bindings.attrs]
        if unbound and expr.kind == "list":
            return self._items(name, expr)
        if unbound:
            defined = self.bindings.defined(("attr", unbound[0], None))
            return self._drawn(name) if defined is None else defined
        try:
            return evaluate(expr, self.bindings.binding())
        except Undefined as error:
            raise Unfit(str(error)) from error

    def _items(self, name: str, expr: Expr) -> tuple[Any, ...]:
        """Return a list some of whose items are bound by it."""
        items = list(self._drawn(name))
        if len(items) != len(expr.args):
            raise Unfit("a list of another length")
        for i, item in enumerate(expr.args):
            defined = self.bindings.defined(("attr", str(item.value), None)) if item.kind == "name" else None
            try:
                items[i] = evaluate(item, self.bindings.binding()) if defined is None else defined
            except Undefined:
                continue
        return tuple(items)

    def _drawn(self, name: str) -> Any:
        if (self.call.op, name) not in ATTRIBUTES:
            raise EquivalenceError(f"expected a way to draw the attribute {name} of {self.call.op}, found none")
        for earlier in self._names():
            if earlier == name:
                break
            self.attr(earlier)
        if name == "split":
            self.facts["outputs"] = self._outputs()
        self.facts["operands"] = self.known
        shape = next((s for s in self.known if s is not None), ())
        drawn = ATTRIBUTES[self.call.op, name](self.draw, shape, self.facts)
        self.drew = True
        return drawn

    def _expect_drawn(self, names: Iterable[str]) -> None:
        """Raise EquivalenceError for an attribute that ``**k`` stands for and that would stay at its default."""
        for name in sorted(names):
            if (self.call.op, name) not in MEANINGLESS:
                raise EquivalenceError(f"expected a way to draw the attribute {name} of {self.call.op}, found none")

    def _outputs(self) -> int:
        """Draw how many outputs the call has: those that the rule mentions, or more."""
        mentioned = self.bindings.facts.outputs.get(self.call, 1)
        return mentioned + self.draw.chance(0.2) if mentioned else self.draw.integer(1, 3)

    def _bind_operand(self, arg: Var, index: int) -> None:
        self.drew |= self.bindings.defined(("shape", arg.name, None)) is None
        dtype = DTYPES.get((self.call.op, index), self.bindings.dtype)
        self.bindings.bind_tensor(arg.name, dtype, operand_shape(self.call.op, self, index))
        self.known[index] = self._shape(arg)

    def _bind_rest(self, name: str, index: int) -> None:
        self.drew, shapes = True, list[Shape]()
        for _ in range(self.draw.integer(1, 3)):
            shapes.append(operand_shape(self.call.op, self, index))
            self.known[index] = shapes[0]
        self.bindings.bind_rest(name, shapes)

    def _bind_attributes(self, sig: Signature) -> None:
        actual, attrs = dict(sig.attrs), self.bindings.attrs
        for name, expr in self.written.items():
            variables = expr.args if expr.kind == "list" else (expr,)
            values = actual.get(name) if expr.kind == "list" else (actual.get(name),)
            if values is None or len(values) != len(variables):
                raise Unfit(f"another length of {name}")
            for variable, value in zip(variables, values, strict=True):
                if variable.kind == "name" and attrs.setdefault(str(variable.value), value) != value:
                    raise Unfit(f"another {name}")
        rest = {name: value for name, value in actual.items() if name in self.open}
        if self.call.others and attrs.setdefault(self.call.others, rest) != rest:
            raise Unfit("other attributes")

    def _shape(self, arg: Root) -> Shape | None:
        if isinstance(arg, Absent | Constant) or (
            isinstance(arg, Var | Rest) and arg.name not in self.bindings.tensors
        ):
            return None
        found = self.bindings.tensors.get(arg.name) if isinstance(arg, Var) else None
        type_ = found if isinstance(found, TensorType) else self.bindings.side().outputs([arg])[0]
        return tuple(d for d in type_.shape or () if isinstance(d, int))
