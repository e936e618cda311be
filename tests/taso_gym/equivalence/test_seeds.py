"""Models with random operators are compared: those of both draw the same."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from model_texts import graph_of, parsed
from onnx import ModelProto

from taso_gym.equivalence import Baseline, subject, validate
from taso_gym.equivalence.seeds import is_random, seeded
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

BRANCHES = "then_branch = a () => (t) {{ t = {0} }}, else_branch = b () => (e) {{ e = {0} }}"
NODES = {
    "no input": "s = RandomNormal <shape = [2, 40]>()",
    "like": "s = RandomNormalLike(q)",
    "two": "a = RandomNormalLike(q)  b = RandomNormalLike(q)  s = Sub(a, b)",
    "uniform": "s = RandomUniformLike <low = 2.0, high = 5.0>(q)",
    "truth": "p = Abs(x)  m = Min(p, one)  s = Bernoulli(m)",
    "classes": "i = Multinomial <sample_size = 40>(q)  s = Cast <to = 1>(i)",
    "seed of its own": "s = RandomNormalLike <seed = 3.0>(q)",
    "branches": f"s = If <{BRANCHES.format('RandomNormalLike(q)')}>(yes)",
    "function": "s = my.F(q)",
    "function in branches": f"s = If <{BRANCHES.format('my.F(q)')}>(yes)",
}
FUNCTION = '<domain: "my", opset_import: ["": 20]> F (x) => (y) { z = RandomNormalLike(x) y = Mul(z, x) }'


def drawing(nodes: str, last: str = "Mul(q, s)") -> ModelProto:
    text = f"g (float[2, 40] x) => (float[2, 40] y) {{ p0 = Neg(x) q = Neg(p0) {nodes} y = {last} }}"
    weights = {"one": np.float32(1), "half": np.float32(0.5), "yes": np.array(True)}
    return parsed(text, more=FUNCTION if "my.F" in nodes else "", **weights)


def rewritten(model: ModelProto, rule: str = "twice: Neg(Neg(x)) => x") -> Graph:
    """Return what a rule makes of a model; it has fewer nodes, by whose numbers onnxruntime chooses seeds."""
    state = RewriteState(from_model(model), RuleSet(parse_rules(rule)))
    return state.child_graph(state.matches[0][0])


@pytest.mark.parametrize("nodes", NODES.values(), ids=NODES)
def test_a_rewritten_model_draws_the_same(nodes: str) -> None:
    model = drawing(nodes)
    before = model.SerializeToString()
    assert is_random(from_model(model))
    report = validate(model, rewritten(model))
    assert report.ok and report.is_float32_only
    assert not validate(model, drawing(nodes, "Mul(p0, s)")).ok
    assert model.SerializeToString() == before


def test_what_trains_draws_the_same() -> None:
    """As a graph output, or onnxruntime 1.31 takes it for a Dropout at inference."""
    model = drawing("", "Dropout(q, half, yes)")
    assert is_random(from_model(model)) and validate(model, rewritten(model)).ok
    assert not validate(model, drawing("", "Dropout(p0, half, yes)")).ok


def test_what_a_rewritten_model_draws_may_be_wrong() -> None:
    model = drawing(NODES["like"])
    assert Baseline(from_model(model)).differs(rewritten(model, "wrong: Neg(Neg(x)) => Neg(x)"))
    assert not Baseline(from_model(model)).differs(rewritten(model))


def test_seeds_are_given_where_there_are_none() -> None:
    model = drawing(
        "a = RandomNormal <shape = [1]>()  b = RandomNormal <shape = [1]>()  s = RandomNormalLike <seed = 3.0>(q)"
    )
    seeds = [a.f for node in seeded(model).graph.node for a in node.attribute if a.name == "seed"]
    assert len(set(seeds)) == 3 and seeds[2] == 3 and all(seed == int(seed) < 2**24 for seed in seeds)
    assert seeded(seeded(model)) == seeded(model) != model
    plain = graph_of(
        "g (float[2] x) => (y) { d = Dropout(x)  y = my.F(d) }", more=FUNCTION.replace("RandomNormalLike", "Neg")
    )
    assert not is_random(plain)


def test_a_function_goes_before_the_random_operator_of_its_name() -> None:
    text = '<domain: "", opset_import: ["": 20]> Bernoulli (x) => (y) { y = Neg(x) }'
    model = parsed("g (float[2] x) => (y) { y = Bernoulli(x) }", more=text)
    assert seeded(model) == model


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("limit", [10**9, -1])
def test_files_are_not_changed(limit: int, external: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FILE_BYTES", limit)
    model, path = drawing(NODES["like"]), tmp_path / "model.onnx"
    graph = rewritten(model)
    onnx.save(model, path, save_as_external_data=external, size_threshold=0)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 1 + external
    assert validate(path, graph).ok
    monkeypatch.setattr(subject, "PROTO_BYTES", 0)
    assert validate(path, graph).ok and validate(graph, path).ok
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_draws_that_the_first_does_not_run_on_take_no_numbers() -> None:
    """Of one, two and three rows it takes the last two draws, and the second is run on these alone."""
    text = (
        "g (float[N, 4] x) => (y, z) {{ r = RandomNormalLike <seed = 3.0>(x) a = {}  y = Gather(a, one)  z = Neg(x) }}"
    )
    first, second = (parsed(text.format(node), one=np.array(1)) for node in ("Add(x, r)", "Add(r, x)"))
    report = validate(first, second)
    assert report.ok and report.draws == ("N=2", "N=3")
