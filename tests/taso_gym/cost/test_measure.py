"""Whole models in fresh processes: real ones, and every way that a child can fail."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cost_graphs import write_chain
from model_texts import parsed
from onnx import TensorProto, helper

from taso_gym import onnx_io
from taso_gym.cost import bind_dims
from taso_gym.cost import child as child_module
from taso_gym.cost import measure as measure_module
from taso_gym.cost.child import Child
from taso_gym.cost.latency_child import sizes
from taso_gym.cost.measure import Runner, SessionSettings, measure, seconds_of
from taso_gym.errors import CostError, MissingPackageError, OptionError

pytest.importorskip("onnxruntime")


def test_more_work_takes_longer(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    models = {"three": write_chain(tmp_path / "a.onnx", 3), "one": write_chain(tmp_path / "b.onnx", 1)}
    found = measure(models, rounds=3, progress=lambda *at: done.append(at))
    assert found.estimator == "median of thread-CPU time" and found.reference == "three"
    assert found.rounds["one"].shape == (2, 3)
    assert 1.5 < found.speedup("one").ratio < 6
    assert found.speedup("one").low > 1 and found.gain("one") > 0.3
    assert found.gain("three") == 0.0
    assert done == [(i, 6) for i in range(1, 7)]


def test_no_model_is_always_loaded_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded later is faster; sessions alternate, and so do measurements of one session with seeds in turn."""
    loaded: list[str] = []

    class Noted(measure_module.Child):
        def __init__(self, name: str, *rest: Any) -> None:
            loaded.append(name)
            super().__init__(name, *rest)

    monkeypatch.setattr(measure_module, "Child", Noted)
    models = dict.fromkeys("abc", write_chain(tmp_path / "a.onnx", 1))
    measure(models, sessions=3, rounds=1)
    measure(models, sessions=1, rounds=1, seed=1)
    assert "".join(loaded) == "abc" + "cba" + "abc" + "cba"


def test_several_threads_are_timed_by_the_wall(tmp_path: Path) -> None:
    found = measure({"model": write_chain(tmp_path / "a.onnx", 1)}, threads=2, sessions=1, rounds=2)
    assert found.estimator == "minimum of wall time"
    assert found.time_ms("model") == found.rounds["model"].min() > 0


def test_symbols_are_bound(tmp_path: Path) -> None:
    model = write_chain(tmp_path / "a.onnx", 1, rows="n")
    fast, slow = (measure({"m": model}, dims={"n": n}, sessions=1, rounds=1) for n in (64, 64))
    assert fast.time_ms("m") > 0 and slow.time_ms("m") > 0
    with pytest.raises(CostError, match="expected m to run, found"):
        measure({"m": model}, dims={"n": 63}, sessions=1, rounds=1)


def test_a_graph_is_measured_at_the_sizes_that_it_was_loaded_with(tmp_path: Path) -> None:
    model = onnx_io.load(write_chain(tmp_path / "a.onnx", 1, rows="n"), dims={"n": 64})
    assert measure({"m": model}, sessions=1, rounds=1).time_ms("m") > 0
    with pytest.raises(CostError, match="expected m to run, found"):
        measure({"m": model}, dims={"n": 63}, sessions=1, rounds=1)


def test_a_symbol_has_one_size() -> None:
    dims: dict[str, int] = {}
    assert sizes("a", ["batch", "sequence"], dims) == [1, 128] and sizes("b", ["sequence", "batch"], dims) == [128, 1]


def test_a_dimension_without_a_name_has_a_symbol_that_differs_from_all_names() -> None:
    assert sizes("x", [None, "n#"], {"x##0": 8, "n#": 3, "x#0": 5}) == [8, 3]


def test_a_process_that_cannot_be_started_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("taso_gym.cost.child.subprocess.Popen", refuse)
    with pytest.raises(CostError, match=r"^expected to start a process for m, found .*Too many open files"):
        measure({"m": write_chain(tmp_path / "a.onnx", 1)}, sessions=1, rounds=1)


