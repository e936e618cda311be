"""Weights that stay in files: mapped, never copied, and never from outside the model's folder."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from model_texts import graph_of, parsed, run, weight_values
from onnx import TensorProto

from taso_gym import onnx_io
from taso_gym.builder import GraphBuilder
from taso_gym.errors import ModelError, OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io import from_model, load, save, to_model
from taso_gym.tensor import TensorType
from taso_gym.weights import ArrayWeight, GeneratedWeight, MappedWeight

TEXT = "g (float[200] x) => (y) { a = MatMul(x, w)\n y = Add(a, b) }"
WEIGHTS = {"w": np.arange(40000, dtype=np.float32).reshape(200, 200) / 1e4, "b": np.ones(200, np.float32)}


def weights_of(graph: Graph) -> dict[str, object]:
    return {leaf.name: leaf.weight for leaf in graph.leaves.values() if leaf.weight}


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """Return the path of a model whose weights are in ``weights.bin``."""
    path = tmp_path / "model.onnx"
    onnx.save(parsed(TEXT, **WEIGHTS), path, save_as_external_data=True, location="weights.bin", size_threshold=100)
    return path


def with_other_weights() -> Graph:
    """Return a graph that is saved with its weights in a file of their own."""
    graph = from_model(parsed(TEXT, **{name: value + 1 for name, value in WEIGHTS.items()}))
    info = replace(graph.info, external=True)
    return Graph(graph.nodes, graph.uses, graph.leaves, graph.next_id, graph.hash, info)


def test_large_tensors_stay_in_the_model_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parsed(TEXT, **WEIGHTS), path)
    weights = weights_of(load(path))
    assert isinstance(weights["w"], MappedWeight)
    assert isinstance(weights["b"], ArrayWeight)
    assert not weights["w"].array().flags.writeable
    assert load(path) == from_model(parsed(TEXT, **WEIGHTS))


def test_external_data_are_mapped_and_written_beside_the_model(external: Path, tmp_path: Path) -> None:
    graph = load(external)
    assert all(isinstance(w, MappedWeight) for w in weights_of(graph).values())
    assert graph == from_model(parsed(TEXT, **WEIGHTS))
    target = tmp_path / "out" / "saved.onnx"
    target.parent.mkdir()
    save(graph, target)
    assert sorted(p.name for p in target.parent.iterdir()) == ["saved.onnx", "saved.onnx.data"]
    onnx.checker.check_model(str(target))
    assert load(target) == graph
    loaded = onnx.load(target)
    np.testing.assert_array_equal(
        run(loaded, x=np.ones(200, np.float32)), run(to_model(graph), x=np.ones(200, np.float32))
    )
    save(load(target), target)
    assert load(target) == graph


def test_a_name_that_leaves_no_room_for_that_of_the_data_is_refused(external: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"name of a file to write of at most 255 bytes, found n+\.onnx\.data$"):
        save(load(external), tmp_path / f"{'n' * 247}.onnx")


def test_no_data_file_is_written_where_nothing_is_for_it(tmp_path: Path) -> None:
    small = {"w": np.ones((4, 4), np.float32), "b": np.ones(4, np.float32)}
    path, target = tmp_path / "model.onnx", tmp_path / "saved.onnx"
    text = TEXT.replace("200", "4")
    onnx.save(parsed(text, **small), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    for _ in range(2):
        save(load(path), target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "saved.onnx", "weights.bin"]
    assert load(target) == load(path)


def test_a_model_above_the_limit_gets_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_io, "MOST_BYTES", 100_000)
    graph = from_model(parsed(TEXT, **WEIGHTS))
    save(graph, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").stat().st_size == 40000 * 4
    assert load(tmp_path / "model.onnx") == graph
    with pytest.raises(ModelError, match="at most 100000 bytes"):
        to_model(graph)


def test_tensors_of_subgraphs_and_constants_may_be_external(tmp_path: Path) -> None:
    text = """g (float[1000] x, bool c) => (y) {
        k = Constant <value = float[2] {1.0, 2.0}>()
        a = If (c) <then_branch = t () => (float[1000] p) <float[2] v = {3.0, 4.0}> { p = Mul(x, v) },
                    else_branch = e () => (float[1000] q) { q = Neg(x) }>
        y = Mul(a, k)
    }"""
    model = parsed(text)
    data = np.arange(1000, dtype=np.float32) % 50
    for tensor in (model.graph.node[0].attribute[0].t, model.graph.node[1].attribute[0].g.initializer[0]):
        tensor.ClearField("float_data")
        tensor.dims[:] = [1000]
        tensor.raw_data = data.tobytes()
    whole = from_model(model)
    for tensor in (model.graph.node[0].attribute[0].t, model.graph.node[1].attribute[0].g.initializer[0]):
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
    (tmp_path / "weights.bin").write_bytes(data.tobytes())
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    graph = load(tmp_path / "model.onnx")
    assert graph == whole == from_model(model, tmp_path)
    save(graph, tmp_path / "saved.onnx")
    assert (tmp_path / "saved.onnx.data").stat().st_size == 4096 + 4000
    assert load(tmp_path / "saved.onnx") == graph
    feeds = {"x": data, "c": np.array(True)}
    np.testing.assert_array_equal(run(onnx.load(tmp_path / "saved.onnx"), **feeds)[0], data**3)


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../weights.bin", "a/../../weights.bin", "C:\\weights.bin", "..\\weights.bin", "\\\\host\\w", ""],
)
def test_paths_that_leave_the_folder_are_refused(external: Path, location: str) -> None:
    model = onnx.load(external, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = location
    external.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"initializer 'w': expected external data beside the model, found the path"):
        load(external)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("location", "none.bin", "found no such file"),
        ("offset", "-4", "expected bytes -4"),
        ("offset", "200000", "found 160"),
        ("offset", "x", "as numbers"),
        ("length", "16", "expected 160000 bytes for float"),
        ("length", "999999999", "expected bytes 0 to 999999999"),
    ],
)
def test_wrong_references_are_refused(external: Path, key: str, value: str, message: str) -> None:
    model = onnx.load(external, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == key:
            entry.value = value
    external.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=f"initializer 'w': .*{message}"):
        load(external)


def test_a_model_in_memory_has_no_folder(external: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    with pytest.raises(ModelError, match="in an unknown folder"):
        from_model(model)


def test_mapped_weights_pickle_as_references(external: Path) -> None:
    graph = load(external)
    data = pickle.dumps(weights_of(graph)["w"])
    assert len(data) < 2000
    np.testing.assert_array_equal(pickle.loads(data).array(), WEIGHTS["w"])  # noqa: S301
    external.with_name("weights.bin").write_bytes(b"other")
    with pytest.raises(ModelError, match="as it was when it was loaded"):
        pickle.loads(data).array()  # noqa: S301


def test_what_is_computed_from_mapped_weights_is_right(tmp_path: Path) -> None:
    """Data in a file begin at any byte; the mapped arrays are unaligned."""
    path = tmp_path / "model.onnx"
    text = "g (float[200] x) => (y) { t = Transpose(w)\n y = MatMul(x, t) }"
    for name in ("m", "mo", "mod", "mode"):
        model = parsed(text, w=WEIGHTS["w"])
        model.producer_name = name
        onnx.save(model, path)
        (found,) = weight_values(load(path)).values()
        np.testing.assert_array_equal(found, WEIGHTS["w"].T)


def test_a_graph_without_external_data_stays_one_file(tmp_path: Path) -> None:
    save(graph_of(TEXT, **WEIGHTS), tmp_path / "model.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


PEAK = """
import sys
from pathlib import Path
from taso_gym.onnx_io import load, save
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import RewriteState

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

