"""The code is typed strictly, linted and formatted; both tools run as tests, so that one command says it all."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


CURRENT = pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4), reason="older stubs of numpy have other types"
)


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(("mypy", "--no-error-summary", "tacit"), marks=CURRENT),
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
    ],
    ids=lambda tool: " ".join(tool[:2]),
)
def test_the_tools_find_nothing(tool: tuple[str, ...]) -> None:
    run = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("mode", ["newest", "oldest"])
def test_the_other_modes_of_the_checks_reach_every_version_that_is_bounded(mode: str) -> None:
    """`.ci/run newest` takes every bound off what is run with; `.ci/run oldest` takes the lower end of each."""
    if "<" not in "".join(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    ):
        pytest.skip("this is one of these modes: the bounds are off")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    edit = script.split(f"{mode})\n", 1)[1].split(";;", 1)[0].split("sed -i -E '", 1)[1].split("'", 1)[0]
    run = subprocess.run(
        ["sed", "-E", edit, ROOT / "pyproject.toml"], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    project = tomllib.loads(run.stdout)["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name != "test"}
    needed = [need for needs in (project["dependencies"], *extras.values()) for need in needs]
    assert len(needed) >= len(project["dependencies"]) + len(extras)
    named = r"[a-z]+(\[[a-z]+\])?"
    for need in needed:
        assert re.fullmatch(named if mode == "newest" else rf"{named}==[0-9.]+\.\*", need), need
