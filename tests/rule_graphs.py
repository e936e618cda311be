"""The left side of a rule as a model: built from a sampled instance, rewritten by the engine, run by onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime as ort

from taso_gym.builder import GraphBuilder
from taso_gym.graph import Graph, value_of
from taso_gym.onnx_io import to_model
from taso_gym.ops import MICROSOFT
from taso_gym.rules.conditions import evaluate
from taso_gym.rules.rule import AllOutputs, Call, Constant, Output, Rest, Root, Rule, Var
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight, literal
from taso_substitutions.verify.instance import Instance, Side

OPSETS = {"": 23, MICROSOFT: 1}


class LeftSide:
    """Builds the left side of a rule for an instance; a root that is written twice is two nodes."""

    def __init__(self, rule: Rule, instance: Instance, arrays: dict[str, Any]) -> None:
        self.rule, self.instance = rule, instance
        self.builder, self.side = GraphBuilder(OPSETS), Side(instance, left=True)
        self.values = {name: self.leaf(name, type_, arrays) for name, type_ in instance.leaves()}
        self.calls: dict[Call, tuple[int, ...]] = {}
        self.roots: set[Root] = set()

    def leaf(self, name: str, type_: TensorType, arrays: dict[str, Any]) -> int:
        if not type_.const:
            return self.builder.input(name, type_)
        return self.builder.weight(name, *array_weight(np.array(arrays[name])))

    def graph(self) -> Graph:
        outputs: list[int] = []
        for root in self.rule.lhs:
            if root in self.roots:
                del self.calls[root.call if isinstance(root, Output | AllOutputs) else root]
            self.roots.add(root)
            outputs += [v for v in self.operands(root) if v is not None]
        for i, value in enumerate(outputs):
            self.builder.output(f"output.{i}", value)
        return self.builder.build()

    def operands(self, term: Root) -> list[int | None]:
        match term:
            case Var(name):
                return [self.values[name]]
            case Rest(name):
                return [self.values[f"{name}.{i}"] for i in range(len(self.instance.tensors[name]))]
            case Call():
                return [self.call(term)[0]]
            case Output(call, index):
                return [self.call(call)[index]]
            case AllOutputs(call):
                return list(self.call(call))
            case _:
                return [None]

    def call(self, call: Call) -> tuple[int, ...]:
        if call not in self.calls:
            sig = self.side.sign(call)
            inputs: list[int | None] = []
            for arg in call.args:
                is_literal = isinstance(arg, Constant)
                inputs += [self.literal(arg, sig.inputs[len(inputs)])] if is_literal else self.operands(arg)
            first = self.builder.add_signature(sig, inputs)[0]
            self.calls[call] = tuple(first + i for i in range(len(sig.outputs)))
            assert value_of(1, 1) == value_of(1) + 1
        return self.calls[call]

    def literal(self, term: Constant, type_: TensorType) -> int:
        value = evaluate(term.value, self.instance.binding())
        name = f"literal.{len(self.calls)}.{value}"
        return self.builder.weight(name, *literal(value, type_.dtype, tuple(type_.shape)))


def run(graph: Graph, arrays: dict[str, Any]) -> list[np.ndarray]:
    """Return the outputs that onnxruntime computes for a graph as it is, without optimisations of its own."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(to_model(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: arrays[i.name] for i in session.get_inputs()})
