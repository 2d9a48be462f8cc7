"""Every refusal, as a tree: each says what was asked, what there is, and that nothing was drawn.

    TacitError
    ├── InvalidInput (also a ValueError)
    │   ├── InvalidSchema     a column, a domain or a contract that cannot be
    │   ├── InvalidQuery      a query, a predicate or a workload that the schema cannot answer
    │   ├── InvalidData       a source that cannot be read as the contract says
    │   ├── InvalidBudget     an epsilon, a delta or a share that is not a budget
    │   └── InvalidParameter  anything else that a mechanism was given and cannot use
    ├── Refused               a sound request that may not be served
    │   ├── BudgetExceeded    it costs more than is left
    │   ├── NoSuchGuarantee   it has no bound in the currency of the budget
    │   ├── NoSynopsis        no hypothesis is left, or none that fits was found; what was charged stays charged
    │   └── Halted            the session has given its last answer
    └── Unavailable           the machine under us failed; we stop rather than guess
        ├── LedgerUnavailable missing, locked, read-only, full, or its disk did not answer
        ├── LedgerDamaged     its content is not what was written; it never starts afresh
        ├── NoiseUnavailable  the operating system gave no entropy
        └── DataUnavailable   the source failed while it was read; what was charged stays charged

No message quotes a value of the private data: only what the caller sent, and public facts.
"""


class TacitError(Exception):
    """Whatever tacit refuses or fails to do."""


class InvalidInput(TacitError, ValueError):
    """The request itself is wrong; it was turned away before anything was charged or read."""


class InvalidSchema(InvalidInput):
    """A column, a domain or a contract that cannot be."""


class InvalidQuery(InvalidInput):
    """A query, predicate or workload that the schema cannot answer."""


class InvalidData(InvalidInput):
    """A source that cannot be read as the contract says."""


class InvalidBudget(InvalidInput):
    """An epsilon, a delta or a share that is not a budget."""


class InvalidParameter(InvalidInput):
    """A parameter that a mechanism cannot use."""


class Refused(TacitError):
    """A sound request that may not be served."""


class BudgetExceeded(Refused):
    """It costs more than is left."""


class NoSuchGuarantee(Refused):
    """The mechanism has no bound in the currency of the budget."""


class NoSynopsis(Refused):
    """No hypothesis is left, or none that fits was found: the failure symbol; what was charged stays charged."""


class Halted(Refused):
    """The session has given its last answer."""


class Unavailable(TacitError):
    """The machine under us failed; we stop rather than guess."""


class LedgerUnavailable(Unavailable):
    """The ledger is missing, locked, read-only, full, or its disk did not answer."""


class LedgerDamaged(Unavailable):
    """The ledger's content is not what was written."""


class NoiseUnavailable(Unavailable):
    """The operating system gave no entropy; there is no second source."""


class DataUnavailable(Unavailable):
    """The source failed while it was read."""


def quoted(text: object, limit: int = 60) -> str:
    """What the caller sent, printable and short enough to stand in a message."""
    try:
        shown = repr((text if isinstance(text, str) else str(text))[:limit])
    except Exception:  # a whole number of 5,000 digits does not become a text, nor need an object of the caller's
        shown = repr(f"a {type(text).__name__}")
    return shown if len(shown) <= limit else shown[: limit - 4] + "...'"
