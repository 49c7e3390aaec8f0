"""Names of secrets.

A name is split into words, in snake, kebab or camel case: `apiKey` is secret; `tokens_used`, `tokenizer` and
`token_type` are not.
"""

from __future__ import annotations

from functools import lru_cache

from accord.lazy_patterns import lazy_pattern

MOST_CHARACTERS = 64
"""Number of characters of a name that are looked at on each side of a word like "token"."""

WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

STEMS = ["pass", "pwd", "secret", "token", "key", "auth", "cookie", "cred", "sess", "jwt", "otp", "verifier"]
STEMS += ["signature", "bearer", "basic", "dpop", "saml"]
STEMS += [f"{kind}{joint}code" for kind in ("device", "user") for joint in ("", "_", "-")]
STEMS += [f"client{joint}assertion" for joint in ("", "_", "-")]
"""Every secret name contains one of these, and so does every credential of HTTP."""

SPACED_NAMES = lazy_pattern(r"(?:device|user)[^a-z]{1,128}code|client[^a-z]{1,128}assertion")
"""Secret names that have a stem only if nothing else is between their words."""

_SECRET = {"secret", "secrets", "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "token", "jwt"}
_SECRET |= {"credential", "credentials", "creds", "cred", "authorization", "cookie", "cookies", "otp", "bearer"}
_SECRET |= {"apikey", "apikeys", "secretkey", "privatekey", "accesskey", "accesstoken", "refreshtoken", "authtoken"}
_SECRET |= {"clientsecret", "sessionid", "sessionkey", "jsessionid", "phpsessid", "sessid", "csrftoken", "xsrftoken"}

_ENDS = ("password", "passwd", "passphrase")
"""Words with one of these endings are secret too: `PGPASSWORD`, `dbpassword`."""

_KEYS = ["api", "private", "access", "secret", "signing", "encryption", "ssh", "account", "master", "subscription"]
_KEYS += ["shared", "deploy", "hmac", "session", "auth", "storage"]
_PAIRS = {(kind, key) for kind in _KEYS for key in ("key", "keys")}
_PAIRS |= {(kind, "tokens") for kind in ("access", "refresh", "auth", "api", "session", "bearer", "id")}
_PAIRS |= {("session", "id"), ("code", "verifier"), ("amz", "signature"), ("device", "code"), ("user", "code")}
_PAIRS |= {("client", "assertion"), ("saml", "assertion"), ("saml", "response")}
_PAIRS |= {
    (kind, "pass") for kind in ("", "db", "database", "user", "admin", "root", "smtp", "mail", "ftp", "ssh", "redis")
}

_PLACES_OF_TOKENS = {"page", "next", "previous", "progress", "continuation", "sync", "resume", "stop", "eos", "bos"}
_PLACES_OF_TOKENS |= {"pad", "unk", "mask", "first", "last", "num", "max", "min", "per", "unexpected"}
"""Words before "token" that make it a position in a list or text, or a count."""

_TRAITS = {"count", "counts", "limit", "limits", "type", "types", "length", "len", "size", "budget", "cost", "status"}
_TRAITS |= {"url", "uri", "endpoint", "server", "servers", "method", "methods", "supported", "scheme", "schemes"}
_TRAITS |= {"name", "names", "field", "path", "file", "expires", "expiry", "expiration", "ttl", "at", "in", "policy"}
_TRAITS |= {"enabled", "required", "valid", "used", "usage", "index", "ids", "logprobs", "second", "minute"}
"""Last words of names that are about a secret, but are not secret."""

PLAIN_NAME = r"[A-Za-z]{1,40}(?:[_-][A-Za-z]{1,40}){0,8}"
"""Words that may be another name: `["password", "email"]` lists what is required, `["X-API-Key", "a1"]` is a header."""


def names_secret(name: str) -> bool:
    """Return whether a name, of a variable or a field, is that of a secret: `apiKey`, `Password`, `ACCESS_TOKEN`."""
    return len(name) <= 2 * MOST_CHARACTERS and _is_secret(name)


@lru_cache(1_000)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in WORD.findall(name)]
    if not words or words[-1] in _TRAITS:
        return False
    pairs = zip(["", *words], words, strict=False)
    return (
        words[-1] == "auth"
        or words[-1].endswith(_ENDS)
        or any(pair in _PAIRS or (pair[1] in _SECRET and pair[0] not in _PLACES_OF_TOKENS) for pair in pairs)
    )
