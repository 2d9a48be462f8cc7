"""The commands, each a module that registers itself."""

from tacit.service.commands import ask, demo, ledger, plan, release  # noqa: F401
