"""The bounds and their defaults."""

from __future__ import annotations

import inspect

from accord import Client, ClientLimits, HTTPLimits, Limits, Server


def test_the_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(Limits()) == "Limits()"
    limits = Limits(tool_seconds=None, http=HTTPLimits(tool_seconds=None), client=ClientLimits(items=10))
    assert repr(limits) == "Limits(http=HTTPLimits(tool_seconds=None), client=ClientLimits(items=10))"


def test_help_on_a_client_or_server_does_not_print_every_limit() -> None:
    for cls in (Client, Server):
        assert "limits: 'Limits' = Limits()" in str(inspect.signature(cls))
