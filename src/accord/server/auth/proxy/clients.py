"""Clients of the proxy: dynamic registration (RFC 7591), and how a client authenticates at the token endpoint.

Registration is open, since no client is known beforehand: what it stores is bounded in size, number and time, and a
client gets nothing before a user consents.
"""

from __future__ import annotations

import base64
import binascii
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping
from hmac import compare_digest
from typing import Annotated, Literal, TypeAlias
from urllib.parse import unquote_plus

import msgspec
from msgspec import Meta

from accord.auth.registration import AuthMethod
from accord.auth.steps import DECODE_ERRORS
from accord.auth.urls import URL_CHARACTERS
from accord.errors import visible
from accord.server.auth.proxy.database import digest_of, drop_expired, drop_oldest, drop_part, share_of
from accord.server.auth.proxy.endpoint_error import EndpointError
from accord.server.auth.proxy.redirect_uris import check_redirect_uri

UNUSED_SECONDS = 86_400.0
"""How long a registration is kept whose client no user has authorized."""
USED_SECONDS = 90 * 86_400.0
"""How long a registration is kept after its last use."""
CLIENTS = 20_000
"""Limit of registrations; beyond it, some are dropped whose clients have no login."""
CLIENTS_PER_ADDRESS = 200
"""Limit of unused registrations of one address; its oldest is dropped."""

SECRET_METHODS: tuple[AuthMethod, ...] = ("client_secret_post", "client_secret_basic")
AUTH_METHODS: tuple[AuthMethod, ...] = ("none", *SECRET_METHODS)
"""How a client may authenticate at the token endpoint."""
GRANT_TYPES = ("authorization_code", "refresh_token")

_NAME_CHARACTERS = 200
_URIS_CHARACTERS = 4_096
"""Limit of all redirect URIs of a registration together."""

RedirectURIs: TypeAlias = Annotated[
    list[Annotated[str, Meta(max_length=URL_CHARACTERS)]], Meta(min_length=1, max_length=20)
]
_Names: TypeAlias = Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=20)]

_BASIC = re.compile(rb"basic +([A-Za-z0-9+/]+=*)", re.IGNORECASE).fullmatch


class ProxyClient(msgspec.Struct, frozen=True):
    """A client: registered, or described by a metadata document at its `client_id`."""

    client_id: str
    name: str
    redirect_uris: list[str]
    auth_method: AuthMethod = "none"
    secret_digest: bytes | None = None
    is_document: bool = False

    def __repr__(self) -> str:
        return f"ProxyClient({self.client_id!r})"

    def accepts(self, secret: str | None) -> bool:
        """Return whether a client with this secret, or none, is this client."""
        if self.secret_digest is None:
            return True
        return secret is not None and compare_digest(digest_of(secret), self.secret_digest)


class _RegistrationRequest(msgspec.Struct):
    redirect_uris: RedirectURIs
    client_name: Annotated[str, Meta(max_length=_NAME_CHARACTERS)] | None = None
    grant_types: _Names | None = None
    response_types: _Names | None = None
    token_endpoint_auth_method: str | None = None


_decode_request = msgspec.json.Decoder(_RegistrationRequest).decode
_decode_client = msgspec.json.Decoder(ProxyClient).decode


def register(
    body: bytes, schemes: Collection[str], now: float, random_text: Callable[[], str]
) -> tuple[ProxyClient, dict[str, object]]:
    """Return a new client, and the response to its registration (RFC 7591, 3.2.1). Raises `EndpointError`."""
    request = _read_request(body, schemes)
    method = _auth_method(request.token_endpoint_auth_method)
    secret = random_text() if method in SECRET_METHODS else None
    client = ProxyClient(
        random_text(),
        display_name(request.client_name),
        request.redirect_uris,
        method,
        None if secret is None else digest_of(secret),
    )
    response: dict[str, object] = {
        "client_id": client.client_id,
        "client_id_issued_at": int(now),
        "redirect_uris": request.redirect_uris,
        "grant_types": list(GRANT_TYPES),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }
    if request.client_name is not None:
        response["client_name"] = request.client_name
    if secret is not None:
        response |= {"client_secret": secret, "client_secret_expires_at": 0}
    return client, response


def _read_request(body: bytes, schemes: Collection[str]) -> _RegistrationRequest:
    try:
        request = _decode_request(body)
    except DECODE_ERRORS as exc:
        raise EndpointError("invalid_client_metadata", visible(str(exc))[:200]) from None
    for uri in request.redirect_uris:
        check_redirect_uri(uri, schemes)
    if sum(map(len, request.redirect_uris)) > _URIS_CHARACTERS:
        raise EndpointError("invalid_client_metadata", f"redirect_uris have more than {_URIS_CHARACTERS:,} characters")
    if request.grant_types is not None and "authorization_code" not in request.grant_types:
        raise EndpointError("invalid_client_metadata", "grant_types must contain authorization_code")
    if request.response_types is not None and "code" not in request.response_types:
        raise EndpointError("invalid_client_metadata", "response_types must contain code")
    return request


