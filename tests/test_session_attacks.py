"""Attacks on a session that lasts: notebooks cut and half written, interrupts, and what the command line says."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked import QUESTIONS, planted

from tacit.curator.kernel import Curator
from tacit.errors import DataUnavailable, Halted, Refused, Unavailable
from tacit.mechanisms.surprise import within
from tacit.primitives.additive import Gaussian, Laplace, each
from tacit.primitives.threshold import SparseVector
from tacit.privacy.budget import Budget
from tacit.service import cli, opening
from tacit.service.notebook import place
from tacit.service.people import People

STATED = Budget.of(4, "1e-6").amount


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    with People.open(planted(tmp_path / "here"), by="ana") as found:
        yield found


def entries(people: People) -> int:
    return sum(1 for _ in people.ledger.entries())


def stopped(*_: object) -> Any:
    raise KeyboardInterrupt


# -- what it may cost


def test_a_notebook_cut_to_its_first_line_never_has_the_people_counted_again(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        session.ask(QUESTIONS[0])
    path, spent = place(people.contract.ledger, "ana"), people.ledger.spent
    content = path.read_bytes()
    for epsilon in (4, None, 4):
        path.write_bytes(content[: content.index(b"\n") + 1])
        with pytest.raises(Refused, match=r"nothing left to buy it again.*Nothing was spent"):
            people.session("ana", epsilon=epsilon)
        assert people.ledger.spent == spent <= STATED


def test_however_often_the_count_of_the_people_is_lost_it_never_passes_the_stated_budget(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "told", stopped)  # after the charge, before it is noted
    for _ in range(49):
        with pytest.raises(KeyboardInterrupt):
            people.session("ana", epsilon=4)
    for _ in range(3):
        with pytest.raises(Refused, match="counted again too often"):
            people.session("ana", epsilon=4)
    assert people.ledger.spent < STATED


def test_an_opening_that_others_forestalled_says_that_the_people_were_counted(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = opening.told

    def slowly(*given: Any) -> float:
        people.ledger.block("somebody else's", Budget(people.ledger.left, people.ledger.budget.currency))
        return told(*given)

    monkeypatch.setattr(opening, "told", slowly)
    with pytest.raises(Refused, match=r"can no longer pay.*No more than 0\.02 of it was spent, to count the people"):
        people.session("ana", epsilon=4)


# -- what is kept


@pytest.mark.parametrize("fault", ["half a line", "no sync"])
def test_a_line_that_could_not_be_written_ends_the_sitting_and_not_the_session(
    people: People, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    write: Callable[[int, bytes], int] = os.write
    with people.session("ana", epsilon=4) as session:
        first = session.ask("a = 0")
        with monkeypatch.context() as full:
            file, sync = session._notes._file, os.fsync

            def half(to: int, line: bytes) -> int:
                return write(to, line[: len(line) // 2] if to == file else line)

            def failed(to: int) -> None:
                if to == file:
                    raise OSError(5, "the disk failed")
                sync(to)

            full.setattr(os, *(("write", half) if fault == "half a line" else ("fsync", failed)))
            with pytest.raises(Unavailable, match="What was charged stays charged"):
                session.ask(QUESTIONS[0])  # a surprise, which is to last
        before = entries(people)
        with pytest.raises(Halted, match=r"closed; open it again. Nothing was drawn"):
            session.ask("a = 1")
        assert entries(people) == before
    with people.session("ana") as again:
        assert again.ask("a = 0") == first
        again.ask("a = 1")


@pytest.mark.parametrize("how", ["closed", "removed", "replaced"])
def test_nothing_is_drawn_where_no_answer_could_be_kept(people: People, how: str) -> None:
    with people.session("ana", epsilon=4) as session:
        known = session.ask("a = 0")
        path, before, left = place(people.contract.ledger, "ana"), entries(people), session.left
        if how == "closed":
            session.close()
        elif how == "removed":
            path.unlink()
        else:
            path.with_name("other").write_bytes(path.read_bytes())
            path.with_name("other").replace(path)
        with pytest.raises((Halted, Unavailable)):
            session.ask(QUESTIONS[0])
        assert (entries(people), session.left) == (before, left)
        assert session.ask("a = 0") is known


def test_a_file_that_is_no_notebook_is_left_as_it_is(people: People) -> None:
    path = place(people.contract.ledger, "ana")
    path.parent.mkdir()
    path.write_bytes(b"somebody else's\nwithout an end")
    with pytest.raises(Unavailable, match="not what was written"):
        people.session("ana")
    assert path.read_bytes() == b"somebody else's\nwithout an end"


# -- interrupts


def test_interrupts_that_lose_every_threshold_leave_a_session_that_answers_without_an_error(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with people.session("ana", epsilon=4) as session:
        for each_ in range(session.left + 1):
            with monkeypatch.context() as patched:
                patched.setattr(Curator, "_read", stopped)
                try:
                    session.ask(f"a = {each_ % 4} and b = {each_ // 4 % 4} and c = 'no'")
                except KeyboardInterrupt:
                    continue
            break
        else:
            pytest.fail("more was opened than was paid for")
        answer = session.ask(QUESTIONS[0])
        assert answer.free
        assert answer.error is None
        assert session.left == 0
    assert people.ledger.spent <= STATED


def test_a_paid_answer_is_told_though_the_next_threshold_was_lost(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with people.session("ana", epsilon=4) as session:
        sittings = session.left
        for each_ in range(sittings - 1):
            with monkeypatch.context() as patched:
                patched.setattr(Curator, "_read", stopped)
                with pytest.raises(KeyboardInterrupt):
                    session.ask(f"a = {each_ % 4} and b = {each_ // 4 % 4} and c = 'yes'")
        answer = session.ask(QUESTIONS[0])
        assert not answer.free
        assert answer.error is not None
        assert session.ask(QUESTIONS[0]) is answer


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_amid_the_true_answers_takes_none_of_them_with_it(
    people: People, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def interrupted(self: SparseVector, state: Any, answer: Any, noise: Any) -> Any:
        try:
            raise ValueError(answer)
        except ValueError:
            raise stop("here") from None

    with people.session("ana", epsilon=4) as session:
        session.ask("a = 0")
        monkeypatch.setattr(SparseVector, "step", interrupted)
        with pytest.raises(stop, match="here") as caught:
            session.ask("a = 1")
        said = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
        assert "_veiled" in said
        assert "OnGrid" not in said
        assert "Waiting" not in said


# -- how far off


@pytest.mark.parametrize("grid", [1, Fraction(1, 3), Fraction(1, 4), Fraction(1, 64), Fraction(1, 256)])
@pytest.mark.parametrize(
    "noise", [Laplace(4), Laplace(2), Laplace("0.3"), Gaussian(2), Gaussian("0.1"), Gaussian("0.001")]
)
def test_paid_answers_of_weighted_counts_are_as_near_as_is_said(noise: Laplace | Gaussian, grid: Fraction) -> None:
    for count in (1, 20):
        units = int(within(noise, 0.025, count) / grid)
        inside = float(noise.probabilities(np.arange(-units, units + 1), 1, grid).sum())
        assert 1 - inside <= each(0.025, count) * (1 + 1e-9)


# -- at the command line


@pytest.mark.parametrize("fault", ["groups", "unread", "interrupt"])
def test_what_fails_after_the_opening_says_that_it_was_charged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    contract = planted(tmp_path / "here")
    asked = ["ask", os.fspath(contract), "a = 0", "--session", "s", "--epsilon", "1"]
    if fault == "groups":
        asked[2] = "select c, count(*) from people group by c"
        asked += ["--request", "r"]
    else:
        from tacit.engines.table import Table

        read, times = Table.read, []

        def second(self: Table, *given: Any) -> None:
            times.append(1)
            if len(times) == 2:
                raise KeyboardInterrupt if fault == "interrupt" else DataUnavailable("it is gone. Nothing was spent.")
            read(self, *given)

        monkeypatch.setattr(Table, "read", second)
    code = cli.run(asked)
    said = capsys.readouterr().err
    assert code
    with People.open(contract) as people:
        spent = people.ledger.spent
    if fault == "groups":
        assert spent == 0
    assert ("Nothing was spent" in said) is (spent == 0)
    assert ("was charged" in said) is (spent > 0)
