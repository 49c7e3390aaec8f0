"""Grants: what a user has granted to a client, with the provider's tokens, and the proxy's own tokens for it.

Own tokens are random texts, stored as digests. A refresh token is replaced at each use; for 30 s, the old one returns
the same successor, since a response may be lost, and programs may refresh in parallel. Later use of it means that it
was stolen: the grant ends, and all of its tokens with it (RFC 9700, 4.14.2).

The functions take an open transaction, and return a refusal rather than raise it: what they changed is committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from hmac import compare_digest

import msgspec

from accord.auth.code_grant import code_challenge
from accord.auth.tokens import Tokens
from accord.server.auth.proxy.authorization import ClientRequest
from accord.server.auth.proxy.clients import mark_used
from accord.server.auth.proxy.database import digest_of
from accord.server.auth.proxy.sealing import Sealer, UnsealError
from accord.server.auth.proxy.settings import ProxySettings

CODE_SECONDS = 60.0
ROTATION_SECONDS = 30.0
"""How long a refresh token that was replaced returns the same successor."""
RENEWAL_SECONDS = 60.0
"""After this time, a renewal of the provider's tokens in another process has failed."""
GRANTS = 100
"""Limit of the grants of one user; the one with the oldest last use ends."""

_TOKENS = 50
"""Limit of the tokens of one kind of one grant, those that were replaced included."""


class UserGrant(msgspec.Struct, frozen=True):
    """The rights that a user has granted to a client."""

    client_id: str
    principal: str
    issuer: str
    """The provider, as far as the principal is concerned."""
    requested: list[str]
    scopes: list[str]
    resource: str
    claims: bytes = b"{}"

    def __repr__(self) -> str:
        return f"UserGrant({self.client_id!r}, {self.scopes})"  # claims may be personal data


class _Code(msgspec.Struct, frozen=True):
    request: ClientRequest
    expires_at: float


class IssuedTokens(msgspec.Struct, frozen=True):
    """Tokens of the proxy for a client."""

    access_token: str
    refresh_token: str
    expires_at: float
    scopes: list[str]

    def __repr__(self) -> str:
        return f"IssuedTokens(expires_at={self.expires_at}, scopes={self.scopes})"

    def response(self, now: float) -> dict[str, object]:
        """Return the response of the token endpoint (RFC 6749, 5.1)."""
        return {
            "access_token": self.access_token,
            "token_type": "Bearer",
            "expires_in": max(0, int(self.expires_at - now)),
            "refresh_token": self.refresh_token,
            "scope": " ".join(self.scopes),
        }


class EndedGrant(msgspec.Struct, frozen=True):
    """A code or refresh token that is not valid (any more). `grant` is the id of the grant that has ended with it, if
    any, and `upstream` are the provider's tokens of that grant.
    """

    reason: str
    grant: bytes | None = None
    upstream: Tokens | None = None


class LiveGrant(msgspec.Struct, frozen=True):
    """A grant with its id and the provider's tokens."""

    id: bytes
    grant: UserGrant
    upstream: Tokens


class AccessToken(msgspec.Struct, frozen=True):
    """A valid access token, as far as the database knows: its grant, and when it expires."""

    id: bytes
    grant: UserGrant
    expires_at: float


_decode_grant = msgspec.json.Decoder(UserGrant).decode
_decode_code = msgspec.json.Decoder(_Code).decode
_decode_upstream = msgspec.json.Decoder(Tokens).decode
_decode_issued = msgspec.json.Decoder(IssuedTokens).decode


# --- grants ----------------------------------------------------------------------------------------------------------


def create_grant(
    db: sqlite3.Connection, sealer: Sealer, live: LiveGrant, request: ClientRequest, code: str, now: float
) -> None:
    """Store a grant with the code that leads to its first tokens."""
    db.execute("DELETE FROM grants WHERE expires <= ?", (now,))
    grant = live.grant
    db.execute(
        "INSERT INTO grants (id, client, principal, record, upstream, expires) VALUES (?, ?, ?, ?, ?, ?)",
        (
            live.id,
            grant.client_id,
            grant.principal,
            msgspec.json.encode(grant),
            sealer.seal(msgspec.json.encode(live.upstream), live.id),
            now + CODE_SECONDS,
        ),
    )
    without_state = msgspec.structs.replace(request, state=None)  # only the redirect to the client needs it
    record = msgspec.json.encode(_Code(without_state, now + CODE_SECONDS))
    db.execute("INSERT INTO codes (digest, grant_id, record) VALUES (?, ?, ?)", (digest_of(code), live.id, record))


