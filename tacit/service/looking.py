"""`tacit init --from-data`: what the rows happen to hold goes into the draft, marked, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from tacit.engines.columns import sort_of
from tacit.engines.looking import Seen, looked, year_of
from tacit.errors import InvalidSchema
from tacit.rational import whole
from tacit.service import ranges
from tacit.service.contract import FROM_DATA
from tacit.service.domains import Domain
from tacit.service.drafting import Draft
from tacit.service.show import Screen, Waiting
from tacit.service.starting import Begun, drafted, report, write

MOST_CATEGORIES = 1000


def look(begun: Begun, most: int, screen: Screen) -> None:
    """The command with a look at the rows."""
    whole(most, "--most-categories", 1, MOST_CATEGORIES)
    draft = drafted(begun)
    screen.warn(
        "--from-data reads categories and bounds off the rows: the draft is as confidential as they are, and nothing "
        'is spent under it before you have made each domain public knowledge and changed its mark to "public"'
    )
    with Waiting(screen, "reading the table"):
        seen = looked(begun.data, begun.table, {name: sort_of(draft.columns[name]) for name in draft.open}, most)
    found = {name: domain for name, column in seen.items() if (domain := _proposed(name, column)) is not None}
    draft = replace(draft, domains=_ordered(draft, found), read=True)
    write(draft, begun)
    report(draft, begun, screen)


def proposed(seen: Seen) -> Domain | None:
    """A domain that holds what was seen; None where it is too much to write down."""
    if seen.is_days:
        assert seen.first is not None  # noqa: S101 - as it is said
        assert seen.last is not None  # noqa: S101
        return ranges.days(year_of(seen.first), year_of(seen.last), FROM_DATA)
    if seen.is_numbers:
        assert seen.low is not None  # noqa: S101
        assert seen.high is not None  # noqa: S101
        if seen.is_whole:
            return ranges.wholes(int(seen.low), int(seen.high), FROM_DATA)
        return ranges.reals(seen.low, seen.high, FROM_DATA)
    return Domain({"categories": sorted(seen.categories)}, mark=FROM_DATA) if seen.categories else None


def _proposed(name: str, seen: Seen) -> Domain | None:
    try:
        domain = proposed(seen)
        if domain is not None:
            domain.column(name)
    except (InvalidSchema, ArithmeticError, ValueError):  # such as edges too close to each other for a float
        return None
    return domain


def _ordered(draft: Draft, found: dict[str, Domain]) -> dict[str, Domain]:
    both = {**draft.domains, **found}
    return {name: both[name] for name in draft.columns if name in both}
