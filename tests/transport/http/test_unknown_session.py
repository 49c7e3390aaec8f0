"""How a server says that it does not know a session any more."""

from __future__ import annotations

import pytest

from accord.transport.http.failures import ends_session

COPIED = b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":3}'
"""What the examples of the official TypeScript SDK say, and `server-everything`, whatever the session was."""


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (404, b"", True),
        (404, b"Session not found", True),
        (400, COPIED, True),
        (400, b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":3}', False),
        (200, COPIED, False),
        (500, COPIED, False),
        (401, b"", False),
    ],
)
def test_a_session_ends_with_404_or_in_the_words_that_many_servers_have_copied(
    status: int, body: bytes, ends: bool
) -> None:
    assert ends_session(status, body) is ends
