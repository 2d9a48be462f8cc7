"""What a fork, an interrupt or a second close does to a ledger: a child has none of its parent's, and nothing hangs."""

from __future__ import annotations

import copy
import dis
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pytest
from doubles import Rows

from tacit.curator import process
from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.domain.query import Counting
from tacit.domain.schema import Integers, Neighbors, Schema
from tacit.errors import InvalidParameter, LedgerUnavailable
from tacit.primitives.threshold import AboveThreshold
from tacit.privacy.budget import Budget, Loss

TENTH = Loss.pure(Fraction(1, 10))
ROOT = Path(__file__).parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SQLiteLedger.create(tmp_path / "l.db", Budget.of(1), subject="people").close()
    return tmp_path / "l.db"


def opened(path: Path, timeout: float = 10) -> SQLiteLedger:
    return SQLiteLedger.open(path, subject="people", timeout=timeout)


def in_a_child(act: Callable[[], object]) -> str:
    """What came of it in a forked process, which is killed if it hangs."""
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks among threads, which is what is tried here
        child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            os.write(tell, f"done {act()}".encode())
        except BaseException as error:
            os.write(tell, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(tell)
    with open(told, "rb") as answer:
        said = answer.read().decode()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return said


def alone(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program of its own, whose signals and whose end are its own."""
    head = (
        "import os, signal, sys; from fractions import Fraction; from tacit.curator.ledger import *; "
        "from tacit.curator.sqlite_ledger import SQLiteLedger; from tacit.privacy.budget import *; "
        "from tacit.errors import *\n"
    )
    command = [sys.executable, "-c", head + code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


# -- forks


def test_a_child_charges_no_ledger_that_its_parent_had_open(path: Path) -> None:
    """It inherits SQLite's table of locks without the locks; whatever it opened would be written with none."""
    with opened(path) as ledger:
        assert in_a_child(lambda: ledger.charge("child", TENTH)).startswith("LedgerUnavailable: the ledger")
        for act in (opened, SQLiteLedger.read, SQLiteLedger.verify):
            assert "was forked while its parent had a ledger open" in in_a_child(lambda act=act: act(path))  # type: ignore[misc]
        elsewhere = path.parent / "other.db"
        again = in_a_child(lambda: SQLiteLedger.create(elsewhere, Budget.of(1), subject="people"))
        assert "was forked while its parent had a ledger open" in again
        assert in_a_child(lambda: in_a_child(lambda: opened(path))).count("forked while") == 1  # nor a grandchild
        ledger.charge("parent", TENTH)
        assert [entry.what for entry in ledger.entries()] == ["parent"]


def test_a_child_opens_for_itself_what_its_parent_has_closed(path: Path) -> None:
    code = """
for who in ("parent", "child"):
    with SQLiteLedger.open(sys.argv[1], subject="people") as ledger:
        ledger.charge(who, Loss.pure(Fraction(1, 10)))
    if who == "parent" and os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = alone(code, path)
    assert done.returncode == 0, done.stderr
    with opened(path) as ledger:
        assert [entry.what for entry in ledger.entries()] == ["parent", "child"]


@pytest.mark.parametrize("act", ["open", "verify", "create"])
def test_a_fork_while_a_thread_opens_a_ledger_leaves_the_child_none(
    path: Path, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever in it: at each of its connections and at each of its statements the child is refused."""
    said: list[str] = []

    class Forking(process.Connection):
        def execute(self, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
            if len(said) < 60:
                said.append(in_a_child(lambda: SQLiteLedger.verify(path)))
            return super().execute(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("tacit.curator.book.Connection", Forking)

    def work() -> None:
        if act == "create":
            SQLiteLedger.create(path.parent / "new.db", Budget.of(1), subject="people").close()
        else:
            opened(path).close() if act == "open" else SQLiteLedger.verify(path)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(said) > 5
    assert all("forked while its parent had a ledger open" in each for each in said)


def test_no_fork_falls_between_the_opening_of_a_file_and_its_being_known(path: Path) -> None:
    said: list[tuple[bool, str]] = []

    def trace(frame: FrameType, event: str, argument: object) -> object:
        if not frame.f_code.co_filename.endswith(os.path.join("curator", "process.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_name in ("__init__", "close"):
            files = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
            said.append((str(path) in files, in_a_child(lambda: SQLiteLedger.verify(path))))
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        SQLiteLedger.verify(path)
    finally:
        sys.settrace(None)
    assert {opened for opened, _ in said} == {True, False}
    assert all("forked while" in word for opened, word in said if opened)


def test_a_fork_while_a_thread_holds_a_ledger_for_long_neither_waits_nor_lends_it(path: Path) -> None:
    ledger, started, end = opened(path, timeout=0.05), threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM charge").fetchone()
        started.set()
        end.wait(20)
        connection.execute("ROLLBACK")

    thread = threading.Thread(target=lambda: ledger._book.use(slow))
    thread.start()
    started.wait(20)
    start = time.monotonic()
    assert "forked while" in in_a_child(lambda: opened(path).charge("child", TENTH))
    assert time.monotonic() - start < 10
    end.set()
    thread.join()
    ledger.charge("parent", TENTH)
    assert ledger.spent == Fraction(1, 10)
    ledger.close()


def test_the_end_of_a_child_deletes_no_log(path: Path) -> None:
    """A child that ends as programs do frees what it inherited; that must not close the file under others' feet."""
    code = """
from tacit.curator.sqlite_ledger import SQLiteLedger
ledger = SQLiteLedger.open(sys.argv[1], subject="people")
ledger.charge("parent", Loss.pure(Fraction(1, 10)))
told, tell = os.pipe()
if not os.fork():
    os.close(tell)
    os.read(told, 1)   # until the parent is gone
    ledger.close()
    del ledger
    sys.exit(0)
os.close(told)
ledger.close()
if not os.fork():
    os.close(tell)
    other = SQLiteLedger.open(sys.argv[1], subject="people")
    for _ in range(3): other.charge("other", Loss.pure(Fraction(1, 10)))
    os.kill(os.getpid(), signal.SIGKILL)
assert os.waitstatus_to_exitcode(os.wait()[1]) == -signal.SIGKILL
os.close(tell)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    done = alone(code, path)
    assert done.returncode == 0, done.stderr
    with opened(path) as ledger:
        assert [entry.what for entry in ledger.entries()] == ["parent", "other", "other", "other"]


def test_a_ledger_in_memory_knows_a_child_that_has_its_parents_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)  # as after a wrap of the numbers, or in a namespace of its own
    ledger = MemoryLedger(Budget.of(1))
    ledger.charge("parent", TENTH)
    assert "not shared with a forked process" in in_a_child(lambda: ledger.charge("child", TENTH))
    ledger.charge("parent", TENTH)


# -- sessions


def session_of(people: int, threshold: int) -> tuple[Curator, object, Counting]:
    schema = Schema([Integers("age", 0, 1)])
    table = Rows(schema, np.zeros((people, 1), dtype=np.int64))
    curator = Curator(table, MemoryLedger(Budget.of(1)), Neighbors.ADD_REMOVE)
    return curator, curator.open(AboveThreshold(1, threshold, monotone=True)), Counting.where(schema, {"age": [0]})


def test_a_session_is_not_had_again_by_a_fork() -> None:
    _, session, query = session_of(1000, 0)
    for _ in range(3):
        assert in_a_child(lambda: session.ask(query)).startswith("Halted: AboveThreshold")  # type: ignore[attr-defined]
    assert session.ask(query) is True  # type: ignore[attr-defined]


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(clone: Callable[[object], object]) -> None:
    with pytest.raises(InvalidParameter, match="cannot be copied"):
        clone(session_of(1000, 0)[1])


# -- interrupts


class Struck(BaseException):
    """As an interrupt is: no Exception, and at any line."""


@cache
def places(code: CodeType) -> set[int]:
    """After each, but where the next step has left the `try` or `with` of the call, which is where a signal is seen."""
    steps, table = list(dis.get_instructions(code)), dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def caught(offset: int) -> list[int]:
        return [entry.target for entry in table if entry.start <= offset < entry.end]

    looks = ("RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX")
    return {
        step.offset
        for last, step in pairwise(steps)
        if last.opname in looks and caught(last.offset) == caught(step.offset)
    }


def struck_everywhere(act: Callable[[], object], *files: str) -> Iterator[bool]:
    """Runs it again and again, interrupted at the first place in those files, at the second, ... until it ends.

    A place is where Python looks for signals: where a function begins, and after each call.
    """
    at, ended = 0, False
    while not ended:
        at, passed = at + 1, 0

        def trace(frame: FrameType, event: str, argument: object, at: int = at) -> object:
            nonlocal passed
            if not frame.f_code.co_filename.endswith(tuple(os.path.join("curator", file) for file in files)):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lasti in places(frame.f_code):
                passed += 1
                if passed == at:
                    raise Struck
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            act()
            ended = True
        except Struck:
            pass
        finally:
            sys.settrace(None)
        yield not ended


def test_an_interrupt_anywhere_in_a_charge_in_memory_gives_nothing_back() -> None:
    made: list[MemoryLedger] = []

    def charge() -> None:
        ledger = MemoryLedger(Budget.of(1))
        ledger.charge("a", Loss.pure(Fraction(1, 10**6)))
        made.append(ledger)
        ledger.charge("b", Loss.pure(Fraction(1, 3)))

    strikes = 0
    for struck in struck_everywhere(charge, "ledger.py"):
        strikes += struck
        for ledger in made:
            least, most = Fraction(1, 10**6), Fraction(1, 10**6) + Fraction(1, 3)
            assert ledger.spent in (least, most)
            assert sum(entry.amount for entry in ledger.entries()) <= ledger.spent
            assert not ledger._book.lock.locked()
        made.clear()
    assert strikes > 20


def test_an_interrupt_anywhere_in_a_charge_in_a_file_leaves_it_to_be_opened_again(path: Path) -> None:
    """And holds no lock, so that what comes next is refused at once or served, and can be closed."""
    kept, ledger = 0, opened(path, timeout=0.2)
    loss, strikes = Loss.pure(Fraction(1, 10**6)), 0

    def charge() -> None:
        nonlocal kept
        ledger.charge("a", loss)
        kept += 1

    def from_another_thread() -> None:
        with suppress(LedgerUnavailable):
            _ = ledger.spent

    for struck in struck_everywhere(charge, "book.py", "head.py", "sqlite_ledger.py"):
        strikes += struck
        other = threading.Thread(target=from_another_thread)
        other.start()
        other.join()
        assert ledger._book._lock.acquire(blocking=False)
        ledger._book._lock.release()
        ledger.close()
        assert ledger._book._connection is None
        ledger = opened(path, timeout=0.2)
        assert ledger.spent >= kept * Fraction(1, 10**6)
    ledger.close()
    assert strikes > 60
    assert SQLiteLedger.verify(path).sequence >= kept == 1


def test_a_ledger_can_be_closed_by_a_signal_that_strikes_while_it_charges(path: Path) -> None:
    code = """
ledger, kept = SQLiteLedger.open(sys.argv[1], subject="people", timeout=5), 0
signal.signal(signal.SIGALRM, lambda *_: ledger.close())
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    while True:
        ledger.charge("a", Loss.pure(Fraction(1, 10**6)))
        kept += 1
except LedgerUnavailable as refusal:
    print(kept, refusal)
"""
    done = alone(code, path)
    assert "was closed" in done.stdout, done.stderr
    assert not Path(f"{path}-wal").exists()  # the file was closed as well
    assert SQLiteLedger.verify(path).sequence == int(done.stdout.split()[0])


def test_a_charge_that_is_closed_from_within_is_finished_and_is_the_last(path: Path) -> None:
    ledger = opened(path)
    write = ledger._book._head.write

    def closing_first(*arguments: object) -> None:
        ledger.close()  # as a signal handler would
        with pytest.raises(LedgerUnavailable, match="is in use by what this interrupted"):
            ledger.charge("b", TENTH)
        write(*arguments)  # type: ignore[arg-type]

    ledger._book._head.write = closing_first  # type: ignore[method-assign]
    ledger.charge("a", TENTH)
    assert ledger._book._connection is None
    with pytest.raises(LedgerUnavailable, match="was closed"):
        ledger.charge("c", TENTH)
    with opened(path) as again:
        assert [entry.what for entry in again.entries()] == ["a"]


def test_closing_does_not_wait_for_ever_for_another_thread(path: Path) -> None:
    ledger, started, end = opened(path, timeout=0.1), threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        started.set()
        end.wait(20)

    thread = threading.Thread(target=lambda: ledger._book.use(slow))
    thread.start()
    started.wait(20)
    ledger.close()
    end.set()
    thread.join()
    assert ledger._book._connection is None  # who used it has closed it
    with pytest.raises(LedgerUnavailable, match="was closed"):
        ledger.charge("a", TENTH)


def test_a_ledger_that_nobody_closed_is_closed_when_it_is_forgotten(path: Path) -> None:
    before = len(process._open)
    ledger = opened(path)
    ledger.charge("a", TENTH)
    assert len(process._open) == before + 1
    del ledger
    assert len(process._open) == before
    assert not Path(f"{path}-wal").exists()
