"""The base task of the field, from a shell: `python bench/base.py`.

All 28 two-way marginals of a CSV of 100,000 rows and 8 columns, released end to end by the installed command
`tacit release`: starting Python, importing, reading, charging a ledger on the disk, drawing, saving. The bar is 2 CPU
seconds. In the same minutes a page of numpy counts the same marginals, without any privacy, to measure the machine.

The command is the one beside this interpreter; `--command` names another. Little is kept in memory here, because the
peak that the system tells of a child is never below its parent's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

SEED = 20140811
TEXTS = {
    "sex": ("F", "M"),
    "education": tuple(f"level {level}" for level in range(9)),
    "work": ("employed", "self-employed", "unemployed", "pupil", "retired", "other"),
    "region": tuple(f"region {number:02d}" for number in range(16)),
}
WHOLE = {"household": (1, 8), "hours": (0, 60), "age": (0, 99)}
EDGES = tuple(range(0, 105_000, 5_000))  # of income, written with cents
NAMES = (*TEXTS, *WHOLE, "income")
VERSIONS = ("tacit", "numpy", "pyarrow", "cryptography", "typer", "rich")

BY_HAND = f"""
import sys
from itertools import combinations
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
texts, whole, edges = {TEXTS!r}, {WHOLE!r}, {EDGES!r}
table = pyarrow.csv.read_csv(sys.argv[1], read_options=pyarrow.csv.ReadOptions(use_threads=False))
codes = {{name: pc.index_in(table[name], value_set=pa.array(texts[name])).to_numpy() for name in texts}}
codes.update({{name: table[name].to_numpy() - low for name, (low, high) in whole.items()}})
codes["income"] = np.searchsorted(np.array(edges[1:-1]), table["income"].to_numpy(), side="right")
sizes = {{**{{name: len(texts[name]) for name in texts}}, "income": len(edges) - 1}}
sizes.update({{name: high - low + 1 for name, (low, high) in whole.items()}})
for one, other in combinations(codes, 2):
    counts = np.bincount(codes[one] * sizes[other] + codes[other], minlength=sizes[one] * sizes[other])
    assert counts.sum() == table.num_rows
"""


@dataclass(frozen=True)
class Cost:
    """What the system says of a process that has ended."""

    cpu: float
    wall: float
    megabytes: float


def cost_of(command: list[str], folder: Path) -> Cost:
    began = time.perf_counter()
    with open(folder / "said", "w+", encoding="utf-8") as said:
        child = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        said.seek(0)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}:\n{said.read()}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / unit)


def write_people(place: Path, rows: int) -> None:
    """Skewed, independent columns, line by line."""
    draw = random.Random(SEED)
    with open(place, "w", encoding="utf-8") as file:
        print(*NAMES, sep=",", file=file)
        for _ in range(rows):
            cells = [texts[int(draw.random() ** 1.5 * len(texts))] for texts in TEXTS.values()]
            cells += [str(low + int(draw.random() ** 1.5 * (high - low + 1))) for low, high in WHOLE.values()]
            print(*cells, f"{draw.random() ** 1.5 * EDGES[-1]:.2f}", sep=",", file=file)


def write_contract(place: Path) -> None:
    said = ['[data]\nsource = "people.csv"\n\n[privacy]\nneighbors = "add-remove"\nepsilon = "1"\ndelta = "1e-9"']
    said.append('ledger = "people.ledger"')
    domains = {name: f"categories = {json.dumps(texts)}" for name, texts in TEXTS.items()}
    domains |= {name: f"low = {low}\nhigh = {high}" for name, (low, high) in WHOLE.items()}
    domains["income"] = f"edges = {list(EDGES)}"
    said += [f'\n[[columns]]\nname = "{name}"\n{domains[name]}' for name in NAMES]
    place.write_text("\n".join(said) + "\n", encoding="utf-8")


def one_release(command: str, folder: Path) -> Cost:
    """With a ledger and a place of its own."""
    for spent in folder.glob("people.ledger*"):
        spent.unlink()
    made = [command, "ledger", "create", "people.toml", "--quiet"]
    subprocess.run(made, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    out = f"released-{time.monotonic_ns()}"
    asked = [command, "release", "people.toml", "-w", "marginals:2", "--epsilon", "1", "--out", out, "--json"]
    cost = cost_of(asked, folder)
    said = json.loads((folder / "said").read_text(encoding="utf-8"))
    assert len(said["plan"]["marginals"]) == len(list(combinations(NAMES, 2)))
    assert (folder / out / "synopsis.json").is_file()
    return cost


def versions(command: str) -> str:
    """Of the packages that the command imports, asked of its own interpreter where it stands beside one."""
    beside = Path(command).with_name("python")
    asking = str(beside if beside.exists() else sys.executable)
    program = f"from importlib.metadata import version\nprint(*(f'{{n}} {{version(n)}}' for n in {VERSIONS}), sep=', ')"
    told = subprocess.run([asking, "-c", program], capture_output=True, text=True, check=True, cwd=Path(asking).parent)
    return f"Python {platform.python_version()}, {told.stdout.strip()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "tacit"), help="an installed tacit")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--bar", type=float, default=2, help="CPU seconds that the median may take")
    asked = parser.parse_args()
    command = os.path.abspath(asked.command)
    print(versions(command))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_people(folder / "people.csv", asked.rows)
        write_contract(folder / "people.toml")
        size = (folder / "people.csv").stat().st_size / 1e6
        print(f"28 two-way marginals of {asked.rows:,} rows x {len(NAMES)} columns, CSV, {size:.1f} MB")
        interpreter = str(Path(command).with_name("python"))
        by_hand = [interpreter if os.path.exists(interpreter) else sys.executable, "-c", BY_HAND, "people.csv"]
        one_release(command, folder)  # the first run fills the caches of the system
        runs: dict[str, list[Cost]] = {"tacit release": [], "numpy, counts only": []}
        for _ in range(asked.repeat):
            runs["tacit release"].append(one_release(command, folder))
            runs["numpy, counts only"].append(cost_of(by_hand, folder))
    heads = f"{'CPU s: best  median':>26}{'wall s: best  median':>24}{'peak MB':>10}"
    print(f"{asked.repeat} runs, imports included{heads}")
    for who, costs in runs.items():
        cpu, wall = [cost.cpu for cost in costs], [cost.wall for cost in costs]
        peak = max(cost.megabytes for cost in costs)
        print(
            f"{who:<29}{min(cpu):>12.2f}{statistics.median(cpu):>8.2f}"
            f"{min(wall):>16.2f}{statistics.median(wall):>8.2f}{peak:>10.0f}"
        )
    return int(statistics.median(cost.cpu for cost in runs["tacit release"]) > asked.bar)


if __name__ == "__main__":
    sys.exit(main())
