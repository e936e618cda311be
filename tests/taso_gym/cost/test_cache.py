"""The cache of measurements: concurrent processes, kill -9, damaged files, other versions."""

import errno
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from taso_gym.cost import cache as cache_module
from taso_gym.cost.cache import Cache, default_path
from taso_gym.errors import CostError

WRITER = """
import sys
from taso_gym.cost.cache import Cache
cache = Cache(sys.argv[1])
print("open" if cache.get("none") is None else "", flush=True)
for i in range(int(sys.argv[3])):
    cache.put(f"key {i}", f"{sys.argv[2]} {i}")
"""

COUNTER = """
import sys
from taso_gym.cost.cache import Cache
for _ in range(100):
    Cache(sys.argv[1]).change("count", lambda text: str(int(text or 0) + 1))
"""

LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # the bytes that SQLite's readers share
    except OSError:
        sys.exit(0)
sys.exit(1)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that writes ``count`` entries."""
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_what_was_written_first_stays_unless_it_is_replaced(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    assert cache.get("a") is None
    assert cache.put("a", "1") == "1"
    assert cache.put("a", "2") == "1"
    assert Cache(cache.path).get("a") == "1"
    cache.replace("a", "3")
    assert Cache(cache.path).get("a") == "3" == cache.put("a", "1")


def test_all_that_begins_alike_is_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    for key in ("a|1", "a|2", "a", "b|3", "a}", "A|4"):
        cache.put(key, key.upper())
    assert cache.beginning("a|") == [("1", "A|1"), ("2", "A|2")]
    assert cache.beginning("none") == []


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    processes = [writer(path, name, 200) for name in "xy"]
    for process in processes:
        with process:
            assert process.wait() == 0
    found = [Cache(path).get(f"key {i}") for i in range(200)]
    assert all(text in (f"x {i}", f"y {i}") for i, text in enumerate(found))


def test_a_killed_writer_leaves_a_whole_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with writer(path, "x", 10**9) as process:
        assert process.stdout and process.stdout.readline() == "open\n"
        cache = Cache(path)
        while cache.get("key 50") is None:
            pass
        os.kill(process.pid, signal.SIGKILL)
    assert Cache(path).get("key 50") == "x 50"
    assert Cache(path).put("new", "1") == "1"


@pytest.mark.parametrize("damage", ["middle", "truncated"])
def test_a_damaged_file_is_set_aside_with_a_warning(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "cache.sqlite"
    cache = Cache(path)
    for i in range(500):
        cache.put(f"key {i}", "x" * 100)
    cache.close()
    data = bytearray(path.read_bytes())
    if damage == "middle":
        data[4096 : len(data) // 2] = b"?" * (len(data) // 2 - 4096)
    path.write_bytes(data[: len(data) // 2 + 7] if damage == "truncated" else data)
    with pytest.warns(UserWarning, match=r"found .* damaged .* it is now cache.sqlite.damaged-1, and a new one"):
        assert Cache(path).put("a", "1") == "1"
    assert (tmp_path / "cache.sqlite.damaged-1").stat().st_size > 0
    assert Cache(path).get("a") == "1"


def test_the_users_own_cache_is_set_aside_if_it_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "deep"))
    assert Cache().put("a", "1") == "1"
    default_path().write_bytes(b"?" * 10_000)
    for suffix in ("-wal", "-shm"):
        default_path().with_name(default_path().name + suffix).unlink(missing_ok=True)
    with pytest.warns(UserWarning, match="damaged"):
        assert Cache().get("a") is None


@pytest.mark.parametrize("version", [0, 1])
def test_a_named_file_that_is_no_cache_is_left_alone(tmp_path: Path, version: int) -> None:
    thesis, other = tmp_path / "thesis.txt", tmp_path / "other.sqlite"
    thesis.write_text("the only copy of years of work")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE customers (name TEXT)")
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = other.read_bytes()
    with pytest.raises(CostError, match="expected a cache of measurements, found a file that is none"):
        Cache(thesis).put("a", "1")
    with pytest.raises(CostError, match="expected a cache of measurements, found a database that is none"):
        Cache(other).put("a", "1")
    assert thesis.read_text() == "the only copy of years of work" and other.read_bytes() == before


def test_a_missing_folder_is_not_made_for_a_named_file(tmp_path: Path) -> None:
    with pytest.raises(CostError, match="expected a folder for the cache, found none at"):
        Cache(tmp_path / "none" / "cache.sqlite").get("a")
    assert not (tmp_path / "none").exists()


def test_damage_while_open_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    cache = Cache(path)
    for i in range(80):
        cache.put(f"key {i}", "x" * 100_000)  # more than SQLite keeps in memory
    cache.close()
    again = Cache(path)
    assert again.get("key 1")
    path.write_bytes(path.read_bytes()[:4096] + b"?" * 8_000_000)
    with pytest.warns(UserWarning, match="damaged"):
        assert [again.get(f"key {i}") for i in range(80)][-1] is None


def test_another_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    before = path.read_bytes()
    with pytest.raises(CostError, match="expected a cache of version 1, found version 7"):
        Cache(path).get("a")
    assert path.read_bytes() == before


def test_a_folder_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CostError, match="expected a folder for the cache"):
        Cache(tmp_path / "file" / "cache.sqlite").get("a")
    (tmp_path / "taken.sqlite").mkdir()
    for folder in (tmp_path / "taken.sqlite", Path(), Path("/")):
        with pytest.raises(CostError, match=f"expected a file for the cache, found the folder {folder}"):
            Cache(folder).get("a")


def test_a_file_that_fails_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache.sqlite"
    Cache(path).put("a", "1")

    def refuses(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(CostError, match=r"expected a cache that can be read, found .*: Permission denied"):
        Cache(path).get("a")


def test_a_pickled_cache_opens_for_itself(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put("a", "1")
    assert pickle.loads(pickle.dumps(cache)).get("a") == "1"  # noqa: S301


def test_who_has_no_home_names_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(CostError, match=r"expected a home folder or .* --cache names one"):
        Cache()
    Cache("anywhere.sqlite")


def test_the_default_is_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_path() == Path("/somewhere/taso-gym/measurements.sqlite")


FORKED = """
import os, subprocess, sys
from taso_gym.cost.cache import Cache
path, writer = sys.argv[1:]
cache = Cache(path)
cache.put("parent", "1")
ready, go = os.pipe(), os.pipe()
child = os.fork()
if not child:
    for i in range(60):
        cache.put(f"child {i}", "1")
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    for i in range(60, 120):
        cache.put(f"child {i}", "1")
    cache.close()
    os._exit(0)