def _auth_method(requested: str | None) -> AuthMethod:
    """ "If unspecified or omitted, the default is `client_secret_basic`" (RFC 7591, 2)."""
    for method in AUTH_METHODS:
        if method == (requested or "client_secret_basic"):
            return method
    raise EndpointError(
        "invalid_client_metadata", f"token_endpoint_auth_method must be one of {', '.join(AUTH_METHODS)}"
    )


def display_name(name: str | None) -> str:
    """Return the name of a client as a user may see it: on one line, without characters that change its direction."""
    text = visible(" ".join((name or "").split()))
    return text[:_NAME_CHARACTERS] or "a program without a name"


# --- authentication --------------------------------------------------------------------------------------------------


class ClientCredentialsSent(msgspec.Struct, frozen=True):
    """The client ID of a request to the token endpoint, with the secret if it has one."""

    client_id: str
    secret: str | None
    method: Literal["none", "client_secret_post", "client_secret_basic"]

    def __repr__(self) -> str:
        return f"ClientCredentialsSent({self.client_id!r}, {self.method})"


def read_client_credentials(authorization: bytes | None, form: Mapping[str, str]) -> ClientCredentialsSent:
    """Return how a client identifies itself (OAuth 2.1, 2.4). Raises `EndpointError`."""
    if authorization is not None:
        if "client_secret" in form:
            raise EndpointError("invalid_request", "the client authenticates twice")
        client_id, secret = _basic_pair(authorization)
        if form.get("client_id", client_id) != client_id:
            raise EndpointError("invalid_request", "client_id differs from the Authorization header")
        return ClientCredentialsSent(client_id, secret, "client_secret_basic")
    if "client_id" not in form:
        raise EndpointError("invalid_client", "client_id is missing", 401)
    secret_sent = form.get("client_secret")
    return ClientCredentialsSent(form["client_id"], secret_sent, "client_secret_post" if secret_sent else "none")


def _basic_pair(authorization: bytes) -> tuple[str, str]:
    match = _BASIC(authorization)
    try:
        user, separator, password = base64.b64decode(match[1] if match else b"", validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user = separator = password = ""
    if not separator:
        raise EndpointError("invalid_client", "the Authorization header is not HTTP Basic", 401)
    return unquote_plus(user), unquote_plus(password)


def check_client(client: ProxyClient | None, sent: ClientCredentialsSent) -> ProxyClient:
    """Return the client of a request. Raises `EndpointError` unless it is registered and authenticated."""
    if client is None:
        raise EndpointError("invalid_client", "client_id is not registered", 401)
    if not client.accepts(sent.secret):
        raise EndpointError("invalid_client", "client authentication failed", 401)
    return client


# --- storage ---------------------------------------------------------------------------------------------------------


def save_client(db: sqlite3.Connection, client: ProxyClient, account: str, now: float) -> bool:
    """Store a new registration of an address, and drop others beyond the limits; return whether there is room."""
    drop_expired(db, "clients", now)
    drop_oldest(db, "clients", "used = 0", account, CLIENTS_PER_ADDRESS)
    if db.execute("SELECT COUNT(*) FROM clients").fetchone()[0] >= CLIENTS and not _make_room(db):
        return False
    record = msgspec.json.encode(client)
    db.execute("INSERT INTO clients VALUES (?, ?, ?, 0, ?)", (client.client_id, record, account, now + UNUSED_SECONDS))
    return True


def _make_room(db: sqlite3.Connection) -> bool:
    """Drop some registrations, and return whether there were any to drop: without a login that lasts, those with the
    oldest last use; or unused ones, if these are more than half.

    One user cannot fill the table: the number of logins of a user is limited.
    """
    unused = db.execute("SELECT COUNT(*) FROM clients WHERE used = 0").fetchone()[0]
    return (unused <= CLIENTS // 2 and _drop_without_login(db)) or drop_part(db, "clients", "used = 0", CLIENTS)


def _drop_without_login(db: sqlite3.Connection) -> bool:
    dropped = db.execute(
        "DELETE FROM clients WHERE id IN (SELECT id FROM clients WHERE used = 1 AND account = '' "
        "AND NOT EXISTS (SELECT 1 FROM grants WHERE client = clients.id) ORDER BY expires LIMIT ?)",
        (share_of(CLIENTS),),
    )
    return dropped.rowcount > 0


def load_client(db: sqlite3.Connection, client_id: str, now: float) -> ProxyClient | None:
    """Return a registered client, or None."""
    row = db.execute("SELECT record FROM clients WHERE id = ? AND expires > ?", (client_id, now)).fetchone()
    return None if row is None else _decode_client(row[0])


def mark_used(db: sqlite3.Connection, client_id: str, now: float) -> None:
    """Keep a registration whose client a user has authorized, without the address that it came from."""
    db.execute("UPDATE clients SET used = 1, account = '', expires = ? WHERE id = ?", (now + USED_SECONDS, client_id))
