"""`tacit init`: from a table's columns to a contract that a human completes and signs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.domain.person import Person
from tacit.domain.schema import Neighbors
from tacit.engines import address
from tacit.engines.columns import NONE, TRUTH, UNTYPED, columns_of, sort_of
from tacit.errors import InvalidBudget, InvalidParameter, InvalidSchema, Unavailable, quoted
from tacit.privacy.budget import checked_delta, checked_epsilon
from tacit.rational import whole
from tacit.service.contract import MOST_PEOPLE
from tacit.service.domains import FORMS, Domain, decided, domain, must_be_in, names
from tacit.service.drafting import Draft, Promise, truths
from tacit.service.keep import reason
from tacit.service.located import TABLES, printable
from tacit.service.show import Screen, aside, plain


@dataclass(frozen=True)
class Begun:
    """What was asked for on the command line."""

    data: str
    out: Path
    table: str | None
    columns: tuple[str, ...]
    missing: tuple[str, ...]
    outside: tuple[str, ...]
    only: str | None
    skip: str | None
    person: str | None
    most_rows: int | None
    neighbors: str | None
    people: int | None
    epsilon: str | None
    delta: str | None
    ledger: str | None
    force: bool


def refuse_stray(given: Mapping[str, object], from_data: bool, buy_domains: bool) -> None:
    """Refuses options that would do nothing: they were meant to do something."""
    if from_data and buy_domains:
        raise InvalidParameter("say --from-data or --buy-domains, not both. Nothing was read.")
    for option, value in given.items():
        needed = "from-data" if option == "most-categories" else "buy-domains"
        if value is not None and not (from_data if needed == "from-data" else buy_domains):
            raise InvalidParameter(f"--{option} is for --{needed}. Nothing was read.")


def begin(begun: Begun, ask: bool, screen: Screen) -> None:
    """The command without a look at the rows."""
    draft = drafted(begun)
    if ask and draft.open and sys.stdin is not None and sys.stdin.isatty() and not (screen.machine or screen.quiet):
        draft = asked(draft)
    write(draft, begun)
    report(draft, begun, screen)


def drafted(begun: Begun) -> Draft:
    """The draft that the flags and the source's header make; everything is checked, and no row is read."""
    free(begun)
    if why := address.fault(begun.data):
        raise InvalidParameter(f"{why[0].upper()}{why[1:]}. Nothing was read.")
    promise = _promise(begun)
    columns = columns_of(begun.data, begun.table)
    if not columns:
        raise InvalidParameter("the source has no column. Nothing was read.")
    sorts = {name: sort_of(kind) for name, kind in columns.items()}
    if (begun.person is None) != (begun.most_rows is None):
        raise InvalidParameter("--person and --most-rows go together: whose rows, and how many. Nothing was read.")
    if begun.person is not None:
        must_be_in(begun.person, columns, "--person")
        Person(begun.person, begun.most_rows or 0)
    domains = decided(begun.columns, begun.missing, begun.outside, sorts)
    left_out = _left_out(begun, columns, domains)
    for name in columns:
        if sorts[name] == TRUTH and name not in domains and name not in left_out and name != begun.person:
            domains[name] = truths()
    return Draft(
        source=_source(begun),
        table=begun.table,
        person=begun.person,
        most_rows=begun.most_rows,
        promise=promise,
        columns=columns,
        domains={name: domains[name] for name in columns if name in domains},
        left_out=left_out,
    )


def _promise(begun: Begun) -> Promise:
    neighbors = begun.neighbors or ("add-remove" if begun.people is None else "replace-one")
    if neighbors not in (known := [relation.value for relation in Neighbors]):
        raise InvalidParameter(f"--neighbors is {' or '.join(known)}, not {quoted(neighbors)}. Nothing was read.")
    if (neighbors == "replace-one") != (begun.people is not None):
        raise InvalidParameter(
            "--people, their public number, goes with --neighbors replace-one; under add-remove it is private. "
            "Nothing was read."
        )
    for option, said, check in (("epsilon", begun.epsilon, checked_epsilon), ("delta", begun.delta, checked_delta)):
        try:
            if said is not None:
                check(said)
        except InvalidBudget as error:
            raise InvalidBudget(f"--{option}: {error}") from None
    if begun.people is not None:
        whole(begun.people, "--people", 1, MOST_PEOPLE)
    ledger = f"{begun.out.stem}.ledger" if begun.ledger is None else begun.ledger
    if not ledger.strip() or not ledger.isprintable():
        raise InvalidParameter(f"--ledger names a file, not {quoted(ledger)}. Nothing was read.")
    return Promise(neighbors, begun.people, begun.epsilon, begun.delta, ledger)