def test_a_limit_may_be_longer_than_a_system_waits(tmp_path: Path) -> None:
    assert measure({"m": write_chain(tmp_path / "a.onnx", 1)}, sessions=1, rounds=1, timeout_s=1e12).time_ms("m") > 0


def test_an_open_dimension_without_a_name_is_bound_by_the_symbol_that_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(parsed("g (float[?, 3, ?] x) => (y) { y = Relu(x) }"), path)
    dims = bind_dims(onnx_io.load(path), {"x#0": 8})
    assert sizes("x", [None, 3, None], dims) == [8, 3, 128]
    assert sizes("x", ["x#0", 3, "n"], dims) == [8, 3, 128] and sizes("y", [None, None], dims) == [1, 128]


@pytest.mark.parametrize("given", [{}, {"p": 16}])
def test_a_model_with_a_cache_of_keys_is_measured(given: dict[str, int], tmp_path: Path) -> None:
    """A dimension that is called a sum has that size, or onnxruntime can't add the two inputs."""
    path = tmp_path / "a.onnx"
    types = {"past": [1, "p"], "new": [1, 1], "mask": [1, "p + 1"], "y": [1, "p + 1"]}
    *inputs, output = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in types.items()]
    concat = helper.make_node("Concat", ["past", "new"], ["all"], axis=1)
    graph = helper.make_graph([concat, helper.make_node("Add", ["all", "mask"], ["y"])], "g", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    dims = bind_dims(onnx_io.load(path), given)
    assert measure({"m": path}, dims=dims, sessions=1, rounds=1).time_ms("m") > 0


@pytest.mark.parametrize(
    "dtype", ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "INT4", "UINT4"]
)
def test_inputs_may_be_of_types_that_numpy_lacks(tmp_path: Path, dtype: str) -> None:
    code, path = TensorProto.DataType.Value(dtype), tmp_path / "cast.onnx"
    types = [helper.make_tensor_value_info(*each, ["n", 8]) for each in (("x", code), ("y", TensorProto.FLOAT))]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], "g", types[:1], types[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    assert measure({"m": path}, sessions=1, rounds=1).time_ms("m") > 0


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("string[n]", "y = StringConcat(x, x)"),
        ("seq(float[n, 4])", "y = ConcatFromSequence<axis=0>(x)"),
        ("optional(float[n, 4])", "y = OptionalGetElement(x)"),
        ("optional(seq(float[2, 4]))", "s = OptionalGetElement(x)\n y = ConcatFromSequence<axis=0>(s)"),
    ],
)
def test_inputs_that_cannot_be_bound_are_handed_over(tmp_path: Path, type_: str, body: str) -> None:
    path, out = tmp_path / "a.onnx", "string[m]" if "string" in type_ else "float[m, 4]"
    onnx.save(parsed(f"g ({type_} x, float[3] z) => ({out} y, float[3] w) {{ {body}\n w = Relu(z) }}"), path)
    assert measure({"a": path, "b": path}, dims={"n": 3}, sessions=1, rounds=1).time_ms("b") > 0


def test_a_file_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(CostError, match="expected broken to run, found InvalidProtobuf") as caught:
        measure({"broken": broken})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("few", ["sessions", "rounds"])
