"""Two graphs of TASO's examples (Jia et al. 2019, SOSP), to reproduce figures that were published for them.

Neither is a network that anyone trained: they have no biases, normalisations or softmax.
"""

from __future__ import annotations

from taso_gym.graph import Graph
from taso_gym.models.layers import AFTER_LINEAR, Net


def taso_bert(
    batch: int = 1, sequence: int = 64, layers: int = 8, hidden: int = 1024, heads: int = 16, seed: int = 0
) -> Graph:
    """TASO's "BERT" with its attention thrown away, 8·4·1024² = 33,554,432 parameters (``examples/bert.py``).

    Use this only to compare with published figures: TASO's, and those of RLFlow, X-RLflow and TENSAT, which copied it.
    In each layer the last product is taken of the layer's *input* instead of the attention's output, so that four
    products share one input and the network is a chain of 8 matrices; there is no softmax, bias, residual,
    normalisation or feed-forward network. Most of the speed-up published for "BERT" comes from merging those four.
    `taso_gym.models.bert` has the real one.

    TASO never removes dead code and counts its cost, so each layer's discarded attention is a graph output here,
    ``discarded.0`` …; without that it would be no part of the graph. The keys aren't transposed, as in the script,
    which needs sequence = hidden / heads.
    Input ``input`` ``[batch, sequence, hidden]`` (the script's has no batch axis).
    """
    net = Net(seed)
    x = net.input("input", (batch, sequence, hidden))
    discarded: dict[str, int] = {}
    for layer in range(layers):
        q, k, v, out = (_matmul(net, x, f"layer.{layer}.{part}", hidden) for part in ("q", "k", "v", "linear"))
        q, k, v = (
            net.op(
                "Transpose", net.op("Reshape", y, shape=(batch, sequence, heads, hidden // heads)), perm=(0, 2, 1, 3)
            )
            for y in (q, k, v)
        )
        attended = net.op("Transpose", net.op("MatMul", net.op("MatMul", q, k), v), perm=(0, 2, 1, 3))
        discarded[f"discarded.{layer}"] = net.op("Reshape", attended, shape=(batch, sequence, hidden))
        x = out
    return net.build(output=x, **discarded)


def nas_rnn(batch: int = 1, steps: int = 5, hidden: int = 512, seed: int = 0) -> Graph:
    """NasRNN: five steps of the recurrent cell of Zoph & Le 2016 (arXiv 1611.01578), 16·512² = 4,194,304 parameters.

    The cell as in TASO's ``examples/nasrnn.py``: eight sums x W + h U, combined in a binary tree of additions,
    products, ReLU, sigmoid and tanh; without the paper's memory cell and biases. The script draws new weights in every
    step (5 times as many) and starts from a constant; here the steps share them, as a recurrent network's do, and the
    first state is an input, so that no step is constant. The shapes of all operators are the script's.
    Inputs ``state``, ``x.0`` … ``[batch, hidden]``; output ``state.out``.
    """
    net = Net(seed)
    state = net.input("state", (batch, hidden))
    weights = [(_square(net, f"cell.w.{i}", hidden), _square(net, f"cell.u.{i}", hidden)) for i in range(8)]
    for step in range(steps):
        x = net.input(f"x.{step}", (batch, hidden))
        sums = [net.op("Add", net.op("MatMul", x, w), net.op("MatMul", state, u)) for w, u in weights]
        state = _cell(net, sums)
    return net.build(**{"state.out": state})


def _matmul(net: Net, x: int, name: str, features: int) -> int:
    return net.op("MatMul", x, _square(net, name, features))


def _square(net: Net, name: str, size: int) -> int:
    return net.weight(name, (size, size), (AFTER_LINEAR / size) ** 0.5)


def _cell(net: Net, sums: list[int]) -> int:
    """Combine the eight sums: leaves, two levels of the tree, and the tanh at its root."""

    def node(op: str, left: str, a: int, right: str, b: int) -> int:
        return net.op(op, net.op(left, a), net.op(right, b))

    first = node("Add", "Relu", sums[0], "Sigmoid", sums[3])
    second = node("Add", "Sigmoid", sums[1], "Tanh", sums[2])
    third = node("Mul", "Sigmoid", sums[4], "Tanh", sums[5])
    fourth = node("Mul", "Sigmoid", sums[6], "Relu", sums[7])
    left = node("Mul", "Tanh", first, "Tanh", fourth)
    right = node("Add", "Sigmoid", second, "Tanh", third)
    return net.op("Tanh", node("Mul", "Tanh", right, "Tanh", left))