before = peak()
state = RewriteState(load(sys.argv[1]), RuleSet.load("default"))
for _ in range(5):
    state = state.apply(next(m for matches in state.matches for m in matches))
save(state.graph, sys.argv[2])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to say how much memory was used")
def test_loading_rewriting_and_saving_copy_no_weights(tmp_path: Path) -> None:
    """Far below the 2.5 times its size that loading and optimising a model may take."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (1, 2048)))
    for i in range(16):
        weight = GeneratedWeight(0, f"w{i}", "float", (2048, 2048))
        x = builder.add(
            "Relu", builder.add("MatMul", x, builder.weight(f"w{i}", TensorType("float", weight.shape), weight))
        )
    builder.output("y", x)
    save(builder.build(), tmp_path / "model.onnx")
    command = [sys.executable, "-c", PEAK, str(tmp_path / "model.onnx"), str(tmp_path / "saved.onnx")]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert used < 0.4 * (tmp_path / "model.onnx").stat().st_size


def test_a_data_file_of_something_else_is_not_overwritten(external: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "fast.onnx"
    target.parent.mkdir()
    other = target.with_name("fast.onnx.data")
    other.write_bytes(b"important")
    graph = load(external)
    for _ in range(2):  # the second time, the data file is the model's own and is replaced
        save(graph, target)
        assert other.read_bytes() == b"important"
        assert sorted(p.name for p in target.parent.iterdir()) == ["fast.onnx", "fast.onnx.1.data", "fast.onnx.data"]
        assert load(target) == graph


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """Return the path of a model whose weights are in ``weights/w.bin``."""
    path = tmp_path / "below" / "model.onnx"
    (path.parent / "weights").mkdir(parents=True)
    onnx.save(parsed(TEXT, **WEIGHTS), path, save_as_external_data=True, location="weights/w.bin", size_threshold=100)
    return path


def test_weights_in_a_folder_are_copied_beside_what_is_in_that_folder(below: Path, tmp_path: Path) -> None:
    other, target = tmp_path / "out" / "weights" / "other.bin", tmp_path / "out" / "model.onnx"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"important")
    for _ in range(2):  # the second time, the data are there already
        onnx_io.copy(below, target)
        assert sorted(p.name for p in other.parent.iterdir()) == ["other.bin", "w.bin"]
        assert load(target) == load(below)
    onnx_io.copy(below, beside := below.with_name("copy.onnx"))
    assert load(beside) == load(below)
    save(load(below), below)  # what a model there refers to is looked up
    assert other.read_bytes() == b"important"


def test_other_weights_of_that_name_are_not_overwritten_by_a_copy(below: Path, tmp_path: Path) -> None:
    other = tmp_path / "out" / "weights" / "w.bin"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"important")
    with pytest.raises(OptionError, match=r"expected no other file at .*w\.bin, which model\.onnx refers to"):
        onnx_io.copy(below, tmp_path / "out" / "model.onnx")
    assert other.read_bytes() == b"important"


def test_a_data_file_that_a_copy_of_the_model_refers_to_is_kept(external: Path, tmp_path: Path) -> None:
    model, same = tmp_path / "fast.onnx", tmp_path / "same.onnx"
    save(load(external), model)
    onnx_io.copy(model, same)
    before = (tmp_path / "fast.onnx.data").read_bytes()
    other = parsed(TEXT, **{name: value + 1 for name, value in WEIGHTS.items()})
    onnx.save(other, tmp_path / "other", save_as_external_data=True, location="other.bin", size_threshold=100)
    save(load(tmp_path / "other"), model)
    assert (tmp_path / "fast.onnx.data").read_bytes() == before
    assert load(same) == load(external) and (tmp_path / "fast.onnx.1.data").exists()
    save(load(tmp_path / "other"), model)
    assert {path.name for path in tmp_path.glob("fast.onnx.*")} == {"fast.onnx.data", "fast.onnx.1.data"}


def test_a_data_file_is_named_for_where_the_model_goes(external: Path, tmp_path: Path) -> None:
    final, folder = tmp_path / "fast.onnx", tmp_path / "hidden"
    folder.mkdir()
    final.with_name("fast.onnx.data").write_bytes(b"important")
    save(load(external), folder / "fast.onnx", final=final)
    assert sorted(p.name for p in folder.iterdir()) == ["fast.onnx", "fast.onnx.1.data"]


def test_weights_of_a_subgraph_beyond_protocol_buffers(tmp_path: Path) -> None:
    model = parsed("""g (bool c, float[1073741824] x) => (float[1073741824] y) {
        y = If (c) <then_branch = t () => (float[1073741824] p) <float[1] k = {1}> { p = Add(x, k) },
                    else_branch = e () => (float[1073741824] q) { q = Neg(x) }>
    }""")
    inner = model.graph.node[0].attribute[0].g.initializer[0]
    inner.CopyFrom(TensorProto(name="k", dims=[1 << 30], data_type=1, data_location=TensorProto.EXTERNAL))
    inner.external_data.add(key="location", value="inner.data")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"at most 2000000000 bytes .* of a node, found 4294967296 in If 'y'"):
        load(tmp_path / "model.onnx")


def test_a_copy_is_not_written_over_weights(external: Path, tmp_path: Path) -> None:
    weights = external.with_name("weights.bin")
    before = weights.read_bytes()
    (tmp_path / "other").mkdir()
    for target in weights, tmp_path / "other" / "weights.bin":
        with pytest.raises(OptionError, match=r"expected another name than .*weights.bin, which model.onnx has"):
            onnx_io.copy(external, target)
    assert weights.read_bytes() == before and not (tmp_path / "other" / "weights.bin").exists()


@pytest.mark.parametrize("name", ["fast.onnx.bak", "copy", "fast.ort"])
def test_a_copy_of_the_model_may_have_any_name(external: Path, tmp_path: Path, name: str) -> None:
    model, same = tmp_path / "fast.onnx", tmp_path / name
    save(load(external), model)
    same.write_bytes(model.read_bytes())
    other = with_other_weights()
    save(other, model)
    assert load(same) == load(external) and load(model) == other


def test_a_link_to_the_model_is_no_copy_of_it(external: Path, tmp_path: Path) -> None:
    model, link = tmp_path / "fast.onnx", tmp_path / "latest.onnx"
    save(load(external), model)
    link.symlink_to(model.name)
    (tmp_path / "loop").symlink_to("loop")
    save(load(external), model)
    assert sorted(p.name for p in tmp_path.glob("fast*")) == ["fast.onnx", "fast.onnx.data"]
    assert load(link) == load(external)


def test_a_model_never_has_the_weights_of_another(
    external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save that is interrupted leaves the old model and the old weights."""
    model, move = tmp_path / "fast.onnx", Path.replace
    old = with_other_weights()
    save(old, model)

    def interrupted(file: Path, place: Path) -> Path:
        monkeypatch.setattr(Path, "replace", move)
        move(file, place)
        raise KeyboardInterrupt

    def at_the_data(file: Path, place: Path) -> Path:
        return (interrupted if place.name == "fast.onnx.data" and place.parent == tmp_path else move)(file, place)

    monkeypatch.setattr(Path, "replace", at_the_data)
    with pytest.raises(KeyboardInterrupt):
        save(load(external), model)
    assert load(model) == old
