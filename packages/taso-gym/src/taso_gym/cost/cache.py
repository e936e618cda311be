"""A cache of measurements on disk that concurrent processes, kills and corruption don't harm.

SQLite in WAL mode: readers and a writer don't block each other, and a transaction that was cut off leaves no trace. A
file that is damaged is set aside (renamed, with a warning) and a new one begun: measurements can be made again. A file
of another version, or that was never a cache, isn't touched: it is an error that says so.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet, finalize

from taso_gym.checks import check_path
from taso_gym.errors import CostError, one_line

VERSION = 1
MAGIC = b"SQLite format 3\0"
"""What every file of SQLite begins with."""
WAIT_S = 60.0
T = TypeVar("T")
_OPEN: WeakSet[Cache] = WeakSet()
"""What is closed before a fork: the child would hold locks that SQLite never gave it, and lose what others write."""


def default_path() -> Path:
    """Return the user's cache of measurements, in ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        CostError: there is no home folder.
    """
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        raise CostError("expected a home folder or $XDG_CACHE_HOME for the cache: --cache names one") from error
    return Path(folder) / "taso-gym" / "measurements.sqlite"


class Cache:
    """Text by key; what was written first stays, unless it is replaced."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Name the file; it is opened at the first use, and by each process for itself.

        Only the folder of the user's own cache is made where it is missing.

        Raises:
            OptionError: it is no path.
        """
        self.path, self._own = check_path(path, "the path of a cache") if path else default_path(), path is None
        self._connection: sqlite3.Connection | None = None
        self._process, self._inode = 0, (0, 0)
        self._closing: finalize[..., Cache] | None = None

    def get(self, key: str) -> str | None:
        """Return the text of a key, or None.

        Raises:
            CostError: the cache can't be read, or is of another version.
        """
        row = self._run(lambda db: db.execute("SELECT value FROM measurements WHERE key = ?", (key,)).fetchone())
        return None if row is None else row[0]

    def beginning(self, prefix: str) -> list[tuple[str, str]]:
        """Return (the rest of the key, text) of all keys that begin with something.

        Raises:
            CostError: the cache can't be read, or is of another version.
        """
        query = "SELECT substr(key, ?), value FROM measurements WHERE key >= ? AND key < ?"
        bounds = len(prefix) + 1, prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return self._run(lambda db: db.execute(query, bounds).fetchall())

    def put(self, key: str, value: str) -> str:
        """Write a text unless the key has one, and return the one it has: another process may have been first.

        Raises:
            CostError: the cache can't be written, or is of another version.
        """

        def write(db: sqlite3.Connection) -> str:
            db.execute("INSERT OR IGNORE INTO measurements VALUES (?, ?)", (key, value))
            return db.execute("SELECT value FROM measurements WHERE key = ?", (key,)).fetchone()[0]

        return self._run(write)

    def replace(self, key: str, value: str) -> None:
        """Write a text, whatever the key had.

        Raises:
            CostError: the cache can't be written, or is of another version.
        """
        self.change(key, lambda _: value)

    def change(self, key: str, change: Callable[[str | None], str]) -> None:
        """Write what becomes of the text that a key has, or of None, while no other process writes.

        Raises:
            CostError: the cache can't be written, or is of another version.
        """

        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            try:
                row = db.execute("SELECT value FROM measurements WHERE key = ?", (key,)).fetchone()
                db.execute("INSERT OR REPLACE INTO measurements VALUES (?, ?)", (key, change(row and row[0])))
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

        self._run(write)

    def close(self) -> None:
        """Close the file."""
        if self._closing is not None and self._process == os.getpid():
            self._closing()
        self._connection = self._closing = None

    def _run(self, action: Callable[[sqlite3.Connection], T]) -> T:
        for attempt in range(2):
            try:
                return action(self._open())
            except sqlite3.OperationalError as error:
                raise CostError(f"expected a cache that can be read and written, found {self.path}: {error}") from error
            except sqlite3.DatabaseError as error:
                self.close()
                if attempt:
                    raise CostError(f"expected a cache that stays whole, found {self.path}: {error}") from error
        raise AssertionError

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():  # a connection doesn't survive a fork
            self._connection, self._process = self._connect(), os.getpid()
            self._inode = _inode(self.path)
            self._closing = finalize(self, self._connection.close)  # else it is closed some time: it refers to itself
            _OPEN.add(self)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        try:
            if self._own:
                self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CostError(f"expected a folder for the cache, found {self.path.parent}: {error.strerror}") from error
        try:
            self._expect_cache()
        except OSError as error:
            raise CostError(f"expected a cache that can be read, found {self.path}: {error.strerror}") from error
        with _locked(self.path.with_name(self.path.name + ".lock")):  # one process at a time looks, and repairs
            try:
                return self._checked()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._set_aside(error)
                return self._checked()

    def _expect_cache(self) -> None:
        """Refuse a file that somebody named and that is something else; the user's own cache is a cache, if damaged."""
        if not self.path.parent.is_dir():
            raise CostError(f"expected a folder for the cache, found none at {self.path.parent}")
        if self.path.is_dir():
            raise CostError(f"expected a file for the cache, found the folder {self.path}")
        if self._own or not self.path.is_file() or not self.path.stat().st_size or self._is_open():
            return
        with self.path.open("rb") as file:
            found = file.read(len(MAGIC))
        if found != MAGIC:
            raise CostError(f"expected a cache of measurements, found a file that is none: {self.path}")

    def _is_open(self) -> bool:
        """Whether this process has the file open: to open it otherwise, and close it, drops the locks that it holds."""
        return any(each._connection is not None and each._inode == _inode(self.path) for each in list(_OPEN))

    def _checked(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if version not in (0, VERSION):
                raise CostError(f"expected a cache of version {VERSION}, found version {version} in {self.path}")
            if tables - {"measurements"}:
                raise CostError(f"expected a cache of measurements, found a database that is none: {self.path}")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("CREATE TABLE IF NOT EXISTS measurements (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
            db.execute(f"PRAGMA user_version = {VERSION}")
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)
        except BaseException:
            db.close()
            raise
        return db

    def _set_aside(self, error: Exception) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        self.path.rename(aside)
        for suffix in ("-wal", "-shm"):
            Path(str(self.path) + suffix).unlink(missing_ok=True)
        warnings.warn(
            f"expected a whole cache of measurements, found {self.path} damaged ({one_line(error)}): "
            f"it is now {aside.name}, and a new one is begun",
            stacklevel=2,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the path alone."""
        return {**self.__dict__, "_connection": None, "_closing": None}


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


@contextmanager
def _locked(path: Path) -> Generator[None]:
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise CostError(
            f"expected a cache folder that can be written, found {path.parent}: {error.strerror}"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise CostError(
                f"expected a cache folder whose files can be locked, found {path.parent}: {error.strerror}: "
                "--cache names another"
            ) from error
        yield
    finally:
        os.close(handle)


def _close_all() -> None:
    for cache in list(_OPEN):
        cache.close()


os.register_at_fork(before=_close_all)
