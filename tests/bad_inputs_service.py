"""What a curator, or somebody who is not one, may hand to the service; none of it may cost anything or tell anything.

`plant` makes a small table with canaries in it, its contract and its ledger. `CONTRACTS` spoil the contract, `COMMANDS`
the command line, the files and the budget. Each names the error or the exit code that must answer, and words that the
message must hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tacit.errors import InvalidBudget, InvalidInput, InvalidSchema

CANARIES = ("zq_canary", "31337133", "4444.125", "Zanzibar Zebedee")  # values of the table that no message may hold

PEOPLE = """\
name,age,sex,income
Zanzibar Zebedee,34,F,4444.125
x,31337133,M,100
x,zq_canary,F,200
x,41,zq_canary,300
x,42,M,zq_canary
""" + "".join(f"x,{20 + i % 50},{'FM'[i % 2]},{i * 13}\n" for i in range(60))

CONTRACT = """\
[data]
source = "people.csv"

[privacy]
neighbors = "add-remove"
epsilon = "4"
delta = "1e-9"
ledger = "people.ledger"

[[columns]]
name = "age"
low = 0
high = 99
outside = "clamp"

[[columns]]
name = "sex"
categories = ["F", "M"]

[[columns]]
name = "income"
edges = [0, 250, 500.5, 1000]
missing = "cell"
outside = "clamp"
"""


def plant(folder: Path, contract: str = CONTRACT, ledger: bool = True) -> Path:
    """A table, its contract and a ledger of its own."""
    from tacit.service.people import People

    folder.mkdir(exist_ok=True, parents=True)
    (folder / "people.csv").write_text(PEOPLE)
    path = folder / "people.toml"
    path.write_text(contract)
    if ledger:
        People.open(path).create_ledger().close()
    return path


@dataclass(frozen=True)
class Spoilt:
    """A contract with one thing wrong."""

    id: str
    old: str
    new: str
    says: tuple[str, ...]
    error: type[InvalidInput] = InvalidSchema

    @property
    def text(self) -> str:
        assert self.old in CONTRACT
        return CONTRACT.replace(self.old, self.new, 1)


AGE = "low = 0\nhigh = 99\n"
DAYS = 'from = 2024-01-01\nto = 2024-12-31\nby = "month"\n'

CONTRACTS = (
    Spoilt("nothing in it", CONTRACT, "", ("empty",)),
    Spoilt("no column", CONTRACT[CONTRACT.index("[[columns]]") :], "", ("declares no columns",)),
    Spoilt("no privacy", "[privacy]", "[secrecy]", ("line 4", "'secrecy'")),
    Spoilt(
        "a key nearly right", "epsilon = ", "epsilom = ", ("line 6, [privacy]", "'epsilom'", "did you mean epsilon?")
    ),
    Spoilt("a table nearly right", "[data]", "[date]", ("'date'", "did you mean data?")),
    Spoilt("a column key nearly right", "categories =", "category =", ("[[columns]] 2", "did you mean categories?")),
    Spoilt("a key twice", 'epsilon = "4"', 'epsilon = "4"\nepsilon = "9"', ("not valid TOML", "line 7")),
    Spoilt("a table twice", "[privacy]", '[data]\nsource="x"\n[privacy]', ("not valid TOML",)),
    Spoilt("YAML", CONTRACT, "data:\n  source: people.csv\n", ("not valid TOML", "line 1")),
    Spoilt("a Python object", CONTRACT, "!!python/object/apply:os.system ['true']", ("not valid TOML",)),
    Spoilt("nested too deeply", "[data]", "x = " + "[" * 5000 + "\n[data]", ("not valid TOML", "nested too deeply")),
    Spoilt("a number of 5000 digits", "low = 0", "low = " + "1" * 5000, ("not valid TOML", "too long")),
    Spoilt("a byte-order mark", "[data]", "\ufeff[data]", ("byte-order mark",)),
    Spoilt("data as a text", '[data]\nsource = "people.csv"', 'data = "people.csv"', ("line 1", "must be a table")),
    Spoilt(
        "columns in single brackets", CONTRACT[CONTRACT.index("[[columns]]") :], "[columns]\n", ("double brackets",)
    ),
    Spoilt("no source", 'source = "people.csv"', "", ("[data]", "source is missing")),
    Spoilt("a source that is a number", '"people.csv"', "7", ("line 2", "source must be a text", "'7'")),
    Spoilt("a password in a source", '"people.csv"', '"postgresql://a:b@h/t"', ("line 2", "has a password in it")),
    Spoilt("a password in words", '"people.csv"', '"host=h password = b"', ("line 2", "has a password in it")),
    Spoilt("a server without a table", '"people.csv"', '"postgresql://h/t"', ("[data]", "a schema and a name")),
    Spoilt(
        "a table without its schema", '"people.csv"', '"postgresql"\ntable = "people"', ("line 3", '"public.people"')
    ),
    Spoilt("a source that is blank", '"people.csv"', '"  "', ("source must be 1 to",)),
    Spoilt("a source with an escape", '"people.csv"', '"a\\u001b[2J"', ("printable",)),
    Spoilt("a person without rows", '"people.csv"', '"people.csv"\nperson = "name"', ("line 3", "needs most_rows")),
    Spoilt("rows without a person", '"people.csv"', '"people.csv"\nmost_rows = 3', ("line 3", "needs person")),
    *(
        Spoilt(
            f"{said} rows of a person",
            '"people.csv"',
            f'"people.csv"\nperson = "name"\nmost_rows = {said}',
            ("line 4", "most rows of a person"),
        )
        for said in ("0", "-3", "1.5", '"3"', "true", "10000000", "9999999999999999999")
    ),
    Spoilt(
        "a person that is a column",
        '"people.csv"',
        '"people.csv"\nperson = "sex"\nmost_rows = 3',
        ("line 3", "none of the [[columns]]"),
    ),
    Spoilt(
        "a person that is no name", '"people.csv"', '"people.csv"\nperson = " id"\nmost_rows = 3', ("line", "' id'")
    ),
    Spoilt("a person that is a number", '"people.csv"', '"people.csv"\nperson = 7\nmost_rows = 3', ("line 3", "text")),
    Spoilt("days without a period", AGE, DAYS.replace('by = "month"\n', ""), ("[[columns]] 1", "by is missing")),
    Spoilt("days without an end", AGE, DAYS.replace("to = 2024-12-31\n", ""), ("[[columns]] 1", "to is missing")),
    Spoilt("days by the hour", AGE, DAYS.replace("month", "hour"), ("[[columns]] 1", "day, week, month", "'hour'")),
    Spoilt("a day that is no day", AGE, DAYS.replace("2024-12-31", '"2024-02-30"'), ("[[columns]] 1", "'2024-02-30'")),
    Spoilt("a day that is a year", AGE, DAYS.replace("2024-12-31", "2024"), ("line 13", "to must be a day", "'2024'")),
    Spoilt(
        "a day with a time", AGE, DAYS.replace("2024-12-31", "2024-12-31T12:00:00"), ("line 13", "to must be a day")
    ),
    Spoilt("days that fall", AGE, DAYS.replace("2024-12-31", "2023-12-31"), ("[[columns]] 1", "must rise")),
    Spoilt("days and bounds", AGE, DAYS + "low = 0\n", ("[[columns]] 1", "'by'")),
    Spoilt("a domain of a fourth kind", "high = 99", 'high = 99\ndomain = "guessed"', ("line 14", "public, bought")),
    Spoilt("a domain that is true", "high = 99", "high = 99\ndomain = true", ("line 14", "public, bought")),
    Spoilt("no neighbours", 'neighbors = "add-remove"', "", ("neighbors is missing",)),
    Spoilt("unknown neighbours", '"add-remove"', '"bounded"', ("add-remove or replace-one", "'bounded'")),
    Spoilt("replace-one without people", '"add-remove"', '"replace-one"', ("need people",)),
    Spoilt("add-remove with people", 'delta = "1e-9"', "people = 65", ("line 7", "people is private")),
    Spoilt("people as a text", '"add-remove"', '"replace-one"\npeople = "65"', ("people must be a whole number",)),
    Spoilt("no people at all", '"add-remove"', '"replace-one"\npeople = 0', ("people must lie between",)),
    Spoilt("no epsilon", 'epsilon = "4"', "", ("epsilon is missing",)),
    *(
        Spoilt(f"epsilon {said}", 'epsilon = "4"', f"epsilon = {said}", ("line 6", "epsilon must"), InvalidBudget)
        for said in ("0", "-1", "nan", "inf", '"inf"', "true", "1e-400", "1e308", '"1e-12"', '""', "[4]", '"four"')
    ),
    *(
        Spoilt(f"delta {said}", 'delta = "1e-9"', f"delta = {said}", ("line 7", "delta must"), InvalidBudget)
        for said in ("1", "-1e-9", "nan", "1e-400", "2", '"1e-9x"', "false")
    ),
    Spoilt("no ledger", 'ledger = "people.ledger"', "", ("ledger is missing",)),
    Spoilt("the data as the ledger", '"people.ledger"', '"./people.csv"', ("line 8", "the file of the data")),
    Spoilt("the contract as the ledger", '"people.ledger"', '"people.toml"', ("the file of the contract",)),
    Spoilt("bounds from the data", "low = 0", 'low = "auto"', ("line 12", "never taken from the data")),
    Spoilt("categories from the data", '["F", "M"]', '"from data"', ("never taken from the data",)),
    Spoilt("a bound in quotes", "high = 99", 'high = "99"', ("line 13", "high is '99'")),
    Spoilt("a bound with a point", "high = 99", "high = 99.0", ("high must be a whole number",)),
    Spoilt("a bound that is a truth value", "low = 0", "low = false", ("low must be a whole number",)),
    Spoilt("bounds that fall", "low = 0", "low = 100", ("[[columns]] 1", "must rise")),
    Spoilt("a bound beyond 64 bits", "high = 99", "high = 9223372036854775808", ("does not fit 64 bits",)),
    Spoilt("a bound missing", "high = 99\n", "", ("'age'", "high is missing")),
    Spoilt("too many cells", "high = 99", "high = 1000000000", ("at most 1000000 values",)),
    Spoilt("no domain", 'categories = ["F", "M"]', "", ("line 16, [[columns]] 2", "needs its domain")),
    Spoilt("two domains", "low = 0", 'low = 0\ncategories = ["a"]', ("'age'", "unknown")),
    Spoilt("a category twice", '["F", "M"]', '["F", "F"]', ("twice",)),
    Spoilt("categories of two kinds", '["F", "M"]', '["F", 1]', ("all texts",)),
    Spoilt("no category", '["F", "M"]', "[]", ("1 to 1000000 categories",)),
    Spoilt("a reserved label", '["F", "M"]', '["F", "(missing)"]', ("reserved",)),
    Spoilt("a date among the categories", '["F", "M"]', "[1979-05-27]", ("all texts",)),
    Spoilt("edges that fall", "[0, 250, 500.5, 1000]", "[0, 500, 250]", ("[[columns]] 3", "rise strictly")),
    Spoilt("an edge twice", "[0, 250, 500.5, 1000]", "[0, 0, 1]", ("rise strictly",)),
    Spoilt("one edge", "[0, 250, 500.5, 1000]", "[0]", ("2 to",)),
    Spoilt("an edge that is no number", "[0, 250, 500.5, 1000]", "[0, nan]", ("finite",)),
    Spoilt("an infinite edge", "[0, 250, 500.5, 1000]", "[0, 1e400]", ("finite",)),
    Spoilt("an edge in quotes", "[0, 250, 500.5, 1000]", '[0, "1"]', ("must be numbers",)),
    Spoilt("a place that is none", 'missing = "cell"', 'missing = "guess"', ("line 23", "drop, cell", "'guess'")),
    Spoilt("clamped categories", '["F", "M"]', '["F", "M"]\noutside = "clamp"', ("one of drop, cell",)),
    Spoilt("a name twice", 'name = "sex"', 'name = "age"', ("read the same",)),
    Spoilt("a name in another case", 'name = "sex"', 'name = "AGE"', ("read the same",)),
    Spoilt("a name of a line", 'name = "sex"', 'name = "sex\\n"', ("a column name",)),
    Spoilt("a name of 10,000 letters", 'name = "sex"', f'name = "{"x" * 10_000}"', ("a column name",)),
    Spoilt("a name written backwards", 'name = "sex"', 'name = "a\\u202eb"', ("control character",)),
    Spoilt("a name that is a number", 'name = "sex"', "name = 5", ("a column name",)),
    Spoilt("no name", 'name = "sex"', "", ("a column name",)),
)


@dataclass(frozen=True)
class Wrong:
    """A command that must fail: what is done to the planted files, the words, the exit code, and what it says."""

    id: str
    words: Sequence[str]
    code: int
    says: tuple[str, ...]
    spoil: Callable[[Path], object] = lambda folder: None


def release(workload: str = "marginals:2", epsilon: str = "1", *more: str, out: str = "out") -> list[str]:
    """A release of the planted table, which would succeed as it stands."""
    return ["release", "people.toml", "--workload", workload, "--epsilon", epsilon, "--out", out, *more]


def other(old: str, new: str) -> Callable[[Path], object]:
    """Changes the contract after the ledger was made."""
    return lambda folder: (folder / "people.toml").write_text(CONTRACT.replace(old, new, 1))


def fresh(old: str, new: str) -> Callable[[Path], object]:
    """Changes the contract before the ledger was made."""

    def spoil(folder: Path) -> None:
        no_ledger(folder)
        plant(folder, CONTRACT.replace(old, new, 1))

    return spoil


def table(content: bytes | None) -> Callable[[Path], object]:
    """Another file in the table's place, or none."""
    path = "people.csv"
    if content is None:
        return lambda folder: (folder / path).unlink()
    return lambda folder: (folder / path).write_bytes(content)


