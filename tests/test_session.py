"""A session that lasts: what it costs, keeps and refuses, and that no crash makes it forget or overspend."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from asked import PEOPLE, QUESTIONS, exact, planted

from tacit.curator.sqlite_ledger import SQLiteLedger
from tacit.domain.query import Counting, Linear
from tacit.errors import (
    BudgetExceeded,
    DataUnavailable,
    Halted,
    InvalidBudget,
    InvalidInput,
    InvalidParameter,
    InvalidQuery,
    Refused,
    TacitError,
    Unavailable,
)
from tacit.mechanisms.answering import Answer
from tacit.privacy.budget import Budget
from tacit.service.notebook import Notebook, place
from tacit.service.people import People
from tacit.service.session import Session

TOOLS = Path(__file__).parent / "faults"


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    with People.open(planted(tmp_path / "here"), by="ana") as found:
        yield found


def entries(people: People) -> int:
    return sum(1 for _ in people.ledger.entries())


def spent(people: People) -> Fraction:
    return people.ledger.spent


# -- what it costs, and what it says


def test_all_of_it_is_charged_when_it_is_opened_and_nothing_after(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        paid = spent(people)
        assert paid == people.contract.budget.price(session_budget(4, people).loss())
        for question in QUESTIONS:
            session.ask(question)
        assert spent(people) == paid


def session_budget(epsilon: object, people: People) -> Budget:
    return Budget.of(epsilon, people.contract.delta)  # type: ignore[arg-type]


def test_a_free_answer_writes_nothing_to_the_ledger_and_a_paid_one_does(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        session.ask("c = 'yes'")  # opens the sparse vector
        for question in ("a = 1", "b >= 2", "a = 2 and c = 'no'"):
            before = entries(people)
            assert session.ask(question).free
            assert entries(people) == before
        before = entries(people)
        assert not session.ask(QUESTIONS[0]).free
        assert entries(people) > before


def test_every_answer_is_as_near_as_it_says_and_tells_what_it_cost_and_what_is_left(people: People) -> None:
    # the bound holds with 95 % for all of them; this far beyond it, with 1 - 1e-9
    with people.session("ana", epsilon=8) as session:
        for question in QUESTIONS:
            again = session.known(question)
            answer = session.ask(question)
            assert answer.error is not None
            assert abs(answer.value - exact(question)) <= 6 * answer.error
            assert answer.low is not None
            assert answer.high is not None
            assert 0 <= answer.low <= max(answer.value, 0) <= answer.high
            assert again or answer.left == session.left


def test_a_question_asked_again_in_whatever_words_has_the_identical_answer_at_no_cost(people: People) -> None:
    same = ("a = 0 and b = 0", "b <= 0 AND not a > 0", "select count(*) from people where a = 0 and b in (0)")
    with people.session("ana", epsilon=4) as session:
        first, left, before = session.ask(same[0]), session.left, entries(people)
        for text in same:
            assert session.price(text) == 0
            assert session.known(text)
            assert session.ask(text) is first
        assert (session.left, entries(people)) == (left, before)


def test_a_request_that_is_repeated_has_its_answer_and_asks_nothing_else(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        first = session.ask("a = 0 and b = 0", request="r/1")
        assert session.ask("b = 0 and a = 0", request="r/1") is first
        before = session.left, entries(people)
        with pytest.raises(InvalidParameter, match="asked something else before"):
            session.ask("a = 1", request="r/1")
        session.ask("a = 0 and b = 0", request="r/2")  # the same question under another identifier
        with pytest.raises(InvalidParameter, match="asked something else before"):
            session.ask("a = 1", request="r/2")
        assert (session.left, entries(people)) == before


@pytest.mark.parametrize("request_", ["", "x" * 201, "a\nb", "\0", 7])
def test_an_identifier_that_cannot_be_written_on_a_line_is_refused(people: People, request_: Any) -> None:
    with people.session("ana", epsilon=4) as session, pytest.raises(InvalidParameter, match="identifier has 1 to 200"):
        session.ask("a = 1", request=request_)


def test_groups_are_asked_one_by_one_and_agree_with_the_same_question_alone(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        told = session.select("select c, count(*) from people where a = 0 group by c")
        assert [labels for labels, _ in told] == [("no",), ("yes",)]
        assert session.ask("a = 0 and c = 'yes'") is told[1][1]
        assert session.select("c = 'yes'") == [((), session.ask("c = 'yes'"))]
        with pytest.raises(InvalidQuery, match="`select` gives them"):
            session.ask("select c, count(*) from people group by c")


def test_queries_can_be_asked_without_words(people: People) -> None:
    query = Counting.where(people.schema, {"a": (0,), "b": (0,)})
    weighed = Linear.of(people.schema, ("c",), [0.25, 0.5])
    with people.session("ana", epsilon=4) as session:
        assert session.ask(query) is session.ask("a = 0 and b = 0")
        first = session.ask(weighed)
        assert session.ask(Linear.of(people.schema, ("c",), [0.25, 0.5])) is first


def test_after_the_last_paid_answer_it_answers_from_what_it_learnt_and_says_so(people: People) -> None:
    with people.session("ana", epsilon="0.6", queries=20) as session:
        session._answering._left = 0  # as if all had been paid for
        answer = session.ask("a = 0 and b = 0")
        assert answer.free
        assert answer.error is None
        assert answer.low is None
        assert session.price("a = 1 and b = 1") == 0
        assert "nobody" not in str(answer)
        assert "error unknown" in str(answer)


def test_two_sessions_of_two_analysts_add_up_in_one_ledger(people: People) -> None:
    with people.session("ana", epsilon=4) as ana, people.session("ben", epsilon=4) as ben:
        once = people.contract.budget.price(session_budget(4, people).loss())
        assert spent(people) == 2 * once
        assert ana.ask("a = 0 and b = 0").value != 0
        ben.ask("a = 0 and b = 0")
        assert spent(people) == 2 * once
    with pytest.raises(BudgetExceeded, match=r"is left.*Nothing was spent"):
        people.session("cem", epsilon=20)
    assert not place(people.contract.ledger, "cem").exists()
    assert spent(people) == 2 * once


def test_threads_share_a_session_and_each_question_has_one_answer(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        told: list[tuple[str, Answer]] = []

        def ask() -> None:
            told.extend((question, session.ask(question)) for question in QUESTIONS)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 8 * len(QUESTIONS)
        assert all(answer is session.ask(question) for question, answer in told)


# -- restarts


def test_a_restart_keeps_every_answer_and_pays_only_with_the_first_new_question(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        told = {question: session.ask(question, request=question[:9]) for question in QUESTIONS}
        terms, left, learnt = session.terms, session.left, session.hypothesis.project(("a", "b"))
    before, count = spent(people), entries(people)
    with people.session("ana") as again:
        assert again.terms == terms
        assert again.left == left - 1  # the threshold that was lost
        assert again.hypothesis.project(("a", "b")) == pytest.approx(learnt, rel=1e-9)
        assert {question: again.ask(question) for question in QUESTIONS} == told
        assert again.ask(QUESTIONS[0], request=QUESTIONS[0][:9]) == told[QUESTIONS[0]]
        assert entries(people) == count
        surprise = not again.ask("a = 1 and c = 'no'").free
        assert entries(people) == count + (3 if surprise else 1)  # an opening; the answer, and the next opening
    assert spent(people) == before


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_restarts_end_when_the_block_is_used_up_and_never_pass_it(tmp_path: Path, delta: str) -> None:
    with People.open(planted(tmp_path / "here", delta=delta)) as people:
        with people.session("ana", epsilon=2, queries=50) as session:
            left = [session.left]
        paid = spent(people)
        for restart in range(60):
            with people.session("ana") as session:
                left.append(session.left)
                session.ask(Counting.where(people.schema, {"a": (restart % 4,), "b": range(restart // 4 % 4, 4)}))
                session.ask(f"c = 'yes' and a = {restart % 4} and b <= {restart // 4 % 4}")
        assert left == sorted(left, reverse=True)
        assert left[2] >= left[1] * 3 / 4 > 0  # a restart loses one of eight sittings at most, and one question asked
        assert spent(people) == paid
        for entry in people.ledger.entries():
            if entry.reserved is not None:
                inner = people.ledger.reopened(entry.sequence) if entry.block is None else None
                assert inner is None or inner.spent <= inner.budget.amount


def test_a_name_is_open_in_one_place_at_a_time(people: People) -> None:
    with people.session("ana", epsilon=4), pytest.raises(Refused, match=r"open already.*Nothing was spent"):
        people.session("ana")
    people.session("ana").close()


def test_a_forked_process_cannot_ask(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        session.ask("a = 0")
        child = os.fork()
        if not child:
            try:
                session.ask("a = 1")
            except Halted:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        session.ask("a = 1")


def test_a_read_that_fails_ends_what_can_be_paid_for_until_it_is_opened_again(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        session.ask("a = 0")
        csv = people.contract.path.parent / "people.csv"
        text = csv.read_text()
        csv.write_text(text + "0,0,no\n")  # it changed under the session
        with pytest.raises(DataUnavailable) as caught:
            session.ask("a = 1 and b = 1 and c = 'no'")
        assert "0,0,no" not in str(caught.value)
        assert session.left == 0
        assert session.ask("a = 0").error is not None
        assert session.ask("b = 0").error is None


# -- what it refuses


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 65, "-a", "a b", "\0", "é", 7, None, ".hidden"])
def test_a_name_that_is_no_plain_word_is_refused(people: People, name: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"a session's name has.*Nothing was spent"):
        people.session(name, epsilon=1)
    assert spent(people) == 0


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({}, InvalidParameter),
        ({"epsilon": 0}, InvalidBudget),
        ({"epsilon": -1}, InvalidBudget),
        ({"epsilon": "nan"}, InvalidInput),
        ({"epsilon": float("inf")}, InvalidInput),
        ({"epsilon": "1e-400"}, InvalidInput),
        ({"epsilon": 1, "delta": 2}, InvalidBudget),
        ({"epsilon": 1, "delta": -1}, InvalidBudget),
        ({"epsilon": 1, "queries": 0}, InvalidInput),
        ({"epsilon": 1, "queries": 1.5}, InvalidInput),
        ({"epsilon": 1, "queries": True}, InvalidInput),
        ({"epsilon": 500}, BudgetExceeded),
    ],
)
def test_a_session_that_cannot_be_opened_costs_nothing_and_leaves_nothing(
    people: People, asked: dict[str, Any], kind: type[TacitError]
) -> None:
    with pytest.raises(kind, match="Nothing was spent"):
        people.session("ana", **asked)
    assert spent(people) == 0
    assert not place(people.contract.ledger, "ana").exists()


def test_too_little_for_so_few_people_is_refused_before_the_charge_where_their_number_is_public(tmp_path: Path) -> None:
    with People.open(planted(tmp_path / "public", whole=True)) as people:
        with pytest.raises(Refused, match="Nothing was spent"):
            people.session("ana", epsilon="1e-5")
        assert spent(people) == 0
    with People.open(planted(tmp_path / "private", neighbors="add-remove")) as people:
        with pytest.raises(Refused, match=r"No more than 0\.02 of it was spent"):
            people.session("ana", epsilon="1e-5")
        assert 0 < spent(people) <= session_budget("1e-5", people).amount / 50


def test_terms_are_made_once(people: People) -> None:
    people.session("ana", epsilon=4, queries=100).close()
    for other in ({"epsilon": 5}, {"delta": "1e-7"}, {"queries": 101}):
        with pytest.raises(InvalidBudget, match="once and for all"):
            people.session("ana", **other)  # type: ignore[arg-type]
    people.session("ana", epsilon="4.0", delta="1e-6", queries=100).close()


def test_a_session_is_of_one_contract(people: People, tmp_path: Path) -> None:
    people.session("ana", epsilon=4).close()
    path = people.contract.path
    path.write_text(path.read_text().replace('"yes"]', '"yes", "perhaps"]'))
    with People.open(path) as other, pytest.raises(InvalidInput, match="columns differ"):
        other.session("ana")


def test_a_session_is_of_one_universe_also_under_a_ledger_that_is_bound_to_no_columns(tmp_path: Path) -> None:
    """Its answers are kept by the places of cells: under other labels one group would get the other's answer."""
    path = planted(tmp_path)
    path.write_text(path.read_text().replace("[privacy]", '[privacy]\ndomains = "bought"'))
    os.unlink(tmp_path / "people.ledger")
    os.unlink(tmp_path / "people.ledger-head")
    with People.open(path) as people:
        people.create_ledger().close()
        with people.session("ana", epsilon=4) as session:
            session.ask("c = 'yes'")
    said = path.read_text()
    for other in (
        '"yes", "no"]',
        '"no", "yes", "perhaps"]',
        '"no", "yes"]\n\n[[columns]]\nname = "id"\nlow = 0\nhigh = 9',
    ):
        path.write_text(said.replace('"no", "yes"]', other))
        with People.open(path) as people, pytest.raises(InvalidInput, match="columns differ"):
            people.session("ana")
    path.write_text(said)
    with People.open(path) as people:
        people.session("ana").close()


