"""Small graphs that the cost tests share."""

from pathlib import Path

from taso_gym.builder import GraphBuilder
from taso_gym.cost.dims import Dims
from taso_gym.cost.recorded import Entry, RecordedCost, Table, region_key, regions
from taso_gym.graph import Graph
from taso_gym.tensor import Dim, TensorType, symbol
from taso_gym.weights import GeneratedWeight


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
    costs = {region_key(r, Dims()): Entry(7, 2, "made up") for graph in graphs for r in regions(model, graph)}
    Table("a device", 16, costs).save(path)
    return path