def _limit_grants(db: sqlite3.Connection, principal: str) -> None:
    """End the grants of a user beyond the limit, those with the oldest last use."""
    ids = db.execute(
        "SELECT id FROM grants WHERE principal = ? ORDER BY expires DESC LIMIT -1 OFFSET ?", (principal, GRANTS)
    ).fetchall()
    db.executemany("DELETE FROM grants WHERE id = ?", ids)


def load_grant(db: sqlite3.Connection, sealer: Sealer, id: bytes, now: float) -> LiveGrant | None:
    """Return a grant, or None if it has ended. One that was sealed with a lost key ends."""
    row = db.execute("SELECT record, upstream FROM grants WHERE id = ? AND expires > ?", (id, now)).fetchone()
    if row is None:
        return None
    try:
        return LiveGrant(id, _decode_grant(row[0]), _decode_upstream(sealer.open(row[1], id)))
    except UnsealError:
        db.execute("DELETE FROM grants WHERE id = ?", (id,))
        return None


def end_grant(db: sqlite3.Connection, sealer: Sealer, id: bytes, reason: str, now: float) -> EndedGrant:
    """End a grant: delete it with all of its tokens."""
    live = load_grant(db, sealer, id, now)
    db.execute("DELETE FROM grants WHERE id = ?", (id,))
    return EndedGrant(reason, id, None if live is None else live.upstream)


def claim_renewal(db: sqlite3.Connection, id: bytes, now: float) -> bool:
    """Return whether this process may renew the provider's tokens of a grant now: only one does at a time."""
    claimed = db.execute(
        "UPDATE grants SET renewing = ? WHERE id = ? AND NOT (renewing BETWEEN ? AND ?)",
        (now + RENEWAL_SECONDS, id, now, now + RENEWAL_SECONDS),
    )
    return claimed.rowcount > 0


def save_upstream(db: sqlite3.Connection, sealer: Sealer, id: bytes, upstream: Tokens) -> None:
    """Store renewed tokens of the provider, and release the claim."""
    sealed = sealer.seal(msgspec.json.encode(upstream), id)
    db.execute("UPDATE grants SET upstream = ?, renewing = 0 WHERE id = ?", (sealed, id))


def release_renewal(db: sqlite3.Connection, id: bytes) -> None:
    """Release the claim after a failure."""
    db.execute("UPDATE grants SET renewing = 0 WHERE id = ?", (id,))


# --- own tokens ------------------------------------------------------------------------------------------------------


class TokenIssue(msgspec.Struct, frozen=True):
    """The values that the issue of tokens depends on."""

    settings: ProxySettings
    now: float
    random_text: Callable[[], str]

    def make(self, live: LiveGrant) -> IssuedTokens | None:
        """Return new tokens for a grant, or None if its login at the provider cannot be renewed and has expired."""
        expires_at = self.now + self.settings.token_seconds
        upstream = live.upstream
        if upstream.refresh_token is None and upstream.expires_at is not None:
            expires_at = min(expires_at, upstream.expires_at)
        if expires_at <= self.now:
            return None
        access, refresh = f"at_{self.random_text()}", f"rt_{self.random_text()}"
        return IssuedTokens(access, refresh, expires_at, live.grant.scopes)


