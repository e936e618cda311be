"""What the key of a node that onnxruntime executes says of it: see `taso_gym.cost.executed`, which writes them."""

from __future__ import annotations

import re
from functools import cache
from math import prod

COLD = "out of cache "
"""Begins the key of a node that is measured with its memory out of the cache, as well as in it."""
SMALL = 8
"""Constants with so many elements or fewer are told apart by value: exponents, shapes, axes."""
OPERAND = re.compile(r"(const )?[a-z]\w*\[([0-9, ]*)\]")
"""An operand in the key of a node: its type and shape, and whether it is constant."""


def operator_of(key: str) -> str:
    """Return the operator of a node, by its key, without domain and opset."""
    return key.removeprefix(COLD).partition("[")[0].rpartition(".")[2].partition("-")[0]


def shapes_of(key: str) -> list[tuple[bool, list[int]]]:
    """Return (whether it is constant, shape) of each operand of a node, by its key."""
    found = OPERAND.findall(key[key.rfind("](") + 1 :])
    return [(bool(const), [int(size) for size in shape.split(",") if size]) for const, shape in found]


def bytes_of(key: str) -> int:
    """Return about how many bytes the operands of a node have, by its key, each element four."""
    return sum(4 * prod(shape) for _, shape in shapes_of(key))


@cache
def operands_of(key: str) -> tuple[float, int]:
    """Return which part of the elements that a node reads are constants, and how many its largest other operand has."""
    sizes = [(const, prod(shape)) for const, shape in shapes_of(key)]
    constants, others = ([size for const, size in sizes if const is kind] for kind in (True, False))
    return sum(constants) / (sum(constants + others) or 1), max(others, default=0)
