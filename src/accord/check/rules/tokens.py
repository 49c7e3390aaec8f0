"""Access tokens: forged, expired and foreign ones, which the checker makes as the issuer of the server's tokens."""

from __future__ import annotations

import secrets
import time
from functools import partial

from accord.check.engine.rule import CaseVariant
from accord.check.issuer.keys import TokenForge, encode_part
from accord.check.probes.access import Access
from accord.check.rules.authorization import SUBJECT, TOKEN_HANDLING, access_rule, require_refusal_everywhere
from accord.messages.base import JSONObject

ANOTHER_SERVER = "https://another-server.example/mcp"
ANOTHER_ISSUER = "https://another-issuer.example"
_LONG_AGO = 86_400
"""Seconds: more than any clocks differ."""

_rule = partial(
    access_rule,
    level="must",
    since="2025-03-26",
    at=(
        TOKEN_HANDLING,
        "basic/authorization#access-token-privilege-restriction",
        "basic/authorization/security-considerations#access-token-privilege-restriction",
    ),
)


@_rule(
    "tokens/signature",
    variants=[
        CaseVariant("a signature by another key", kind="stranger"),
        CaseVariant("claims that were changed", kind="changed"),
        CaseVariant("the signature left out", kind="left out"),
    ],
    cause="The server decodes tokens without verifying them: everybody can write one.",
)
async def tokens_signature(access: Access, kind: str) -> None:
    """A token whose signature is not that of the issuer is refused."""
    forge = await access.trusted_forge()
    header, claims, signature = forge.token("nobody").split(".")
    changed = encode_part(forge.claims(SUBJECT))
    forged = {
        "stranger": forge.strange_token(SUBJECT),
        "changed": f"{header}.{changed}.{signature}",
        "left out": f"{header}.{claims}.",
    }
    await require_refusal_everywhere(access, f"a token with a wrong signature ({kind})", forged[kind])


@_rule(
    "tokens/unsigned",
    variants=[CaseVariant(f"alg {name}", algorithm=name) for name in ("none", "None", "NONE")],
    cause="The server takes the algorithm from the token: it is the choice of who forged it.",
)
async def tokens_unsigned(access: Access, algorithm: str) -> None:
    """A token without a signature is refused (alg none)."""
    forge = await access.trusted_forge()
    token = forge.unsigned_token(SUBJECT, algorithm)
    await require_refusal_everywhere(access, f"an unsigned token (alg {algorithm})", token)


@_rule(
    "tokens/algorithm",
    variants=[
        CaseVariant("HS256 with the public key", secret="pem"),
        CaseVariant("HS256 with an empty key", secret="empty"),
    ],
    cause="The server takes the algorithm from the token, and the public key as the secret of HMAC.",
)
async def tokens_algorithm(access: Access, secret: str) -> None:
    """A token signed by HMAC with a public or an empty key is refused."""
    forge = await access.trusted_forge()
    key = forge.public_pem if secret == "pem" else b""
    token = forge.confused_token(SUBJECT, key)
    await require_refusal_everywhere(access, f"a token with an HMAC as signature ({secret})", token)


@_rule(
    "tokens/supplied-key",
    variants=[
        CaseVariant("the key in the header jwk", name="jwk"),
        CaseVariant("the URL of the key in the header jku", name="jku"),
    ],
    cause="The server verifies the token with the key that it brings along.",
)
async def tokens_supplied_key(access: Access, name: str) -> None:
    """A token that brings its own key is refused."""
    forge = await access.trusted_forge()
    value = forge.stranger_key if name == "jwk" else "https://another-issuer.example/jwks"
    await require_refusal_everywhere(
        access, f"a token with its own key ({name})", forge.strange_token(SUBJECT, header={name: value})
    )


@_rule(
    "tokens/unknown-key",
    case="a kid that the issuer does not have",
    cause="With an unknown kid, the server skips the verification, or an exception ends as status 500.",
)
async def tokens_unknown_key(access: Access) -> None:
    """A token with an unknown key id is refused."""
    forge = await access.trusted_forge()
    token = forge.strange_token(SUBJECT, header={"kid": f"accord-check-{secrets.token_hex(4)}"})
    await require_refusal_everywhere(access, "a token with an unknown kid", token)


@_rule(
    "tokens/issuer",
    variants=[
        CaseVariant("another issuer", issuer=ANOTHER_ISSUER),
        CaseVariant("an issuer that begins like the right one", issuer="prefix"),
        CaseVariant("no issuer", issuer=None),
    ],
    cause="The server verifies the signature only: another tenant of the same authorization server has the same keys.",
)
async def tokens_issuer(access: Access, issuer: str | None) -> None:
    """A token of another issuer is refused."""
    forge = await access.trusted_forge()
    written = f"{forge.issuer}.another-issuer.example" if issuer == "prefix" else issuer
    await require_refusal_everywhere(access, f"a token with iss {written!r}", forge.token(SUBJECT, iss=written))


