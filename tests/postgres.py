"""A PostgreSQL server of the tests' own: started by the first test that asks, and gone with the last.

It is a child of this process, lives in a folder of its own, listens there and on a free port of the loopback, and
belongs to a user without rights where the tests run as root. Each worker of a parallel run has its own.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "correct horse battery"  # noqa: S105 - of a server that lives for seconds
HBA = """
local   all all                  trust
host    all secretive 127.0.0.1/32 scram-sha-256
host    all all       127.0.0.1/32 trust
"""
SETTINGS = {
    "fsync": "off", "autovacuum": "off", "max_connections": "40", "shared_buffers": "16MB", "lc_messages": "C",
    "listen_addresses": "127.0.0.1", "log_statement": "all", "synchronize_seqscans": "on",
}  # fmt: skip


def binaries() -> Path | None:
    """Where initdb and postgres are."""
    folders = sorted(
        glob.glob("/usr/lib/postgresql/*/bin"),
        key=lambda name: [int(n) for n in name.split("/")[4].split(".") if n.isdigit()],
    )
    named = shutil.which("initdb")
    beside = [os.path.dirname(os.path.realpath(named))] if named else []
    for folder in (*reversed(folders), *beside, "/usr/local/pgsql/bin"):
        if all(os.access(os.path.join(folder, name), os.X_OK) for name in ("initdb", "postgres")):
            return Path(folder)
    return None


def nobody() -> dict[str, Any]:
    """As whom a server runs: PostgreSQL refuses to be root's."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    pytest.skip("there is no user as whom PostgreSQL could run")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Server:
    """A running server; each of its tables is made for one test."""

    def __init__(self, bin: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.data, self.log = self.folder / "data", self.folder / "log"
        self._bin, self._owner = bin, nobody()
        if self._owner:
            os.chown(self.folder, self._owner["user"], self._owner["group"])
        init = ["initdb", "-D", str(self.data), "-U", "keeper", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run(init[0], *init[1:])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {**SETTINGS, "port": self.port, "unix_socket_directories": self.folder}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        (self.data / "pg_hba.conf").write_text(HBA)
        self.uri = f"postgresql://keeper@/postgres?host={self.folder}&port={self.port}"
        self._numbers = count()
        self.start()
        atexit.register(self.stop)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data],
                stdout=log,
                stderr=log,
                preexec_fn=ends_with_us,
                cwd="/",
                **self._owner,
            )
        import psycopg

        for _ in range(300):
            try:
                psycopg.connect(self.uri, connect_timeout=5).close()
            except psycopg.Error:
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(self.log.read_text()[-2000:])

    def stop(self) -> None:
        """Ends it at once, with all its sessions."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)

    @property
    def number(self) -> int:
        """The process of the server."""
        return self._process.pid

    @contextmanager
    def keeper(self) -> Iterator[Any]:
        """A session that may do anything."""
        import psycopg

        with psycopg.connect(self.uri, autocommit=True) as connection:
            yield connection

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """What the last of these statements gives."""
        with self.keeper() as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def fresh(self) -> str:
        """A new schema, in which a test can make what it likes."""
        name = f"test {next(self._numbers)}"
        self.run(f'create schema "{name}"')
        return name

    def hold(self, values: dict[str, list[Any]], kinds: dict[str, str], parts: int = 1) -> tuple[str, str]:
        """A table of these columns, in so many parts, one after the other; how it is opened.

        No text of PostgreSQL's holds a null letter.
        """
        schema, rows = self.fresh(), list(zip(*values.values(), strict=True))
        named = [f"{quoted(name)} {kinds[name]}" for name in values]
        # a table that is filled by the transaction which makes it has its rows in their order, and none in a gap
        with self.keeper() as connection, connection.transaction():
            connection.execute(f'create table "{schema}"."the ""people" ({", ".join(named)})')
            for part in range(parts):
                if part:
                    connection.execute(f'create table "{schema}"."{part}" () inherits ("{schema}"."the ""people")')
                where = f'"{schema}"."{part}"' if part else f'"{schema}"."the ""people"'
                with connection.cursor().copy(f"copy {where} from stdin") as copy:
                    for row in rows[len(rows) * part // parts : len(rows) * (part + 1) // parts]:
                        copy.write_row([v.replace("\0", "\u2400") if isinstance(v, str) else v for v in row])
        return self.uri, f'"{schema}"."the ""people"'

    def reload(self, **settings: str) -> None:
        """Settings that need no new start."""
        for name, value in settings.items():
            self.run(f"alter system set {name} = '{value}'")
        self.run("select pg_reload_conf()")

    def certified(self) -> Path:
        """TLS from here on; its certificate, which its clients may demand."""
        made = self.data / "server.crt"
        if not made.exists():
            self._run(
                "openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost", "-batch",
                "-addext", "subjectAltName=IP:127.0.0.1", "-newkey", "rsa:2048",
                "-out", str(made), "-keyout", str(self.data / "server.key"),
            )  # fmt: skip
            os.chmod(self.data / "server.key", 0o600)
            self.reload(ssl="on")
        copied = self.folder / "root.crt"
        shutil.copy(made, copied)
        os.chmod(copied, 0o644)
        return copied

    def _run(self, name: str, *arguments: str) -> None:
        found = self._bin / name
        command = [str(found) if found.exists() else name, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._owner)


def ends_with_us() -> None:
    """On Linux a server that outlives the tests is ended by the system."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)


@functools.cache
def server() -> Server:
    """The server of this process; a test that asks for it is skipped where there can be none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if (found := binaries()) is None:
        pytest.skip("there is no PostgreSQL server on this machine: initdb and postgres were not found")
    return Server(found)
