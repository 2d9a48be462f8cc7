"""Every ledger keeps the same promises; the one in a file keeps them past the end of its process."""

from __future__ import annotations

import copy
import os
import pickle
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.curator import book as books
from tacit.curator import ledger as ledgers
from tacit.curator.chain import Mark, Row, ratio
from tacit.curator.ledger import MemoryLedger
from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.errors import (
    BudgetExceeded,
    InvalidBudget,
    InvalidParameter,
    LedgerUnavailable,
    NoSuchGuarantee,
)
from tacit.privacy.budget import Budget, Currency, Loss

AnyLedger = MemoryLedger | SQLiteLedger
Make = Callable[..., AnyLedger]
TENTH = Loss.pure(Fraction(1, 10))


def pure(numerator: int, denominator: int = 1) -> Loss:
    return Loss.pure(Fraction(numerator, denominator))


def opened(path: Path | str, *, subject: str = "people", timeout: float = 10) -> SQLiteLedger:
    return SQLiteLedger.open(path, subject=subject, timeout=timeout)


@pytest.fixture(params=["in memory", "in a file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[SQLiteLedger] = []

    def in_a_file(budget: Budget, **signed: str) -> AnyLedger:
        made.append(SQLiteLedger.create(tmp_path / f"{len(made)}.db", budget, subject="people", **signed))
        return made[-1]

    yield MemoryLedger if request.param == "in memory" else in_a_file
    for ledger in made:
        ledger.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SQLiteLedger.create(tmp_path / "l.db", Budget.of(1), subject="people").close()
    return tmp_path / "l.db"


# -- what every ledger promises


def test_ten_tenths_make_one_and_an_eleventh_is_refused(make: Make) -> None:
    ledger = make(Budget.of(1))
    for _ in range(10):
        ledger.charge("Laplace(epsilon=1/10)", TENTH)
    assert (ledger.spent, ledger.left) == (1, 0)
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge("Laplace(epsilon=1/10)", TENTH)
    assert str(refusal.value) == "Laplace(epsilon=1/10) costs 0.1; 0 is left. Nothing was drawn."


def test_a_refused_charge_leaves_no_trace_and_a_smaller_one_still_fits(make: Make) -> None:
    ledger = make(Budget.of(1))
    ledger.charge("a", pure(3, 4))
    before = list(ledger.entries())
    with pytest.raises(
        BudgetExceeded, match=r"^Laplace\(epsilon=1/2\) costs 0\.5; 0\.25 is left\. Nothing was drawn\.$"
    ):
        ledger.charge("Laplace(epsilon=1/2)", pure(1, 2))
    assert list(ledger.entries()) == before
    assert ledger.left == Fraction(1, 4)
    ledger.charge("a", pure(1, 4))


def test_no_tolerance_is_given_and_the_message_says_by_how_little_it_failed(make: Make) -> None:
    ledger = make(Budget.of(1))
    ledger.charge("a", pure(2, 3))
    with pytest.raises(BudgetExceeded, match=r"0\.3333333333 is left, 1e-30 too little"):
        ledger.charge("a", Loss.pure(Fraction(1, 3) + Fraction(1, 10**30)))
    ledger.charge("a", pure(1, 3))
    assert ledger.left == 0


@pytest.mark.parametrize("amount", [Fraction(0), Fraction(-1, 10), 0.1, float("nan"), float("inf"), 1])
def test_a_loss_that_is_no_positive_fraction_is_refused(make: Make, amount: Fraction) -> None:
    ledger = make(Budget.of(1))
    with pytest.raises(InvalidParameter, match="positive exact fraction"):
        ledger.charge("a", Loss(amount, None))
    assert list(ledger.entries()) == []


def test_an_absurd_price_is_refused_and_not_printed_in_full(make: Make) -> None:
    ledger = make(Budget.of(1))
    with pytest.raises(BudgetExceeded, match=r"costs more than 1e\+30; 1 is left"):
        ledger.charge("a", pure(10**9000))
    ledger.charge("a", Loss.pure(Fraction(1, 10**9000)))
    assert ledger.spent == Fraction(1, 10**40)


def test_a_block_is_reopened_with_what_is_left_in_it_and_costs_nothing(make: Make) -> None:
    ledger = make(Budget.of(1))
    block = ledger.block("session", Budget.of("1/2"))
    inner = block.block("answers", Budget.of("1/4"))
    inner.charge("a", pure(1, 8))
    numbers = {entry.what: entry.sequence for entry in ledger.entries()}
    written = list(ledger.entries())
    again = ledger.reopened(numbers["session"]).reopened(numbers["answers"])
    assert list(ledger.entries()) == written
    assert (again.budget, again.left) == (Budget.of("1/4"), Fraction(1, 8))
    again.charge("b", pure(1, 8))
    assert inner.left == again.left == 0
    for other in (inner, again):
        with pytest.raises(BudgetExceeded):
            other.charge("c", pure(1, 1000))
    block.charge("d", pure(1, 4))
    assert ledger.reopened(numbers["session"]).left == 0
    assert ledger.left == Fraction(1, 2)
    assert [entry.block for entry in ledger.entries()] == [None, 1, 2, 2, 1]


def test_what_reserved_no_block_here_is_not_reopened(make: Make) -> None:
    ledger = make(Budget.of(1))
    block = ledger.block("session", Budget.of("1/2"))
    inner = block.block("answers", Budget.of("1/4"))
    ledger.charge("a", pure(1, 8))
    numbers = {entry.what: entry.sequence for entry in ledger.entries()}
    for where, number in ((ledger, numbers["a"]), (ledger, numbers["answers"]), (inner, numbers["session"])):
        with pytest.raises(InvalidParameter, match=r"reserved no block of this ledger\. Nothing was spent"):
            where.reopened(number)
    for nothing in (0, -1, 99, None, "1", True, 1.0):  # the last two equal the number of a block, and are none
        with pytest.raises(InvalidParameter):
            ledger.reopened(nothing)  # type: ignore[arg-type]
    assert ledger.left == Fraction(3, 8)


def test_a_block_of_another_currency_is_reopened_in_its_own(make: Make) -> None:
    ledger = make(Budget.of(1, "1e-6"))
    ledger.block("pure", Budget.of("0.1")).charge("a", pure(1, 20))
    again = ledger.reopened(1)
    assert again.budget == Budget.of("0.1")
    assert again.left == Fraction(1, 20)


def test_a_loss_without_a_bound_in_the_ledgers_currency_is_refused(make: Make) -> None:
    with pytest.raises(NoSuchGuarantee):
        make(Budget.of(1)).charge("Gaussian", Loss.concentrated(Fraction(1, 100)))


def test_a_block_is_charged_whole_at_once_and_gives_nothing_back(make: Make) -> None:
    ledger = make(Budget.of(1))
    block = ledger.block("sparse", Budget.of("0.6"))
    assert (ledger.left, block.left) == (Fraction(2, 5), Fraction(3, 5))
    block.charge("a", TENTH)
    assert (ledger.left, block.left, block.spent) == (Fraction(2, 5), Fraction(1, 2), Fraction(1, 10))
    with pytest.raises(BudgetExceeded, match=r"costs 0\.6; 0\.5 is left"):
        block.charge("b", pure(3, 5))
    with pytest.raises(BudgetExceeded):
        ledger.block("second", Budget.of("0.5"))
    del block
    assert ledger.left == Fraction(2, 5)


def test_blocks_nest_and_each_bounds_those_within(make: Make) -> None:
    ledger = make(Budget.of(1))
    blocks = [ledger]
    for depth in range(1, 6):
        blocks.append(blocks[-1].block(f"depth {depth}", Budget.of(Fraction(1, 2**depth))))
    blocks[-1].charge("leaf", pure(1, 32))
    with pytest.raises(BudgetExceeded):
        blocks[-1].charge("leaf", pure(1, 10**9))
    assert [block.left for block in blocks] == [Fraction(1, 2 ** (depth + 1)) for depth in range(5)] + [0]
    assert [entry.block for entry in ledger.entries()] == [None, 1, 2, 3, 4, 5]
    assert [entry.sequence for entry in blocks[3].entries()] == [4, 5, 6]
    assert [entry.reserved and entry.reserved.amount for entry in blocks[4].entries()] == [Fraction(1, 32), None]


def test_a_block_in_epsilon_costs_a_rho_ledger_its_price_and_the_reverse_is_refused(make: Make) -> None:
    ledger = make(Budget.of(1, "1e-9"))
    block = ledger.block("pure", Budget.of("0.1"))
    assert ledger.spent == ledger.budget.price(pure(1, 10)) <= Fraction(1, 200)
    block.charge("Laplace", pure(1, 20))
    first, second = ledger.entries()
    assert (first.currency, second.currency) == (Currency.RHO, Currency.EPSILON)
    assert first.reserved == Budget.of("0.1")
    with pytest.raises(NoSuchGuarantee):
        block.block("gaussian", Budget(Fraction(1, 1000), Currency.RHO))
    assert len(list(ledger.entries())) == 2


def test_entries_say_what_when_by_whom_and_why(make: Make) -> None:
    ledger = make(Budget.of(1), by="ana", purpose="annual table")
    ledger.charge("Laplace(epsilon=1/10)", TENTH)
    ledger.block("b", Budget.of("0.5")).signed(by="bob", purpose="").charge("c", TENTH)
    first, block, inner = ledger.entries()
    assert (first.what, first.amount, first.by, first.purpose) == (
        "Laplace(epsilon=1/10)", Fraction(1, 10), "ana", "annual table")  # fmt: skip
    assert (block.by, inner.by, inner.purpose, inner.block) == ("ana", "bob", "", 2)
    assert first.when.endswith("+00:00")
    assert first.when <= block.when <= inner.when


def test_a_line_in_the_ledger_stays_one_line_and_shows_where_it_was_cut(make: Make) -> None:
    ledger = make(Budget.of(1), by="a\nb", purpose="p" * 5000)
    ledger.charge("x\0\r\u202e\ud800" + "é" * 3, TENTH)
    ledger.charge("\x1b" * 10**6, TENTH)
    entry, long = ledger.entries()
    assert entry.what == r"x\x00\r\u202e\ud800ééé"
    assert entry.by == r"a\nb"
    assert (len(entry.purpose), entry.purpose[-1]) == (240, "…")
    assert (len(long.what), long.what[-1]) == (240, "…")
    assert (entry.what + entry.by + entry.purpose + long.what).isprintable()
    with pytest.raises(InvalidParameter):
        ledger.charge(b"bytes", TENTH)  # type: ignore[arg-type]


def test_the_clock_decides_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(Budget.of(1))
    hands = iter([2**62, 0, -(2**60), 10**18])
    monkeypatch.setattr(ledgers, "clock", lambda: next(hands))
    for name in "abcd":
        ledger.charge(name, pure(1, 4))
    assert [entry.what for entry in ledger.entries()] == list("abcd")
    assert [entry.when[:4] for entry in ledger.entries()] == ["2116", "1970", "1933", "2001"]
    monkeypatch.setattr(ledgers, "clock", lambda: 2**62)
    with pytest.raises(BudgetExceeded):
        ledger.charge("after a century", pure(1, 100))


def test_denominators_stay_bounded_and_roundings_only_ever_cost_more(make: Make) -> None:
    ledger = make(Budget.of(1))
    asked = Fraction(0)
    for odd in range(10**9 + 1, 10**9 + 801, 2):
        ledger.charge("a", pure(1, odd))
        asked += Fraction(1, odd)
    recorded = [entry.amount for entry in ledger.entries()]
    rounded = sum(amount.denominator.bit_length() > 31 for amount in recorded)
    assert sum(recorded) == ledger.spent
    assert asked < ledger.spent < asked + 400 * Fraction(1, 10**40)
    assert 0 < rounded < 300
    assert ledger.spent.denominator.bit_length() < 4096 + 140


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.fractions(Fraction(1, 60), Fraction(1, 3), max_denominator=60)),
        max_size=30,
    )
)
def test_both_ledgers_agree_with_plain_sums(tmp_path: Path, acts: list[tuple[int, bool, Fraction]]) -> None:
    path = tmp_path / str(time.monotonic_ns())
    with SQLiteLedger.create(path, Budget.of(1), subject="people") as file:
        books: list[list[AnyLedger]] = [[MemoryLedger(Budget.of(1))], [file]]
        sums, limits = [Fraction(0)], [Fraction(1)]
        for target, reserve, amount in acts:
            at = target % len(sums)
            fits = sums[at] + amount <= limits[at]
            for book in books:
                try:
                    if reserve:
                        book.append(book[at].block("b", Budget.of(amount)))
                    else:
                        book[at].charge("c", Loss.pure(amount))
                    assert fits
                except BudgetExceeded:
                    assert not fits
            if fits:
                sums[at] += amount
                if reserve:
                    sums.append(Fraction(0))
                    limits.append(amount)
        for book in books:
            assert [(ledger.spent, ledger.left) for ledger in book] == [
                (spent, limit - spent) for spent, limit in zip(sums, limits, strict=True)
            ]
        memory, on_disk = ([(e.sequence, e.block, e.amount, e.reserved) for e in book[0].entries()] for book in books)
        assert memory == on_disk


