"""An invented town, for trying things out: nobody lives in it, so its true counts may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

PEOPLE = 50_000
FOUNDED = 1847  # the seed: the same town every time, which is fine because it protects nobody

DISTRICTS = ("Harbour", "Old Town", "Mill Quarter", "Station", "Hillside", "Orchards", "New Quay", "Fairfield")
EDUCATION = ("none yet", "primary", "secondary", "vocational", "bachelor", "master", "doctorate")
EMPLOYMENT = ("child", "student", "employed", "self-employed", "unemployed", "at home", "retired")
OCCUPATIONS = ("none", "care", "craft", "education", "farming", "office", "research", "sales", "transport")

Codes: TypeAlias = NDArray[np.int64]

CONTRACT = """\
# The contract of an invented town. Everything in it is public; nothing in it was learnt from the data.

[data]
source = "town.csv"          # seen from this file's folder; or .tsv, .parquet, a folder, a pattern, .duckdb

[privacy]
neighbors = "add-remove"     # a table with one more person must be hard to tell from this one
epsilon = "4"                # all that may ever be spent on this table
delta = "1e-9"               # 0 for pure differential privacy
ledger = "town.ledger"       # what was spent, by whom, for what; made once by `tacit ledger create town.toml`

[[columns]]
name = "age"
low = 0
high = 99
outside = "clamp"            # 104 counts as 99

[[columns]]
name = "sex"
categories = ["F", "M"]

[[columns]]
name = "district"
categories = [{districts}]

[[columns]]
name = "education"
categories = [{education}]

[[columns]]
name = "employment"
categories = [{employment}]

[[columns]]
name = "occupation"
categories = [{occupations}]

[[columns]]
name = "income"              # a year, in crowns; cells from one edge up to the next
edges = [0, 5000, 10000, 15000, 20000, 25000, 30000, 40000, 50000, 60000, 80000, 100000, 150000]
missing = "cell"             # who did not say is counted in a cell of its own
outside = "clamp"            # 400,000 counts in the last cell

[[columns]]
name = "household"           # how many live together
low = 1
high = 8
outside = "clamp"
"""


def found(folder: Path, people: int = PEOPLE) -> tuple[Path, Path]:
    """Writes the town's table and its contract into a folder; returns the paths of both."""
    import pyarrow as pa  # what only the demo needs, only the demo waits for
    from pyarrow import csv

    labels = {"sex": ("F", "M"), "district": DISTRICTS, "education": EDUCATION}
    labels |= {"employment": EMPLOYMENT, "occupation": OCCUPATIONS}
    columns = {
        name: pa.array(labels[name]).take(pa.array(values)) if name in labels else pa.array(values, from_pandas=True)
        for name, values in residents(people).items()
    }
    columns["income"] = columns["income"].cast(pa.int64())
    data, contract = folder / "town.csv", folder / "town.toml"
    csv.write_csv(pa.table(columns), data, csv.WriteOptions(quoting_style="needed"))
    contract.write_text(charter(), encoding="utf-8")
    return data, contract


def charter() -> str:
    """The town's contract."""
    lists = {"districts": DISTRICTS, "education": EDUCATION, "employment": EMPLOYMENT, "occupations": OCCUPATIONS}
    return CONTRACT.format(**{name: ", ".join(f'"{value}"' for value in values) for name, values in lists.items()})


def residents(people: int = PEOPLE) -> dict[str, Codes | NDArray[np.float64]]:
    """The town's people, column by column: codes of categories, and numbers; an income of NaN was not given."""
    rng = np.random.default_rng(FOUNDED)
    district = _pick(rng, np.tile([0.16, 0.12, 0.15, 0.11, 0.14, 0.10, 0.13, 0.09], (people, 1)))
    years = np.minimum(rng.normal(41 + 3 * (district == 5) - 6 * (district == 6), 23, people), 106)
    age: Codes = np.where(years < 0, rng.integers(0, 60, people), years).astype(np.int64)
    sex = (rng.random(people) >= 0.5 + np.clip(age - 65, 0, 30) / 180).astype(np.int64)  # women live longer
    education = _education(rng, age, sex, district)
    employment = _employment(rng, age, sex, education)
    occupation = _occupation(rng, sex, district, education, employment)
    income = _income(rng, age, education, employment, occupation)
    alone = np.where(age > 70, 0.55, np.where(age < 18, 0.0, 0.3))
    household = np.where(rng.random(people) < alone, 1, 2 + rng.poisson(np.where(age < 50, 1.5, 0.5), people))
    return {
        "age": age,
        "sex": sex,
        "district": district,
        "education": education,
        "employment": employment,
        "occupation": occupation,
        "income": income,
        "household": household,
    }


