from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

from taso_gym.console import dimensions, parse_bytes, run_app, say, seconds
from taso_gym.errors import OptionError

LINES = "from taso_gym.console import run_app, say; run_app(lambda: [say('x' * 1000) for _ in range(1000)])"


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("1.5s", 1.5), ("5m", 300), (" 1H ", 3600)])
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1", "5x", "1 2", "nan"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(OptionError, match="expected a duration"):
        seconds(text)


def test_dimensions():
    assert dimensions(["batch=1", "time=07"]) == {"batch": 1, "time": 7}


@pytest.mark.parametrize("text", ["", "batch", "=1", "batch=", "batch=0", "batch=-1", "batch=x", "batch=" + "1" * 5000])
def test_what_is_no_dimension_is_refused(text):
    with pytest.raises(OptionError, match="expected a dimension such as batch=1"):
        dimensions([text])


def test_a_dimension_has_one_size():
    assert dimensions(["batch=1", "batch=1"]) == {"batch": 1}
    with pytest.raises(OptionError, match="expected one size for dimension 'batch', found 1 and 2"):
        dimensions(["batch=1", "batch=2"])


def test_closed_pipe_ends_quietly_and_is_no_success():
    with subprocess.Popen(
        [sys.executable, "-c", LINES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line():
    with Path("/dev/full").open("w") as full:
        found = subprocess.run([sys.executable, "-c", LINES], stdout=full, stderr=subprocess.PIPE, text=True)
    said = "error: expected what can be read and written, found: [Errno 28] No space left on device\n"
    assert (found.returncode, found.stderr) == (2, said)


def test_a_terminal_without_a_letter_loses_only_that():
    program = "from taso_gym.console import run_app, say; run_app(lambda: say('1 ms \\u2192 2 ms'))"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert found.stdout == b"1 ms ? 2 ms\n"


def test_what_the_system_refuses_is_one_line(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        run_app(lambda: (tmp_path / ("x" * 300)).read_text())
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: expected what can be read and written, found: [Errno 36] File na")


def test_memory_that_is_too_short_is_one_line(capsys):
    def want():
        raise MemoryError("Unable to allocate 8 GiB")

    with pytest.raises(SystemExit) as ended:
        run_app(want)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: expected more memory, found: Unable to allocate 8 GiB\n"


def test_warning_is_one_line():
    program = "import warnings; from taso_gym.console import run_app; run_app(lambda: warnings.warn('[cold] coffee'))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stderr == "warning: [cold] coffee\n"


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_in_order(sent, code, tmp_path):
    """Also if they come twice, to the process and to its group; what would be written is removed."""
    program = (
        "import signal, time; from taso_gym.atomic import replacing; from taso_gym.console import run_app\n"
        f"signal.signal({int(sent)}, signal.SIG_DFL)\n"
        "def work():\n"
        f"    with replacing({str(tmp_path / 'out')!r}):\n"
        "        print('ready', flush=True); time.sleep(60)\n"
        "run_app(work)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(sent)
        os.killpg(process.pid, sent)
    assert process.returncode == code
    assert not list(tmp_path.iterdir())


def test_a_hangup_that_is_ignored_stays_so():
    """As nohup(1) wants it."""
    program = (
        "import os, signal; from taso_gym.console import run_app, say\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "run_app(lambda: (os.kill(os.getpid(), signal.SIGHUP), say('done')))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"done\n"


def test_an_app_leaves_signals_as_they_were_and_runs_in_any_thread():
    before, codes = signal.getsignal(signal.SIGTERM), []

    def ended():
        with pytest.raises(SystemExit) as caught:
            run_app(lambda: None)
        codes.append(caught.value.code)

    ended()
    thread = threading.Thread(target=ended)
    thread.start()
    thread.join()
    assert codes == [0, 0] and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("text", ["", "MB", "-1", "1TB", "1" * 400])
def test_what_is_no_amount_of_memory_is_refused(text):
    with pytest.raises(OptionError, match="expected an amount of memory"):
        parse_bytes(text)


def test_names_that_look_like_emoji_are_printed_as_they_are(capsys):
    say("/tmp/:x:/a:key:0.onnx")
    assert capsys.readouterr().out == "/tmp/:x:/a:key:0.onnx\n"


def test_ctrl_c_in_a_command_is_said(monkeypatch, capsys):
    """Typer turns it into an exit code of its own, without a word."""
    app = typer.Typer()

    @app.command()
    def wait() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["wait"])
    with pytest.raises(SystemExit) as ended:
        run_app(app)
    assert ended.value.code == 130 and capsys.readouterr().err == "interrupted\n"
