"""The tokens of a login as states: what they are for and how long, never their values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from accord.auth.login import Login
from accord.inspector.authorization.redaction import EvidenceRedaction, JWTContent
from accord.visible_text import single_line, truncate

_SCOPES = 100
_SCOPE_CHARACTERS = 500


class TokenState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The tokens of one login."""

    issuer: str
    resource: str
    client_id: str
    client_source: str
    token_type: str
    scopes: Sequence[str]
    requested: Sequence[str]
    expires_at: float | None
    """In seconds since 1970; None if the server did not say."""
    is_expired: bool
    is_refreshable: bool
    is_bound_to_key: bool
    """Whether each request needs a proof of possession (DPoP)."""
    has_secret: bool
    """Whether the client has a secret."""
    is_in_keyring: bool = False
    relaxed: Sequence[str] = ()
    """The rules of the specification that the user has relaxed, as options of `accord login`."""
    jwt: JWTContent | None = None
    """The content of the access token, if it is a JSON Web Token."""


def token_state(login: Login, now: float, redaction: EvidenceRedaction) -> TokenState:
    """Return the state of the tokens of a login at `now`, in seconds since 1970."""
    tokens, client, discovery = login.tokens, login.client, login.discovery
    return TokenState(
        issuer=single_line(redaction.text(discovery.issuer)),
        resource=single_line(redaction.text(discovery.resource)),
        client_id=single_line(redaction.text(client.client_id)),
        client_source=client.source,
        token_type=tokens.token_type,
        scopes=scopes_for_page(tokens.scopes, redaction),
        requested=scopes_for_page(tokens.requested, redaction),
        expires_at=tokens.expires_at,
        is_expired=not tokens.is_fresh(now),
        is_refreshable=tokens.refresh_token is not None,
        is_bound_to_key=tokens.token_type == "DPoP",
        has_secret=client.client_secret is not None,
        is_in_keyring=login.is_in_keyring,
        relaxed=_relaxed(login),
        jwt=redaction.jwt("access_token", tokens.access_token),
    )


def scopes_for_page(scopes: Sequence[str], redaction: EvidenceRedaction) -> list[str]:
    """Return scopes without secrets, and not more of them than a page can show."""
    found = [truncate(single_line(redaction.text(scope)), _SCOPE_CHARACTERS) for scope in scopes[:_SCOPES]]
    return found if len(scopes) <= _SCOPES else [*found, f"({len(scopes) - _SCOPES:,} more)"]


def _relaxed(login: Login) -> list[str]:
    options = {
        "--issuer": login.chosen_issuer,
        "--resource": login.chosen_resource,
        "--assume-pkce": login.assume_pkce,
    }
    return [name for name, is_chosen in options.items() if is_chosen]
