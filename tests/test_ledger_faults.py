"""Kill, disk errors and power cut at every system call; a program that shares no code with it says what is left.

I1 the charges never pass the budget. I3 an acknowledged charge never disappears. I5 an unreadable ledger stops the
service. I6 after the fault the ledger works again with no hand edit.

By default: kill and power cut at every call, EIO at every call while serving, other disk errors at every third.
TACIT_FAULTS=all takes every call, also those of the shared-memory index, which is thrown away at each start.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from faults.replay import TRACED, Disk, replay

from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.errors import LedgerDamaged
from tacit.privacy.budget import Budget, Loss

TOOLS = Path(__file__).parent / "faults"
ALL = os.environ.get("TACIT_FAULTS") == "all"
WAYS = ("lost", "kept", "head", "names", "mixed", "mixed")
State = tuple[dict[str, bytes], bytes]

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what a power cut leaves is replayed, so no disk need wait."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tacit-faults-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger of one old charge."""
    folder = tmp_path_factory.mktemp("old")
    with SQLiteLedger.create(folder / "l.db", Budget.of(1), subject="faults") as ledger:
        ledger.charge("old", Loss.pure(Fraction(1, 10)))
    return folder


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nothing")


def traced(
    folder: Path,
    kind: str,
    start: Path,
    *,
    inject: Iterable[str] = (),
    only: Iterable[str] = (),
    show: Iterable[str] = (),
) -> list[str]:
    """Runs a session under strace in a copy of `start`; returns the log of its calls."""
    here, log = folder / "here", folder / "log"
    shutil.copytree(start, here)
    asked = [*show, *(f"-einject={each}" for each in inject), *(f"-P{here / name}" for name in only)]
    client = [sys.executable, "-I", "-S", "-B", TOOLS / "session.py", kind, here / "l.db", folder / "acks"]
    subprocess.run(["strace", "-f", "-o", log, f"-etrace={TRACED}", *asked, *client], check=False, timeout=60)
    return log.read_text(errors="replace").splitlines()


