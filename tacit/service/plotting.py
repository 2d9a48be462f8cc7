"""Pictures of what was spent and of what is foreseen, drawn by matplotlib, which only they need."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidParameter
from tacit.service.keep import FILE, Shelf
from tacit.service.located import printable
from tacit.service.show import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg")
MOST_NAMES, LONGEST_NAME = 7, 30  # colours that the eye tells apart, and letters that fit beside them
MOST_TABLES = 60
COLOURS = ("#1f5a94", "#d9822b", "#3a8f5c", "#a23b72", "#6b5ca5", "#8a6d3b", "#2a9d9d")
REST, LIMIT = "#b8bec4", "#a01c1c"
STYLE = {"svg.hashsalt": "tacit", "svg.fonttype": "none", "font.family": "DejaVu Sans", "text.parse_math": False}


def shelf_for(file: Path, force: bool) -> Shelf:
    """The place of a picture; refused where it cannot be drawn or written."""
    if file.suffix.lower() not in ENDINGS:
        raise InvalidParameter(
            f"{printable(file)} is no name for a plot: it ends in {' or '.join(ENDINGS)}. Nothing was spent."
        )
    if find_spec("matplotlib") is None:
        raise InvalidParameter("a plot needs the package matplotlib: pip install 'tacit[plot]'. Nothing was spent.")
    return Shelf(file, replace=force, kind=FILE)


def draw_ledger(
    shelf: Shelf,
    title: str,
    charges: Sequence[tuple[datetime, str, float]],
    *,
    since: datetime | None,
    budget: tuple[float, str],
    epsilons: Sequence[tuple[float, str]],
) -> None:
    """What was spent, step by step, by whom, against the budget; the same charges make the same bytes.

    `charges` are instants, names and amounts, in the order of the ledger; `epsilons` says beside which amounts to write
    which epsilon, where the budget is counted in something else.
    """
    from matplotlib import dates, rc_context

    with rc_context(STYLE):
        figure = _figure()
        axes = figure.subplots()
        names = _largest(charges)
        times, levels = _steps(charges, names)
        first, last = since or times[0], max(times[-1], since or times[-1])
        room = max((last - first) / 20, timedelta(minutes=1))
        times, levels = [times[0] - room, *times, last + room], [levels[0], *levels, levels[-1]]
        columns = list(zip(*levels, strict=True))
        colours = [REST if name is None else COLOURS[at] for at, name in enumerate(names)]
        bands = axes.stackplot(times, *columns, step="post", colors=colours, linewidth=0)  # type: ignore[arg-type]
        spent = [sum(level) for level in levels]
        axes.step(times, spent, where="post", color="black", linewidth=1.2)  # type: ignore[arg-type]
        amount, currency = budget
        axes.axhline(amount, color=LIMIT, linewidth=1.5)
        axes.annotate(
            f"the budget, {currency} {amount:.4g}",
            (0.01, amount),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            color=LIMIT,
        )
        axes.set(xlim=(since or times[0], times[-1]), ylim=(0, amount * 1.12), ylabel=f"spent, in {currency}")
        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.set_xlabel("UTC")
        axes.set_title(plain(title), loc="left", fontsize=11)
        axes.spines[["top"]].set_visible(False)
        if epsilons:
            beside = axes.twinx()
            beside.set_ylim(axes.get_ylim())
            beside.set_yticks([at for at, _ in epsilons], [text for _, text in epsilons])
            beside.set_ylabel("as one epsilon")
            beside.spines[["top"]].set_visible(False)
        parts = [f"{share / spent[-1]:.0%}" for share in levels[-1]]
        said = [
            f"{'others' if name is None else _short(name)}  {part}" for name, part in zip(names, parts, strict=True)
        ]
        legend = figure.legend(bands[::-1], said[::-1], loc="outside right upper", frameon=False)
        legend.set_title("who, and which share")
        legend.set_alignment("left")
        _write(figure, shelf)


def draw_errors(shelf: Shelf, title: str, tables: Sequence[str], errors: Sequence[tuple[str, Sequence[float]]]) -> None:
    """The standard deviation of a count of each table, a bar for each noise; where there are many, of the first."""
    from matplotlib import rc_context

    if len(tables) > MOST_TABLES:
        title, tables = f"{title} (the first {MOST_TABLES} of {len(tables)})", tables[:MOST_TABLES]
        errors = [(noise, deviations[:MOST_TABLES]) for noise, deviations in errors]

    with rc_context(STYLE):
        figure = _figure(height=1.8 + 0.1 * len(tables) * (1 + len(errors)))
        axes = figure.subplots()
        thick = 0.8 / len(errors)
        for at, (noise, deviations) in enumerate(errors):
            places = [row + (at - (len(errors) - 1) / 2) * thick for row in range(len(tables))]
            axes.barh(places, deviations, height=thick * 0.9, color=COLOURS[at], label=noise)
        axes.set_yticks(range(len(tables)), [_short(table) for table in tables])
        axes.set(ylim=(len(tables) - 0.4, -0.6), xlabel="standard deviation of a count, in people")
        axes.set_title(plain(title), loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, loc="outside lower center", ncols=len(errors))
        _write(figure, shelf)


def _figure(height: float = 4.5) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(9, height), dpi=150, layout="constrained")


def _write(figure: Figure, shelf: Shelf) -> None:
    form = shelf.place.suffix.lower()[1:]
    about: dict[str, Any] = (
        {"Date": None} if form == "svg" else {"Software": None}
    )  # nothing of the clock or the machine

    def write(made: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of letters that the font lacks; a box stands for them
            figure.savefig(made, format=form, metadata=about)

    shelf.put(write)


def _largest(charges: Sequence[tuple[datetime, str, float]]) -> list[str | None]:
    """Who spent most, first; None for all the others, last, where there are more than can be told apart."""
    spent: dict[str, float] = {}
    for _, name, amount in charges:
        spent[name] = spent.get(name, 0.0) + amount
    names = sorted(spent, key=lambda name: (-spent[name], name))
    found: list[str | None] = [*names[:MOST_NAMES]]
    return found if len(names) <= MOST_NAMES else [*found, None]


def _steps(
    charges: Sequence[tuple[datetime, str, float]], names: Sequence[str | None]
) -> tuple[list[datetime], list[list[float]]]:
    """What each had spent at each instant; a clock that went back does not take time back."""
    places = {name: at for at, name in enumerate(names)}
    times, levels = [charges[0][0]], [[0.0] * len(names)]
    for when, name, amount in charges:
        level = [*levels[-1]]
        level[places.get(name, len(names) - 1)] += amount
        times.append(max(when, times[-1]))
        levels.append(level)
    return times, levels


def _short(name: str) -> str:
    shown = plain(name)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}…"
