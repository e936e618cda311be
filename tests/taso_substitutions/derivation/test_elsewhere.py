"""Rules are derived at types and with constants that no fragment has."""

import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import Rule
from taso_gym.tensor import TensorType
from taso_substitutions.derivation.elsewhere import KNOWN, Elsewhere
from taso_substitutions.verify.levels import Evidence, assess

FACTS = parse_rules(KNOWN.read_text(encoding="utf-8"))
TYPES = [TensorType("float", shape) for shape in ((2, 4, 6, 6), (4, 4, 3, 3), (5, 7), (7, 7), ())]
KERNEL = "Expand({}, shape=[dim(x, 1), 1, 3, 3])"
POOL = "AveragePool(x, count_include_pad=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1])"
RULES = parse_rules(
    "a: Relu(Relu(x)) => Relu(x)\n"
    "b: Conv(Concat(x, y, axis=a), w, **k) => Concat(Conv(x, w, **k), Conv(y, w, **k), axis=a) if a == 0\n"
    "c: Conv(x, Mul(w, s), **k) => Mul(Conv(x, w, **k), s) if rank(s) == 0"
)


@pytest.mark.parametrize("fact", FACTS, ids=[fact.name for fact in FACTS])
def test_what_is_known_is_shown(fact: Rule) -> None:
    found = assess(fact, instances=8, draws=1)
    assert isinstance(found, Evidence)
    assert found.status in ("proved", "bounded")


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        (f"{POOL} => Conv(x, Div({KERNEL.format(1)}, 9), group=dim(x, 1), pads=[1, 1, 1, 1]) if rank(x) == 4", True),
        (f"{POOL} => Conv(x, Div({KERNEL.format(1)}, 8), group=dim(x, 1), pads=[1, 1, 1, 1]) if rank(x) == 4", False),
        ("Relu(Relu(Mul(x, 1))) => Relu(x) if rank(x) == 4", True),
        (
            "Conv(Concat(x, y, axis=0), Mul(w, s)) => Mul(Concat(Conv(x, w), Conv(y, w), axis=0), s) if rank(s) == 0",
            True,
        ),
        ("Relu(Sub(x, y)) => Sub(Relu(x), Relu(y)) if rank(x) == 2", False),
        ("Gemm(x, y, z) => Gemm(x, y, z) if rank(x) == 7", False),
    ],
)
def test_what_follows(text: str, follows: bool) -> None:
    (rule,) = parse_rules(f"asked: {text}")
    assert Elsewhere(RULES, TYPES).derives(rule) is follows