def _pick(rng: np.random.Generator, weights: NDArray[np.float64]) -> Codes:
    """For each row one code, in proportion to the row's weights."""
    upto = np.cumsum(weights, axis=1)
    codes: Codes = (rng.random((len(weights), 1)) * upto[:, -1:] >= upto).sum(axis=1, dtype=np.int64)
    return codes


def _education(rng: np.random.Generator, age: Codes, sex: Codes, district: Codes) -> Codes:
    weights = np.tile([0.0, 0.08, 0.27, 0.28, 0.22, 0.12, 0.03], (len(age), 1))
    weights[:, 1] *= 1 + np.clip(age - 50, 0, 50) / 12  # the old left school early
    weights[:, 4:] *= np.where(np.isin(district, [1, 4, 6]), 1.7, 0.8)[:, None]
    weights[:, 4] *= np.where((sex == 0) & (age < 45), 1.4, 1.0)
    for level, least in enumerate((0, 6, 15, 18, 21, 23, 27)):
        weights[:, level] *= age >= least
    weights[age < 6, 0] = 1
    return _pick(rng, weights)


def _employment(rng: np.random.Generator, age: Codes, sex: Codes, education: Codes) -> Codes:
    weights = np.tile([0.0, 0.02, 0.70, 0.10, 0.06, 0.05, 0.0], (len(age), 1))
    weights[:, 1] += np.select([age < 19, age < 25], [6.0, 0.9], 0)
    weights[:, 4] *= np.where(education <= 2, 2.0, 0.7)
    weights[:, 5] *= np.where(sex == 0, 2.2, 0.7)
    weights[:, 6] = np.select([age >= 67, age >= 60], [8.0, 0.6], 0)
    weights[age < 16] = np.eye(7)[0]
    return _pick(rng, weights)


def _occupation(rng: np.random.Generator, sex: Codes, district: Codes, education: Codes, employment: Codes) -> Codes:
    weights = np.tile([0.0, 0.14, 0.16, 0.09, 0.05, 0.24, 0.04, 0.17, 0.11], (len(sex), 1))
    weights[:, [1, 3]] *= np.where(sex == 0, 2.3, 0.6)[:, None]
    weights[:, [2, 8]] *= np.where(sex == 0, 0.3, 1.6)[:, None] * np.where(education <= 3, 1.5, 0.3)[:, None]
    weights[:, 4] *= np.where(district == 5, 6.0, 0.6)
    weights[:, 8] *= np.where(district == 0, 2.5, 1.0)
    weights[:, 5] *= np.where(education >= 4, 1.6, 0.8)
    weights[:, 6] *= np.select([education == 6, education == 5], [20.0, 4.0], 0.1)
    weights[~np.isin(employment, [2, 3])] = np.eye(9)[0]
    return _pick(rng, weights)


def _income(
    rng: np.random.Generator, age: Codes, education: Codes, employment: Codes, occupation: Codes
) -> NDArray[np.float64]:
    base = np.array([0, 3_000, 34_000, 30_000, 9_000, 2_500, 17_000])[employment]
    degree = np.array([0.7, 0.75, 0.9, 1.0, 1.25, 1.5, 1.8])[education]
    trade = np.array([1, 0.85, 1.0, 0.95, 0.75, 1.1, 1.25, 0.9, 0.95])[occupation]
    years = 0.6 + 0.4 * np.clip(age - 18, 0, 30) / 30
    income = np.round(base * degree * trade * years * rng.lognormal(0, 0.38, len(age)) / 10) * 10
    return np.where((rng.random(len(age)) < 0.03) & (age >= 16), np.nan, income)  # some do not say
