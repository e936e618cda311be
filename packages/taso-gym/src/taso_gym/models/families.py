"""Families of small random networks whose operators can hardly be put better; `generated` makes them worse.

Each grows from a few inputs: a piece takes the value that has waited longest and others drawn at random, and what it
makes waits in turn, until all values have been used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from taso_gym.graph import Graph, producer_of, value_of
from taso_gym.models.layers import Net
from taso_gym.models.splits import FAMILIES

Piece = Callable[["Growth", Sequence[int]], int]


class Growth(Net):
    """A random network under construction; all values that wait have one shape."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
        """Begin with two or three inputs of a shape."""
        super().__init__(int(rng.integers(2**31)))
        self.rng, self.weights = rng, 0
        self.values = [self.input(f"x{i}", shape) for i in range(int(rng.integers(2, 4)))]

    def grow(self, pieces: Sequence[tuple[int, Piece]], count: int) -> Graph:
        """Add pieces, each with its number of operands, then sum up what is left."""
        waiting = list(self.values)
        for _ in range(count):
            arity, piece = pieces[int(self.rng.integers(len(pieces)))]
            others = [self.values[int(i)] for i in self.rng.choice(len(self.values), arity, replace=True)]
            made = piece(self, [waiting.pop(0), *others[1:]])
            self.values.append(made)
            waiting.append(made)
        total = waiting[0]
        for value in waiting[1:]:
            total = self.op("Add", total, value)
        return self.build(y=total)

    def matrix(self, *shape: int) -> int:
        """Add a weight of He's scale without the factor 2."""
        self.weights += 1
        fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        return self.weight(f"w{self.weights}", shape, 1 / sqrt(fan_in))

    def halves(self, value: int, axis: int) -> tuple[int, int]:
        """Add a Split into two equal parts and return them."""
        half = self.shape(value)[axis] // 2
        first = self.op("Split", value, axis=axis, split=(half, half))
        return first, value_of(producer_of(first), 1)


def _unary(op_type: str) -> tuple[int, Piece]:
    return 1, lambda net, x: net.op(op_type, x[0])


def _largest(net: Growth, x: Sequence[int]) -> int:
    return net.op("Relu", net.op("Max", *x))


def _factored(net: Growth, x: Sequence[int]) -> int:
    return net.op("Mul", x[0], net.op("Add", x[1], net.op("Tanh", x[2])))


def _joined(net: Growth, x: Sequence[int]) -> int:
    joined = net.op("Relu", net.op("Concat", x[0], net.op("Softplus", x[1]), axis=1))
    width = net.shape(x[0])[1]
    return _product(net, joined, net.matrix(2 * width, width))


def _product(net: Growth, x: int, weight: int) -> int:
    """A product whose result goes through Tanh, so that it can't be combined with what follows."""
    return net.op("Tanh", net.op("MatMul", x, weight))


def _associated(net: Growth, x: Sequence[int]) -> int:
    width = net.shape(x[0])[1]
    return _product(net, x[0], net.op("MatMul", net.matrix(width, 4 * width), net.matrix(4 * width, width)))


def _summed(net: Growth, x: Sequence[int]) -> int:
    width = net.shape(x[0])[1]
    return _product(net, x[0], net.op("Add", net.matrix(width, width), net.matrix(width, width)))


def _projected(net: Growth, x: int) -> tuple[int, int]:
    """Two projections by the halves of one weight."""
    width = net.shape(x)[1]
    first, second = net.halves(net.matrix(width, 2 * width), 1)
    return _product(net, x, first), _product(net, x, second)


def _gated(net: Growth, x: Sequence[int]) -> int:
    first, second = _projected(net, x[0])
    return net.op("Mul", net.op("Sigmoid", first), second)


def _rectified(net: Growth, x: Sequence[int]) -> int:
    first, second = _projected(net, x[0])
    return net.op("Mul", net.op("Relu", first), second)


def _attended(net: Growth, x: Sequence[int]) -> int:
    queries, keys = _projected(net, x[0])
    scores = net.op("Tanh", net.op("MatMul", queries, net.op("Transpose", keys, perm=(1, 0))))
    return _product(net, net.op("Softmax", scores, axis=-1), x[1])


def _convolved(net: Growth, x: Sequence[int]) -> int:
    channels = net.shape(x[0])[1]
    return net.op("Relu", net.op("Conv", x[0], net.matrix(channels, channels, 3, 3), pads=(1, 1, 1, 1)))


def _branched(net: Growth, x: Sequence[int]) -> int:
    channels = net.shape(x[0])[1]
    kernels = net.halves(net.matrix(2 * channels, channels, 3, 3), 0)
    first, second = (net.op("Conv", x[0], kernel, pads=(1, 1, 1, 1)) for kernel in kernels)
    return net.op("Mul", net.op("Relu", first), net.op("Sigmoid", second))


def _reparametrised(net: Growth, x: Sequence[int]) -> int:
    channels = net.shape(x[0])[1]
    kernels = [net.matrix(channels, channels, 3, 3) for _ in range(2)]
    return net.op("Tanh", net.op("Conv", x[0], net.op("Add", *kernels), pads=(1, 1, 1, 1)))


def _pooled(net: Growth, x: Sequence[int]) -> int:
    return net.op("Relu", net.op("MaxPool", x[0], kernel_shape=(3, 3), pads=(1, 1, 1, 1)))


_PIECES: dict[str, tuple[tuple[int, Piece], ...]] = {
    "elementwise": ((3, _factored), (2, _largest), *map(_unary, ("Gelu", "Sigmoid", "Mish", "HardSwish"))),
    "linear": ((1, _associated), (1, _summed), (1, _rectified), (2, _joined), (2, _largest)),
    "convolution": ((1, _convolved), (1, _branched), (1, _reparametrised), (1, _pooled), _unary("Mish")),
    "attention": ((2, _attended), (1, _rectified), (1, _summed), _unary("Gelu")),
    "gated": ((1, _gated), (3, _factored), (1, _associated), _unary("HardSwish")),
}


def grow(family: str, rng: np.random.Generator, most: int) -> Graph:
    """Draw a network of a family: of four to eight pieces, or of as many fewer as have less than ``most`` operators."""
    if family == "convolution":
        shape = 1, int(rng.choice([16, 32, 64])), *[int(rng.choice([14, 28]))] * 2
    else:
        shape = int(rng.choice([64, 128])), int(rng.choice([64, 128, 256]))
    count, drawn = int(rng.integers(4, 9)), rng.bit_generator.state
    while len((graph := Growth(rng, shape).grow(_PIECES[family], count)).nodes) >= most and count > 1:
        count, rng.bit_generator.state = count - 1, drawn
    return graph


assert tuple(_PIECES) == FAMILIES