def test_what_there_is_none_of_is_named(tmp_path: Path, few: str) -> None:
    with pytest.raises(OptionError, match=f"expected at least one of the {few}, found 0"):
        measure({"one": tmp_path / "none.onnx"}, **{few: 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "2"}, "expected a whole number from 1 to 4096 as threads, found '2'"),
        ({"threads": 0}, "expected a whole number from 1 to 4096 as threads, found 0"),
        ({"sessions": True}, "expected a whole number as sessions, found True"),
        ({"rounds": 1.5}, "expected a whole number as rounds, found 1.5"),
        ({"seed": 0.5}, "expected a whole number as seed, found 0.5"),
        ({"models": ["a.onnx"]}, r"expected a mapping from names to models as models, found \['a.onnx'\]"),
        ({"models": {"m": 5}}, "expected a Graph, a Runner or the path of a model, found 5"),
        ({"dims": 5}, "expected a mapping from names to sizes as dims, found 5"),
        ({"settings": SessionSettings()}, "expected a mapping from names to SessionSettings as settings, found Se"),
        ({"settings": {"one": "all"}}, "expected SessionSettings by name, found "),
        ({"timeout_s": "x"}, "expected a finite number as timeout_s, found 'x'"),
        ({"timeout_s": -1.0}, "expected a timeout_s of 0 or more, found -1.0"),
        ({"provider": []}, r"expected a provider among cpu, cuda, found \[\]"),
        ({"seed": -1}, "expected a seed of 0 or more, found -1"),
    ],
)
def test_what_is_of_another_kind_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        measure(**{"models": {"one": tmp_path / "none.onnx"}, **options})


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model, one = write_chain(tmp_path / "a.onnx", 1, rows="n"), np.int64(1)
    assert measure({"m": model}, dims={"n": np.int64(64)}, threads=one, sessions=one, rounds=one, seed=one).rounds


@pytest.mark.parametrize("name", ["none.onnx", f"{'x' * 300}none.onnx"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(CostError, match=r"expected a model file, found nothing at .*none.onnx"):
        measure({"m": tmp_path / name})


def test_no_room_for_temporary_files_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the root is read-only: there is no folder for them at all, whose name could be said."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(CostError, match="expected room for a model in a folder for temporary files, found"):
        measure({"model": write_chain(tmp_path / "a.onnx", 1)}, sessions=1, rounds=1)


def test_a_missing_provider_is_an_error_and_no_fall_back(tmp_path: Path) -> None:
    with pytest.raises(CostError, match=r"expected .* the provider CUDAExecutionProvider, found"):
        measure({"m": write_chain(tmp_path / "a.onnx", 1)}, provider="cuda")


@pytest.mark.gpu
def test_a_model_is_measured_in_the_cuda_provider(tmp_path: Path) -> None:
    models = {"three": write_chain(tmp_path / "a.onnx", 3), "one": write_chain(tmp_path / "b.onnx", 1)}
    found = measure(models, rounds=3, provider="cuda")
    assert found.rounds["one"].shape == (2, 3) and 0 < found.time_ms("one") < found.time_ms("three")


@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "import os; os.kill(os.getpid(), 9)", "print(1/0)"])
def test_a_child_that_hangs_or_dies_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    child = tmp_path / "child.py"
    child.write_text(code)
    monkeypatch.setattr(child_module, "CHILD", child)
    with pytest.raises(CostError, match=r"expected m to (answer within 2 s|run, found that its process ended)"):
        measure({"m": write_chain(tmp_path / "a.onnx", 1)}, timeout_s=2)


def started(code: str) -> "subprocess.Popen[str]":
    """A process of its own group that knows the tests' helpers, once it has said its first line."""
    head = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", head + code], text=True, process_group=0, **pipes)


