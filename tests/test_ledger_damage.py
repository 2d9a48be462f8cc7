"""Ledger files that were damaged, rolled back, moved, locked, filled up or raced for: refused, and never begun anew."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.curator.book import create as make
from tacit.curator.chain import FORMAT, SCHEMA, Contract, Row
from tacit.curator.head import Head
from tacit.curator.ledger import instant
from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerUnavailable
from tacit.privacy.budget import Budget, Loss

TENTH = Loss.pure(Fraction(1, 10))
SESSION = [sys.executable, "-I", "-S", "-B", Path(__file__).parent / "faults" / "session.py"]
INSERT = "INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def opened(path: Path | str, *, subject: str = "faults", timeout: float = 10) -> SQLiteLedger:
    return SQLiteLedger.open(path, subject=subject, timeout=timeout)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of six charges: 1, a block 2 with 3 and 4 in it, 5, 6."""
    with SQLiteLedger.create(tmp_path / "l.db", Budget.of(1), subject="faults") as ledger:
        ledger.charge("one", TENTH)
        block = ledger.block("block", Budget.of("0.3"))
        block.charge("three", TENTH)
        block.charge("four", Loss.pure(Fraction(1, 7)))
        ledger.charge("five", TENTH)
        ledger.charge("six", TENTH)
    return tmp_path / "l.db"


def refused(path: Path, error: type[Exception], match: str) -> None:
    """By all who would use it, and left as it was."""
    before = path.read_bytes()
    for act in (opened, SQLiteLedger.verify, SQLiteLedger.read):
        with pytest.raises(error, match=match):
            act(path)
    with pytest.raises(LedgerUnavailable, match="is there already"):
        SQLiteLedger.create(path, Budget.of(1), subject="faults")
    assert path.read_bytes() == before


# -- rows that are not what was written


