"""The bounds and their defaults."""

from __future__ import annotations

import inspect

from accord import Client, Limits, Server


def test_the_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(Limits()) == "Limits()"
    assert (
        repr(Limits(items=10, tool_seconds=None, http_tool_seconds=None)) == "Limits(http_tool_seconds=None, items=10)"
    )


def test_help_on_a_client_or_server_does_not_print_every_limit() -> None:
    for cls in (Client, Server):
        assert "limits: 'Limits' = Limits()" in str(inspect.signature(cls))
