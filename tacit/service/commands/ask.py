"""`tacit ask`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tacit.service.commands.command import Machine, Once, Quiet, app
from tacit.service.show import Screen, Waiting, count


@app.command(cls=Once)
def ask(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that `tacit release` wrote.")],
    questions: Annotated[list[str], typer.Argument(metavar="PREDICATE...", help="Whom to count.")],
    confidence: Annotated[float, typer.Option(help="How surely the interval holds the exact count.")] = 0.95,
    json: Machine = False,
    quiet: Quiet = False,
) -> None:
    """Ask a release how many people there are; free.

    It answers from what was released; neither the data nor the ledger is touched.

    A predicate compares columns with constants (= != < <= > >=, in (...), between ... and ..., is missing, is
    outside) and joins the comparisons by and, or, not and parentheses.

    \b
    Examples:
      tacit ask released "age >= 40 and sex = 'F'"
      tacit ask released "age >= 65" "age < 18" --json
      tacit ask released "income >= 50000 or income is missing" --confidence .99
    """
    from tacit.service.released import load

    screen = Screen(json, quiet)
    released = load(folder)
    with Waiting(screen, "answering"):
        answers = [released.ask(question, confidence=confidence) for question in questions]
    for answer in answers:
        screen.bare(f"{answer.value:.12g}")
    rows = [(text, count(a.value), count(a.low), count(a.high)) for text, a in zip(questions, answers, strict=True)]
    screen.table(("people with", "count", "low", "high"), rows)
    for question, answer in zip(questions, answers, strict=True):
        if answer.value == answer.standard_error == 0:
            screen.note(f"{question} is true of no cell of the columns: are its constants spelt as in the contract?")
    if any(answer.measured for answer in answers):
        screen.say(f"The exact count lies between low and high {100 * confidence:.6g} % of the time. It cost nothing.")
    if not all(answer.measured for answer in answers):
        screen.say("A count without low and high is an estimate: no released marginal holds its columns together.")
    said = [{"predicate": text, **a.describe()} for text, a in zip(questions, answers, strict=True)]
    screen.give({"folder": os.fspath(folder), "confidence": confidence, "answers": said})
