"""The errata of the selections, and that docs/errata.md names only tests that exist."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest

from tacit.domain.grid import OnGrid
from tacit.primitives.selection import NoisyMax
from tacit.privacy.divergence import max_divergence

ROOT = Path(__file__).parent.parent
NAMED = re.findall(r"`(tests/\w+\.py)::(\w+)`", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"))


def test_the_errata_name_tests() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda x: str(x))
def test_every_test_that_the_errata_name_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_noisy_max_with_half_the_noise_loses_twice_epsilon_where_scores_move_apart() -> None:
    """E8: one score up by one, the other down by one, 40 apart; with the whole noise the loss stays within epsilon."""
    here, there = OnGrid(np.array([0, 40])), OnGrid(np.array([1, 39]))

    def loss(monotone: bool) -> float:
        mechanism = NoisyMax(1, monotone=monotone)
        return max_divergence(mechanism.probabilities(there).tolist(), mechanism.probabilities(here).tolist())

    assert 1.9 < loss(monotone=True) < 2
    assert 0.9 < loss(monotone=False) <= 1


def test_the_winning_noisy_count_tells_far_more_than_its_index() -> None:
    """E9: the largest of ten counts with noise of scale 1/epsilon, epsilon = ln 2; all are 0, or all are 1."""
    q, far = Fraction(1, 2), 60

    def below(t: int) -> Fraction:  # P[noise <= t]
        return q**-t / (1 + q) if t < 0 else 1 - q ** (t + 1) / (1 + q)

    def law(count: int) -> list[Fraction]:  # of the largest, with all that lies far out as one outcome on either side
        steps = [below(t - count) ** 10 for t in range(-far, far)]
        inner = [high - low for low, high in pairwise(steps)]
        return [steps[0], *inner, 1 - steps[-1]]

    assert max_divergence(law(0), law(1)) == pytest.approx(10 * log(2), rel=1e-12)
