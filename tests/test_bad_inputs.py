"""There are many bad inputs, and each stands once; the tests that the table names feed them to the code."""

from __future__ import annotations

from bad_inputs import TABLE


def test_hundreds_of_bad_inputs_are_refused_and_none_stands_twice() -> None:
    assert len(TABLE) > 400
    assert len({(kind, what) for kind, what, _ in TABLE}) == len(TABLE)
