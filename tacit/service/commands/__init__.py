"""The commands, each a module that registers itself."""

from tacit.service.commands import ask, check, demo, init, ledger, plan, release  # noqa: F401