@_rule(
    "tokens/audience",
    variants=[
        CaseVariant("the URL of another server", audience="other"),
        CaseVariant("an audience that begins like the right one", audience="prefix"),
        CaseVariant("a list without the server", audience="list"),
        CaseVariant("no audience", audience="none"),
    ],
    cause="The server accepts each token of the authorization server: other servers can use the tokens that they get "
    "(RFC 8707, 2).",
)
async def tokens_audience(access: Access, audience: str) -> None:
    """A token that was not issued for this server is refused."""
    forge = await access.trusted_forge()
    written = {
        "other": ANOTHER_SERVER,
        "prefix": f"{forge.audience}.another-server.example",
        "list": [ANOTHER_SERVER, ANOTHER_ISSUER],
        "none": None,
    }[audience]
    await require_refusal_everywhere(access, f"a token with aud {written!r}", forge.token(SUBJECT, aud=written))


@_rule(
    "tokens/expired",
    case="a token that expired a day ago",
    cause="The server caches tokens without their expiry, or does not read exp.",
)
async def tokens_expired(access: Access) -> None:
    """An expired token is refused."""
    forge = await access.trusted_forge()
    now = int(time.time())
    token = forge.token(SUBJECT, exp=now - _LONG_AGO, iat=now - 2 * _LONG_AGO)
    await require_refusal_everywhere(access, "an expired token", token)


@_rule(
    "tokens/no-expiry",
    variants=[CaseVariant("no exp", value=None), CaseVariant("exp as text", value="tomorrow")],
    level="should",
    cause="RFC 9068 requires exp. A token without it can be used forever.",
)
async def tokens_no_expiry(access: Access, value: str | None) -> None:
    """A token without a time of expiry is refused."""
    forge = await access.trusted_forge()
    await require_refusal_everywhere(access, f"a token with exp {value!r}", forge.token(SUBJECT, exp=value))


@_rule(
    "tokens/not-yet-valid",
    case="a token that is valid from tomorrow on",
    cause="The server does not read nbf.",
)
async def tokens_not_yet_valid(access: Access) -> None:
    """A token that is not valid yet is refused."""
    forge = await access.trusted_forge()
    token = forge.token(SUBJECT, nbf=int(time.time()) + _LONG_AGO, exp=int(time.time()) + 2 * _LONG_AGO)
    await require_refusal_everywhere(access, "a token that is not valid yet", token)


@_rule(
    "tokens/kind",
    variants=[
        CaseVariant("an id token", kind="id"),
        CaseVariant("an identity assertion (ID-JAG)", kind="assertion"),
        CaseVariant("a logout token", kind="logout"),
    ],
    level="should",
    cause="The server accepts everything that the issuer has signed for it: RFC 8725, 3.11, recommends to tell the "
    "kinds of tokens apart.",
)
async def tokens_kind(access: Access, kind: str) -> None:
    """A token of the issuer that is not an access token is refused."""
    forge = await access.trusted_forge()
    await require_refusal_everywhere(access, f"a token of another kind ({kind})", _of_another_kind(forge, kind))


def _of_another_kind(forge: TokenForge, kind: str) -> str:
    if kind == "id":
        return forge.token(SUBJECT, header={"typ": "JWT"}, nonce="n-1", at_hash="x", client_id=None, scope=None)
    if kind == "assertion":
        return forge.token(SUBJECT, header={"typ": "oauth-id-jag+jwt"}, resource=forge.audience)
    logout: JSONObject = {"http://schemas.openid.net/event/backchannel-logout": {}}
    return forge.token(SUBJECT, header={"typ": "logout+jwt"}, events=logout)


@_rule(
    "tokens/critical",
    case="a critical header that nobody knows",
    cause="RFC 7515, 4.1.11: a token with an unknown critical header MUST be refused.",
)
async def tokens_critical(access: Access) -> None:
    """A token with an unknown critical header is refused."""
    forge = await access.trusted_forge()
    header = {"crit": ["accord-check"], "accord-check": True}
    await require_refusal_everywhere(
        access, "a token with an unknown critical header", forge.token(SUBJECT, header=header)
    )


@_rule(
    "tokens/malformed",
    variants=[
        CaseVariant("claims that are an array", claims=[]),
        CaseVariant("claims that are not JSON", claims=b"{"),
    ],
    cause="An exception of the decoder ends as status 500, or is taken for an anonymous request.",
)
async def tokens_malformed(access: Access, claims: object) -> None:
    """A signed token with malformed claims is refused."""
    forge = await access.trusted_forge()
    token = forge.sign({"alg": "RS256", "typ": "at+jwt", "kid": "accord-check"}, claims)
    await require_refusal_everywhere(access, "a token with malformed claims", token)
