"""What all tests share: time to think, Ctrl-C, and how they are dealt out to processes (those of Spark go to one)."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # a busy machine is not a fault
settings.load_profile("unhurried")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell, where tests of Ctrl-C would hang
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One by one, as `--dist load` does, but for a group; xdist's own groups are lost under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Dealt(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "spark" in nodeid.rpartition("/")[2] else nodeid

    return Dealt(config, log) if config.getvalue("dist") == "load" else None
