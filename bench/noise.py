"""How fast exact noise is, beside OpenDP on the same core: `python bench/noise.py --opendp /path/to/python`.

The interpreter given is one that can import opendp; it runs as a child on the same core and answers one request at a
time, so that both sides see the same machine. Seconds are those of the processor, which neighbours on the machine
disturb least. Cold means that tables are thrown away first. Exits with 1 where the cold ratio falls below the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from itertools import count

import numpy as np

from tacit.primitives.noise import SYSTEM
from tacit.primitives.tables import tables

CHILD = """
import json, sys, time
from importlib.metadata import version
import opendp.prelude as dp
dp.enable_features("contrib")
print(version("opendp"), flush=True)
for line in sys.stdin:
    law, scale, draws = json.loads(line)
    metric, make = (dp.l1_distance, dp.m.make_laplace) if law == "laplace" else (dp.l2_distance, dp.m.make_gaussian)
    release = make(dp.vector_domain(dp.atom_domain(T="i64")), metric(T="i64"), scale=float(scale))
    zeros = [0] * draws
    start = time.process_time()
    drawn = release(zeros)
    took = time.process_time() - start
    assert len(drawn) == draws
    print(took, flush=True)
"""


class OpenDP:
    """The other side, in its own interpreter."""

    def __init__(self, interpreter: str) -> None:
        self.child = subprocess.Popen(
            [interpreter, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={}
        )
        self.version = self._said()

    def _said(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def seconds(self, law: str, scale: int, draws: int) -> float:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps([law, scale, draws]) + "\n")
        self.child.stdin.flush()
        return float(self._said())


def seconds(act: Callable[[], object], times: int = 7, before: Callable[[], object] = lambda: None) -> float:
    """The median of several runs."""
    took = []
    for _ in range(times):
        before()
        start = time.process_time()
        act()
        took.append(time.process_time() - start)
    return statistics.median(took)


def draw(law: str, scale: Fraction, draws: int) -> Callable[[], object]:
    return (lambda: SYSTEM.laplace(scale, draws)) if law == "laplace" else (lambda: SYSTEM.gaussian(scale**2, draws))


def beside_opendp(other: OpenDP, draws: int) -> float:
    print(f"\n{draws:,} integers, million a second   opendp   tacit cold    warm   ratio cold    warm")
    least = float("inf")
    for law in ("laplace", "gaussian"):
        for scale in (1, 100, 10**4):
            act = draw(law, Fraction(scale), draws)
            cold, warm = seconds(act, before=tables.cache_clear), seconds(act)
            theirs = other.seconds(law, scale, draws)
            again = seconds(act)  # the machine may have changed its pace meanwhile: the slower counts
            warm = max(warm, again)
            least = min(least, theirs / cold)
            rates = f"{draws / theirs / 1e6:8.3f}   {draws / cold / 1e6:10.1f}   {draws / warm / 1e6:5.1f}"
            print(f"{law:>8}, scale {scale:<14,}          {rates}   {theirs / cold:10.0f}   {theirs / warm:5.0f}")
    return least


ODD = 2**60 + 33  # a denominator of 61 bits
ALONE = {
    "laplace, scale 7/3": lambda n: SYSTEM.laplace(Fraction(7, 3), n),
    "laplace, scale 10^4 + 1/(2^60 + 33)": lambda n: SYSTEM.laplace(10**4 + Fraction(1, ODD), n),
    "laplace, scale 2^40": lambda n: SYSTEM.laplace(Fraction(2**40), n),
    "geometric, scale 100": lambda n: SYSTEM.geometric(Fraction(100), n),
    "gaussian, variance 335/7": lambda n: SYSTEM.gaussian(Fraction(335, 7), n),
    "gaussian, variance 335/7 + 1/(2^60 + 33)": lambda n: SYSTEM.gaussian(Fraction(335, 7) + Fraction(1, ODD), n),
    "gaussian, variance 2^80": lambda n: SYSTEM.gaussian(Fraction(2**80), n),
    "uniform below 1,000": lambda n: SYSTEM.uniform(1000, n),
    "bernoulli 1/3": lambda n: SYSTEM.bernoulli(Fraction(1, 3), n),
}


def alone(draws: int) -> None:
    print(f"\n{draws:,} draws, million a second                cold     warm")
    for name, act in ALONE.items():
        cold = seconds(lambda act=act: act(draws), before=tables.cache_clear)
        print(f"{name:>42}   {draws / cold / 1e6:6.1f}   {draws / seconds(lambda act=act: act(draws)) / 1e6:6.1f}")
    exponents = np.arange(draws, dtype=np.int64) * 7919 % 3000
    rate = Fraction(1, 100)
    print(f"\n{draws:,} exponents, milliseconds")
    for choices in (1, 1000):
        took = seconds(lambda choices=choices: SYSTEM.weighted(exponents, rate, choices)) * 1e3
        print(f"{f'weighted, {choices:,} of them':>42}   {took:6.1f}")
    print(f"{'bernoulli_exp, as many coins':>42}   {seconds(lambda: SYSTEM.bernoulli_exp(exponents, rate)) * 1e3:6.1f}")


def one_by_one() -> None:
    print("\none draw, microseconds            scale seen before   never seen")
    fresh = count(1)
    for law in ("laplace", "gaussian"):
        for scale in (Fraction(1), Fraction(7, 3), Fraction(100), Fraction(10**4), Fraction(2**39)):
            act = draw(law, scale, 1)
            act()
            used = seconds(lambda act=act: [act() for _ in range(200)], 9) / 200
            unseen = seconds(lambda: draw(law, scale + Fraction(next(fresh), 10**9), 1)(), 51)  # noqa: B023
            print(f"{law:>8}, scale {float(scale):<20.4g}   {used * 1e6:12.1f}   {unseen * 1e6:10.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--opendp", help="a Python that can import opendp; without it only this side runs")
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--bar", type=float, default=100, help="the least ratio, cold")
    chosen = parser.parse_args()
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})  # the child inherits it
    said = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in ("numpy", "cryptography"))]
    other = OpenDP(chosen.opendp) if chosen.opendp else None
    print(f"one core ({core}); " + ", ".join([*said, *([f"opendp {other.version}"] if other else [])]))
    least = beside_opendp(other, chosen.draws) if other else float("inf")
    alone(chosen.draws)
    one_by_one()
    if other:
        print(f"\nleast ratio, tables made anew: {least:.0f} (bar {chosen.bar:.0f})")
    return int(least < chosen.bar)


if __name__ == "__main__":
    sys.exit(main())