@pytest.mark.parametrize(
    "text", ["", "a =", "d = 1", "a = 'x'", "select sum(a) from people", "a = 1; drop table people"]
)
def test_what_is_no_question_is_refused_and_the_session_goes_on(people: People, text: str) -> None:
    with people.session("ana", epsilon=4) as session:
        left = session.left
        with pytest.raises(InvalidQuery, match="Nothing was spent"):
            session.ask(text)
        assert session.left == left
        session.ask("a = 1")


def test_a_session_of_which_a_crash_left_an_empty_notebook_can_be_opened(people: People) -> None:
    path = place(people.contract.ledger, "ana")
    path.parent.mkdir()
    path.touch()
    with pytest.raises(InvalidParameter, match="an epsilon opens it"):
        people.session("ana")
    people.session("ana", epsilon=4).close()


def test_a_session_that_was_never_charged_is_charged_only_by_who_says_its_epsilon(people: People) -> None:
    from tacit.service.opening import new_notebook

    new_notebook(people, place(people.contract.ledger, "ana"), "1/2", None, None).close()
    with pytest.raises(InvalidParameter, match=r"say its epsilon, 0\.5. Nothing was spent"):
        people.session("ana")
    assert spent(people) == 0
    people.session("ana", epsilon="0.5").close()
    assert spent(people) > 0


