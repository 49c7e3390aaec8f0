"""Consent: which calls a person has approved. Without I/O; the host calls it, and asks.

    proposal = consent.propose(call, now)          a person sees the call, and answers with the proposal's token
    consent.approve(proposal.token, now)           or deny
    consent.redeem(proposal.token, call, now)      just before the call is sent: valid once, for this call only

A token is a number and a signature over the whole call. It is bound to everything in `BoundCall`: whatever changes
between the prompt and the call, the approval lapses.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from typing import Literal

import msgspec

from accord.errors import AccordError

_MAX_OPEN = 10_000
"""Limit of the proposals without an end; beyond it, the oldest lapse."""
_KEY_BYTES = 32


class NotApproved(AccordError):
    """A call without a valid approval. The text says why."""


class BoundCall(msgspec.Struct, frozen=True):
    """The call that an approval is bound to. The digests are SHA-256, in hexadecimal."""

    principal: str
    """Who caused the call; empty for the owner of the host."""
    server: str
    """The digest of the configured server: its name, and its entry in the configuration."""
    tool: str
    """The server's name of the tool."""
    arguments: str
    """The digest of the arguments as they will be sent."""
    definition: str
    """The digest of the tool's definition."""
    policy: str
    """The version of the policy."""


class Proposal(msgspec.Struct, frozen=True):
    """A call that waits for a decision until `expires`, in seconds of the clock of `now`."""

    call: BoundCall
    token: str
    expires: float


_Stage = Literal["proposed", "approved"]


class _Open(msgspec.Struct):
    """A proposal that was neither denied nor used."""

    proposal: Proposal
    stage: _Stage


class Consent:
    """The proposals of one host. An approval is valid for `seconds` from its proposal on."""

    def __init__(self, *, seconds: float = 300, key: bytes | None = None) -> None:
        self._seconds = seconds
        self._key = key or secrets.token_bytes(_KEY_BYTES)
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def propose(self, call: BoundCall, now: float) -> Proposal:
        """Return a proposal for a call, which needs an approval."""
        nonce, expires = secrets.token_hex(16), now + self._seconds
        proposal = Proposal(call, f"{nonce}.{self._signature(nonce, call, expires)}", expires)
        self._open[nonce] = _Open(proposal, "proposed")
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)
        return proposal

    def approve(self, token: str, now: float) -> Proposal:
        """Approve the call of a token. Raises `NotApproved` for a token that is invalid, expired or was answered."""
        found = self._find(token, now)
        if found.stage != "proposed":
            raise NotApproved("this call was approved already")
        found.stage = "approved"
        return found.proposal

    def deny(self, token: str) -> None:
        """Deny the call of a token. A token without a proposal has no effect."""
        nonce, _, _ = token.partition(".")
        found = self._open.get(nonce)
        if found is not None and _equal(found.proposal.token, token):
            del self._open[nonce]

    def redeem(self, token: str, call: BoundCall, now: float) -> None:
        """Use the approval of a call, which is about to be sent.

        Raises `NotApproved` for a token that is invalid, expired, used or not approved, and for another call.
        """
        found = self._find(token, now)
        if found.stage != "approved":
            raise NotApproved("this call was not approved")
        del self._open[token.partition(".")[0]]  # also if it does not fit: an approval is for one attempt
        for field in BoundCall.__struct_fields__:
            if getattr(found.proposal.call, field) != getattr(call, field):
                raise NotApproved(f"the approval has lapsed: {_LAPSED[field]} changed after it was given")

    def _find(self, token: str, now: float) -> _Open:
        nonce, _, signature = token.partition(".")
        found = self._open.get(nonce)
        if found is None:
            raise NotApproved("the approval is unknown: it was used, denied or replaced, or is of another host")
        proposal = found.proposal
        expected = self._signature(nonce, proposal.call, proposal.expires)
        if not _equal(expected, signature):
            raise NotApproved("the approval has an invalid signature")
        if now >= proposal.expires:
            del self._open[nonce]
            raise NotApproved(f"the approval has expired: it was valid for {self._seconds:g} s")
        return found

    def _signature(self, nonce: str, call: BoundCall, expires: float) -> str:
        text = msgspec.json.encode([nonce, expires, *(getattr(call, field) for field in BoundCall.__struct_fields__)])
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()


_LAPSED = {
    "principal": "the principal",
    "server": "the configuration of the server",
    "tool": "the tool",
    "arguments": "the arguments",
    "definition": "the definition of the tool",
    "policy": "the policy",
}


def _equal(expected: str, given: str) -> bool:
    """Compare two texts in a time that tells nothing about them."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogatepass"))


def digest(value: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(value).hexdigest()