def test_an_interruption_is_left_to_the_parent(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole process group of the terminal; a search notes it and goes on to where it may end."""
    code = (
        "import signal, time; from pathlib import Path; from cost_graphs import write_chain\n"
        "from taso_gym.cost import measure\n"
        "noted, before = [], measure._warm\n"
        "def warm(child):\n"
        "    print('ready', flush=True)\n"
        "    while not noted: time.sleep(0.01)\n"
        "    return before(child)\n"
        "measure._warm = warm\n"
        "signal.signal(signal.SIGINT, lambda *_: noted.append(1))\n"
        f"model = write_chain(Path({str(tmp_path / 'a.onnx')!r}), 1)\n"
        "print(noted, measure.measure({'m': model}, sessions=1, rounds=1).time_ms('m') > 0)\n"
    )
    with started(code) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=30)
    assert said == "[1] True\n" and not errors


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    settings = {"model": str(write_chain(tmp_path / "a.onnx", 1)), "threads": 1, "provider": "CPUExecutionProvider"}
    settings |= {"dims": {}, "seed": 0, "level": "all", "disabled": [], "denormals_as_zero": False}
    code = (
        "import time; from taso_gym.cost.child import Child\n"
        f"child = Child('m', {settings!r}, 60.0)\n"
        "print(child._process.pid, flush=True); time.sleep(60)\n"
    )
    with started(code) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        assert os.getpgid(pid) == pid and is_running(pid)
        process.kill()
    until = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_missing_package_names_the_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'taso-gym\[cpu\]' or 'taso-gym\[gpu\]' brings it$"):
        measure({"m": write_chain(tmp_path / "a.onnx", 1)})


@pytest.mark.parametrize("options", [{"sessions": 0}, {"rounds": 0}, {"threads": 0}, {"provider": "tpu"}])
def test_options_are_checked(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="expected"):
        measure({"m": tmp_path / "a.onnx"}, **options)  # pyright: ignore[reportArgumentType]


def test_an_unknown_level_names_the_choices() -> None:
    with pytest.raises(OptionError, match="expected an optimisation level among none, basic, extended, all"):
        SessionSettings(level="most")


@pytest.mark.parametrize("disabled", ["NchwcTransformer", (5,), None])
def test_optimizers_that_arent_a_tuple_of_names_are_refused(disabled: Any) -> None:
    """A name by itself would be taken apart into its letters."""
    with pytest.raises(OptionError, match="expected a tuple of names of optimizers, found"):
        SessionSettings(disabled=disabled)


def test_another_runtime_is_a_script_that_answers(tmp_path: Path) -> None:
    script = tmp_path / "runtime.py"
    script.write_text(
        "import json, sys\n"
        "print(json.dumps({'ready': True}), flush=True)\n"
        "sys.stdin.readline()\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'times': [10 ** 9] * json.loads(line)['runs']}), flush=True)\n"
    )
    model = write_chain(tmp_path / "a.onnx", 1)
    found = measure({"m": model, "other": Runner(script, model)}, sessions=1, rounds=2)
    assert found.time_ms("other") == 1000 and found.speedup("other").ratio < 0.1


def test_another_runtime_that_prints_is_quoted(tmp_path: Path) -> None:
    script = tmp_path / "runtime.py"
    script.write_text("print('Loading: 100 %', flush=True); input()")
    with pytest.raises(CostError, match="expected an answer of other as JSON, found 'Loading: 100 %'"):
        measure({"other": Runner(script, write_chain(tmp_path / "a.onnx", 1))}, sessions=1, rounds=1)


def child_script(path: Path, code: str) -> Path:
    """Write the script that measures with some code before it starts."""
    path.write_text(
        f"import sys; sys.path.insert(0, {str(child_module.CHILD.parent)!r})\n"
        "import latency_child as child\n"
        "sys.path.pop(0)  # which hides the package, as a file of that folder has its name\n"
        "import onnxruntime as ort\n"
        "whole = ort.InferenceSession\n"
        f"{code}"
        "ort.InferenceSession = session\n"
        "child.main(child.serve)\n"
    )
    return path


def test_what_a_library_prints_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "def session(*args, **options):\n"
        "    import os; os.write(1, b'printed by a library\\n'); print('and by Python', flush=True)\n"
        "    return whole(*args, **options)\n"
    )
    monkeypatch.setattr(child_module, "CHILD", child_script(tmp_path / "child.py", code))
    assert measure({"m": write_chain(tmp_path / "a.onnx", 1)}, sessions=1, rounds=1).time_ms("m") > 0


def test_settings_reach_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that measures writes down how it opened its session."""
    opened = tmp_path / "opened"
    code = (
        "def session(model, options, **given):\n"
        "    line = options.graph_optimization_level, given['disabled_optimizers'], options.intra_op_num_threads\n"
        f"    open({str(opened)!r}, 'w').write(repr(line))\n"
        "    return whole(model, options, **given)\n"
    )
    monkeypatch.setattr(child_module, "CHILD", child_script(tmp_path / "child.py", code))
    model = write_chain(tmp_path / "a.onnx", 1)
    settings = {"m": SessionSettings("basic", ("MatMulAddFusion",))}
    measure({"m": model}, settings=settings, sessions=1, rounds=1, threads=2)
    assert "ORT_ENABLE_BASIC" in opened.read_text() and "['MatMulAddFusion'], 2)" in opened.read_text()


def test_how_long_measuring_takes_is_known_before() -> None:
    """A round of a fast model lasts 15 ms, of a slower one a run."""
    ten, twenty = (seconds_of(5.0, sessions=1, rounds=n) for n in (10, 20))
    assert twenty - ten == pytest.approx(0.15)
    assert seconds_of(100.0, 1, 20) - seconds_of(100.0, 1, 10) == pytest.approx(1.0)
    assert seconds_of(5.0, 2, 10) > ten


@pytest.mark.parametrize(("enough_s", "threads", "rounds"), [(1e9, 1, 30), (0.0, 1, 5), (0.0, 2, 10)])
def test_a_slow_model_runs_in_fewer_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough_s: float, threads: int, rounds: int
) -> None:
    monkeypatch.setattr(measure_module, "ENOUGH_S", enough_s)
    found = measure({"m": write_chain(tmp_path / "a.onnx", 1)}, threads=threads)
    assert found.rounds["m"].shape == (2, rounds)