def no_ledger(folder: Path) -> None:
    for file in folder.glob("people.ledger*"):
        file.unlink()


def cut_ledger(folder: Path) -> None:
    os.truncate(folder / "people.ledger", 5000)


def garbled_ledger(folder: Path) -> None:
    (folder / "people.ledger").write_bytes(b"this is no ledger" * 100)


def flipped_ledger(folder: Path) -> None:
    raw = bytearray((folder / "people.ledger").read_bytes())
    at = raw.index(b"add-remove")  # within its subject
    raw[at] ^= 1
    (folder / "people.ledger").write_bytes(raw)


def older_ledger(folder: Path) -> None:
    """A copy from before a release, put back after it."""
    copy = (folder / "people.ledger").read_bytes()
    released(folder)
    assert copy != (folder / "people.ledger").read_bytes()
    (folder / "people.ledger").write_bytes(copy)


def headless_ledger(folder: Path) -> None:
    """The head is gone from beside its ledger, which no crash explains."""
    released(folder)
    (folder / "people.ledger-head").unlink()


def pipe(folder: Path) -> None:
    (folder / "people.csv").unlink()
    os.mkfifo(folder / "people.csv")


def broken_parquet(folder: Path) -> None:
    fresh("people.csv", "people.parquet")(folder)
    (folder / "people.parquet").write_bytes(b"PAR1" + b"zq_canary" * 100)