def test_threads_share_a_budget_exactly(make: Make) -> None:
    ledger = make(Budget.of(1))
    block = ledger.block("shared", Budget.of("0.5"))
    taken: list[str] = []

    def take() -> None:
        for turn in range(25):
            try:
                (ledger if turn % 2 else block).charge("one", pure(1, 100))
                taken.append("one")
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 100
    assert (ledger.left, block.left) == (0, 0)
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, 102))


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_cannot_be_copied(make: Make, clone: Callable[[object], object]) -> None:
    with pytest.raises(InvalidParameter, match="cannot be copied"):
        clone(make(Budget.of(1)))


def test_a_budget_too_long_to_write_down_is_refused(make: Make) -> None:
    with pytest.raises(InvalidBudget, match="4096 bits"):
        make(Budget(Fraction(1, 3**3000), Currency.EPSILON))
    ledger = make(Budget.of(1))
    with pytest.raises(InvalidBudget, match="4096 bits"):
        ledger.block("b", Budget(Fraction(1, 3**3000), Currency.EPSILON))
    assert ledger.left == 1


# -- in memory


def test_a_charge_in_memory_takes_microseconds() -> None:
    ledger, loss, best = MemoryLedger(Budget.of(1)), pure(1, 10**7), 1.0
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            ledger.charge("Laplace(epsilon=1/10000000)", loss)
        best = min(best, (time.perf_counter() - start) / 500)
    assert best < 6e-6  # 2 on the slowest machine tried


