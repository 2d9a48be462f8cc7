"""The commands, each a module that registers itself."""

from tacit.service.commands import ask, completion, demo, export, ledger, plan, release  # noqa: F401