@pytest.mark.parametrize(("first_ms", "slow_ms", "warm", "rounds"), [(1, 1, 3, 30), (2000, 1, 3, 30), (1, 2000, 2, 5)])
def test_a_slow_model_is_warm_after_two_runs_and_the_first_says_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_ms: int, slow_ms: int, warm: int, rounds: int
) -> None:
    asked: list[int] = []

    def run(_: Child, count: int) -> list[int]:
        asked.append(count)
        return [10**6 * (first_ms if len(asked) == 1 else slow_ms)] * count

    monkeypatch.setattr(Child, "run", run)
    measure({"m": write_chain(tmp_path / "a.onnx", 1)}, sessions=1)
    assert sum(asked[:-rounds]) == warm and len(asked[-rounds:]) == rounds
    assert seconds_of(slow_ms, 1, 0) == pytest.approx(measure_module.LOAD_S + warm * slow_ms / 1e3)


def test_all_models_run_as_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run of a round finds a cold cache: what has more of them would look faster."""
    asked: dict[str, list[int]] = {"slow": [], "fast": [], "other": []}

    class Noted(measure_module.Child):
        def run(self, runs: int) -> list[int]:
            asked[self._name].append(runs)
            super().run(1)
            return [{"slow": 4_000_000, "fast": 1_000, "other": 300_000_000}[self._name]] * runs

    monkeypatch.setattr(measure_module, "Child", Noted)
    file = write_chain(tmp_path / "a.onnx", 1)
    measure({"slow": file, "fast": file}, sessions=1, rounds=4)
    assert asked["slow"] == asked["fast"] and asked["slow"][-4:] == [3] * 4
    asked["slow"].clear()
    measure({"slow": file, "other": file}, sessions=1)
    assert asked["slow"] == asked["other"] == [1, 1, 1, *[3] * 6]  # five seconds of three runs of 0.3 s


def test_a_pipe_that_breaks_is_no_full_disk(tmp_path: Path) -> None:
    def broken(done: int, in_all: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        measure({"one": write_chain(tmp_path / "m.onnx", 1)}, rounds=1, sessions=1, progress=broken)
