"""Grants: approvals of the user for many calls, of one conversation, until a date, or for a pattern of tools.

A grant is older than the calls that it allows, so that it is bound to what the user knew: it applies to definitions
that were approved before it, and to the configured server as it was.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable

import msgspec

from accord.errors import DeclarationError
from accord.host.policy.patterns import matches


class CallGrant(msgspec.Struct, frozen=True, omit_defaults=True):
    """A grant: `principal` may call the tools that fit `tool` on a server without a question."""

    id: str
    principal: str
    server: str
    """The digest of the configured server, see `BoundCall`."""
    server_name: str
    """The name of the configured server, to show."""
    tool: str
    """The name of a tool; `*` stands for any text."""
    at: float
    """When it was given, in seconds since 1970."""
    expires: float | None = None
    """When it ends, in seconds since 1970."""
    conversation: str | None = None
    """The conversation that it is for; None for all."""
    arguments: str | None = None
    """The digest of the only arguments that it is for; None for all."""

    def allows(self, call: GrantedCall) -> bool:
        """Return whether the grant applies to a call."""
        return (
            self.principal == call.principal
            and self.server == call.server
            and self.at >= call.pinned_at
            and (self.expires is None or call.now < self.expires)
            and (self.conversation is None or self.conversation == call.conversation)
            and (self.arguments is None or self.arguments == call.arguments)
            and matches(self.tool, call.tool)
        )


class GrantedCall(msgspec.Struct, frozen=True):
    """The call that a grant is compared with."""

    principal: str
    server: str
    tool: str
    arguments: str
    conversation: str
    pinned_at: float
    """When the user approved the tool's definition, in seconds since 1970."""
    now: float


decode_grant: Callable[[bytes], CallGrant] = msgspec.json.Decoder(CallGrant).decode


def new_id() -> str:
    """Return the id of a new grant."""
    return secrets.token_hex(4)


def find_grant(grants: Iterable[CallGrant], call: GrantedCall) -> CallGrant | None:
    """Return the first grant that applies to a call, or None."""
    return next((grant for grant in grants if grant.allows(call)), None)


def check_pattern(pattern: str) -> str:
    """Return a pattern of tool names. Raises `DeclarationError` for an invalid one."""
    if not pattern or len(pattern) > 200 or not re.fullmatch(r"[^\s\x00-\x1f]+", pattern):
        raise DeclarationError(f"{pattern!r:.200} is not a pattern for names of tools, such as read_*")
    return pattern
