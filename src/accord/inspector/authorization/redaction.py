"""Redaction of the evidence of an authorization: what of a request or a response may be seen outside this process.

Parameters of URLs and forms, and members of the responses with secrets, are shown if they are known to be public; all
others are replaced. Each secret of the run is replaced wherever it occurs, also if a server repeats it. What remains is
searched by names and forms (`accord.redaction`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec

from accord.auth.device_grant import STEP as DEVICE_AUTHORIZATION
from accord.auth.registration import STEP as CLIENT_STEP
from accord.auth.steps import OAuthRequest
from accord.redaction import REDACTED, json_splice, names_secret
from accord.visible_text import visible
from accord.wire.session_redaction import SESSION_ID, SessionRedaction

_PARAMETERS = frozenset(
    {"audience", "client_assertion_type", "client_id", "code_challenge", "code_challenge_method", "error"}
    | {"error_description", "error_uri", "grant_type", "iss", "prompt", "redirect_uri", "requested_token_type"}
    | {"resource", "response_type", "scope", "subject_token_type", "token_type_hint"}
)
"""Parameters of authorization requests, callbacks and forms that are no secrets."""

_PARAMETER_NAME = re.compile(r"[A-Za-z_.-]{1,40}").fullmatch
"""A name that is no secret in the place of one."""

_MEMBERS = frozenset(
    {"application_type", "client_id", "client_id_issued_at", "client_name", "client_secret_expires_at", "client_uri"}
    | {
        "contacts",
        "error",
        "error_description",
        "error_uri",
        "expires_in",
        "grant_types",
        "interval",
        "id_token_signed_response_alg",
    }
    | {"issued_token_type", "logo_uri", "policy_uri", "redirect_uris", "response_types", "scope", "software_id"}
    | {"software_version", "subject_type", "token_endpoint_auth_method", "token_type", "tos_uri", "verification_uri"}
)
"""Members of the responses of the token endpoint and the registration endpoint that are no secrets."""

_SECRET_MEMBERS = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")
_MAX_OTHERS = 100
"""Limit of the values of other members that are searched for, in one run: a server may send any number of them."""

_RESPONSES_WITH_SECRETS = (CLIENT_STEP, DEVICE_AUTHORIZATION, "token")
"""How the steps begin whose responses have secrets; those to a form with a grant have some, too."""

_SENT_HEADERS = re.compile(
    r"accept(-.*)?|cache-control|connection|content-(length|type|encoding)|host|mcp-(?!session-id).*|origin|user-agent"
).fullmatch
"""Headers of requests that are no secrets; any other one was configured by the user, and may be a key."""
_SECRET_HEADERS = re.compile(r"(proxy-)?authorization|(set-)?cookie|dpop").fullmatch
_SCHEMES = ("basic", "bearer", "dpop")
_LEAST_CHARACTERS = 4
"""Shorter values are not searched for: they would be found everywhere."""
_QUERY_PARAMETERS = 32
_QUERY_CHARACTERS = 4_096
_JWTS = ("access_token", "id_token")
_JWT_CHARACTERS = 16_384
_JWT_PARTS = {3: 2, 5: 1}
"""How many parts of a JSON Web Token are shown, by their number: of an encrypted one only the header."""


class JWTContent(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a JSON Web Token that may be seen: never its signature."""

    name: str
    """Where the token was found: `access_token`, `DPoP` and so on."""
    header_json: str
    claims_json: str | None = None
    """None for an encrypted token."""


