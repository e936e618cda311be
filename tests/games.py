"""Small games for the tests of the environment: a graph of some operators and rules that can be played for ever."""

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np

from taso_gym.builder import GraphBuilder
from taso_gym.env import TasoGraphEnv
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet, rule_digest
from taso_gym.tensor import TensorType
from taso_gym.weights import GeneratedWeight

RULES = """
relu-twice: Relu(Relu(x)) => Relu(x)
matmul-assoc: MatMul(x, MatMul(y, z)) <=> MatMul(MatMul(x, y), z)
matmul-distribute: Add(MatMul(x, a), MatMul(x, b)) <=> MatMul(x, Add(a, b))
add-assoc: Add(x, Add(y, z)) <=> Add(Add(x, y), z)
add-mul: Mul(Add(x, y), z) <=> Add(Mul(x, z), Mul(y, z))
"""
IDS = [f"TasoGraph-{name}-v0" for name in ("BERT", "InceptionV3", "ResNet18", "ResNet50", "SqueezeNet1.1")]


def rule_set(text: str = RULES) -> RuleSet:
    """Return the rules of a text."""
    return RuleSet(parse_rules(text))


def rules_file(folder: Path) -> str:
    """Write `RULES` to a file and return its path."""
    path = folder / "tiny.rules"
    path.write_text(RULES, encoding="utf-8")
    rows = [f'{{"rule": "{rule_digest(rule)}", "status": "proved"}}\n' for rule in parse_rules(RULES)]
    (folder / "tiny.certificates.jsonl").write_text("".join(rows), encoding="utf-8")
    return str(path)


def tiny_graph(width: int = 8, blocks: int = 2) -> Graph:
    """Return relu(relu(x·a + x·b)) · c · d + x, some times in a row."""
    builder = GraphBuilder({"": 20})
    count = 0

    def weight() -> int:
        nonlocal count
        count += 1
        shape = (width, width)
        made = GeneratedWeight(0, f"w{count}", "float", shape, std=width**-0.5)
        return builder.weight(made.name, TensorType("float", shape), made)

    x = builder.input("x", TensorType("float", (4, width)))
    for _ in range(blocks):
        both = builder.add("Add", builder.add("MatMul", x, weight()), builder.add("MatMul", x, weight()))
        inner = builder.add("Relu", builder.add("Relu", both))
        product = builder.add("MatMul", builder.add("MatMul", inner, weight()), weight())
        x = builder.add("Mul", builder.add("Add", product, x), builder.add("Add", x, x))
    builder.output("y", x)
    return builder.build()


def tiny_env(**arguments: Any) -> TasoGraphEnv:
    """Return an environment of `tiny_graph` and `RULES` with room for candidates."""
    defaults: dict[str, Any] = {"model": tiny_graph(), "rules": rule_set(), "max_locations": 20, "max_matches": 64}
    if "models" in arguments:
        del defaults["model"]
    return TasoGraphEnv(**{**defaults, **arguments})


def same(a: Any, b: Any) -> bool:
    """Whether observations, infos or steps are equal, bit for bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(np.array_equal(a, b)) and getattr(a, "dtype", None) == getattr(b, "dtype", None)


def pickled(thing: Any) -> Any:
    """Return what comes out of a pickle of a thing."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


def walk(env: Any, steps: int, seed: int = 0) -> list[Any]:
    """Play legal random actions, beginning anew at the end of an episode; return all steps."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for _ in range(steps):
        found.append(env.step(env.unwrapped.sample_valid(rng)))
        if found[-1][2] or found[-1][3]:
            found.append(env.reset())
    return found


def illegal_actions(xfers: int, locations: int, seed: int = 0) -> list[Any]:
    """Return things of any type and shape that aren't actions, or aren't legal."""
    rng = random.Random(seed)
    numbers = [-1, xfers + 1, 10**30, -(10**30), 2**63, 0.5, float("nan"), float("inf"), -float("inf"), 1e300]
    pairs = [np.array([a, 0], dtype=object) for a in numbers] + [[a, 0] for a in numbers] + [[0, a] for a in numbers]
    shapes = [
        np.zeros(shape, dtype) for shape in ((), (0,), (1,), (3,), (2, 2), (1, 2)) for dtype in ("int64", "float32")
    ]
    others = [
        None,
        "",
        "ab",
        b"ab",
        [],
        {},
        set(),
        object(),
        [[1], [1, 2]],
        ["0", "0"],
        1 + 2j,
        [True, False],
        slice(0),
    ]
    dtypes = ["complex64", "datetime64[s]", "timedelta64[s]", "U2", "S2", "bool", "V4"]
    odd = [np.zeros(2, dtype) for dtype in dtypes]
    made = [[rng.randint(xfers, 2 * xfers) + 1, rng.randint(0, 2 * locations)] for _ in range(20)]
    return pairs + shapes + others + odd + made