# -- in a file


def test_only_create_makes_a_ledger_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    for act in (opened, SQLiteLedger.read, SQLiteLedger.verify):
        with pytest.raises(LedgerUnavailable, match="only `create` makes one"):
            act(path)
    assert list(tmp_path.iterdir()) == []
    SQLiteLedger.create(path, Budget.of(1), subject="people").close()
    with pytest.raises(LedgerUnavailable, match="is there already"):
        SQLiteLedger.create(path, Budget.of(100), subject="people")
    with opened(path) as ledger:
        ledger.charge("a", TENTH)
    path.unlink()  # its head remains, so the budget is not had again by deleting the file
    with pytest.raises(LedgerUnavailable, match="is there already"):
        SQLiteLedger.create(path, Budget.of(1), subject="people")
    with pytest.raises(LedgerUnavailable):
        SQLiteLedger.create(tmp_path / "no" / "l.db", Budget.of(1), subject="people")


@pytest.mark.parametrize("subject", ["", "a\nb", "x" * 201, 7])
def test_a_subject_is_one_short_line(tmp_path: Path, subject: str) -> None:
    with pytest.raises(InvalidParameter, match="subject"):
        SQLiteLedger.create(tmp_path / "l.db", Budget.of(1), subject=subject)


def test_a_ledger_is_not_lent_to_another_subject(path: Path) -> None:
    with pytest.raises(InvalidParameter, match="keeps the budget of 'people', not of 'other people'"):
        SQLiteLedger.open(path, subject="other people")
    with SQLiteLedger.open(path, subject="people") as ledger:
        assert ledger.subject == "people"


