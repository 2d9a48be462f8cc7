"""What a workload may be in words, and what is foreseen of it: every figure against what is then drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from bad_inputs_service import plant
from doubles import Rows

from tacit.curator.kernel import Curator
from tacit.curator.ledger import MemoryLedger
from tacit.domain.predicate import parse
from tacit.domain.query import LinearQuery, Marginal
from tacit.domain.residual import answer_variances
from tacit.domain.schema import Categories, Integers, Neighbors, Schema
from tacit.domain.sql import asked
from tacit.domain.workload import Workload, conjunctions, marginals, prefixes, ranges
from tacit.errors import InvalidParameter
from tacit.mechanisms.least import least_epsilon
from tacit.mechanisms.marginals import as_marginals, error_bound
from tacit.mechanisms.measurement import measurement
from tacit.privacy.budget import Budget
from tacit.service import cli
from tacit.service.people import People
from tacit.service.request import workload

SCHEMA = Schema(
    [
        Integers("age", 0, 9),
        Categories("sex", ("F", "M")),
        Integers("a,b", 0, 3, missing="cell"),
        Categories("ranges:age", (0, 1)),
        Categories("@x", (0, 1)),
    ]
)
ADD = Neighbors.ADD_REMOVE


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> People:
    monkeypatch.chdir(tmp_path)
    return People.open(plant(tmp_path))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("marginals:2", marginals(SCHEMA, 2)),
        ("conjunctions:1", conjunctions(SCHEMA, 1)),
        (" Marginals : 1 , 2 ", marginals(SCHEMA, 1) + marginals(SCHEMA, 2)),
        (
            "sex,conjunctions:1,2,sex",
            Workload((Marginal.over(SCHEMA, "sex"),)) + conjunctions(SCHEMA, 1) + conjunctions(SCHEMA, 2),
        ),
        ("prefixes:age,ranges:age*sex", prefixes(SCHEMA, "age") + ranges(SCHEMA, "age", "sex")),
        ('ranges:"a,b"*sex*"@x"', ranges(SCHEMA, "a,b", ("sex", "@x"))),
        ("ranges:age,@x", Workload((Marginal.over(SCHEMA, "ranges:age"), Marginal.over(SCHEMA, "@x")))),
        ("sex*age,age*sex", Workload((Marginal.over(SCHEMA, "sex", "age"),))),
    ],
)
def test_a_line_of_text_is_the_workload_that_python_makes(text: str, meant: Workload) -> None:
    assert workload(text, SCHEMA).queries == meant.queries


def test_a_file_holds_a_question_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sql = "select sex, count(*) where age >= 4 group by sex"
    (tmp_path / "a, b.txt").write_text(f"# first\r\n\r\n age >= 4\r\n{sql};\r\n  # last")
    found = workload('@"a, b.txt",sex', SCHEMA)
    assert found.queries == (parse("age >= 4", SCHEMA), asked(sql, SCHEMA).query, Marginal.over(SCHEMA, "sex"))
    assert as_marginals(found, SCHEMA).reads == (("age",), ("sex", "age"), ("sex",))


def test_any_workload_is_released_as_marginals_that_answer_it(
    people: People, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("q.txt").write_text("age >= 40 or sex = 'F'\nselect sex, count(*) where age < 30 group by sex\n")
    words = ["release", "people.toml", "-w", "ranges:income*sex,prefixes:age,@q.txt", "-e", "2", "-o", "out"]
    assert cli.run([*words, "--plan"]) == 0
    said = capsys.readouterr().out
    assert "answered        123 other counts, from these marginals" in said
    assert "Ranges(sex × income)" in said
    assert "by sex  " in said
    assert cli.run(words) == 0
    capsys.readouterr()
    assert cli.run(["ask", "out", "@q.txt", "income < 250 and sex = 'F'", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert [answer.get("group") for answer in answers] == [None, ["F"], ["M"], None]
    assert all(answer["low"] is not None for answer in answers)  # no estimate: it was what was released


def test_what_a_plan_says_of_a_question_is_the_error_of_its_answer(people: People) -> None:
    work = ranges(people.schema, "income", by="sex") + prefixes(people.schema, "age") + marginals(people.schema, 1)
    work += parse("age >= 40 or sex = 'F'", people.schema)
    for delta in (None, 0):
        plan = people.plan(work, epsilon="0.3", delta=delta)
        release = plan.run()
        for query in work.queries:
            assert isinstance(query, LinearQuery)
            foreseen = plan.measurement.standard_error(query)
            assert foreseen == pytest.approx(release.standard_error(query))
            if delta is None:
                assert foreseen.size == query.size


@pytest.mark.parametrize("by", ["sex", ("sex", "a,b"), ()])
def test_the_errors_of_ranges_are_alike_in_every_cell_that_they_are_split_by(by: str | tuple[str, ...]) -> None:
    query = ranges(SCHEMA, "age", by).queries[0]
    assert isinstance(query, LinearQuery)
    plan = measurement(SCHEMA, marginals(SCHEMA, 3), Budget.of(1, "1e-9"), ADD)
    order = tuple(name for name in SCHEMA.names if name in query.columns)
    axes = (0, *(1 + query.columns.index(name) for name in order))
    weights = query.weights().reshape(-1, *query.sizes).transpose(axes)
    assert plan.standard_error(query) == pytest.approx(
        np.sqrt(answer_variances(SCHEMA, order, weights, plan.variances))
    )


def test_too_many_questions_have_an_error_that_nobody_knows_and_no_bound() -> None:
    wide = Schema([Integers("year", 0, 3999)])
    query = ranges(wide, "year").queries[0]
    assert isinstance(query, LinearQuery)
    plan = measurement(wide, marginals(wide, 1), Budget.of(1), ADD)
    assert isnan(plan.standard_error(query)[0])
    with pytest.raises(ValueError, match="too many for their errors"):
        plan.error_bound(0.05, [query])


@pytest.mark.parametrize("delta", [0, "1e-9"])
def test_all_errors_stay_below_the_bound_as_often_as_it_says(delta: object) -> None:
    schema = Schema([Integers("age", 0, 19), Categories("sex", ("F", "M"))])
    sums = [query for query in ranges(schema, "age").queries if isinstance(query, LinearQuery)]
    plan = measurement(schema, marginals(schema, 2), Budget.of(1, delta), ADD)  # type: ignore[arg-type]
    bound, missed = plan.error_bound(0.2, sums), 0
    for _ in range(200):
        people = Curator(Rows(schema, np.zeros((0, 2), dtype=np.int64)), MemoryLedger(Budget.of(1, delta)), ADD)
        tables = plan.tables(people.release(plan.mechanism, plan.query))
        age = tables["age", "sex"].sum(axis=1)
        worst = max(np.abs(tables["age", "sex"]).max(), np.abs(sums[0](age)).max())
        missed += worst > bound
    assert missed <= 70  # 0.2 of 200 are 40; more than 70 come once in ten million times


@pytest.mark.parametrize("delta", [0, "1e-9"])
@pytest.mark.parametrize("error", [1, 30, 1000, "1e6"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_least_epsilon_keeps_the_error_and_a_digit_less_does_not(delta: object, error: object, k: int) -> None:
    facts = (SCHEMA, marginals(SCHEMA, k))
    found = least_epsilon(*facts, delta, ADD, error=error, beta=0.05)  # type: ignore[arg-type]
    text = f"{float(found):.2e}"
    assert Fraction(text) == found  # three digits
    less = found - Fraction(10) ** (int(text.partition("e")[2]) - 2)

    def bound(epsilon: Fraction) -> float:
        return error_bound(*facts, Budget.of(epsilon, delta), ADD, 0.05)  # type: ignore[arg-type]

    assert bound(found) <= float(error) < bound(less)  # type: ignore[arg-type]


def test_a_plan_for_an_error_is_the_plan_for_its_epsilon(people: People) -> None:
    work = marginals(people.schema, 2) + ranges(people.schema, "age")
    plan = people.plan(work, error=200, confidence=0.99)
    same = people.plan(work, epsilon=plan.epsilon, confidence="0.99")
    assert plan.largest == same.largest
    assert plan.largest is not None
    assert 195 < plan.largest <= 200
    assert (plan.price, plan.delta) == (same.price, Fraction("1e-9"))
    assert people.plan(work, error=200, confidence=0.5).epsilon < plan.epsilon
    for wrong in ({}, {"epsilon": 1, "error": 1}):
        with pytest.raises(InvalidParameter, match="one of them"):
            people.plan(work, **wrong)  # type: ignore[arg-type]


def test_a_plan_sets_both_noises_side_by_side(people: People, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["plan", "people.toml", "-w", "marginals:2", "-e", "1", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    gaussian, laplace = plan["noises"]
    assert (gaussian["noise"], laplace["noise"]) == ("Gaussian", "Laplace")
    assert gaussian["epsilon"] == laplace["epsilon"] == "1"
    assert gaussian["standard_deviation"] == plan["standard_deviation"]
    assert (gaussian["delta"], laplace["delta"]) == ("1e-9", "0")
    assert Fraction(gaussian["price"]) == Fraction(plan["price"]) < Fraction(laplace["price"])
    for one in (gaussian, laplace):
        budget = Budget.of(one["epsilon"], one["delta"])
        assert one["error"] == error_bound(people.schema, marginals(people.schema, 2), budget, ADD, 0.05)


def test_an_error_has_the_least_epsilon_of_each_noise(people: People, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "people.toml", "-w", "marginals:2", "--error", "100"]
    assert cli.run([*words, "--json"]) == 0
    noises = json.loads(capsys.readouterr().out)["plan"]["noises"]
    assert all(99 < one["error"] <= 100 for one in noises)
    assert cli.run([*words, "-q"]) == 0
    assert capsys.readouterr().out == noises[0]["epsilon"] + "\n"  # what `tacit release -e` takes
    assert cli.run([*words, "-q", "--delta", "0"]) == 0
    assert capsys.readouterr().out == noises[1]["epsilon"] + "\n"


def test_a_ledger_without_a_delta_knows_one_noise_only(people: People, capsys: pytest.CaptureFixture[str]) -> None:
    text = people.contract.path.read_text()
    people.contract.path.write_text(text.replace('delta = "1e-9"\n', ""))
    assert cli.run(["plan", "people.toml", "-w", "marginals:2", "-e", "1"]) == 0
    out = capsys.readouterr().out
    assert "Laplace" in out
    assert "Gaussian" not in out


def test_a_budget_without_noise_has_a_plan_too() -> None:
    schema = Schema([Integers("age", 0, 9)])
    assert error_bound(schema, marginals(schema, 1), Budget.of(1000, "1e-9"), ADD, 0.05) == 0
    found = least_epsilon(schema, marginals(schema, 1), "1e-9", ADD, error="0.001", beta=0.05)
    assert 300 < found < 1000


def test_questions_that_memory_could_not_hold_are_refused_where_they_pass_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wide = Schema([Integers("a", 0, 2999), Integers("b", 0, 2999)])
    Path("q.txt").write_text("".join(f"a > {at} or b > {at}\n" for at in range(9)))
    with pytest.raises(ValueError, match=r"q\.txt, line 6: .* one workload may weigh"):
        workload("@q.txt", wide)


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        (b"# how many\n\n age >= 40\nsex = 'F'\n", 0, b""),
        (b"age >= 40\n  agee > 1\n", cli.WRONG, b"standard input, line 2: the predicate at character 3"),
        (b"age >= 40 \xff\n", cli.WRONG, b"standard input"),
        (None, 0, b""),
    ],
)
def test_questions_of_standard_input_are_refused_by_their_line(
    said: bytes | None, code: int, why: bytes, people: People
) -> None:
    assert cli.run(["release", "people.toml", "-w", "age*sex", "-e", "1", "-o", "out", "-q"]) == 0
    words = [sys.executable, "-m", "tacit.service.cli", "ask", "out", "-", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    if said is None:
        words = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *words]
    run = subprocess.run(words, input=said or b"", env=environment, capture_output=True, check=False)
    assert run.returncode == code
    assert why in run.stderr
    assert len(run.stdout.splitlines()) == (2 if code == 0 and said else 0)
