"""What a curator, or somebody who is not one, may hand to the service; none of it may cost anything or tell anything.

`plant` makes a small table with canaries in it, its contract and its ledger. `CONTRACTS` spoil the contract, `COMMANDS`
the command line, the files and the budget. Each names the error or the exit code that must answer, and words that the
message must hold.
"""

from __future__ import annotations

from dataclasses import dataclass
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
        People.open(path).create_ledger()
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
    Spoilt("a source that is blank", '"people.csv"', '"  "', ("source must be 1 to",)),
    Spoilt("a source with an escape", '"people.csv"', '"a\\u001b[2J"', ("printable",)),
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