def test_a_budget_outlives_its_process_and_is_never_reset(tmp_path: Path) -> None:
    path, budget = tmp_path / "l.db", Budget.of(2, "1e-9")
    with SQLiteLedger.create(path, budget, subject="people", by="ana") as ledger:
        ledger.charge("a", Loss.concentrated(Fraction(1, 100)))
        ledger.block("never finished", Budget.of("0.1")).charge("b", TENTH)
        spent, entries = ledger.spent, list(ledger.entries())
    for _ in range(3):
        with opened(path) as ledger:
            assert (ledger.budget, ledger.budget.stated) == (budget, budget.stated)
            assert (ledger.spent, list(ledger.entries())) == (spent, entries)
    with pytest.raises(LedgerUnavailable, match="was closed"):
        ledger.charge("c", TENTH)


def test_a_path_is_resolved_once_and_links_are_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("l.db") as ledger:
        monkeypatch.chdir("/")
        ledger.charge("a", TENTH)
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    with opened(tmp_path / "folder" / "l.db") as ledger:
        assert ledger.spent == Fraction(1, 10)
    (tmp_path / "soft").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name, word in (("soft", "symbolic link"), ("pipe", "not a plain file"), ("folder", "symbolic"), (".", "plain")):
        with pytest.raises(LedgerUnavailable, match=word):
            opened(tmp_path / name)
    os.link(path, tmp_path / "hard")
    with pytest.raises(LedgerUnavailable, match="2 names"):
        opened(path)
    for bad in ("", "a\0b", f"{tmp_path}/"):
        with pytest.raises(InvalidParameter, match="must name a file"):
            opened(bad)


