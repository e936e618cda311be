"""TASO's rule files as records: protocol buffers (proto2, ``GraphSubst.RuleCollection``) read field by field.

Source of the field numbers: https://github.com/jiazhihao/TASO/blob/master/src/core/rules.proto
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from taso_gym.errors import RuleError

VARINT, LENGTH = 0, 2
MAX_VARINT = 10


class TasoTensor(NamedTuple):
    """An operand: output ``output`` of operator ``op`` of the same side, or a variable if ``op`` is negative."""

    op: int
    output: int


class TasoOperator(NamedTuple):
    """An operator: number of its type, operands, and parameters by number."""

    type: int
    inputs: tuple[TasoTensor, ...]
    parameters: dict[int, int]


class TasoRule(NamedTuple):
    """A rule: operators of both sides in topological order, and which outputs correspond: (source, target)."""

    source: tuple[TasoOperator, ...]
    target: tuple[TasoOperator, ...]
    outputs: tuple[tuple[TasoTensor, TasoTensor], ...]


def parse(data: bytes, where: str) -> list[TasoRule]:
    """Return the rules of a file.

    Raises:
        RuleError: the bytes aren't such a file.
    """
    try:
        rules = [_rule(_bytes(value)) for number, value in _fields(data) if number == 1]
    except (ValueError, IndexError, KeyError) as error:
        raise RuleError(f"expected rules in TASO's format, found a damaged file: {error}", where=where) from error
    if not rules:
        raise RuleError("expected rules in TASO's format, found none", where=where)
    return rules


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of the fields of a message."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        if kind not in (VARINT, LENGTH) or not key >> 3:
            raise ValueError(f"a field of kind {kind} at byte {position}")
        value, position = _varint(data, position)
        if kind == VARINT:
            yield key >> 3, value - (1 << 64) if value >> 63 else value
            continue
        if position + value > len(data):
            raise ValueError(f"a field that ends behind byte {len(data)}")
        yield key >> 3, data[position : position + value]
        position += value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for i in range(MAX_VARINT):
        if position + i >= len(data):
            raise ValueError("an integer that ends too early")
        byte = data[position + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value & (1 << 64) - 1, position + i + 1
    raise ValueError(f"an integer that doesn't end, at byte {position}")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number instead of a message")
    return value


def _integers(data: bytes) -> dict[int, int]:
    found = dict(_fields(data))
    if not all(isinstance(v, int) for v in found.values()):
        raise ValueError("a message instead of a number")
    return {k: int(v) for k, v in found.items()}


def _rule(data: bytes) -> TasoRule:
    fields = [(number, _bytes(value)) for number, value in _fields(data)]
    source, target = (tuple(_operator(v) for number, v in fields if number == side) for side in (1, 2))
    pairs = [_integers(v) for number, v in fields if number == 3]
    outputs = [(TasoTensor(p[1], p[3]), TasoTensor(p[2], p[4])) for p in pairs]
    for side in (source, target):
        for place, operator in enumerate(side):
            if any(t.op >= place for t in operator.inputs):
                raise ValueError("an operand that comes after its operator")
    if not outputs or any(not 0 <= a.op < len(source) or b.op >= len(target) for a, b in outputs):
        raise ValueError("an output that no operator computes")
    return TasoRule(source, target, tuple(outputs))


def _operator(data: bytes) -> TasoOperator:
    fields = list(_fields(data))
    (kind,) = [value for number, value in fields if number == 1]
    inputs = [_integers(_bytes(value)) for number, value in fields if number == 2]
    parameters = [_integers(_bytes(value)) for number, value in fields if number == 3]
    if not isinstance(kind, int):
        raise ValueError("a message instead of a number")
    return TasoOperator(kind, tuple(TasoTensor(i[1], i[2]) for i in inputs), {p[1]: p[2] for p in parameters})


def serialize(rules: list[TasoRule]) -> bytes:
    """Return rules in TASO's format."""
    return b"".join(_message(1, _rule_bytes(rule)) for rule in rules)


def _rule_bytes(rule: TasoRule) -> bytes:
    sides = [_message(n, _operator_bytes(op)) for n, side in ((1, rule.source), (2, rule.target)) for op in side]
    outputs = [_message(3, _numbers(a.op, b.op, a.output, b.output)) for a, b in rule.outputs]
    return b"".join([*sides, *outputs])


def _operator_bytes(op: TasoOperator) -> bytes:
    inputs = [_message(2, _numbers(t.op, t.output)) for t in op.inputs]
    parameters = [_message(3, _numbers(key, value)) for key, value in op.parameters.items()]
    return b"".join([_numbers(op.type), *inputs, *parameters])


def _numbers(*values: int) -> bytes:
    return b"".join(_encoded(number << 3 | VARINT) + _encoded(value) for number, value in enumerate(values, 1))


def _message(number: int, data: bytes) -> bytes:
    return _encoded(number << 3 | LENGTH) + _encoded(len(data)) + data


def _encoded(value: int) -> bytes:
    value &= (1 << 64) - 1
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])
