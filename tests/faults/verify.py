"""Checks a ledger against what its client was told, sharing no code with it: verify.py LEDGER ACKS [LEDGER ACKS ...].

It works on copies, and prints for each ledger `sound N` (N charges), `absent`, or what is broken:
I1 the charges pass the budget; I3 an acknowledged charge is missing, doubled or other; I5 it cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

COLUMNS = "sequence, block, what, amount, spent, currency, moment, by, purpose, reserved, previous, hash"


def complaint(path, acks):
    told = Path(acks).read_text().splitlines() if os.path.exists(acks) else []
    kept = [line.split()[1:3] for line in told if line.startswith("kept ")]
    if not os.path.exists(path):
        return "I3 the ledger is gone" if kept or "done create" in told else "absent"
    with tempfile.TemporaryDirectory() as folder:
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                shutil.copyfile(path + end, f"{folder}/copy{end}")
        try:
            connection = sqlite3.connect(f"{folder}/copy")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            contract = connection.execute("SELECT subject, budget, stated, opened, hash FROM contract").fetchone()
            rows = connection.execute(f"SELECT {COLUMNS} FROM charge ORDER BY sequence").fetchall()  # noqa: S608
            connection.close()
        except (sqlite3.Error, AssertionError) as error:
            return f"I5 it cannot be read: {error!r}"
    budgets = {0: contract[1]} | {row[0]: row[9] for row in rows if row[9]}
    for block, budget in budgets.items():
        if sum(Fraction(row[3]) for row in rows if row[1] == block) > Fraction(budget.split()[0]):
            return f"I1 block {block} passed its budget"
    before = hashlib.sha256(json.dumps((0x74616369, 1, *contract[:4]), separators=(",", ":")).encode()).hexdigest()
    for number, row in enumerate(rows, 1):
        seal = hashlib.sha256(json.dumps(row[:-1], separators=(",", ":")).encode()).hexdigest()
        if row[0] != number or Fraction(row[3]) <= 0 or row[10] != before or row[11] != seal:
            return f"I3 row {number} is not as it was written"
        before = seal
    for what, amount in kept:
        if [row[3] for row in rows if row[2] == what] != [amount]:
            return f"I3 {what} was acknowledged and is not there once with its amount"
    return f"sound {len(rows)}"


if __name__ == "__main__":
    for path, acks in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        print(complaint(path, acks), flush=True)
