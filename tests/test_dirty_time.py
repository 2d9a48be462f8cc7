"""How long a table takes to read does not tell which of its rows is the dirty one."""

from __future__ import annotations

import random
from pathlib import Path
from time import thread_time

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from tacit.domain.schema import CELL, Categories, Integers, Schema
from tacit.engines.table import open_table

SCHEMA = Schema([Integers("age", 0, 99, missing=CELL), Categories("sex", ("F", "M"), outside=CELL)])
ROWS, PLACES, RUNS = 20_000, (7, 9_999, 19_990), 30
DIRT = {
    "a stray quote": b'3,"F\n',
    "a field too many": b"3,F,4\n",
    "no text": b"3,\xff\xfe\n",
    "an odd number": b"+3.00000000000000000000,F\n",
    "a huge number": b"9" * 400 + b",F\n",
    "NaN": b"nan,F\n",
    "a category of its own": b"3,neither\n",
    "a null byte": b"3\0,F\n",
}


@pytest.mark.parametrize("dirt", DIRT.values(), ids=DIRT)
def test_the_place_of_a_dirty_row_does_not_show_in_the_time(dirt: bytes, tmp_path: Path) -> None:
    # three comparisons in eight cases, each with a false-alarm rate of 1e-8, by ranks: below 1e-6 in all
    lines = [b"%d,%s\n" % (at % 100, b"FM"[at % 2 : at % 2 + 1]) for at in range(ROWS)]
    paths = []
    for place in PLACES:
        paths.append(tmp_path / f"{place}.csv")
        paths[-1].write_bytes(b"age,sex\n" + b"".join([*lines[:place], dirt, *lines[place:]]))
    times: dict[int, list[float]] = {at: [] for at in range(len(PLACES))}
    order = [at for at in times for _ in range(RUNS)]
    random.Random(1).shuffle(order)
    for at in [0, 1, 2, *order]:
        table = open_table(paths[at], SCHEMA)
        begun = thread_time()
        table.counts([("age", "sex")])
        times[at].append(thread_time() - begun)
    for one, two in ((0, 1), (1, 2), (0, 2)):
        assert mannwhitneyu(times[one][1:], times[two][1:]).pvalue > 1e-8
    assert np.median(times[0]) < 0.5


def test_the_comparison_would_notice_a_row_that_is_looked_at_for_a_millisecond() -> None:
    rng = np.random.default_rng(0)
    held = rng.normal(0.004, 0.0003, (2, RUNS))
    assert mannwhitneyu(held[0], held[1] + 0.001).pvalue < 1e-8