def _left_out(begun: Begun, columns: Mapping[str, str | None], domains: Mapping[str, Domain]) -> frozenset[str]:
    if begun.only is not None and begun.skip is not None:
        raise InvalidParameter("say --only or --skip, not both. Nothing was read.")
    only, skip = names(begun.only, "--only", columns), names(begun.skip, "--skip", columns)
    gone = frozenset(skip or ()) if only is None else frozenset(columns) - frozenset(only)
    for name in domains:
        if name in gone or name == begun.person:
            why = "tells people apart" if name == begun.person else "is left out by --only or --skip"
            raise InvalidParameter(f"--column {quoted(name)}: it {why}. Nothing was read.")
        if sort_of(columns[name]) == NONE:
            raise InvalidParameter(f"--column {quoted(name)}: it is no column of one known type. Nothing was read.")
    return gone


def _source(begun: Begun) -> str:
    """The source as the contract names it: seen from the contract's folder."""
    if address.is_server(begun.data) or os.path.isabs(begun.data):
        source = begun.data
    else:
        source = os.path.relpath(begun.data, begun.out.absolute().parent)
    if not source.isprintable():
        raise InvalidParameter(f"{quoted(source)} cannot stand in a contract: rename it. Nothing was read.")
    return source


def free(begun: Begun) -> None:
    """Refuses a place where the draft cannot be written, before anything else is done."""
    out = begun.out
    if "\0" in str(out) or out.name in ("", "..") or out.suffix.lower() in TABLES:
        raise InvalidParameter(
            f"{printable(out)} is no name for a contract; write --out people.toml. Nothing was read."
        )
    if os.path.lexists(out):
        if not begun.force:
            raise InvalidParameter(
                f"{printable(out)} exists; name another file by --out, or add --force. Nothing was read."
            )
        if not out.is_file() or os.path.realpath(out) == os.path.realpath(begun.data):
            raise InvalidParameter(
                f"{printable(out)} is no contract, so --force does not replace it. Nothing was read."
            )
    if not out.absolute().parent.is_dir():
        raise InvalidParameter(f"{printable(out)} cannot be written: there is no such folder. Nothing was read.")


def asked(draft: Draft) -> Draft:
    """One question for each open column; an empty answer leaves it open, a minus leaves it out."""
    aside(f"A domain for each column: {FORMS}. Enter leaves it to be filled in, - leaves it out.")
    for name in draft.open:
        kind = draft.columns[name]
        while True:
            aside(f"{plain(name)} ({'text' if sort_of(kind) == UNTYPED else plain(kind or '')})")
            try:
                said = input().strip()
            except EOFError:
                return draft
            if said == "-":
                draft = replace(draft, left_out=draft.left_out | {name})
            elif said:
                try:
                    draft = replace(draft, domains={**draft.domains, name: domain(said, sort_of(kind))})
                except InvalidSchema as error:
                    aside(plain(str(error).removesuffix(" Nothing was spent.")))
                    continue
            break
    return draft


def write(draft: Draft, begun: Begun) -> None:
    """Writes the draft whole or not at all, and never over anything unless that was asked for."""
    out = begun.out
    beside = out.with_name(f".{out.name[:40]}-{os.getpid()}")
    try:
        mode = 0o600 if draft.read else 0o666  # what was read off the rows is for nobody else's eyes
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(draft.text)
        if begun.force:
            os.replace(beside, out)
            return
        try:
            os.link(beside, out)  # fails where something is
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS) or os.path.lexists(out):
                raise
            os.rename(beside, out)  # where files have one name only
            return
        os.unlink(beside)
    except OSError as error:
        if beside.exists():
            beside.unlink()
        raise Unavailable(f"{printable(out)} cannot be written: {reason(error)}.") from None


def report(draft: Draft, begun: Begun, screen: Screen) -> None:
    """What was written, what is missing, what comes next: in public terms."""
    out = printable(begun.out)
    screen.bare(out)
    screen.say(f"Drafted {out} for {printable(draft.source)}{'' if draft.read else '; no row was read'}.")
    screen.facts(
        [
            ("declared", listed(name for name in draft.columns if name in draft.domains)),
            ("to fill in", listed(f"{what} (line {line})" for line, what in draft.lines_to_fill)),
            ("left out", listed(sorted(draft.left_out))),
        ]
        if not draft.read
        else [("domains", "as the draft says, which is as confidential as the data until you have signed it")]
    )
    first = f"complete {out} where it says FILL IN, then: " if draft.read or draft.lines_to_fill else ""
    screen.say(f"Next: {first}tacit check {out}")
    screen.give(
        {
            "contract": os.fspath(begun.out),
            "source": draft.source,
            "from_data": draft.read,
            **(
                {}
                if draft.read
                else {
                    "declared": [name for name in draft.columns if name in draft.domains],
                    "to_fill_in": [{"line": line, "what": what} for line, what in draft.lines_to_fill],
                    "left_out": sorted(draft.left_out),
                }
            ),
        }
    )


def listed(found: Iterable[object]) -> str:
    """Some words in a row, the first of many."""
    words = [plain(str(word)) for word in found]
    more = f" and {len(words) - 20} more" if len(words) > 20 else ""
    return ", ".join(words[:20]) + more or "-"
