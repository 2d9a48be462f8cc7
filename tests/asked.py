"""A table in which every two columns are independent and all three are not, which surprises; and its contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.service.people import People

PEOPLE = 20_000

CONTRACT = """
[data]
source = "people.csv"

[privacy]
neighbors = "{neighbors}"
{people}
epsilon = "{epsilon}"
delta = "{delta}"
ledger = "people.ledger"

[[columns]]
name = "a"
low = 0
high = 3

[[columns]]
name = "b"
low = 0
high = 3

[[columns]]
name = "c"
categories = ["no", "yes"]
"""


def planted(
    folder: Path,
    *,
    neighbors: str = "replace-one",
    epsilon: str = "20",
    delta: str = "1e-6",
    whole: bool = False,
    each: int = 0,
    most: int = 0,
) -> Path:
    """The contract, with its table and its ledger; of persons of so many rows, of which at most so many count."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.csv").write_text(
        "a,b,c,id\n" + "".join(f"{a},{b},{c},{at // max(each, 1)}\n" for at, (a, b, c) in enumerate(rows()))
    )
    contract, public = folder / "people.toml", f"people = {PEOPLE}" if neighbors == "replace-one" else ""
    text = CONTRACT.format(neighbors=neighbors, people=public, epsilon=epsilon, delta=delta)
    if whole:  # no row is dropped, so that the public number of people is that of the rows
        text = text.replace("name =", 'missing = "cell"\noutside = "cell"\nname =')
    if each:
        text = text.replace("[privacy]", f'person = "id"\nmost_rows = {most or each}\n[privacy]')
    contract.write_text(text)
    with People.open(contract) as people:
        people.create_ledger().close()
    return contract


TRUE: dict[str, Callable[[int, int, str], bool]] = {
    "a in (0, 2) and b in (0, 2) and c = 'no'": lambda a, b, c: a % 2 == b % 2 == 0 and c == "no",
    "a <= 1 and b <= 1": lambda a, b, c: a <= 1 and b <= 1,
    "c = 'yes'": lambda a, b, c: c == "yes",
    "a in (1, 3) and b in (0, 2) and c = 'no'": lambda a, b, c: a % 2 == 1 and b % 2 == 0 and c == "no",
    "a = 0 or b = 3": lambda a, b, c: a == 0 or b == 3,
    "b <= 1 and a <= 1": lambda a, b, c: a <= 1 and b <= 1,
    "a = 2 and b = 2 and c = 'no'": lambda a, b, c: a == b == 2 and c == "no",
}
QUESTIONS = tuple(TRUE)


def rows() -> Iterator[tuple[int, int, str]]:
    """Whether c is yes is whether a + b is odd."""
    return ((i % 4, i // 4 % 4, "yes" if (i % 4 + i // 4) % 2 else "no") for i in range(PEOPLE))


def exact(question: str) -> int:
    """The truth about one of the questions."""
    return sum(TRUE[question](*row) for row in rows())