def verdicts(folders: list[Path]) -> list[str]:
    """What the independent program says of each folder's ledger and acknowledgements."""
    pairs = [file for folder in folders for file in (folder / "here" / "l.db", folder / "acks")]
    done = subprocess.run(
        [sys.executable, "-I", TOOLS / "verify.py", *pairs], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def survive(folders: list[Path]) -> None:
    """Each ledger is sound now, works again as it lies there, and is sound after that."""
    for folder, verdict in zip(folders, verdicts(folders), strict=True):
        assert verdict == "absent" or verdict.startswith("sound"), (folder.name, verdict)
        path = folder / "here" / "l.db"
        if verdict == "absent":
            SQLiteLedger.create(path, Budget.of(1), subject="faults").close()
        with SQLiteLedger.open(path, subject="faults") as again:
            again.charge("after", Loss.pure(Fraction(1, 7)))
        with open(folder / "acks", "a") as told:
            told.write("kept after 1/7\n")
    for folder, verdict in zip(folders, verdicts(folders), strict=True):
        assert verdict.startswith("sound"), (folder.name, verdict)


def acknowledgements(folder: Path) -> list[str]:
    return (folder / "acks").read_text().splitlines() if (folder / "acks").exists() else []


# -- killed, or failed by the disk, at every system call


@pytest.mark.parametrize("kind", ["serve", "create"])
def test_a_session_killed_or_failed_at_any_system_call_loses_nothing_and_goes_on(
    kind: str, old: Path, nothing: Path, place: Path
) -> None:
    start = old if kind == "serve" else nothing
    ends = [
        "",
        "-wal",
        "-head",
        "-making",
        "-making-wal",
        "-making-journal",
        "-making-head",
        *(["-shm", "-making-shm"] if ALL else []),
    ]
    only = ["", *("l.db" + end for end in ends)]
    calls = Counter(line.split()[1].split("(")[0] for line in traced(place / "whole", kind, start, only=only))
    calls = Counter({call: times for call, times in calls.items() if call in TRACED.split(",")})
    assert calls["pwrite64"] > 15
    assert calls["fdatasync"] + calls["fsync"] > 8
    points = [
        (call, number, fault)
        for call, times in calls.items()
        for number in range(1, times + 1)
        for fault in ("signal=SIGKILL", "error=EIO", "error=ENOSPC")
        if fault != "error=ENOSPC" or call in ("openat", "pwrite64", "fsync", "fdatasync")  # the others need no space
        if ALL or fault == "signal=SIGKILL" or (kind, fault) == ("serve", "error=EIO") or number % 3 == 0
    ]

    def strike(point: tuple[str, int, str]) -> Path:
        call, number, fault = point
        folder = place / f"{call}-{number}-{fault.split('=')[1]}"
        log = traced(folder, kind, start, inject=[f"{call}:{fault}:when={number}"], only=only)
        assert any("INJECTED" in line or "killed by SIGKILL" in line for line in log), f"{point} was not struck"
        return folder

    with ThreadPoolExecutor(3) as pool:
        folders = list(pool.map(strike, points))
    for folder in folders:
        words = [line.split()[0] for line in acknowledgements(folder)]
        if not folder.name.endswith("SIGKILL"):
            assert words[-1:] == ["done"], f"{folder.name}: an error came out as anything but a refusal"
        outcomes = [word for word in words if word != "done"]
        assert outcomes == sorted(outcomes, reverse=True), f"{folder.name}: it served on after a failure"
    survive(folders)


def test_a_failed_sync_is_never_followed_by_an_acknowledgement(old: Path, place: Path) -> None:
    """SQLite itself ignores one failure, that of its folder's sync; the ledger did that sync before, and heeds it."""
    struck = set()
    for call, times in (("fsync", 2), ("fdatasync", 8)):
        for number in range(1, times + 1):
            folder = place / f"{call}{number}"
            log = traced(folder, "serve", old, inject=[f"{call}:error=EIO:when={number}"], show=["-y"])
            at = next(index for index, line in enumerate(log) if "INJECTED" in line)
            found = re.search(r"<(.*?)>", log[at])
            assert found
            target = (call, Path(found[1]).name)
            struck.add(target)
            later = [line for line in log[at:] if "write(" in line and '"kept' in line]
            assert bool(later) == (target == ("fdatasync", "here")), (call, number, later)
    assert struck == {
        ("fsync", "l.db-wal"), ("fsync", "here"), ("fdatasync", "l.db-wal"), ("fdatasync", "here"),
        ("fdatasync", "l.db"),
    }  # fmt: skip


# -- power cut: what was not synced is lost, in whole or in part


def cuts(disk: Disk, log: list[str], acks: Path, ways: Iterable[str] = WAYS) -> Iterator[State]:
    """Every folder that a power cut after any call can leave, with what the client had been told by then."""
    rng, seen = random.Random(7), set()
    for _, told in replay(disk, log, acks):
        for how in ways:
            files = disk.after_power_cut(how, rng)
            print_ = hashlib.sha256(repr((sorted(files.items()), told)).encode()).digest()
            if print_ not in seen:
                seen.add(print_)
                yield files, told


def laid_out(root: Path, states: Iterable[State]) -> list[Path]:
    folders = []
    for number, (files, told) in enumerate(states):
        folder = root / f"cut-{number}"
        (folder / "here").mkdir(parents=True)
        for name, content in files.items():
            (folder / "here" / name).write_bytes(content)
        (folder / "acks").write_bytes(told)
        folders.append(folder)
    return folders


RECORD = ["-xx", "-s1000000"]


@pytest.mark.parametrize(
    ("kind", "inject"),
    [("serve", []), ("create", []), ("serve-again", ["fdatasync:error=EIO:when=4"])],
    ids=["serving", "creating", "serving again after a sync that failed"],
)
def test_a_power_cut_after_any_system_call_loses_nothing_and_the_ledger_goes_on(
    kind: str, inject: list[str], old: Path, nothing: Path, place: Path
) -> None:
    start = nothing if kind == "create" else old
    log = traced(place / "run", kind, start, inject=inject, show=RECORD)
    acks = place / "run" / "acks"
    assert len([line for line in acknowledgements(place / "run") if line.startswith("kept")]) == {
        "serve": 4, "create": 1, "serve-again": 5}[kind]  # fmt: skip
    folders = laid_out(place, cuts(Disk(start, place / "run" / "here"), log, acks))
    assert len(folders) > 100
    survive(folders)


@pytest.mark.parametrize("syncs", ["pending", "failed"])
def test_a_power_cut_after_a_kill_and_a_new_start_loses_nothing(syncs: str, old: Path, place: Path) -> None:
    """What the killed process wrote and could not sync is read by the next start, which must sync it before it counts.

    After a failed sync this is hard: Linux shows the log's frames, yet no later sync of the log would write them.
    """
    ends: list[tuple[Path, list[str], int]] = []  # a run, its calls, and the last of them before the kill
    if syncs == "pending":
        log = traced(place / "killed", "serve", old, show=RECORD)
        pages = [at for at, line in enumerate(log) if " pwrite64(" in line and line.split(", ")[-2] == "4096"]
        ends = [(place / "killed", log, at) for at in pages[1:4:2]]  # the second page of a commit, before its sync
    else:
        for sync in (4, 5):
            run = place / f"killed-{sync}"
            log = traced(run, "serve", old, inject=[f"fdatasync:error=EIO:when={sync}"], show=RECORD)
            ends.append((run, log, next(at for at, line in enumerate(log) if "INJECTED" in line)))
    folders = []
    for number, (run, log, at) in enumerate(ends):
        disk = Disk(old, run / "here")
        told = [told for _, told in replay(disk, log[: at + 1], run / "acks")][-1]
        left, again = place / f"left-{number}", place / f"again-{number}"
        left.mkdir()
        for name, content in disk.after_power_cut("kept").items():
            (left / name).write_bytes(content)
        more = traced(again, "again", left, show=RECORD)
        states = cuts(disk.seen_from(again / "here"), more, again / "acks", ("lost", "head", "mixed"))
        folders += laid_out(again, ((files, told + later) for files, later in states))
    assert len(folders) > 100
    survive(folders)


def toy_states(journal: str, synchronous: str, place: Path) -> list[Path]:
    start = place / "start"
    start.mkdir()
    with closing(sqlite3.connect(start / "l.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE toy (what)")
    log = traced(place / "run", f"toy:{journal}:{synchronous}", start, show=RECORD)
    disk = Disk(start, place / "run" / "here")
    return laid_out(place, cuts(disk, log, place / "run" / "acks", ("lost", "head")))


@pytest.mark.parametrize(
    ("journal", "synchronous", "holds"),
    [
        ("DELETE", "FULL", False),
        ("WAL", "NORMAL", False),
        ("DELETE", "OFF", False),
        ("DELETE", "EXTRA", True),
        ("WAL", "FULL", True),
    ],
)
def test_the_power_cut_finds_the_settings_that_lose_charges(
    journal: str, synchronous: str, holds: bool, place: Path
) -> None:
    lost = 0
    for folder in toy_states(journal, synchronous, place):
        with closing(sqlite3.connect(folder / "here" / "l.db")) as connection:
            try:
                found = {what for (what,) in connection.execute("SELECT what FROM toy")}
            except sqlite3.DatabaseError:
                found = set()
        lost += not {line.split()[1] for line in acknowledgements(folder)} <= found
    assert (lost == 0) == holds, lost


def test_the_power_cut_finds_a_ledger_whose_syncs_are_not_real(old: Path, place: Path) -> None:
    """The same recording with its syncs left out must fail the same checks: they are not passed by luck."""
    log = traced(place / "run", "serve", old, show=RECORD)
    unsynced = [line for line in log if "sync(" not in line]
    folders = laid_out(place, cuts(Disk(old, place / "run" / "here"), unsynced, place / "run" / "acks", ["lost"]))
    assert any(verdict.startswith("I3") for verdict in verdicts(folders))
    ahead = cuts(Disk(old, place / "run" / "here"), unsynced, place / "run" / "acks", ["head"])
    last = laid_out(place / "ahead", ahead)[-1]
    with pytest.raises(LedgerDamaged, match="an older copy was put back"):
        SQLiteLedger.verify(last / "here" / "l.db")
