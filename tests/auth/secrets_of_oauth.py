"""Forty secrets of authorization, each in the form in which protocols and programs write it.

A value has no form of its own unless its kind has one (a JSON Web Token, a private key, a key with a known prefix): a
redaction must find it by what stands around it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

MARK = "Xq7Tz"
"""A part of every secret: what looks for leaks looks for this."""


def _value(number: int) -> str:
    return f"{MARK}{number:02}plmWk83JdHs5"


def _jwt(number: int) -> str:
    return f"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4i{_value(number)}.sig{_value(number)}"


def _pem(number: int) -> str:
    return f"-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMG{_value(number)}\n-----END PRIVATE KEY-----"


@dataclass(frozen=True)
class SecretOfOAuth:
    """One secret: its value, and texts that contain it as `{}`."""

    kind: str
    value: str
    texts: tuple[str, ...]

    @property
    def written(self) -> list[str]:
        """The texts with the secret."""
        return [text.replace("{}", self.value) for text in self.texts]


def _member(name: str) -> tuple[str, ...]:
    """The forms of one parameter: in a form, in JSON, as keyword, in a log line."""
    return (
        f"grant_type=x&{name}={{}}&scope=read",
        json.dumps({"a": 1, name: "{}"}),
        f"{{'{name}': '{{}}'}}",
        f"sent {name}={{}} to the server",
    )


SECRETS: tuple[SecretOfOAuth, ...] = (
    SecretOfOAuth("access token", _value(1), _member("access_token")),
    SecretOfOAuth("access token, a JWT", _jwt(2), ("found {}", "Authorization: Bearer {}")),
    SecretOfOAuth("refresh token", _value(3), _member("refresh_token")),
    SecretOfOAuth("id token", _jwt(4), _member("id_token")),
    SecretOfOAuth("id token hint", _value(5), _member("id_token_hint")),
    SecretOfOAuth(
        "code of a callback", _value(6), ("http://127.0.0.1:33418/callback?code={}&iss=x", "/callback?iss=x&code={}")
    ),
    SecretOfOAuth("code of a request", _value(7), ("grant_type=authorization_code&code={}&redirect_uri=x",)),
    SecretOfOAuth("verifier", _value(8), _member("code_verifier")),
    SecretOfOAuth("state of a URL", _value(9), ("https://login.example/authorize?client_id=a&state={}&scope=read",)),
    SecretOfOAuth("state of a callback", _value(10), ("http://127.0.0.1:33418/callback?state={}&iss=x",)),
    SecretOfOAuth("client secret", _value(11), _member("client_secret")),
    SecretOfOAuth("client secret, in camel case", _value(12), _member("clientSecret")),
    SecretOfOAuth("client assertion", _value(13), _member("client_assertion")),
    SecretOfOAuth("assertion", _jwt(14), _member("assertion")),
    SecretOfOAuth("subject token", _value(15), _member("subject_token")),
    SecretOfOAuth("actor token", _value(16), _member("actor_token")),
    SecretOfOAuth("private key", _pem(17), ("{}", "key {} of the client")),
    SecretOfOAuth("private key, on one line", _pem(18).replace("\n", "\\n"), ('{"key": "{}"}',)),
    SecretOfOAuth(
        "private part of a JWK", _value(19), ('{"kty": "EC", "crv": "P-256", "x": "a", "y": "b", "d": "{}"}',)
    ),
    SecretOfOAuth("symmetric JWK", _value(20), ('{"kty": "oct", "k": "{}"}', "{'kty': 'oct', 'k': '{}'}")),
    SecretOfOAuth("proof of possession", _jwt(21), ("DPoP: {}", "{'dpop': '{}'}")),
    SecretOfOAuth("token of a proof", _value(22), ("Authorization: DPoP {}", "{'authorization': 'DPoP {}'}")),
    SecretOfOAuth("device code", _value(23), _member("device_code")),
    SecretOfOAuth("user code", _value(24), _member("user_code")),
    SecretOfOAuth("password in a URL", _value(25), ("https://ann:{}@mcp.example/mcp", "cannot open https://ann:{}@x")),
    SecretOfOAuth("token in a URL", _value(26), ("https://mcp.example/mcp?access_token={}", "wss://x/?token={}&a=1")),
    SecretOfOAuth("password", _value(27), _member("password")),
    SecretOfOAuth("API key", _value(28), ("X-API-Key: {}", *_member("api_key"))),
    SecretOfOAuth("cookie", _value(29), ("Cookie: session={}; a=b", "Set-Cookie: sid={}; HttpOnly")),
    SecretOfOAuth("bearer token", _value(30), ("Authorization: Bearer {}", "curl -H 'authorization: bearer {}' x")),
    SecretOfOAuth("basic credentials", f"YW5uOn{_value(31)}A=", ("Authorization: Basic {}", "Basic {}")),
    SecretOfOAuth("proxy credentials", _value(32), ("Proxy-Authorization: Bearer {}",)),
    SecretOfOAuth("registration access token", _value(33), _member("registration_access_token")),
    SecretOfOAuth("initial access token", _value(34), _member("initial_access_token")),
    SecretOfOAuth("logout token", _value(35), _member("logout_token")),
    SecretOfOAuth("SAML assertion", _value(36), _member("SAMLResponse")),
    SecretOfOAuth("token of a platform", f"ghp_{_value(37)}plmWk83JdHs5", ("found {}", "{'a': '{}'}")),
    SecretOfOAuth("session ID", _value(38), _member("session_id")),
    SecretOfOAuth("one-time password", _value(39), _member("otp")),
    SecretOfOAuth("encoded token", quote(f"{_value(40)}+/=", safe=""), _member("access_token")),
)