def spreadsheet(folder: Path) -> None:
    fresh("people.csv", "people.xlsx")(folder)
    (folder / "people.csv").rename(folder / "people.xlsx")


def spent_ledger(folder: Path) -> None:
    released(folder, "4")


def pictured(folder: Path) -> None:
    (folder / "d.png").mkdir()


def released(folder: Path, epsilon: str = "1") -> None:
    from tacit.service.cli import run

    words = ["-w", "age*sex", "-e", epsilon, "-o", str(folder / "r"), "-q"]
    (folder / "old.png").write_bytes(b"an earlier picture")
    assert run(["release", str(folder / "people.toml"), *words]) == 0


def both(folder: Path) -> None:
    """A release of two tables, a link to the table of people, and what a DuckDB that is open leaves."""
    from tacit.service.cli import run

    (folder / "link.csv").symlink_to(folder / "people.csv")
    (folder / "open.duckdb.wal").write_bytes(b"what another has not finished")
    words = ["-w", "age*sex,income", "-e", "1", "-o", str(folder / "r"), "-q"]
    assert run(["release", str(folder / "people.toml"), *words]) == 0


def damaged_release(folder: Path) -> None:
    released(folder)
    text = (folder / "r" / "synopsis.json").read_text()
    (folder / "r" / "synopsis.json").write_text(text.replace("add-remove", "add-rename"))


def asking(text: str) -> Callable[[Path], object]:
    """A file of questions."""
    return lambda folder: (folder / "q.txt").write_text(text, encoding="utf-8", newline="")


def foreign(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "thesis.txt").write_text("years of work")


WRONG, REFUSED, UNAVAILABLE = 2, 3, 4