def test_odd_names_of_files_work(tmp_path: Path) -> None:
    for name in ("a b?mode=memory#%41", "naïve", os.fsdecode(b"\xff\xfe")):
        with SQLiteLedger.create(tmp_path / name, Budget.of(1), subject="people") as ledger:
            ledger.charge("a", TENTH)
        assert SQLiteLedger.verify(tmp_path / name).sequence == 1


def test_its_files_are_its_owners_alone(path: Path) -> None:
    with opened(path):
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["l.db", "l.db-wal", "l.db-shm", "l.db-head"], 0o600)


def test_a_ledger_that_is_read_shows_what_another_charges_and_charges_nothing(path: Path) -> None:
    with opened(path) as ledger, SQLiteLedger.read(path) as view:
        ledger.charge("a", TENTH)
        assert (view.left, view.budget, view.subject) == (ledger.left, ledger.budget, "people")
        assert list(view.entries()) == list(ledger.entries())
        with pytest.raises(LedgerUnavailable, match="reading only"):
            view.charge("b", TENTH)
        assert SQLiteLedger.verify(path) == ledger.head
        assert view.left == Fraction(9, 10)


def test_rows_cannot_be_changed_by_accident(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge("a", TENTH)
    with closing(sqlite3.connect(path)) as raw:
        for statement in ("UPDATE charge SET amount = '1/100'", "DELETE FROM charge", "UPDATE contract SET budget = 9"):
            with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
                raw.execute(statement)


def test_a_block_outlives_its_process_and_its_file_stays_whole(path: Path) -> None:
    with closing(opened(path)) as ledger:
        ledger.block("session", Budget.of("1/2")).charge("a", pure(1, 8))
    with closing(opened(path)) as ledger:
        again = ledger.reopened(1)
        assert again.left == Fraction(3, 8)
        again.charge("b", pure(3, 8))
        with pytest.raises(BudgetExceeded):
            again.charge("c", pure(1, 8))
        assert ledger.left == Fraction(1, 2)
    assert SQLiteLedger.verify(path).sequence == 3
    with closing(opened(path)) as ledger:
        assert ledger.reopened(1).left == 0


def test_two_processes_share_a_ledger_and_one_waits(path: Path) -> None:
    with opened(path, timeout=0.1) as one, opened(path) as other:
        for _ in range(3):
            one.charge("a", TENTH)
            other.charge("a", TENTH)
        assert one.head.sequence == 5
        assert one.left == other.left == Fraction(2, 5)
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            with pytest.raises(LedgerUnavailable, match=r"held by another process for longer than 0\.1 s"):
                one.charge("b", TENTH)
            with pytest.raises(LedgerUnavailable, match=r"held by another process"):
                opened(path, timeout=0.05)
            release = threading.Timer(0.3, holder.rollback)
            release.start()
            other.charge("b", TENTH)  # it has the patience
            release.join()
        one.charge("b", TENTH)
        assert [entry.what for entry in one.entries()] == ["a"] * 6 + ["b"] * 2


def test_the_settings_that_make_a_charge_durable_took_effect(path: Path) -> None:
    settings = ("journal_mode", "synchronous", "wal_autocheckpoint", "cell_size_check")
    with opened(path) as ledger:
        taken = ledger._book.use(lambda c: [c.execute(f"PRAGMA {setting}").fetchone()[0] for setting in settings])
    assert taken == ["wal", 2, 0, 1]


def test_the_log_is_brought_in_from_time_to_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "CHECKPOINT", 8)
    with opened(path) as ledger:
        for _ in range(100):
            ledger.charge("a", pure(1, 1000))
        assert 0 < Path(f"{path}-wal").stat().st_size < 250_000  # else it would hold two pages or more for each charge