@pytest.mark.parametrize("at", ["first", "middle"])
def test_a_notebook_that_was_changed_is_not_gone_on_with(people: People, at: str) -> None:
    with people.session("ana", epsilon=4) as session:
        for question in QUESTIONS:
            session.ask(question)
    path = place(people.contract.ledger, "ana")
    lines = path.read_bytes().splitlines(keepends=True)
    row = 0 if at == "first" else len(lines) - 2
    lines[row] = (
        lines[row].replace(b"1", b"2", 1) if lines[row][20:] == b"" else lines[row][:-3] + b"9" + lines[row][-2:]
    )
    path.write_bytes(b"".join(lines))
    with pytest.raises(Unavailable, match="not what was written"):
        people.session("ana")


def test_a_folder_or_a_link_in_the_notebooks_place_is_refused(people: People, tmp_path: Path) -> None:
    path = place(people.contract.ledger, "ana")
    path.mkdir(parents=True)
    with pytest.raises(Unavailable):
        people.session("ana")
    path.rmdir()
    (tmp_path / "elsewhere").touch()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        people.session("ana")


# -- crashes


def client(folder: Path, acks: Path, step: int) -> None:
    """Opens or goes on, and asks everything; killed at the given step, of those that it passes."""
    from tacit.curator import kernel, sqlite_ledger
    from tacit.service import notebook

    passed = 0

    def pass_by() -> None:
        nonlocal passed
        passed += 1
        if passed == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: Any, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def stepped(*given: Any, **named: Any) -> Any:
            pass_by()
            found = inner(*given, **named)
            pass_by()
            return found

        setattr(owner, name, stepped)

    around(sqlite_ledger.SQLiteLedger, "_append")
    around(kernel.Curator, "_read")
    around(notebook.Notebook, "add")
    with People.open(folder / "people.toml") as people:
        session = people.session("ana", epsilon=4)
        with open(acks, "a") as told:
            for question in QUESTIONS:
                answer = session.ask(question, request=question[:9])
                told.write(f"{question}\t{answer.value!r}\t{answer.free}\n")
                told.flush()
        session.close()
    os._exit(0 if step < 10**6 else min(passed, 250))


