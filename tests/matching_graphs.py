"""Graphs and rules for the tests of the rule engine: terms as text, a block of a transformer, a CNN, random graphs."""

import random
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, output_index, producer_of
from taso_gym.ops import Operator
from taso_gym.rules.conditions import Binding, evaluate
from taso_gym.rules.expressions import Piece
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.pattern import operator_named
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Output, Root, Var
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState
from taso_gym.rules.terms import TermReader, bind_scope
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight, array_weight, literal

RULES = (Path(__file__).parent / "matching.rules").read_text(encoding="utf-8")


def rule_set(text: str = RULES) -> RuleSet:
    """Return the rules of a text."""
    return RuleSet(parse_rules(text))


class Builder(GraphBuilder):
    """Builds the graph of terms."""

    def __init__(self, types: dict[str, str], opset: int) -> None:
        """Take the type of each variable: ``2xNx4``, with ``const`` or an element type before it."""
        super().__init__({"": opset, "com.microsoft": 1})
        self.variables = {name: self._leaf_of(name, text) for name, text in types.items()}
        self.calls: dict[Call, tuple[int, ...]] = {}

    def _leaf_of(self, name: str, text: str) -> int:
        *words, dims = text.split(" ")
        shape = tuple(int(d) if d.isdigit() else symbol(d) for d in dims.split("x") if d)
        dtype = next((word for word in words if word != "const"), "float")
        if "const" not in words:
            return self.input(name, TensorType(dtype, shape))
        assert all(isinstance(d, int) for d in shape)
        weight = GeneratedWeight(0, name, dtype, shape)  # pyright: ignore[reportArgumentType]
        return self.weight(name, TensorType(dtype, shape), weight)

    def term(self, term: Root) -> list[int | None]:
        """Return the values of a term."""
        match term:
            case Var(name):
                return [self.variables[name]]
            case Absent():
                return [None]
            case Constant(value):
                number = evaluate(value, Binding({}))
                return [self.weight(f"literal {number}", *literal(number, "float"))]
            case Call():
                return [self.call(term)[0]]
            case Output(call, index):
                return [self.call(call)[index]]
            case AllOutputs(call):
                return list(self.call(call))
            case _:
                raise AssertionError(term)

    def call(self, call: Call) -> tuple[int, ...]:
        """Return the outputs of a call; equal calls are one node."""
        if call not in self.calls:
            inputs = [value for arg in call.args for value in self.term(arg)]
            attrs = {name: evaluate(expr, Binding({})) for name, expr in call.attrs}
            op = operator_named(call.op)
            first = self.add(op.name, *inputs, domain=op.domain, **attrs)
            outputs = len(self._nodes[producer_of(first)].sig.outputs)
            self.calls[call] = tuple(first + i for i in range(outputs))
        return self.calls[call]


def graph_of(terms: str, opset: int = 20, **types: str) -> Graph:
    """Return the graph whose outputs are some terms; equal terms are one node."""
    builder = Builder(types, opset)
    piece = Piece(terms, 0, terms, "")
    trees = piece.parse()
    reader = TermReader(piece, bind_scope(trees, piece), left=False)
    for tree in trees:
        for value in builder.term(reader.root(tree)):
            assert value is not None
            builder.output(f"y{len(builder._outputs)}", value)
    return builder.build()


def show(graph: Graph) -> str:
    """Return the graph's outputs as terms; attributes that have their default are left out."""
    return ", ".join(_show(graph, value) for value in graph.outputs)


def _show(graph: Graph, value: int | None) -> str:
    if value is None:
        return "_"
    if value in graph.leaves:
        leaf = graph.leaves[value]
        splat = getattr(leaf.weight, "splat", None)
        return leaf.name if splat is None else f"{splat:g}"
    node = graph.nodes[producer_of(value)]
    assert isinstance(node.sig.op, Operator)
    attrs = [f"{k}={_plain(v)}" for k, v in node.sig.attrs if v not in (node.sig.op.defaults[k], None)]
    text = f"{node.sig.op.key}({', '.join([_show(graph, v) for v in node.inputs] + attrs)})"
    return text if len(node.sig.outputs) == 1 else f"{text}[{output_index(value)}]"


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def children(rules: str, terms: str, opset: int = 20, **types: str) -> list[str]:
    """Return what the legal matches of rules make of terms."""
    state = RewriteState(graph_of(terms, opset, **types), rule_set(rules))
    return [show(state.child_graph(match)) for row in state.matches for match in row]