os.read(ready[0], 1)
cache.close()
subprocess.run([sys.executable, "-c", writer, path, "x", "120"], check=True, stdout=subprocess.DEVNULL)
os.write(go[1], b"x")
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_loses_nothing(tmp_path: Path) -> None:
    """The child opens the file for itself, and the parent closes its own while a third process writes."""
    path = tmp_path / "cache.sqlite"
    subprocess.run([sys.executable, "-c", FORKED, str(path), WRITER], check=True)
    cache = Cache(path)
    assert cache.get("parent") == "1"
    assert all(cache.get(f"child {i}") == "1" for i in range(120))
    assert all(cache.get(f"key {i}") == f"x {i}" for i in range(120))


def test_what_becomes_of_a_text_is_written_while_nobody_else_writes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    processes = [subprocess.Popen([sys.executable, "-c", COUNTER, str(cache.path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    assert cache.get("count") == "300"
    with pytest.raises(ZeroDivisionError):
        cache.change("count", lambda _: str(1 // 0))
    cache.change("count", lambda text: f"{text} still")
    assert cache.get("count") == "300 still"


def is_locked(path: Path) -> bool:
    """Whether SQLite shows other processes that this one has a file open."""
    return subprocess.run([sys.executable, "-c", LOCKED, str(path)]).returncode == 0


def test_a_second_cache_of_a_file_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Else another process takes itself for the last one, and deletes what was written meanwhile."""
    cache = Cache(tmp_path / "c")
    cache.put("a", "1")
    assert is_locked(cache.path)
    assert Cache(cache.path).get("a") == "1"
    assert is_locked(cache.path)
    del cache
    assert not is_locked(tmp_path / "c")


def test_a_folder_whose_files_can_not_be_locked_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(cache_module.fcntl, "flock", refuse)
    with pytest.raises(CostError, match=r"files can be locked, found .*: No locks available: --cache names another"):
        Cache(tmp_path / "c").get("a")