def ran(folder: Path, step: int) -> int:
    """In a process of its own, forked before any ledger was opened: no import is paid for again."""
    child = os.fork()
    if not child:
        try:
            client(folder, folder / "acks", step)
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    """Kills a session at each of its steps, in copies of a folder; then goes on with it, and says what broke."""
    from tacit.engines import delimited, table  # noqa: F401 - once, not in every child
    from tacit.mechanisms import fit  # noqa: F401

    steps = ran(folder / "whole", 10**6)
    assert 20 < steps < 250, steps
    for step in range(1, steps + 1):
        here = folder / f"at-{step}"
        shutil.copytree(folder / "start", here)
        code = ran(here, step)
        assert code == -signal.SIGKILL, (step, code)
        before = (here / "acks").read_text().splitlines() if (here / "acks").exists() else []
        code = ran(here, 0)  # goes on, with no hand edit
        assert code == 0, (step, code)
        after = (here / "acks").read_text().splitlines()
        assert after[: len(before)] == before
        assert after[len(before) :][: len(before)] == before, (step, before, after)  # the identical answers
        (here / "acks").write_text("")
        print(here / "people.ledger", here / "acks")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a kill leaves all that was written, so no disk need wait."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tacit-killed-") as folder:
        yield Path(folder)


def test_a_session_that_is_killed_at_any_step_goes_on_with_what_it_said_and_never_passes_its_block(
    memory: Path,
) -> None:
    tmp_path = memory
    planted(tmp_path / "start")
    shutil.copytree(tmp_path / "start", tmp_path / "whole")
    done = subprocess.run(
        [sys.executable, __file__, tmp_path], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pairs = done.stdout.split()
    verdicts = subprocess.run(
        [sys.executable, "-I", TOOLS / "verify.py", *pairs], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(verdicts) == len(pairs) / 2 > 20
    assert [verdict for verdict in verdicts if not verdict.startswith("sound")] == []
    for ledger in pairs[::2]:
        with SQLiteLedger.read(ledger) as read:
            blocks = [entry for entry in read.entries() if entry.block is None]
        charged = sum(entry.amount for entry in blocks)
        assert charged <= Budget.of(4, "1e-6").amount, ledger  # whenever it was killed, and however often it counted
        assert sum(entry.what.startswith("session ana") for entry in blocks) == 1, ledger


def test_a_notebook_cut_anywhere_is_gone_on_with_or_refused_and_never_passes_its_block(tmp_path: Path) -> None:
    contract = planted(tmp_path / "here")
    with People.open(contract) as people:
        with people.session("ana", epsilon=4) as session:
            for question in QUESTIONS:
                session.ask(question)
        path = place(people.contract.ledger, "ana")
        content, paid = path.read_bytes(), spent(people)
        ends = [at + 1 for at, byte in enumerate(content) if byte == 10]
        for cut in sorted({0, 1, *ends, *(end - 1 for end in ends), *(end - 40 for end in ends)} - {len(content)}):
            path.write_bytes(content[:cut])
            try:
                with people.session("ana") as session:
                    for question in QUESTIONS:
                        session.ask(question)
            except (Refused, InvalidParameter) as refusal:
                assert any(why in str(refusal) for why in ("epsilon", "stays charged", "buy it again"))  # noqa: PT017
            assert spent(people) == paid


def test_a_notebook_that_cannot_be_written_tells_no_answer(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        session.ask("a = 0")
        os.close(session._notes._file)
        try:
            with pytest.raises(Unavailable, match="did not answer"):
                session.ask("a = 0 and b = 0")
        finally:
            session._notes._file = -1


def test_a_notebook_is_lines_that_are_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "ledger-sessions" / "one.session"
    notes = Notebook(path, create=True)
    notes.add({"first": "é\n\u2028"}, lasting=True)
    notes.add({"second": [1.5, None]}, lasting=False)
    notes.close()
    with path.open("ab") as file:
        file.write(b'0123456789abcdef {"torn')
    again = Notebook(path)
    assert again.lines == [{"first": "é\n\u2028"}, {"second": [1.5, None]}]
    again.add({"third": 3}, lasting=True)
    again.close()
    assert [*Notebook(path).lines][-1] == {"third": 3}
    assert path.stat().st_mode & 0o077 == 0


def test_what_is_in_a_session_is_what_its_people_are(people: People) -> None:
    with people.session("ana", epsilon=4) as session:
        assert isinstance(session, Session)
        assert session.hypothesis.project(()) == pytest.approx(session.terms.people)
        assert abs(session.terms.people - PEOPLE) < 100  # bought
        assert repr(session) == f"Session(ana, 0 answered, {session.left} left to pay for)"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