def transformer(width: int = 8) -> Graph:
    """Return a block of attention and a feed-forward layer, with a symbolic batch."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (symbol("batch"), 4, width)))
    names = iter(range(100))

    def weight(*shape: int) -> int:
        made = GeneratedWeight(0, f"w{next(names)}", "float", shape)
        return builder.weight(made.name, TensorType("float", shape), made)

    q, k, v = (builder.add("Add", builder.add("MatMul", x, weight(width, width)), weight(width)) for _ in range(3))
    half = builder.weight("half", *array_weight(np.full((1,), 0.5, np.float32)))
    scores = builder.add("Mul", builder.add("MatMul", q, builder.add("Transpose", k, perm=[0, 2, 1])), half)
    mixed = builder.add("MatMul", builder.add("Softmax", scores, axis=-1), v)
    x = builder.add("Add", builder.add("MatMul", mixed, weight(width, width)), x)
    hidden = builder.add("Relu", builder.add("Add", builder.add("MatMul", x, weight(width, 16)), weight(16)))
    builder.output("y", builder.add("Add", builder.add("MatMul", hidden, weight(16, width)), x))
    return builder.build()


def cnn() -> Graph:
    """Return a stem and two blocks of parallel convolutions that are concatenated."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (1, 3, 8, 8)))
    names = iter(range(100))

    def conv(data: int, channels: int, kernel: int = 1) -> int:
        shape = (channels, builder.shape_of(data)[1], kernel, kernel)
        made = GeneratedWeight(0, f"w{next(names)}", "float", shape)  # pyright: ignore[reportArgumentType]
        weight = builder.weight(made.name, TensorType("float", shape), made)
        return builder.add("Relu", builder.add("Conv", data, weight, pads=[kernel // 2] * 4))

    x = conv(x, 4, 3)
    for _ in range(2):
        x = builder.add("Concat", conv(x, 2), conv(x, 3), conv(x, 2, 3), axis=1)
    builder.output("y", x)
    return builder.build()


def random_graph(seed: int, size: int = 24) -> Graph:
    """Return a random graph of operators that `RULES` are about; dimension ``n`` is symbolic."""
    rng = random.Random(seed)
    builder = GraphBuilder({"": 20})
    square = TensorType("float", (4, 4)) if seed % 2 else TensorType("float", (symbol("n"), symbol("n")))
    values = [builder.input(f"x{i}", square) for i in range(2)]
    values.append(builder.weight("two", *literal(2, "float")))
    values.append(builder.weight("one", *literal(1, "float")))
    while len(values) < size:
        op = rng.choice(["Add", "Mul", "MatMul", "Relu", "Transpose", "Join"])
        a, b = rng.choices(values[-12:], k=2)
        matrices = [v for v in (a, b) if builder.shape_of(v)]
        if op in ("Add", "Mul") or (len(matrices) == 2 and op == "MatMul"):
            values.append(builder.add(op, a, b))
        elif matrices and op == "Relu":
            values.append(builder.add(op, matrices[0]))
        elif matrices and op == "Transpose":
            values.append(builder.add(op, matrices[0], perm=[1, 0]))
        elif len(matrices) == 2 and seed % 2:
            values += joined(builder, a, b, rng.randrange(4))
    for i, value in enumerate(values):
        if not builder._uses.get(value) and value not in builder._leaves:
            builder.output(f"y{i}", value)
    return builder.build()


def joined(builder: GraphBuilder, a: int, b: int, kind: int) -> list[int]:
    """Return 4x4 matrices made by concatenating and splitting two others."""
    if kind == 0:
        parts = builder.add("Split", a, axis=0, split=[1, 3])
        return [builder.add("Concat", parts, parts + 1, axis=0)]
    if kind == 1:
        both = builder.add("Concat", builder.add("Relu", a), builder.add("Relu", b), axis=0)
    elif kind == 2:
        both = builder.add("Concat", b, builder.add("Concat", a, b, axis=0), axis=0)
    else:
        both = builder.add("Concat", a, b, axis=0)
    count = 3 if kind == 2 else 2
    parts = builder.add("Split", both, axis=0, split=[4] * count)
    return [parts + i for i in range(count)]