class EvidenceRedaction:
    """The redaction of one run: `add_secrets` receives its secrets as they appear."""

    def __init__(self) -> None:
        self._known = SessionRedaction()
        self._others_left = _MAX_OTHERS

    def add_secrets(self, values: Iterable[str | None]) -> None:
        """Replace these values wherever they occur, also in the forms that URLs and JSON give them."""
        found = {value for value in values if value is not None and len(value) >= _LEAST_CHARACTERS}
        self._known.add_secrets({form for value in found for form in _forms(value)})

    def add_response(self, request: OAuthRequest, body: bytes) -> None:
        """Add the secrets in the response to a request; of members that nobody knows, not more than a few."""
        members = {name: value for name, value in _members(body).items() if isinstance(value, str)}
        self.add_secrets(members.get(name) for name in _SECRET_MEMBERS)
        has_secrets = _answers_with_secrets(request)
        others = (
            value for name, value in members.items() if names_secret(name) or (has_secrets and name not in _MEMBERS)
        )
        some = list(islice(others, self._others_left))
        self._others_left -= len(some)
        self.add_secrets(some)

    def add_query(self, query: str) -> None:
        """Add the secrets in the query of a callback."""
        for part in query.rpartition("?")[2].split("&")[:_QUERY_PARAMETERS]:
            name, _, value = part.partition("=")
            if unquote_plus(name) not in _PARAMETERS:
                self.add_secrets([unquote_plus(value)[:_QUERY_CHARACTERS]])

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._known.text(text)

    def url(self, url: str) -> str:
        """Return a URL with those parameters that are public; the values of others are replaced."""
        head, mark, rest = _split_url(re.sub(r"//[^/?#@]*@", "//", url))
        return self.text(head) + mark + self.query(rest)

    def query(self, query: str) -> str:
        """Return a query with those parameters that are public."""
        return "".join(self._parameter(part) for part in re.split(r"([&#])", query))

    def _parameter(self, part: str) -> str:
        name, equals, value = part.partition("=")
        if not equals:
            return part if part in ("", "&", "#") else REDACTED
        shown = name if _PARAMETER_NAME(name) else REDACTED
        return f"{shown}={self.text(value) if unquote_plus(name) in _PARAMETERS else REDACTED}"

    def form(self, form: Mapping[str, str]) -> str:
        """Return the body of a form, one parameter a line."""
        return "\n".join(
            f"{name}={self.text(value) if name in _PARAMETERS else REDACTED}" for name, value in form.items()
        )

    def sent_header(self, name: str, value: str) -> str:
        """Return the value of a header of a request; of credentials only the scheme."""
        name = name.lower()
        if name == "authorization":
            scheme = value.partition(" ")[0]
            return f"{scheme} {REDACTED}" if scheme.lower() in _SCHEMES else REDACTED
        return self.text(value) if _SENT_HEADERS(name) else REDACTED

    def received_header(self, name: str, value: str) -> str:
        """Return the value of a header of a response."""
        name = name.lower()
        if _SECRET_HEADERS(name) or name == SESSION_ID or (names_secret(name) and name != "www-authenticate"):
            return REDACTED
        return self.url(value) if name in ("location", "content-location") else self.text(value)

    def body(self, data: bytes, request: OAuthRequest | None = None) -> str:
        """Return a body; JSON stays JSON, in which only secrets differ. `request` is the one that it answers."""
        text = data.decode(errors="replace")
        if request is not None and _answers_with_secrets(request):
            text = _with_public_members(text)
        redacted = self._known.data(text.encode(errors="replace")).decode(errors="replace")
        return redacted if request is None else request.without_secrets(redacted)  # also those that are short

    def tokens_in(self, body: bytes) -> dict[str, str]:
        """Return the texts of a response that may be JSON Web Tokens, by name."""
        return {name: value for name, value in _members(body).items() if name in _JWTS and isinstance(value, str)}

    def jwt(self, name: str, token: str) -> JWTContent | None:
        """Return the header and the claims of a token, or None if it is no JSON Web Token, or a very long one."""
        parts = token.split(".") if len(token) <= _JWT_CHARACTERS else []
        texts = [_decode_part(part) for part in parts[: _JWT_PARTS.get(len(parts), 0)]]
        if not texts or None in texts:
            return None
        header, *claims = (visible(self.body(text.encode(errors="replace"))) for text in texts if text is not None)
        return JWTContent(name, header, claims[0] if claims else None)


def _answers_with_secrets(request: OAuthRequest) -> bool:
    return request.step.startswith(_RESPONSES_WITH_SECRETS) or "grant_type" in (request.form or {})


def _forms(value: str) -> set[str]:
    """Return the forms in which a peer may repeat a value."""
    encoded = {value, quote(value, safe=""), quote(value), quote_plus(value), unquote_plus(value)}
    return encoded | {msgspec.json.encode(each).decode()[1:-1] for each in (value, value.replace("/", "\\/"))}


def _split_url(url: str) -> tuple[str, str, str]:
    """Return the part of a URL before its query or fragment, the mark between, and the rest."""
    if match := re.search(r"[?#]", url):
        return url[: match.start()], match[0], url[match.end() :]
    return url, "", ""


def _members(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _with_public_members(text: str) -> str:
    """Return a response with those members that are public; a text that is no JSON is replaced as a whole."""
    if not text.strip() or text.lstrip().startswith("<"):  # a page
        return text
    try:
        before = json_splice.decode(text)
        return json_splice.splice(text, before, _public(before))
    except (ValueError, RecursionError):
        return REDACTED


def _public(value: Any) -> Any:
    """Return a response with the values of those members that are public."""
    if isinstance(value, dict):
        return {
            name: item if item is None or item == "" or (name in _MEMBERS and _is_plain(item)) else REDACTED
            for name, item in value.items()
        }
    return [_public(item) for item in value] if isinstance(value, list) else REDACTED


def _is_plain(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(text, str | int) for text in texts)


def _decode_part(part: str) -> str | None:
    """Return the JSON text of a part of a JSON Web Token, or None."""
    try:
        text = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
        return text if isinstance(json_splice.decode(text), dict) else None
    except (binascii.Error, ValueError, RecursionError):
        return None