def test_an_interrupt_after_the_commit_keeps_the_charge_and_stops_the_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger._book._head, "write", interrupt)
        with pytest.raises(KeyboardInterrupt) as struck:
            ledger.charge("a", TENTH)
        assert "whether the charge stands, its entries show" in struck.value.__notes__[0]
    with pytest.raises(LedgerUnavailable, match="serves no more until it is opened again"):
        ledger.charge("b", TENTH)
    with opened(path) as again:
        assert [entry.what for entry in again.entries()] == ["a"]


def test_a_charge_takes_no_longer_after_a_hundred_thousand(path: Path) -> None:
    def fastest() -> float:
        with opened(path) as ledger:
            times = []
            for _ in range(200):
                start = time.perf_counter()
                ledger.charge("Laplace", pure(1, 10**7))
                times.append(time.perf_counter() - start)
            return sorted(times)[20]

    young = fastest()
    with SQLiteLedger.read(path) as view:
        spent, mark = view.spent, view.head
    with closing(sqlite3.connect(path)) as raw:
        for _ in range(100_000):
            spent += Fraction(1, 10**7)
            fixed = ("Laplace", "1/10000000", ratio(spent), "epsilon", "2026", "", "", "", mark.hash)
            row = Row(mark.sequence + 1, 0, *fixed).sealed()
            mark = Mark(row.sequence, row.hash)
            raw.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        raw.commit()
    old = fastest()
    assert old < 3 * young + 1e-4  # reading 100,000 rows once would take a thousand times as long
