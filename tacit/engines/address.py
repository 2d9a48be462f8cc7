"""Where a PostgreSQL table is found: a server's URI, which holds no password, and a table's name in two parts.

What is secret comes from the environment, as it does for every client of PostgreSQL: PGPASSWORD, PGPASSFILE, PGSERVICE.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

SERVER = "postgresql"  # alone: all of it from PGHOST, PGPORT, PGDATABASE, PGUSER or PGSERVICE
SECRETS = ("password", "sslpassword")
LONGEST_NAME = 63  # bytes; a longer one is cut by the server, and would mean another table

_SCHEME = re.compile(r"(postgres(?:ql)?)://", re.IGNORECASE)
_IN_WORDS = re.compile(r"(?:^|\s)(?:ssl)?password\s*=", re.IGNORECASE)  # as in "host=db.example password=..."
_PART = r'(?:"((?:[^"\0]|"")+)"|([^".\0]+))'
_TABLE = re.compile(rf"{_PART}\.{_PART}")


def is_server(source: str) -> bool:
    """Whether this names a server, not a file.

    >>> is_server("postgresql"), is_server("postgres://db.example/town"), is_server("postgresql.csv")
    (True, True, False)
    """
    return source == SERVER or _SCHEME.match(source) is not None


def uri(source: str) -> str:
    """What libpq is given; nothing leaves it to the environment."""
    return "" if source == SERVER else _SCHEME.sub(lambda scheme: scheme[0].lower(), source, count=1)


def fault(source: str) -> str | None:
    """Why this is nothing to write into a contract; the answer repeats nothing of it.

    >>> fault("postgresql://ana:s3cret@db.example/town")
    'the source has a password in it; a contract is public: leave it out, and set PGPASSWORD or PGPASSFILE'
    """
    rest = _SCHEME.sub("", source, count=1)
    user, at, _ = rest.partition("@")
    settings = [part.partition("=")[0] for part in rest.partition("?")[2].split("&")]
    # as libpq reads it: an @ before the first slash ends the name of a user, and a password stands after a colon
    in_a_uri = (at and "/" not in user and ":" in unquote(user)) or any(
        unquote(key).strip() in SECRETS for key in settings
    )
    if (is_server(source) and in_a_uri) or _IN_WORDS.search(source):
        return "the source has a password in it; a contract is public: leave it out, and set PGPASSWORD or PGPASSFILE"
    return None


def parts(table: str) -> tuple[str, str] | None:
    """The schema and the table, both taken exactly as written; None if it is not two names with a point between.

    >>> parts("public.people"), parts('public."the ""people"".v2"'), parts("people")
    (('public', 'people'), ('public', 'the "people".v2'), None)
    """
    found = _TABLE.fullmatch(table)
    if found is None:
        return None
    schema, name = (
        inside.replace('""', '"') if inside else bare for inside, bare in (found.group(1, 2), found.group(3, 4))
    )
    return (
        (schema, name) if max(len(part.encode(errors="replace")) for part in (schema, name)) <= LONGEST_NAME else None
    )