COMMANDS = (
    Wrong("no command", [], WRONG, ("Usage: tacit", "name a command")),
    Wrong("no such command", ["relese"], WRONG, ("relese", "release")),
    Wrong("no such option", release("sex", "1", "--epsilom", "2"), WRONG, ("--epsilom", "--epsilon")),
    Wrong("a seed for the noise", release("sex", "1", "--noise-seed", "1"), WRONG, ("--noise-seed",)),
    *(
        Wrong(f"{option} said again", release("sex", "1", option, "2"), WRONG, (option, "given twice", "Nothing was"))
        for option in ("-e", "--epsilon", "-w", "-o")
    ),
    Wrong("an option without its value", release("sex", "1", "--delta"), WRONG, ("--delta", "Nothing was spent")),
    Wrong("a word too many", ["release", "people.toml", "x", "-w", "sex", "-e", "1"], WRONG, ("(x)", "Nothing was")),
    Wrong("a seed without rows", release("sex", "1", "--seed", "3"), WRONG, ("--rows", "the noise", "no seed")),
    Wrong("no contract", ["release", "-w", "sex", "-e", "1", "-o", "out"], WRONG, ("CONTRACT",)),
    Wrong("no workload", ["release", "people.toml", "-e", "1", "-o", "out"], WRONG, ("--workload",)),
    Wrong("no epsilon", ["release", "people.toml", "-w", "sex", "-o", "out"], WRONG, ("--epsilon",)),
    Wrong("no folder", ["release", "people.toml", "-w", "sex", "-e", "1"], WRONG, ("--out", "Nothing was spent")),
    Wrong("a contract that is not there", ["release", "x.toml", "-w", "sex", "-e", "1"], WRONG, ("no such file",)),
    Wrong("a contract that is a folder", ["release", ".", "-w", "sex", "-e", "1"], WRONG, ("is a folder",)),
    Wrong("a contract without a name", ["release", "", "-w", "sex", "-e", "1"], WRONG, ("is a folder",)),
    Wrong("the table as the contract", ["release", "people.csv", "-w", "sex", "-e", "1"], WRONG, ("by its name",)),
    Wrong("the ledger as the contract", ["ledger", "people.ledger"], WRONG, ("not UTF-8",)),
    Wrong("a ledger of no contract", ["ledger", "show"], WRONG, ("CONTRACT",)),
    *(
        Wrong(f"epsilon {said!r}", release("sex", said), WRONG, ("epsilon must", "Nothing was spent"))
        for said in ("0", "nan", "inf", "1e-12", "1e308", "1e-400", "true", "", "1,5", "0x10", "1001", "1/0")
    ),
    Wrong("a negative epsilon", release("sex", "-1"), WRONG, ("epsilon must",)),
    *(
        Wrong(f"delta {said!r}", release("sex", "1", "--delta", said), WRONG, ("delta must", "Nothing was spent"))
        for said in ("1", "-1", "nan", "1e-400", "two")
    ),
    *(
        Wrong(f"workload {said[:20]!r}", release(said), WRONG, (*says, "Nothing was spent"))
        for said, *says in (
            ("", "a workload is"),
            ("   ", "a workload is"),
            ("marginals:0", "between 1 and 3"),
            ("marginals:4", "between 1 and 3"),
            ("marginals:two", "'marginals:two'", "marginals:K"),
            ("marginals:-1", "marginals:K"),
            ("marginals 2", "marginals:K"),
            ("marginal", "marginals:K"),
            ("*", "names no column"),
            ("age sex", "'age sex'"),
            ("ranges:", "'ranges:'", "ranges:COLUMN"),
            ("ranges:agee", "'agee'", "age"),
            ("ranges:sex", "'sex'", "no order"),
            ("ranges:sex*age", "'sex'", "no order"),
            ("ranges:age*age", "twice"),
            ("ranges:age*income*sex*sex", "twice"),
            ("prefixes:sex", "no order"),
            ("prefixes:age*sex", "'prefixes:age*sex'", "prefixes:COLUMN"),
            ("conjunctions:4", "between 1 and 3"),
            ("conjunctions", "conjunctions:K"),
            ("range:age", "'range:age'", "ranges:COLUMN"),
            ("marginals:1,ranges:2", "'2'"),
            ("@", "no column '@'"),
            ("@x.txt", "no file of questions", "x.txt: no such file"),
            ("@x.txt*age", "is no workload"),
            ("@.", "is a folder"),
            ("@people.csv", "is a table by its name"),
            ("@people.ledger", "not UTF-8"),
            ("agee", "'agee'", "age"),
            ("age*age", "twice"),
            ("age*", "no column"),
            ("age,,sex", "no column"),
            ('"age', "names no column"),
            ("sex;drop table", "no column"),
            ("x" * 100_001, "at most 100000"),
        )
    ),
    *(
        Wrong(f"a file with {text[:20]!r}", release("sex,@q.txt"), WRONG, (*says, "Nothing was spent"), asking(text))
        for text, *says in (
            ("", "q.txt is empty"),
            ("\n# age > 1\n", "only remarks"),
            ("age > 1\n  agee > 1", "q.txt, line 2: the predicate at character 3", "did you mean age?"),
            ("# a\r\n\r\nage > 'x'\r\n", "q.txt, line 3: the predicate at character 7"),
            ("select sum(age)", "q.txt, line 1: the query at character 8", "there is no SUM"),
            ("age > 1;\nage > 2", "line 1: the predicate at character 8"),
            ("age > 1 \0", "line 1: the predicate at character 9"),
            ("\ufeffage > 1", "byte-order mark"),
        )
    ),
    Wrong("a file of nothing but true", release("@q.txt"), WRONG, ("reads no column",), asking("true")),
    Wrong("a file too large", release("@q.txt"), WRONG, ("at most 16777216",), asking("age > 1\n" * (2**21 + 1))),
    Wrong(
        "a file of questions that is a pipe",
        release("@q"),
        WRONG,
        ("not a regular file",),
        lambda f: os.mkfifo(f / "q"),
    ),
    Wrong(
        "questions of a table", ["ask", "r", "@people.csv"], WRONG, ("is a table by its name",), lambda f: released(f)
    ),
    Wrong("a question of a file", ["ask", "people.toml", "@q.txt"], WRONG, ("q.txt, line 1",), asking("agee > 1")),
    *(
        Wrong(f"{option} {said}", release("sex", "1", option, said), WRONG, (option,))
        for option, said in (("--rows", "0"), ("--rows", "-5"), ("--rows", "1000000000"), ("--rows", "ten"))
    ),
    Wrong("a negative seed", release("sex", "1", "--rows", "5", "--seed", "-1"), WRONG, ("--seed",)),
    Wrong("a folder that exists", release(), WRONG, ("exists", "--force"), lambda folder: (folder / "out").mkdir()),
    Wrong("a file in its place", release(), WRONG, ("exists",), lambda folder: (folder / "out").touch()),
    Wrong("force on another's folder", release("sex", "1", "--force"), WRONG, ("not a folder that holds",), foreign),
    Wrong(
        "force on a link",
        release("sex", "1", "--force"),
        WRONG,
        ("not a folder that holds",),
        lambda folder: (folder / "out").symlink_to(folder),
    ),
    Wrong("a folder under a file", release(out="people.csv/out"), WRONG, ("cannot be written",)),
    Wrong("a folder without a name", release(out="/"), WRONG, ("Nothing was spent",)),
    Wrong("a folder of no letters", release(out=""), WRONG, ("Nothing was spent",)),
    Wrong("a folder above", release(out=".."), WRONG, ("Nothing was spent",)),
    Wrong("a folder of 300 letters", release(out="x" * 300), WRONG, ("name too long",)),
    Wrong(
        "more than the budget",
        release("sex", "5"),
        REFUSED,
        ("costs", "is left", "epsilon 4 at delta 1e-9", "Nothing was spent"),
    ),
    Wrong("pure in a ledger of rho", release("sex", "3", "--delta", "0"), REFUSED, ("state a delta",)),
    Wrong(
        "a delta in a pure ledger",
        release("sex", "1", "--delta", "1e-9"),
        REFUSED,
        ("delta = 0", "leave the delta out"),
        fresh('delta = "1e-9"', "delta = 0"),
    ),
    Wrong("a budget that is gone", release("sex", "0.001"), REFUSED, ("0 is left",), spent_ledger),
    Wrong("no table", release(), WRONG, ("Nothing was",), table(None)),
    Wrong("an empty table", release(), WRONG, ("Nothing was",), table(b"")),
    Wrong("a table without a column", release(), WRONG, ("no column 'income'",), table(b"age,sex\n1,F\n")),
    Wrong("a column in another case", release(), WRONG, ("'Age'", "not the same"), table(b"Age,sex,income\n1,F,2\n")),
    Wrong("a column twice", release(), WRONG, ("more than once",), table(b"age,sex,income,age\n1,F,2,3\n")),
    Wrong("columns between semicolons", release(), WRONG, ("no column 'age'",), table(b"age;sex;income\n1;F;2\n")),
    Wrong("a table in UTF-16", release(), WRONG, ("UTF-8",), table("age,sex,income\n1,F,2\n".encode("utf-16"))),
    Wrong("a pipe as the table", release(), WRONG, ("not a plain file",), pipe),
    Wrong("a table elsewhere", release(), WRONG, ("No such file",), fresh("people.csv", "https://x/people.csv")),
    Wrong("a table of another kind", release(), WRONG, (".parquet",), spreadsheet),
    Wrong("a broken Parquet file", release(), WRONG, ("Parquet",), broken_parquet),
    Wrong("no ledger", release(), UNAVAILABLE, ("tacit ledger create", "Nothing was spent"), no_ledger),
    Wrong("no ledger to show", ["ledger", "show", "people.toml"], UNAVAILABLE, ("tacit ledger create",), no_ledger),
    Wrong("an empty ledger", release(), UNAVAILABLE, (), lambda folder: os.truncate(folder / "people.ledger", 0)),
    Wrong("a ledger cut off", release(), UNAVAILABLE, (), cut_ledger),
    Wrong("a ledger of garbage", release(), UNAVAILABLE, (), garbled_ledger),
    Wrong("a ledger with a flipped bit", release(), UNAVAILABLE, (), flipped_ledger),
    Wrong("an older ledger put back", release(), UNAVAILABLE, ("an older copy was put back",), older_ledger),
    Wrong("a ledger without its head", release(), UNAVAILABLE, ("-head", "put it back"), headless_ledger),
    Wrong("more columns than the ledger's", release(), WRONG, ("the columns", "docs/contract.md"), other("99", "100")),
    Wrong("another table", release(), WRONG, ("the table's name",), other('"people.csv"', '"./people.csv"')),
    Wrong("other neighbours", release(), WRONG, ("neighbours",), other('"add-remove"', '"replace-one"\npeople = 65')),
    Wrong("a larger budget", release(), WRONG, ("does not change",), other('epsilon = "4"', "epsilon = 40")),
    Wrong("a larger delta", release(), WRONG, ("does not change",), other('"1e-9"', '"1e-3"')),
    Wrong("a folder as the ledger", release(), UNAVAILABLE, ("not a plain file",), other("people.ledger", ".")),
    Wrong(
        "a ledger made over a folder", ["ledger", "create", "people.toml"], UNAVAILABLE, (), other("people.ledger", ".")
    ),
    Wrong("a ledger made twice", ["ledger", "create", "people.toml"], UNAVAILABLE, ("people.ledger",)),
    Wrong("ledgers that are not there", ["ledger", "craete", "people.toml"], WRONG, ("'craete'",)),
    *(
        Wrong(f"a ledger with {' '.join(said)!r}", ["ledger", "show", "people.toml", *said], WRONG, says, released)
        for said, says in (
            (["--since", "yesterday"], ("--since is a day", "'yesterday'")),
            (["--since", "2026-13-01"], ("--since",)),
            (["--since", ""], ("--since",)),
            (["--since", "0001-01-01T00:00+14:00"], ("--since",)),
            (["--plot", "x.pdf"], (".png or .svg",)),
            (["--plot", ""], (".png or .svg",)),
            (["--plot", "people.csv", "--force"], (".png or .svg",)),
            (["--plot", "old.png"], ("old.png exists", "--force")),
            (["--plot", "people.csv/x.png"], ("cannot be written",)),
        )
    ),
    Wrong(
        "a plot of nothing", ["ledger", "show", "people.toml", "--plot", "x.svg"], WRONG, ("nothing was ever spent",)
    ),
    Wrong(
        "a plot over a folder",
        ["ledger", "people.toml", "--plot", "d.png", "--force"],
        WRONG,
        ("plain file",),
        pictured,
    ),
    Wrong(
        "a plan drawn as a table", ["plan", "people.toml", "-w", "sex", "-e", "1", "--plot", "x.csv"], WRONG, (".png",)
    ),
    Wrong(
        "a plot of a session",
        ["plan", "people.toml", "--online", "-e", "1", "--people", "9", "--plot", "x.png"],
        WRONG,
        ("--plot",),
    ),
    Wrong("a release that is not there", ["ask", "r", "age > 1"], WRONG, ("'r'",)),
    Wrong("a folder that is no release", ["ask", ".", "age > 1"], WRONG, ("synopsis",)),
    Wrong("a damaged release", ["ask", "r", "age > 1"], WRONG, ("was changed after it was written",), damaged_release),
    Wrong("no predicate", ["ask", "r"], WRONG, ("QUESTION",), released),
    Wrong("a session that is not there", ["ask", "people.toml", "age > 1"], WRONG, ("an epsilon opens it",)),
    Wrong("an epsilon for what is free", ["ask", "r", "age > 1", "-e", "1"], WRONG, ("answers for free",), released),
    Wrong("a session of no name", ["ask", "people.toml", "age > 1", "--by", ""], WRONG, ("--session is missing",)),
    *(
        Wrong(f"a session {said[1][:20]!r}", ["ask", "people.toml", "age > 1", *said, "-e", "0.5"], WRONG, (why,))
        for said, why in (
            (["--session", "../x"], "a session's name has"),
            (["--session", "a\tb"], "a session's name has"),
            (["--delta", "2"], "delta"),
            (["--queries", "0"], "the number of questions"),
            (["--queries", "many"], "--queries"),
            (["--request", ""], "identifier"),
            (["--request", "x" * 300], "identifier"),
        )
    ),
    *(
        Wrong(f"a question {said[:20]!r}", ["ask", "people.toml", said, "-e", "0.5"], WRONG, ("Nothing was spent",))
        for said in (
            "",
            "agee > 1",
            "select",
            "select sum(age) from people",
            "select count(*) from people; drop table x",
        )
    ),
    *(
        Wrong(f"an epsilon of {said!r}", ["ask", "people.toml", "age > 1", "-e", said], WRONG, ("epsilon",))
        for said in ("0", "-1", "nan", "inf", "1e-400", "one", "")
    ),
    Wrong("a session too dear", ["ask", "people.toml", "age > 1", "-e", "900"], REFUSED, ("is left",)),
    Wrong("two questions of one request", ["ask", "people.toml", "a", "b", "--request", "1"], WRONG, ("several",)),
    Wrong("a plan of nothing", ["plan", "people.toml", "-e", "1"], WRONG, ("--workload for a release or --online",)),
    Wrong("a plan of both", ["plan", "people.toml", "-e", "1", "-w", "age", "--online"], WRONG, ("one of them",)),
    Wrong("a plan for nobody knows how many", ["plan", "people.toml", "-e", "1", "--online"], WRONG, ("--people",)),
    Wrong("a plan for no epsilon", ["plan", "people.toml", "-w", "sex"], WRONG, ("--epsilon", "--error")),
    Wrong("both", ["plan", "people.toml", "-w", "sex", "-e", "1", "--error", "9"], WRONG, ("one of them",)),
    Wrong("a session for an error", ["plan", "people.toml", "--online", "--error", "9"], WRONG, ("--epsilon",)),
    *(
        Wrong(f"an error of {said!r}", ["plan", "people.toml", "-w", "sex", "--error", said], WRONG, ("the error",))
        for said in ("0", "-1", "nan", "inf", "few", "")
    ),
    Wrong(
        "too small an error",
        ["plan", "people.toml", "-w", "marginals:2", "--delta", "0", "--error", "1e-3"],
        REFUSED,
        ("no epsilon up to",),
    ),
    *(
        Wrong(
            f"a plan at confidence {said}",
            ["plan", "people.toml", "-w", "sex", "--error", "9", "--confidence", said],
            WRONG,
            ("confidence",),
        )
        for said in ("0", "1", "nan", "2", "95%", "")
    ),
    *(
        Wrong(f"a plan with {said}", ["plan", "people.toml", "-e", "1", "--online", *said], WRONG, (said[-2],))
        for said in (
            ["--people", "0"],
            ["--people", "9", "--rehearse", "-1"],
            ["--people", "9", "--seed", "-1"],
        )
    ),
    Wrong("a plan for too few", ["plan", "people.toml", "-e", "1", "--online", "--people", "9"], REFUSED, ("proved",)),
    Wrong("the second predicate", ["ask", "r", "age > 1", "agee > 1"], WRONG, ("'agee'",), released),
    *(
        Wrong(f"predicate {said[:20]!r}", ["ask", "r", said], WRONG, ("Nothing was spent",), released)
        for said in (
            "",
            "agee > 1",
            "age = 'x'",
            "sex = F",
            "1=1; drop table people",
            "age >",
            "age > nan",
            "age > 1e400",
            "(" * 5000 + "age > 1" + ")" * 5000,
            "__import__('os')",
            "age > 1 -- ",
            "-1 < age",
            "age => 1",
            "age == 1 && sex == 'F'",
            "income > 100",
        )
    ),
    *(
        Wrong(f"confidence {said}", ["ask", "r", "age > 1", "--confidence", said], WRONG, ("confidence",), released)
        for said in ("0", "1", "nan", "2", "-1", "high", "95%", "95")
    ),
    Wrong("an export of nothing", ["export", "r", "x.csv"], WRONG, ("'r'", "synopsis")),
    Wrong("an export of a contract", ["export", "people.toml", "x.csv"], WRONG, ("synopsis",)),
    Wrong("an export to nowhere", ["export", "r"], WRONG, ("OUT",), released),
    *(
        Wrong(f"an export of {' '.join(said)!r}", ["export", "r", *said], WRONG, (*says, "Nothing was spent"), both)
        for said, *says in (
            (["x"], "--format", "csv, parquet, duckdb"),
            (["x.xlsx"], "--format"),
            (["x", "--format", "excel"], "--format"),
            (["x.csv", "--format", "parquet"], "x.csv is no name for --format parquet"),
            (["x.csv"], "holds one table, and here are 2"),
            (["x.csv", "-m", "age,sex"], "here are 2"),
            (["x.csv", "-m", "age", "--rows", "5"], "here are 2"),
            (["x.csv", "-m", "agee"], "did you mean age?"),
            (["x.csv", "-m", "age*age"], "twice"),
            (["x.csv", "-m", "marginals:1"], "no column"),
            (["x.csv", "-m", ""], "names no column"),
            (["x.csv", "--rows", "0"], "--rows"),
            (["x.csv", "--rows", "1000000000"], "--rows"),
            (["x.csv", "--rows", "5", "--seed", "-1"], "--seed"),
            (["x.csv", "-m", "age", "--seed", "1"], "--seed is for --rows"),
            (["x", "--format", "csv", "--confidence", "1"], "confidence"),
            (["x", "--format", "csv", "--confidence", "high"], "confidence"),
            (["people.csv", "-m", "age"], "people.csv exists", "--force"),
            (["r", "--format", "csv"], "r exists"),
            (["r", "--format", "csv", "--force"], "r is not a folder of csv files"),
            (["r", "--format", "duckdb", "--force"], "r is not a plain file"),
            (["open.duckdb"], "open.duckdb.wal", "close it"),
            (["link.csv", "-m", "age", "--force"], "link.csv is not a plain file"),
            (["people.csv/x.csv", "-m", "age"], "cannot be written"),
            (["x" * 300 + ".csv", "-m", "age"], "name too long"),
            (["..", "--format", "csv"], "cannot be"),
        )
    ),
    Wrong("completion for no shell", ["completion"], WRONG, ("bash|zsh|fish",)),
    Wrong("completion for another shell", ["completion", "csh"], WRONG, ("'csh'", "'zsh'")),
    Wrong("a demo without a place", ["demo", "--folder", "/proc/town"], WRONG, ("cannot be made",)),
    Wrong("a word after demo", ["demo", "town"], WRONG, ("(town)",)),
    Wrong("a demo where something is", ["demo", "--folder", "."], WRONG, ("exists",)),
    Wrong("a demo over something else", ["demo", "--folder", ".", "--force"], WRONG, ("more than a demo",)),
)