def read_rows(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as raw:
        return [Row(*row) for row in raw.execute("SELECT * FROM charge ORDER BY sequence")]


def rewrite(path: Path, rows: list[Row]) -> None:
    with closing(sqlite3.connect(path)) as raw:
        names = [
            name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
        ]
        for name in names:
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute("DELETE FROM charge")
        raw.executemany(INSERT, rows)
        for statement in SCHEMA[-4:]:
            raw.execute(statement)
        raw.commit()


def resealed(rows: list[Row], first: str) -> list[Row]:
    """The same rows with every hash made right again, as somebody would who knows the format."""
    chain: list[Row] = []
    for row in rows:
        chain.append(row._replace(previous=chain[-1].hash if chain else first).sealed())
    return chain


def test_a_ledger_that_was_rewritten_as_it_was_is_still_sound(path: Path) -> None:
    rows = read_rows(path)
    rewrite(path, resealed(rows, rows[0].previous))
    assert SQLiteLedger.verify(path) == (6, rows[-1].hash)


@pytest.mark.parametrize(
    ("number", "changes", "complaint"),
    [
        (1, {"amount": "1/20"}, "running total is not the sum"),
        (1, {"amount": "1/20", "spent": "1/20"}, "row 2: its running total"),
        (5, {"amount": "-1/10"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "0/1"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "2/20"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "0.1"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "nan"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "1/0"}, "row 5: its amount is not a positive fraction"),
        (5, {"amount": "1/" + "9" * 5000}, "row 5: its amount is not a positive fraction"),
        (6, {"spent": "1/10"}, "row 6: its running total"),
        (6, {"spent": "12/20"}, "row 6: its running total"),
        (5, {"sequence": 7}, "the next number is 6, so a row is missing|row 5"),
        (3, {"block": 1}, "row 3: it is charged to no block"),
        (3, {"block": 0}, "row 3: its running total"),
        (3, {"block": 9}, "row 3: it is charged to no block"),
        (3, {"currency": "rho"}, "row 3: it is charged to no block"),
        (2, {"reserved": "1/2 epsilon"}, "row 2: it reserves more than it charges"),
        (2, {"reserved": "3/10 rho"}, "row 2: it reserves what its budget cannot"),
        (2, {"reserved": "much"}, "row 2: its amount"),
        (2, {"reserved": "1/10 epsilon"}, "more was charged in block 2 than its budget"),
        (2, {"reserved": ""}, "row 3: it is charged to no block"),
        (6, {"amount": "9/10", "spent": "7/5"}, "more was charged to it than its budget"),
    ],
)
def test_a_row_that_could_not_have_been_written_is_named_even_where_its_hashes_are_right(
    path: Path, number: int, changes: dict[str, str | int], complaint: str
) -> None:
    rows = read_rows(path)
    rows[number - 1] = rows[number - 1]._replace(**changes)  # type: ignore[arg-type]
    rewrite(path, sorted(resealed(rows, rows[0].previous)))
    (path.parent / "l.db-head").unlink()
    refused(path, LedgerDamaged, complaint)


@pytest.mark.parametrize("column", [name for name in Row._fields if name != "sequence"])
def test_any_change_of_one_field_is_found_and_its_row_named(path: Path, column: str) -> None:
    rows = read_rows(path)
    value = getattr(rows[3], column)
    rows[3] = rows[3]._replace(**{column: value + 1 if isinstance(value, int) else value + "0"})
    rewrite(path, rows)
    refused(path, LedgerDamaged, "row 4: its content does not match its hash")


@pytest.mark.parametrize("value", [None, 0.1, b"1/10"])
def test_a_field_of_another_type_is_found(path: Path, value: object) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("DROP TRIGGER charge_update")
        with suppress(sqlite3.IntegrityError):  # NOT NULL stops one of them here
            raw.execute("UPDATE charge SET purpose = ? WHERE sequence = 3", (value,))
        raw.commit()
    with pytest.raises(LedgerDamaged):
        SQLiteLedger.verify(path)


@pytest.mark.parametrize("gone", range(1, 7))
def test_a_row_that_was_taken_out_is_missed_with_hashes_made_right_or_not(path: Path, gone: int) -> None:
    rows = read_rows(path)
    left = [row for row in rows if row.sequence != gone]
    rewrite(path, left)
    refused(
        path, LedgerDamaged, f"row {gone}" if gone < 6 else "the head beside it has seen 6 charges and the file holds 5"
    )
    renumbered = [row._replace(sequence=number) for number, row in enumerate(left, 1)]
    rewrite(path, resealed(renumbered, rows[0].previous))
    with pytest.raises(LedgerDamaged):
        opened(path)


def test_a_history_rewritten_with_right_hashes_and_totals_is_betrayed_by_its_head(path: Path) -> None:
    rows = read_rows(path)
    rows[0] = rows[0]._replace(what="another")
    rewrite(path, resealed(rows, rows[0].previous))
    refused(path, LedgerDamaged, "row 6 is not the one its head saw")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE contract SET budget = '100/1 epsilon'",
        "UPDATE contract SET subject = 'others'",
        "UPDATE contract SET stated = ''",
        "DELETE FROM contract",
        "INSERT INTO contract SELECT * FROM contract",
        "CREATE TRIGGER t AFTER INSERT ON charge BEGIN DELETE FROM charge; END",
        "CREATE TABLE more (x)",
        "CREATE INDEX charge_block ON charge (block)",
        "PRAGMA application_id = 7",
    ],
)
def test_a_changed_contract_or_table_is_found(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for verb in ("update", "delete"):
            raw.execute(f"DROP TRIGGER contract_{verb}")
        raw.execute(statement)
        for line in SCHEMA[2:4]:
            raw.execute(line)
        raw.commit()
    refused(path, LedgerDamaged, "contract|tables|no ledger")


def test_another_format_is_refused_by_its_number(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {FORMAT + 1}")
    refused(path, LedgerUnavailable, f"has format {FORMAT + 1}, and this tacit reads format {FORMAT}")


# -- bytes that are not what was written


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    with SQLiteLedger.create(tmp_path / "larger.db", Budget.of(1), subject="faults") as ledger:
        for _ in range(150):
            ledger.charge("Laplace(epsilon=1/1000)", Loss.pure(Fraction(1, 1000)))
    return tmp_path / "larger.db"


def test_a_page_of_noise_is_refused_and_half_a_page_is_refused_or_harmless(larger: Path) -> None:
    rng, sound, refusals = random.Random(1), larger.read_bytes(), 0
    with SQLiteLedger.read(larger) as view:
        entries = list(view.entries())
    assert len(sound) >= 12 * 4096
    for page in range(0, len(sound), 4096):
        larger.write_bytes(sound[:page] + rng.randbytes(4096) + sound[page + 4096 :])
        with pytest.raises((LedgerDamaged, LedgerUnavailable)):
            opened(larger)
        at = page + rng.randrange(4096 - 512)
        larger.write_bytes(sound[:at] + rng.randbytes(512) + sound[at + 512 :])
        try:
            with SQLiteLedger.read(larger) as view:
                assert list(view.entries()) == entries  # it hit what SQLite does not use
        except (LedgerDamaged, LedgerUnavailable):
            refusals += 1
    assert refusals > len(sound) // 4096 * 2 // 3


def test_a_flipped_bit_is_refused_or_harmless(larger: Path) -> None:
    rng, sound, refusals = random.Random(2), larger.read_bytes(), 0
    with SQLiteLedger.read(larger) as view:
        entries = list(view.entries())
    for _ in range(100):
        at = rng.randrange(len(sound))
        larger.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << rng.randrange(8)]) + sound[at + 1 :])
        try:
            with SQLiteLedger.read(larger) as view:
                assert list(view.entries()) == entries
        except (LedgerDamaged, LedgerUnavailable):
            refusals += 1
    assert refusals > 50


