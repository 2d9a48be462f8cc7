"""The receipt that goes with whatever was released: what was promised, what it cost, and what it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tacit.domain.person import MOST_ROWS
from tacit.domain.schema import Neighbors
from tacit.errors import InvalidData
from tacit.rational import shown

LONGEST_TEXT, MOST_CHARGES = 3000, 100_000

_RATIO = re.compile(r"[0-9]+(/0*[1-9][0-9]*)?")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version() -> str:
    try:
        return version("tacit")
    except PackageNotFoundError:  # run from a copy that was not installed
        return "unknown"


@dataclass(frozen=True)
class Receipt:
    """Of public facts alone: the budget, every charge, who counts as a neighbour, and the noise that was drawn.

    >>> rho, stated = Fraction(1, 8), (Fraction(1), Fraction(1, 10**9))
    >>> print(Receipt("rho", rho, stated, (("Gaussian(rho=1/8)", rho),), Neighbors.ADD_REMOVE,
    ...     ("Gaussian, standard deviation 2",), purpose="a trial", created="2026-01-02", version="1"))
    promise   epsilon=1, delta=1e-9, paid as rho=0.125
    charges   0.125  Gaussian(rho=1/8)
    people    add-remove neighbours; their number was not public
    noise     Gaussian, standard deviation 2
    purpose   a trial
    made      2026-01-02 by tacit 1
    """

    currency: str  # epsilon or rho
    amount: Fraction
    stated: tuple[Fraction, Fraction] | None  # epsilon and delta, where the budget was stated so
    charges: tuple[tuple[str, Fraction], ...]  # what was paid for, in the budget's currency
    neighbors: Neighbors
    noise: tuple[str, ...]
    total_public: bool = False
    purpose: str = ""
    created: str = field(default_factory=_now)  # UTC
    version: str = field(default_factory=_version)
    rows: int = field(default=1, kw_only=True)  # that a person has in the counts, at most

    def __str__(self) -> str:
        paid = f"{self.currency}={shown(self.amount)}"
        if self.stated is None:
            promise = paid
        else:
            epsilon, delta = self.stated
            promise = f"epsilon={shown(epsilon)}" + (f", delta={shown(delta)}" if delta else "")
            promise += "" if promise == paid else f", paid as {paid}"
        known = "public" if self.total_public else "not public"
        each = "" if self.rows == 1 else f" of at most {self.rows} rows each"
        said = [
            ("promise", promise),
            *(("charges", f"{shown(cost)}  {what}") for what, cost in self.charges),
            ("people", f"{self.neighbors.value} neighbours{each}; their number was {known}"),
            *(("noise", noise) for noise in self.noise),
            ("purpose", self.purpose or "none stated"),
            ("made", f"{self.created} by tacit {self.version}"),
        ]
        return "\n".join(f"{name:<10}{one_line(text)}" for name, text in said)

    def describe(self) -> dict[str, Any]:
        """What a saved synopsis says of it; fractions as numerator/denominator."""
        return {
            "currency": self.currency,
            "amount": str(self.amount),
            "stated": None if self.stated is None else [str(part) for part in self.stated],
            "charges": [[what, str(cost)] for what, cost in self.charges],
            "neighbors": self.neighbors.value,
            "noise": list(self.noise),
            "total_public": self.total_public,
            "purpose": self.purpose,
            "created": self.created,
            "version": self.version,
            "rows": self.rows,
        }

    @classmethod
    def of(cls, said: object) -> Receipt:
        """The receipt that `describe` described."""
        if not isinstance(said, Mapping) or set(said) | {"rows"} != {held.name for held in fields(cls)}:
            raise InvalidData("a receipt in it lacks a part, or has one that no receipt has. Nothing was spent.")
        stated, charges, noise = said["stated"], said["charges"], said["noise"]
        texts = [said[name] for name in ("currency", "purpose", "created", "version")]
        if (
            said["currency"] not in ("epsilon", "rho")
            or said["neighbors"] not in [relation.value for relation in Neighbors]
            or type(said["total_public"]) is not bool
            or type(rows := said.get("rows", 1)) is not int  # those of older releases say nothing, and have one
            or not 1 <= rows <= MOST_ROWS
            or not (stated is None or (isinstance(stated, list) and len(stated) == 2))
            or not (isinstance(charges, list) and len(charges) <= MOST_CHARGES)
            or not all(isinstance(charge, list) and len(charge) == 2 for charge in charges)
            or not (isinstance(noise, list) and len(noise) <= MOST_CHARGES)
            or not all(
                isinstance(text, str) and len(text) <= LONGEST_TEXT
                for text in (*texts, *noise, *(what for what, _ in charges))
            )
        ):
            raise InvalidData("a receipt in it cannot be read. Nothing was spent.")
        return cls(
            said["currency"],
            _fraction(said["amount"]),
            None if stated is None else (_fraction(stated[0]), _fraction(stated[1])),
            tuple((what, _fraction(cost)) for what, cost in charges),
            Neighbors(said["neighbors"]),
            tuple(noise),
            said["total_public"],
            said["purpose"],
            said["created"],
            said["version"],
            rows=rows,
        )


def one_line(text: str) -> str:
    """The text with escapes for what would not print as itself: it cannot act on a terminal, nor pass for more lines.

    >>> print(one_line("census\\npromise   epsilon=0"))
    census\\npromise   epsilon=0
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _fraction(text: object) -> Fraction:
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or not _RATIO.fullmatch(text):
        raise InvalidData("an amount in its receipt is no fraction. Nothing was spent.")
    return Fraction(text)
