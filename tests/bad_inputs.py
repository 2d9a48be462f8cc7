"""All bad inputs in one table: what kind of thing it is, what is wrong with it, and the test that feeds it."""

from __future__ import annotations

import bad_inputs_domain as domain
import bad_inputs_service as service

from tests import bad_inputs_engines as engines

TABLE: tuple[tuple[str, str, str], ...] = (
    *(("schema or query", name, "test_schema.py") for name, _, _ in domain.BAD),
    *(("data", name, "test_engine_dirty.py") for name, _, _ in engines.BAD),
    *(("contract", spoilt.id, "test_contract.py") for spoilt in service.CONTRACTS),
    *(("command, budget, file or ledger", wrong.id, "test_cli.py") for wrong in service.COMMANDS),
    *(("draft", wrong.id, "test_init.py") for wrong in service.INITS),
)