def test_a_truncated_file_is_refused(larger: Path) -> None:
    sound = larger.read_bytes()
    for size in [0, 1, 100, *range(512, len(sound), 4096 + 512), len(sound) - 1]:
        larger.write_bytes(sound[:size])
        with pytest.raises(LedgerDamaged):
            opened(larger)


@pytest.mark.parametrize("content", [b"", b"budget: 1\n", b"SQLite format 3\0" + bytes(4080)])
def test_another_kind_of_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, LedgerDamaged, "is not what was written")


# -- older copies


def killed(path: Path, acks: Path) -> None:
    """A session that is killed after its last charge, so that its log still holds all of them."""
    code = "import os, sys; from tacit.curator.sqlite_ledger import *; from tacit.privacy.budget import *; " + (
        "l = SQLiteLedger.open(sys.argv[1], subject='faults'); "
        "[l.charge('late', Loss.pure(Fraction(1, 20))) for _ in 'ab']; "
        "os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code, path], cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL


def test_charges_in_the_log_of_a_killed_process_count_and_a_removed_log_is_missed(path: Path, tmp_path: Path) -> None:
    killed(path, tmp_path / "acks")
    aside = tmp_path / "aside"
    aside.mkdir()
    for file in tmp_path.glob("l.db*"):
        shutil.copy(file, aside)
    (tmp_path / "l.db-wal").unlink()
    refused(path, LedgerDamaged, "has seen 8 charges and the file holds 6: an older copy was put back, or its -wal")
    with opened(aside / "l.db") as ledger:
        assert [entry.what for entry in ledger.entries()][-2:] == ["late", "late"]


@pytest.mark.parametrize("with_log", [False, True])
def test_an_older_copy_that_is_put_back_is_missed(path: Path, tmp_path: Path, with_log: bool) -> None:
    older = path.read_bytes()
    if with_log:
        killed(path, tmp_path / "acks")
        log = (tmp_path / "l.db-wal").read_bytes()
    with opened(path) as ledger:
        ledger.charge("later", TENTH)
    path.write_bytes(older)
    if with_log:
        (tmp_path / "l.db-wal").write_bytes(log)
    with pytest.raises(LedgerDamaged, match="older copy was put back"):
        opened(path)


def test_a_head_may_be_behind_or_torn_but_not_missing_or_illegible_or_anothers(path: Path, tmp_path: Path) -> None:
    head = tmp_path / "l.db-head"
    new = head.read_bytes()
    for half in (0, 512):  # a torn write destroys one of two slots
        head.write_bytes(new[:half] + os.urandom(512) + new[half + 512 :])
        opened(path).close()
        assert head.read_bytes()[:512] == new[:512]
    head.write_bytes(bytes(512) + new[512:])
    torn = Head(str(path), 1).read()
    assert torn
    assert torn[1].sequence == 5
    behind = new
    with opened(path) as ledger:
        ledger.charge("a", Loss.pure(Fraction(1, 100)))
        ledger.charge("a", Loss.pure(Fraction(1, 100)))
    head.write_bytes(behind)
    with opened(path) as ledger:
        mark = ledger.head
    read = Head(str(path), 1).read()
    assert read
    assert read[1] == mark
    head.unlink()
    with pytest.raises(LedgerDamaged, match="head file is missing"):
        opened(path)
    assert not head.exists()
    assert SQLiteLedger.verify(path) == mark  # as a backup is verified, which has no head of its own
    for content in (b"", os.urandom(1024), b"x" * 2000):
        head.write_bytes(content)
        refused(path, LedgerDamaged, "head.* cannot be read")
    with SQLiteLedger.create(tmp_path / "other.db", Budget.of(1), subject="others"):
        shutil.copy(tmp_path / "other.db-head", head)
    refused(path, LedgerDamaged, "head beside it belongs to another ledger")


def test_an_older_copy_without_a_head_is_refused_also_where_it_never_held_a_charge(path: Path, tmp_path: Path) -> None:
    older = path.read_bytes()
    for file in tmp_path.glob("l.db*"):
        file.unlink()  # as a careless hand clears the place before it restores
    path.write_bytes(older)
    with pytest.raises(LedgerDamaged, match="put it back"):
        opened(path)
    create(tmp_path / "new.db").close()
    (tmp_path / "new.db-head").unlink()
    with pytest.raises(LedgerDamaged, match="put it back"):
        opened(tmp_path / "new.db")


def test_a_ledger_whose_charges_all_lie_in_its_log_is_no_fresh_budget_without_it(tmp_path: Path) -> None:
    code = (
        "import os, sys; from tacit.curator.sqlite_ledger import *; from tacit.privacy.budget import *; "
        "l = SQLiteLedger.create(sys.argv[1], Budget.of(1), subject='faults'); "
        "[l.charge('all', Loss.pure(Fraction(1, 100))) for _ in range(100)]; os.kill(os.getpid(), 9)"
    )
    path, copied = tmp_path / "l.db", tmp_path / "copied"
    subprocess.run([sys.executable, "-c", code, path], cwd=Path(__file__).parent.parent, check=False)
    copied.mkdir()
    shutil.copy(path, copied)  # alone, as one sees its name
    with pytest.raises(LedgerDamaged, match="head file is missing"):
        opened(copied / "l.db")
    for gone, word in (("-wal", "older copy"), ("-head", "head file is missing")):
        Path(f"{path}{gone}").unlink()
        with pytest.raises(LedgerDamaged, match=word):
            opened(path)


def test_a_ledger_that_was_made_and_never_opened_has_its_head(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    contract = Contract("faults", Budget.of(1), instant(0))
    make(str(path), contract, 1)
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-head"]
    assert Head(str(path), 1).read() == (contract.hash, (0, contract.hash))
    with opened(path) as ledger:
        ledger.charge("a", TENTH)


def test_a_head_that_a_crash_left_before_its_ledger_had_a_name_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    create(path).close()
    path.unlink()
    with create(path) as ledger:  # of no charge: nothing is forgotten
        ledger.charge("a", TENTH)
    path.unlink()
    with pytest.raises(LedgerUnavailable, match=r"l\.db-head' is there already"):
        create(path)


def test_the_first_charge_is_in_the_head_for_good(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a head of no charge that lies alone was never told of one, and a power cut is no way to a fresh budget."""
    synced: list[str] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.readlink(f"/proc/self/fd/{file}")), sync(file))[1])
    ledger = create(path.parent / "new.db")
    synced.clear()
    ledger.charge("a", TENTH)
    assert synced == [f"{path.parent}/new.db-head"]
    ledger.charge("a", TENTH)
    assert len(synced) == 1
    ledger.close()


def test_a_writer_that_was_held_up_does_not_take_the_head_back(path: Path, tmp_path: Path) -> None:
    """Stopped between its commit and the head, by SIGSTOP, a paused container or a full machine."""
    code = (
        "import os, signal, sys; from tacit.curator.sqlite_ledger import *; from tacit.curator.head import Head; "
        "from tacit.privacy.budget import *\n"
        "write = Head.write\n"
        "def late(*given): os.kill(os.getpid(), signal.SIGSTOP); write(*given)\n"
        "l = SQLiteLedger.open(sys.argv[1], subject='faults'); Head.write = late\n"
        "l.charge('slow', Loss.pure(Fraction(1, 1000))); os._exit(0)\n"
    )
    slow = []
    for _ in "ab":
        slow.append(subprocess.Popen([sys.executable, "-c", code, path], cwd=Path(__file__).parent.parent))
        os.waitid(os.P_PID, slow[-1].pid, os.WSTOPPED | os.WNOWAIT)
    with opened(path) as ledger:
        ledger.charge("an older copy is taken here", Loss.pure(Fraction(1, 1000)))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "older")) as target:
            source.backup(target)
        for _ in range(10):
            ledger.charge("a", Loss.pure(Fraction(1, 1000)))
        for each in slow:
            each.send_signal(signal.SIGCONT)
            assert each.wait(20) == 0
        read = Head(str(path), 1).read()
        assert read
        assert read[1] == ledger.head
    os.replace(tmp_path / "older", path)
    with pytest.raises(LedgerDamaged, match="older copy was put back"):
        opened(path)


def test_a_head_of_another_history_stops_the_ledger(path: Path, tmp_path: Path) -> None:
    """As two hosts would write it, each with a log of its own."""
    with create(tmp_path / "other.db") as other, opened(path) as ledger:
        for _ in range(7):
            other.charge("a", Loss.pure(Fraction(1, 100)))
        shutil.copyfile(tmp_path / "other.db-head", f"{path}-head")  # in place
        with pytest.raises(LedgerDamaged, match=r"another history.*Whether the charge stands"):
            ledger.charge("a", Loss.pure(Fraction(1, 100)))


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", "-head", "-making", "-WAL"])
def test_a_name_that_belongs_beside_another_ledger_is_refused(tmp_path: Path, end: str) -> None:
    for act in (create, opened, SQLiteLedger.read, SQLiteLedger.verify):
        with pytest.raises(InvalidParameter, match="belongs to a file beside a ledger"):
            act(tmp_path / f"l.db{end}")
    assert list(tmp_path.iterdir()) == []


def test_making_and_serving_a_ledger_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    names = ("l", "l-new", "l-old", "l-new-new", "l.bak")
    for name in reversed(names):
        with create(tmp_path / name) as ledger:
            ledger.charge(name, TENTH)
    for name in names:
        with opened(tmp_path / name) as ledger:
            assert [entry.what for entry in ledger.entries()] == [name]


def test_a_file_that_is_mounted_alone_is_refused_for_its_log_would_lie_elsewhere(path: Path, tmp_path: Path) -> None:
    mounted = tmp_path / "container" / "l.db"
    mounted.parent.mkdir()
    for end in ("", "-head"):
        shutil.copy(f"{path}{end}", f"{mounted}{end}")
        if subprocess.run(["mount", "--bind", f"{path}{end}", f"{mounted}{end}"], capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
    try:
        with pytest.raises(LedgerUnavailable, match="is mounted by itself"):
            opened(mounted)
    finally:
        for end in ("", "-head"):
            subprocess.run(["umount", f"{mounted}{end}"], check=True)
    opened(path).close()


def test_a_file_system_of_the_network_is_refused_by_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(tmp_path).replace(" ", "\\040")
    for kind, point, right in (("nfs4", here, False), ("nfs4", here + "x", True), ("ext4", here, True)):
        lines = f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {point} rw shared:1 - {kind} host:/ rw\n"
        (tmp_path / "mounts").write_text(lines)
        monkeypatch.setattr("tacit.curator.place._MOUNTS", str(tmp_path / "mounts"))
        if right:
            opened(path).close()
            continue
        for act in (opened, lambda _: create(tmp_path / "new.db")):
            with pytest.raises(LedgerUnavailable, match=r"file system of the network \(nfs4\)"):
                act(path)
        assert SQLiteLedger.verify(path).sequence == 6


def test_a_backup_holds_every_charge_and_one_that_lacks_some_is_refused_in_its_place(
    path: Path, tmp_path: Path
) -> None:
    with opened(path) as ledger:
        ledger.charge("in the log", Loss.pure(Fraction(1, 100)))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup")) as target:
            source.backup(target)
        entries = list(ledger.entries())
    with SQLiteLedger.read(tmp_path / "backup") as view:
        assert list(view.entries()) == entries
    os.replace(tmp_path / "backup", path)  # nothing was charged since: nothing is lost
    with opened(path) as ledger:
        ledger.charge("after", Loss.pure(Fraction(1, 100)))


def test_a_page_that_goes_back_in_time_brings_no_budget_back(tmp_path: Path) -> None:
    """A lost write, or a careless copy: wherever it strikes, what was charged in this process stays charged."""
    path = tmp_path / "l.db"
    ledger = create(path)
    block, small = ledger.block("block", Budget.of("0.1")), Loss.pure(Fraction(1, 10**6))
    for _ in range(20):
        ledger.charge("a", small)
    for _ in range(60):
        block.charge("b", small)
    ledger.close()
    older = path.read_bytes()
    ledger = opened(path)
    for _ in range(80):
        ledger.charge("a", Loss.pure(Fraction(1, 100)))
    block = ledger.block("second", Budget.of("0.01"))
    for _ in range(60):
        block.charge("b", small)
    spent = ledger.spent
    ledger.close()
    newer, head = path.read_bytes(), Path(f"{path}-head").read_bytes()
    pages = [at for at in range(4096, len(older), 4096) if older[at : at + 4096] != newer[at : at + 4096]]
    assert len(pages) > 1
    for at in pages:
        path.write_bytes(newer)
        Path(f"{path}-head").write_bytes(head)
        with opened(path) as ledger, opened(path) as other:
            assert ledger.spent == spent
            (tmp_path / "page").write_bytes(older[at : at + 4096])
            subprocess.run(
                ["dd", f"if={tmp_path}/page", f"of={path}", "bs=4096", f"seek={at // 4096}", "conv=notrunc"],
                check=True,
                capture_output=True,
            )
            with suppress(LedgerDamaged, LedgerUnavailable):
                other.charge("c", small)  # so that what the ledger has read of the file is read again
                assert ledger.spent == spent + small.epsilon  # type: ignore[operator]
                with pytest.raises(BudgetExceeded):
                    ledger.charge("stolen", Loss.pure(1 - spent))


def test_what_another_process_charges_is_checked_before_it_is_added_to(path: Path) -> None:
    """A row that no tacit wrote, put in while the ledger serves."""
    ledger, last = opened(path), read_rows(path)[-1]
    forged = last._replace(sequence=7, previous=last.hash, spent="1/1000").sealed()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(INSERT, forged)
        raw.commit()
    with pytest.raises(LedgerDamaged, match="row 7: its running total is not the sum"):
        ledger.charge("a", Loss.pure(Fraction(1, 1000)))
    ledger.close()


def test_a_journal_beside_the_ledger_is_not_played_into_it(path: Path, tmp_path: Path) -> None:
    (tmp_path / "l.db-journal").write_bytes(b"")
    refused(path, LedgerDamaged, "-journal")


# -- files that change under a ledger that serves


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-head"])
@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_ledger_whose_files_move_while_it_serves_charges_nothing_more(path: Path, end: str, how: str) -> None:
    ledger, file = opened(path), Path(str(path) + end)
    ledger.charge("a", Loss.pure(Fraction(1, 100)))
    if how == "replaced":
        subprocess.run(["cp", file, f"{file}.copy"], check=True)  # not in this process, whose locks it would drop
    if how == "deleted":
        file.unlink()
    else:
        file.rename(f"{file}.aside")
    if how == "replaced":
        Path(f"{file}.copy").rename(file)
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match=r"moved, replaced or deleted|serves no more"):
            ledger.charge("b", Loss.pure(Fraction(1, 100)))
    with pytest.raises(LedgerUnavailable):
        _ = ledger.left
    assert file.exists() == (how == "replaced")


def test_a_ledger_that_is_moved_during_a_commit_does_not_acknowledge_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(path)
    commit = ledger._book.commit

    def moved_first(connection: sqlite3.Connection, row: Row) -> None:
        path.rename(f"{path}.aside")
        commit(connection, row)

    monkeypatch.setattr(ledger._book, "commit", moved_first)
    with pytest.raises(LedgerUnavailable, match=r"moved.*Whether the charge stands, its entries show\."):
        ledger.charge("a", Loss.pure(Fraction(1, 100)))


def test_an_older_backup_that_is_restored_under_a_ledger_that_serves_is_noticed(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "older")) as target:
        source.backup(target)
    ledger = opened(path)
    ledger.charge("later", Loss.pure(Fraction(1, 100)))
    with closing(sqlite3.connect(tmp_path / "older")) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    with pytest.raises(LedgerDamaged, match="row 7 is gone, and it had been charged"):
        ledger.charge("again", Loss.pure(Fraction(1, 100)))
    with pytest.raises(LedgerUnavailable, match="serves no more"):
        ledger.charge("again", Loss.pure(Fraction(1, 100)))


@pytest.mark.parametrize("charges", [1, 100])
def test_a_ledger_that_is_overwritten_in_place_is_refused_or_whole_again(
    path: Path, tmp_path: Path, charges: int
) -> None:
    """The charge that comes next writes anew the page on which it stands, which may be all that was overwritten."""
    (tmp_path / "older").write_bytes(path.read_bytes())
    with opened(path) as ledger:
        for _ in range(charges):
            ledger.charge("a", Loss.pure(Fraction(1, 1000)))
    ledger, kept = opened(path), charges
    subprocess.run(["cp", "--", tmp_path / "older", path], check=True)
    with suppress(LedgerDamaged, LedgerUnavailable):
        ledger.charge("b", Loss.pure(Fraction(1, 100)))
        kept += 1
    ledger.close()
    try:
        with opened(path) as again:
            assert len(list(again.entries())) == 6 + kept
            assert charges == 1
    except LedgerDamaged:
        assert charges == 100


# -- a machine that does not answer


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB of its own."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path) -> Path:
    with suppress(OSError), open(place / "filler", "wb", buffering=0) as filler:
        while filler.write(b"x" * 4096):
            pass
    return place / "filler"


def test_a_full_disk_stops_the_ledger_and_space_brings_it_back(small_disk: Path) -> None:
    path = small_disk / "l.db"
    ledger = SQLiteLedger.create(path, Budget.of(1), subject="faults")
    ledger.charge("before", TENTH)
    filler, kept, refusal = fill(small_disk), 1, ""
    while not refusal:
        try:
            ledger.charge("filling", Loss.pure(Fraction(1, 1000)))
            kept += 1
        except LedgerUnavailable as error:
            refusal = str(error)
    assert "full" in refusal
    with pytest.raises(LedgerUnavailable, match="serves no more"):
        ledger.charge("refused", TENTH)
    filler.unlink()
    with opened(path) as again:
        assert len(list(again.entries())) in (kept, kept + 1)  # the one that failed may stand
        again.charge("after", TENTH)


@pytest.mark.parametrize("action", ["create", "open"])
def test_a_disk_that_is_full_from_the_start_leaves_nothing_half_made(small_disk: Path, action: str) -> None:
    path = small_disk / "l.db"
    if action == "open":
        SQLiteLedger.create(path, Budget.of(1), subject="faults").close()
    filler = fill(small_disk)
    with pytest.raises(LedgerUnavailable):
        (opened if action == "open" else create)(path)
    filler.unlink()
    with (opened if action == "open" else create)(path) as ledger:
        ledger.charge("after", TENTH)


def create(path: Path) -> SQLiteLedger:
    return SQLiteLedger.create(path, Budget.of(1), subject="faults")


@pytest.mark.parametrize("limit", ["-f", "-n"])
def test_limits_on_file_sizes_and_open_files_refuse_and_lose_nothing(tmp_path: Path, limit: str) -> None:
    outcomes = set()
    for most in (1, 4, 16, 24, 32, 40, 60) if limit == "-f" else range(4, 12):
        here = tmp_path / str(most)
        here.mkdir()
        create(here / "l.db").close()
        command = [
            "bash",
            "-c",
            f'ulimit {limit} {most}; exec "$0" "$@"',
            *SESSION,
            "serve",
            here / "l.db",
            here / "acks",
        ]
        subprocess.run(command, check=False, capture_output=True)
        told = (here / "acks").read_text().splitlines() if (here / "acks").exists() else []
        words = [line.split()[0] for line in told if not line.startswith("done")]
        assert words == sorted(words, reverse=True)
        outcomes |= set(words)
        kept = [line.split()[1] for line in told if line.startswith("kept")]
        with opened(here / "l.db") as ledger:
            assert [entry.what for entry in ledger.entries()][: len(kept)] == kept
            ledger.charge("after", TENTH)
    assert outcomes == {"kept", "failed"}


def test_a_ledger_that_may_not_be_written_is_refused_at_once_and_can_be_read(path: Path) -> None:
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        with pytest.raises(LedgerUnavailable, match="readonly"):
            opened(path)
        with SQLiteLedger.read(path) as view:
            assert len(list(view.entries())) == 6
    finally:
        subprocess.run(["chattr", "-i", path], check=True)
    opened(path).close()


def test_somebody_without_the_right_to_read_it_is_refused(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from tacit.curator.sqlite_ledger import SQLiteLedger as L\n"
        "from tacit.errors import LedgerUnavailable\nos.chdir(os.path.dirname(sys.argv[2]))\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "for act in (lambda path: L.open(path, subject='faults'), L.read):\n"
        "  try: act(sys.argv[2])\n  except LedgerUnavailable as e: print('refused', e)\n"
    )
    root = str(Path(__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code, root, path], capture_output=True, text=True, check=True)
    assert done.stdout.count("refused") == 2, done.stdout


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_a_ledger_on_a_read_only_file_system_is_read_whole_and_not_charged(
    small_disk: Path, state: str, tmp_path: Path
) -> None:
    path = small_disk / "l.db"
    with create(path) as ledger:
        ledger.charge("old", TENTH)
    if state == "killed":
        killed(path, tmp_path / "acks")
        (small_disk / "l.db-shm").unlink()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with SQLiteLedger.read(path) as view:
        assert [entry.what for entry in view.entries()] == ["old", *(["late"] * 2 if state == "killed" else [])]
        with pytest.raises(LedgerUnavailable, match="reading only"):
            view.charge("a", TENTH)
    with pytest.raises(LedgerUnavailable):
        opened(path)


def test_a_stopped_process_that_holds_the_lock_delays_others_only_until_their_timeout(path: Path) -> None:
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); "
    code += "print('held', flush=True); sys.stdin.read()"
    with opened(path, timeout=0.2) as ledger:
        holder = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout
        assert holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(LedgerUnavailable, match="held by another process"):
            ledger.charge("a", TENTH)
        assert time.monotonic() - start < 5
        holder.kill()
        holder.communicate()
        ledger.charge("a", TENTH)


# -- processes that race


def test_eight_processes_that_race_for_the_last_tenth_share_it_exactly(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with create(path) as ledger:
        ledger.charge("nine tenths", Loss.pure(Fraction(9, 10)))
    runs = [subprocess.Popen([*SESSION, "race", path, tmp_path / f"acks{number}"]) for number in range(8)]
    assert [run.wait(60) for run in runs] == [0] * 8
    words = [line.split()[:2] for number in range(8) for line in (tmp_path / f"acks{number}").read_text().splitlines()]
    kept = {what for word, what in words if word == "kept"}
    assert len([word for word, _ in words if word == "kept"]) == 20  # of 80 that asked for a 200th each
    assert len([word for word, _ in words if word == "refused"]) == 60
    with opened(path) as ledger:
        assert ledger.left == 0
        assert {entry.what for entry in ledger.entries()} == kept | {"nine tenths"}


def test_eight_processes_that_create_one_ledger_make_one(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([*SESSION, "create", tmp_path / "l.db", tmp_path / f"acks{number}"]) for number in range(8)
    ]
    assert [run.wait(60) for run in runs] == [0] * 8
    told = [(tmp_path / f"acks{number}").read_text().splitlines()[0].split()[:2] for number in range(8)]
    assert sorted(told) == [["done", "create"]] + [["failed", "create"]] * 7
    with opened(tmp_path / "l.db") as ledger:
        assert [entry.what for entry in ledger.entries()] == ["first"]


_: Callable[..., object] = create
