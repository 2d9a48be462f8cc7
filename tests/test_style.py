"""The code is typed strictly, linted and formatted; both tools run as tests, so that one command says it all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "tool",
    [("mypy", "--no-error-summary", "tacit"), ("ruff", "check", "."), ("ruff", "format", "--check", ".")],
    ids=lambda tool: " ".join(tool[:2]),
)
def test_the_tools_find_nothing(tool: tuple[str, ...]) -> None:
    run = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
