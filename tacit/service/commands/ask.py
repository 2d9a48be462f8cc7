"""`tacit ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import By, Machine, Once, Quiet, app, login
from tacit.service.show import Screen


@app.command(cls=Once)
def ask(
    target: Annotated[
        Path, typer.Argument(metavar="FOLDER|CONTRACT", help="What `tacit release` wrote, or a contract.")
    ],
    questions: Annotated[
        list[str], typer.Argument(metavar="QUESTION...", help="Predicates or SQL; @FILE or - for lines of them.")
    ],
    confidence: Annotated[float, typer.Option(help="Of a release: how surely the interval holds the count.")] = 0.95,
    session: Annotated[
        str | None, typer.Option(help="Of a contract: the name of the session; by default who asks.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="Opens a new session, for which all of it is spent now.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Of a new session; by default the contract's.")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Of a new session: how many questions are expected; by default 10,000.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="An identifier of this question: repeated, it has the same answer.")
    ] = None,
    purpose: Annotated[str, typer.Option(help="What the session is for, for the ledger.")] = "",
    by: By = None,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Ask how many people there are.

    A release answers for free: neither the data nor the ledger is touched.

    A contract is asked in a session, whose budget is charged once, when it is opened. Its answers are free unless a
    public hypothesis of the table is wrong; so many surprises are paid for out of that budget. The session is kept by
    its name; going on with it later loses one of them. `tacit plan --online` says beforehand what to expect.

    A predicate compares columns with constants (= != < <= > >=, in (...), between ... and ..., is missing, is
    outside) and joins the comparisons by and, or, not and parentheses. SQL is `select count(*) where ... group by ...`.

    \b
    Examples:
      tacit ask released "age >= 40 and sex = 'F'"
      tacit ask released "age >= 65" "age < 18" --json
      tacit ask released "income >= 50000 or income is missing" --confidence .99
      tacit ask released @questions.txt --json
      tacit ask people.toml "age >= 40 and sex = 'F'" --epsilon 0.5
      tacit ask people.toml "select sex, count(*) where age > 9 group by sex"
      tacit ask people.toml - --session yearbook -e 1 < questions.txt
    """
    from tacit.service.asking import Asking, answer

    who = login() if by is None else by
    asking = Asking(target, questions, confidence, session, epsilon, delta, queries, request, purpose, who)
    answer(asking, Screen(json, quiet))
