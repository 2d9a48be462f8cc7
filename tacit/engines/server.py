"""A session of a PostgreSQL server: one read-only transaction, of which no word that the server says is passed on.

What the server says may hold values. A failure here has a name that it was given on this side, or none.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tacit.engines.address import uri
from tacit.errors import InvalidData, quoted

if TYPE_CHECKING:
    import psycopg

OLDEST = 130_000
CONNECTING, ANSWERING = 10, 60  # seconds without a word from the server, after which it is given up
READ_ONLY = "-c default_transaction_read_only=on"
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "row_security": "off",  # all rows or an error, never some
    "client_min_messages": "error",
    "lock_timeout": "10s",
    "statement_timeout": "0",  # the length of a table is no reason to fail; who waits here gives up by itself
    "idle_in_transaction_session_timeout": "1h",  # a snapshot that nobody asks keeps old rows from being cleared
    # one scan of the table from its first page to its last, whatever is read of it: rows always come in the same order
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
PUBLIC = ("host", "hostaddr", "port", "dbname", "user", "options", "connect_timeout")
CLUES = (  # what libpq says in English, and what we say
    ("could not translate host name", "there is no such host"),
    ("failed to resolve host", "there is no such host"),
    ("pg_hba.conf", "the server does not let this role in from here, or not without TLS (PGSSLMODE)"),
    ("password authentication failed", "the server does not know this role by this password (PGPASSWORD, PGPASSFILE)"),
    ("no password supplied", "the server asks for a password: set PGPASSWORD or PGPASSFILE"),
    ("role ", "the server has no such role, or does not let it in"),
    ("database ", "the server has no such database, or does not let this role into it"),
    ("service", "the service that PGSERVICE names is not in a service file"),
    ("certificate", "TLS cannot be agreed on (PGSSLMODE, PGSSLROOTCERT)"),
    ("SSL", "TLS cannot be agreed on (PGSSLMODE, PGSSLROOTCERT)"),
    ("too many", "the server has no connection left"),
    ("starting up", "the server is not ready"),
    ("shutting down", "the server is not ready"),
    ("timeout expired", "no answer in time"),
    ("timed out", "no answer in time"),
    ("refused", "no server listens there"),
    ("No such file", "no server listens there"),
    ("No route", "no server can be reached there"),
)


class Failed(Exception):
    """The server did not do what it was asked; `state` is the kind of its error, a code of five letters."""

    def __init__(self, state: str = "") -> None:
        super().__init__()
        self.state = state


class Session:
    """One transaction, from its first statement to the end of the connection; it sees what its snapshot sees."""

    def __init__(self, source: str, snapshot: str | None = None) -> None:
        self._connection = connected(source)
        self._link = self._connection.pgconn
        self._ready = selectors.DefaultSelector()
        try:
            self._ready.register(self._link.socket, selectors.EVENT_READ)
            if snapshot is None:  # each statement sees what is there: it is for waiting, and for making a snapshot
                begin = ["begin isolation level read committed read only"]
            else:
                begin = ["begin isolation level repeatable read read only", f"set transaction snapshot '{snapshot}'"]
            for statement in begin:
                self.ask(statement)
            settings = [f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in SETTINGS.items()]
            self.ask(f"select {', '.join(settings)}")
        except BaseException:
            self.close()
            raise

    def ask(self, statement: str, *values: str) -> list[tuple[bytes | None, ...]]:
        """The rows that answer a statement, in letters."""
        from psycopg.pq import ExecStatus

        self._link.send_query_params(statement.encode(), [value.encode() for value in values])
        found = self._answer()
        if found is None or found.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise Failed(_state(found))
        while self._answer() is not None:
            pass
        return [tuple(found.get_value(row, at) for at in range(found.nfields)) for row in range(found.ntuples)]

    def copied(self, statement: str) -> Iterator[Any]:
        """The messages of a COPY to this side, one by one; whoever stops half-way must close the session."""
        from psycopg.pq import ExecStatus

        self._link.send_query_params(statement.encode(), None)
        found = self._answer()
        if found is None or found.status != ExecStatus.COPY_OUT:
            raise Failed(_state(found))
        get = self._link.get_copy_data
        while (got := get(1))[0] >= 0:
            if got[0]:
                yield got[1]
            else:
                self._wait()
        ended = self._answer()
        if ended is None or ended.status != ExecStatus.COMMAND_OK:  # it broke off, and what came is a part
            raise Failed(_state(ended))

    def close(self) -> None:
        """Ends the transaction, whatever it is at."""
        self._ready.close()
        self._connection.close()

    def _answer(self) -> Any:
        while self._link.is_busy():
            self._wait()
        return self._link.get_result()

    def _wait(self) -> None:
        if not self._ready.select(ANSWERING):
            raise Failed
        self._link.consume_input()


def connected(source: str) -> psycopg.Connection[Any]:
    """A connection; everything that the source does not say comes from the environment."""
    if find_spec("psycopg") is None:
        raise InvalidData("PostgreSQL needs the package psycopg: pip install 'tacit[postgres]'. Nothing was read.")
    import psycopg

    asked = _asked(source)
    if asked is None:
        raise InvalidData(f"{quoted(source)} is not a URI that PostgreSQL's own programs read. Nothing was read.")
    why = ""
    try:
        connection = psycopg.connect(
            uri(source),
            autocommit=True,
            connect_timeout=asked.get("connect_timeout") or CONNECTING,
            client_encoding="SQL_ASCII",  # texts as the bytes that they are: no conversion fails on one of them
            fallback_application_name="tacit",
            options=" ".join(filter(None, (asked.get("options"), READ_ONLY))),
        )
    except psycopg.Error as error:
        why = next((ours for theirs, ours in CLUES if theirs in str(error)), "it cannot be connected to")
    if why:
        raise InvalidData(f"{shown(asked)}: {why}. Nothing was read.")
    if connection.pgconn.server_version < OLDEST:
        connection.close()
        raise InvalidData(f"{shown(asked)}: this version of PostgreSQL is too old; 13 is the oldest. Nothing was read.")
    return connection


def place(source: str) -> str:
    """Where a session would be, in words."""
    return shown(_asked(source) or {})


def shown(asked: Mapping[str, str]) -> str:
    """In words, where to and as whom; never with what."""
    host = asked.get("host") or asked.get("hostaddr") or "this machine's socket"
    port = f" port {asked['port']}" if asked.get("port") else ""
    names = [
        f"{key} {quoted(asked[name])}" for key, name in (("database", "dbname"), ("role", "user")) if asked.get(name)
    ]
    return ", ".join([f"PostgreSQL at {quoted(host)}{port}", *names])


def _asked(source: str) -> dict[str, str] | None:
    """What the source and the environment say of a connection, but for what is secret; None if it cannot be read."""
    import psycopg
    from psycopg.pq import Conninfo

    try:
        said = [*Conninfo.get_defaults(), *Conninfo.parse(uri(source).encode())]
    except psycopg.Error:
        return None
    known = {option.keyword.decode(): option.val.decode(errors="replace") for option in said if option.val is not None}
    return {name: known[name] for name in PUBLIC if name in known}


def _state(found: Any) -> str:
    from psycopg.pq import DiagnosticField

    return "" if found is None else (found.error_field(DiagnosticField.SQLSTATE) or b"").decode()