def redeem_code(
    db: sqlite3.Connection,
    sealer: Sealer,
    code: str,
    client_id: str,
    redirect_uri: str | None,
    verifier: str,
    issue: TokenIssue,
) -> IssuedTokens | EndedGrant:
    """Return the first tokens of a grant (OAuth 2.1, 4.1.3). A code that is used twice, or wrongly, ends the grant."""
    digest = digest_of(code)
    row = db.execute("SELECT grant_id, record, used FROM codes WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        return EndedGrant("the code is not valid")
    id, record = row[0], _decode_code(row[1])
    reason = "the code was used before" if row[2] else _reason_against(record, client_id, redirect_uri, verifier, issue)
    live = load_grant(db, sealer, id, issue.now)
    issued = None if live is None or reason else issue.make(live)
    if reason or live is None or issued is None:
        return end_grant(db, sealer, id, reason or "the login at the provider has expired", issue.now)
    db.execute("UPDATE codes SET used = 1 WHERE digest = ?", (digest,))
    _store_tokens(db, live, issued, issue)
    _limit_grants(db, live.grant.principal)
    return issued


def _reason_against(
    code: _Code, client_id: str, redirect_uri: str | None, verifier: str, issue: TokenIssue
) -> str | None:
    request = code.request
    if issue.now >= code.expires_at:
        return "the code has expired"
    if request.client_id != client_id:
        return "the code is of another client"
    if redirect_uri is not None and redirect_uri != request.redirect_uri:
        return "redirect_uri differs from that of the authorization request"
    if not compare_digest(code_challenge(verifier).encode(), request.challenge.encode()):
        return "code_verifier does not match code_challenge"
    return None


def find_refresh_token(
    db: sqlite3.Connection, sealer: Sealer, token: str, client_id: str, now: float
) -> IssuedTokens | EndedGrant | LiveGrant:
    """Return the grant of a current refresh token; the successor of one that was replaced just now."""
    row = db.execute(
        "SELECT grant_id, expires, superseded, successor FROM tokens WHERE digest = ? AND kind = 'refresh'",
        (digest_of(token),),
    ).fetchone()
    live = None if row is None else load_grant(db, sealer, row[0], now)
    if live is None or row[1] <= now:
        return EndedGrant("the refresh token is not valid")
    if live.grant.client_id != client_id:
        return end_grant(db, sealer, live.id, "the refresh token is of another client", now)
    if row[2] is None:
        return live
    if now - row[2] <= ROTATION_SECONDS and row[3] is not None:
        return _decode_issued(sealer.open(row[3], live.id))
    return end_grant(db, sealer, live.id, "the refresh token was used before", now)


def rotate(
    db: sqlite3.Connection, sealer: Sealer, token: str, grant: UserGrant, issue: TokenIssue
) -> IssuedTokens | EndedGrant:
    """Replace a refresh token, unless another request has done so meanwhile; `grant` replaces the one that is stored,
    since scopes may have changed at the provider.
    """
    found = find_refresh_token(db, sealer, token, grant.client_id, issue.now)
    if not isinstance(found, LiveGrant):
        return found
    live = msgspec.structs.replace(found, grant=grant)
    issued = issue.make(live)
    if issued is None:
        return end_grant(db, sealer, live.id, "the login at the provider has expired", issue.now)
    db.execute("UPDATE grants SET record = ? WHERE id = ?", (msgspec.json.encode(grant), live.id))
    db.execute(
        "UPDATE tokens SET successor = NULL WHERE grant_id = ? AND kind = 'refresh' AND superseded < ?",
        (live.id, issue.now - ROTATION_SECONDS),
    )
    db.execute(
        "UPDATE tokens SET superseded = ?, successor = ? WHERE digest = ?",
        (issue.now, sealer.seal(msgspec.json.encode(issued), live.id), digest_of(token)),
    )
    _store_tokens(db, live, issued, issue)
    return issued


def _store_tokens(db: sqlite3.Connection, live: LiveGrant, issued: IssuedTokens, issue: TokenIssue) -> None:
    """Store the digests of new tokens, prolong the grant, and drop the oldest tokens beyond the limit."""
    session_ends = issue.now + issue.settings.session_seconds
    insert = "INSERT INTO tokens (digest, grant_id, kind, expires) VALUES (?, ?, ?, ?)"
    db.execute(insert, (digest_of(issued.access_token), live.id, "access", issued.expires_at))
    db.execute(insert, (digest_of(issued.refresh_token), live.id, "refresh", session_ends))
    db.execute("UPDATE grants SET expires = ? WHERE id = ?", (session_ends, live.id))
    db.execute("DELETE FROM tokens WHERE grant_id = ? AND expires <= ?", (live.id, issue.now))
    for kind in ("access", "refresh"):
        db.execute(
            "DELETE FROM tokens WHERE digest IN (SELECT digest FROM tokens WHERE grant_id = ? AND kind = ? "
            "ORDER BY expires DESC, superseded IS NULL DESC LIMIT -1 OFFSET ?)",
            (live.id, kind, _TOKENS),
        )
    mark_used(db, live.grant.client_id, issue.now)


def find_access_token(db: sqlite3.Connection, token: str, now: float) -> AccessToken | None:
    """Return an access token that is valid, or None."""
    row = db.execute(
        "SELECT grants.id, grants.record, tokens.expires FROM tokens JOIN grants ON grants.id = tokens.grant_id "
        "WHERE tokens.digest = ? AND tokens.kind = 'access' AND tokens.expires > ? AND grants.expires > ?",
        (digest_of(token), now, now),
    ).fetchone()
    return None if row is None else AccessToken(row[0], _decode_grant(row[1]), row[2])


def revoke(db: sqlite3.Connection, sealer: Sealer, token: str, client_id: str, now: float) -> EndedGrant | None:
    """End the grant of a token of this client, if there is one (RFC 7009, 2.1)."""
    row = db.execute(
        "SELECT grants.id, grants.client FROM tokens JOIN grants ON grants.id = tokens.grant_id "
        "WHERE tokens.digest = ?",
        (digest_of(token),),
    ).fetchone()
    if row is None or row[1] != client_id:
        return None
    return end_grant(db, sealer, row[0], "the token was revoked", now)