COLUMNS_SAID: dict[str, dict[str, object]] = {
    "0..99": {"low": 0, "high": 99},
    " -5 .. +5 ": {"low": -5, "high": 5},
    "F,M": {"categories": ["F", "M"]},
    ' Old Town , "a,b", "say ""hi""" ': {"categories": ["Old Town", "a,b", 'say "hi"']},
    '"one"': {"categories": ["one"]},
    '"12:30",x': {"categories": ["12:30", "x"]},
    "0:10:20.50": {"edges": ["0", "10", "20.5"]},
    "-1:.5:1e3": {"edges": ["-1", "0.5", "1000"]},
    "2024-01-01..2024-12-31/month": {"from": date(2024, 1, 1), "to": date(2024, 12, 31), "by": "month"},
}


BUY = ("--buy-domains", "-e", "1", "--total", "4")
PERSON = ("--person", "name", "--most-rows", "2")


def init(*more: str) -> list[str]:
    return ["init", "people.csv", *more]


def said(text: str, *says: str) -> Wrong:
    return Wrong(f"column {text[:30]!r}", init("-c", text), WRONG, says)


INITS = (
    Wrong("no data", ["init"], WRONG, ("DATA",)),
    Wrong("data that is not there", ["init", "x.csv"], WRONG, ("No such file",)),
    Wrong("a folder of nothing", ["init", "none"], WRONG, ("no data file",), lambda folder: (folder / "none").mkdir()),
    Wrong("files of no kind", ["init", "."], WRONG, ("one kind",), lambda folder: (folder / "a.xlsx").touch()),
    Wrong("an empty table", init(), WRONG, ("empty",), table(b"")),
    Wrong("a table in UTF-16", init(), WRONG, ("UTF-8",), table("age\n1\n".encode("utf-16"))),
    Wrong(
        "a contract that exists", init(), WRONG, ("exists", "--force"), lambda folder: (folder / "people.toml").touch()
    ),
    Wrong("a table as the contract", init("-o", "out.csv"), WRONG, ("no name for a contract",)),
    Wrong("the data as the contract", init("-o", "people.csv", "--force"), WRONG, ("no name for a contract",)),
    Wrong("a folder as the contract", init("-o", "."), WRONG, ("no name for a contract",)),
    Wrong("a contract in no folder", init("-o", "x/y.toml"), WRONG, ("no such folder",)),
    Wrong(
        "force on a folder",
        init("-o", "d.toml", "--force"),
        WRONG,
        ("no contract",),
        lambda folder: (folder / "d.toml").mkdir(),
    ),
    Wrong("a password", ["init", "postgresql://a:s3cret@db/town", "--table", "public.p"], WRONG, ("a password in it",)),
    said("age", "NAME=DOMAIN"),
    said("=0..9", "NAME=DOMAIN"),
    said('"age=0..9', "NAME=DOMAIN"),
    said("agee=0..9", "'agee'", "did you mean age?"),
    said("age=", "--column 'age'", "0..99"),
    said("age=0-99", "--column 'age'", "one category"),
    said("age=99..0", "must rise"),
    said("age=0..9999999", "at most 1000000"),
    said("age=0..99999999999999999999999", "64 bits"),
    said("age=1:1", "rise strictly"),
    said("age=0:x", "'x' is no number"),
    said("age=0:1e999", "finite"),
    said("age=a,,b", "is empty"),
    said('age="a', "not closed"),
    said("age=a,a", "twice"),
    said("age=a,(missing)", "reserved"),
    said("age=2024-01-01..2024-12-31", "has no period", "/month"),
    said("age=2024-01-01..2024-12-31/hour", "'hour'"),
    said("age=2024-01-01..2024-02-30/day", "'2024-02-30'"),
    said("age=2024-12-31..2024-01-01/day", "must rise"),
    said("age=" + "x" * 1_000_001, "0..99"),
    Wrong("a column twice", init("-c", "age=0..9", "-c", "age=0..8"), WRONG, ("given twice",)),
    Wrong("a column that is left out", init("-c", "age=0..9", "--skip", "age"), WRONG, ("left out",)),
    Wrong(
        "the person as a column",
        init("-c", "name=a,b", "--person", "name", "--most-rows", "2"),
        WRONG,
        ("people apart",),
    ),
    Wrong("only and skip", init("--only", "age", "--skip", "sex"), WRONG, ("not both",)),
    Wrong("only what is not there", init("--only", "agee"), WRONG, ("'agee'",)),
    Wrong("a place without a domain", init("--missing", "age=cell"), WRONG, ("needs --column",)),
    Wrong("a place that is none", init("-c", "age=0..9", "--missing", "age=clamp"), WRONG, ("drop, cell",)),
    Wrong("clamped categories", init("-c", "sex=F,M", "--outside", "sex=clamp"), WRONG, ("drop, cell",)),
    Wrong("a person without rows", init("--person", "name"), WRONG, ("go together",)),
    Wrong("rows without a person", init("--most-rows", "2"), WRONG, ("go together",)),
    Wrong("a person of no rows", init("--person", "name", "--most-rows", "0"), WRONG, ("most rows of a person",)),
    Wrong("a person that is not there", init("--person", "id", "--most-rows", "2"), WRONG, ("'id'",)),
    Wrong("unknown neighbours", init("--neighbors", "bounded"), WRONG, ("'bounded'",)),
    Wrong("replace-one without people", init("--neighbors", "replace-one"), WRONG, ("--people",)),
    Wrong("people under add-remove", init("--neighbors", "add-remove", "--people", "65"), WRONG, ("--people",)),
    Wrong("no people", init("--people", "0"), WRONG, ("--people",)),
    *(Wrong(f"epsilon {said}", init("-e", said), WRONG, ("--epsilon",)) for said in ("0", "nan", "x", "1e9")),
    Wrong("delta 1", init("-e", "1", "--delta", "1"), WRONG, ("--delta",)),
    Wrong("a ledger without a name", init("--ledger", " "), WRONG, ("--ledger",)),
    Wrong("a table of a CSV file", init("--table", "people"), WRONG, ("DuckDB",)),
    Wrong("both ways to domains", init("--from-data", "--buy-domains"), WRONG, ("not both",)),
    *(
        Wrong(f"{option} for nothing", init(option, value), WRONG, (f"{option} is for",))
        for option, value in (("--total", "4"), ("--kind", "age=whole"), ("--by", "x"), ("--most-categories", "9"))
    ),
    *(
        Wrong(f"{number} categories", init("--from-data", "--most-categories", number), WRONG, ("--most-categories",))
        for number in ("0", "-1", "100000", "x")
    ),
    Wrong("domains without a price", init("--buy-domains", "--total", "4"), WRONG, ("--epsilon", "--total")),
    Wrong("domains without a total", init("--buy-domains", "-e", "4"), WRONG, ("--epsilon", "--total")),
    Wrong(
        "nothing to buy",
        init(*BUY, "--skip", "name,age,sex,income"),
        WRONG,
        ("no column is left",),
    ),
    Wrong(
        "domains for next to nothing",
        init("--buy-domains", "-e", "1e-9", "--total", "4", "--person", "name", "--most-rows", "1000000"),
        WRONG,
        ("a scale must be",),
    ),
    Wrong("more than the total", init("--buy-domains", "-e", "5", "--total", "4"), REFUSED, ("cost 5", "4 is left")),
    Wrong("a kind that is none", init(*BUY, "--kind", "age=int"), WRONG, ("'int'",)),
    Wrong("a kind of nothing", init(*BUY, "--kind", "x=whole"), WRONG, ("'x'",)),
    Wrong(
        "the ledger of another table",
        init(*BUY, "--ledger", "people.ledger"),
        WRONG,
        ("the columns differ",),
        lambda folder: (plant(folder), (folder / "people.toml").unlink()),
    ),
)
