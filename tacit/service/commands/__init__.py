"""The commands, each a module that registers itself."""

from tacit.service.commands import ask, check, completion, demo, export, init, ledger, plan, release  # noqa: F401
