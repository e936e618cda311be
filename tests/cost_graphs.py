"""Small graphs that the cost tests share."""

from itertools import pairwise
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims
from taso_gym.cost.recorded import Entry, RecordedCost, Table, region_key
from taso_gym.graph import Graph
from taso_gym.symbolic import Dim, symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight

WIDTH = 256


def product() -> bytes:
    """A model of one product of `WIDTH` rows and columns, which several threads share."""
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH, WIDTH]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "product", types[:2], types[2:])
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


def weight(builder: GraphBuilder, name: str, *shape: int) -> int:
    """Add a float weight."""
    return builder.weight(name, TensorType("float", shape), GeneratedWeight(0, name, "float", shape))


def mlp(rows: Dim = 4, width: int = 8) -> Graph:
    """Relu(x @ w + b): one input, two weights."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (rows, width)))
    product = b.add("MatMul", x, weight(b, "w", width, width))
    b.output("y", b.add("Relu", b.add("Add", product, weight(b, "b", width))))
    return b.build()


def symbolic_mlp() -> Graph:
    """`mlp` for any number of rows."""
    return mlp(symbol("batch"))


def folded() -> Graph:
    """x + (w1 @ w2): the product is a constant."""
    b = GraphBuilder({"": 20})
    x = b.input("x", TensorType("float", (4, 4)))
    b.output("y", b.add("Add", x, b.add("MatMul", weight(b, "w1", 4, 4), weight(b, "w2", 4, 4))))
    return b.build()


def table_of(path: Path, *graphs: Graph) -> Path:
    """Write a table of costs in which every region of some graphs takes 7 ps and two kernels."""
    Table("a device", 16, {}).save(path)
    model = RecordedCost(str(path))
    costs = {region_key(r, Dims()): Entry(7, 2, "made up") for graph in graphs for r in model.regions(graph)}
    Table("a device", 16, costs).save(path)
    return path


def write_chain(path: Path, products: int, rows: int | str = 64, columns: int = 64) -> Path:
    """Write a model of so many products of a matrix with itself."""
    values = ["x", *(f"v{i}" for i in range(1, products)), "y"]
    nodes = [helper.make_node("MatMul", [a, "x"], [b]) for a, b in pairwise(values)]
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, columns]) for name in "xy"]
    graph = helper.make_graph(nodes, "chain", types[:1], types[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path
