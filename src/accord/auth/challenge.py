"""The `WWW-Authenticate` header (RFC 9110, 11.6.1): how a server demands authentication.

    Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource", scope="files:read"

A header may have several challenges, and a response several headers. What cannot be parsed is ignored: the client then
looks for metadata at the well-known URIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

CHALLENGE_BYTES = 16_384
"""Limit of the headers of one response that are read, in characters."""

SCOPES_CHARACTERS = 64 << 10
"""Limit of the scopes of one authorization, in characters."""

_PARAMETERS = 64
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CHALLENGE_PART = re.compile(
    rf"""[\ \t,]*+(?:
        (?P<name>{_TOKEN})[\ \t]*=[\ \t]*(?:(?P<token>{_TOKEN})|"(?P<quoted>(?:[^"\\]|\\.)*+)")[\ \t]*(?=,|$)
      | (?P<scheme>{_TOKEN})(?:[\ ]+(?P<token68>[A-Za-z0-9._~+/-]+=*)[\ \t]*(?=,|$)|(?=[\ \t,]|$))
    )""",
    re.VERBOSE | re.DOTALL,
)
"""One parameter, or one scheme with its token68."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+").fullmatch


class Challenge(msgspec.Struct, frozen=True):
    """One challenge: a scheme in lower case, and its parameters by their names in lower case."""

    scheme: str
    parameters: dict[str, str] = {}

    @property
    def scopes(self) -> list[str] | None:
        """The scopes that the operation needs (RFC 6750, 3), or None if it names none."""
        text = self.parameters.get("scope")
        return None if text is None else parse_scopes(text)

    @property
    def error(self) -> str | None:
        """`invalid_token`, `insufficient_scope` or another code, or None."""
        return self.parameters.get("error")


def parse_challenges(headers: Iterable[str]) -> list[Challenge]:
    """Return the challenges of a response's `WWW-Authenticate` headers, in order."""
    return list(_challenges(", ".join(headers)[:CHALLENGE_BYTES]))


def _challenges(text: str) -> Iterator[Challenge]:
    challenge: Challenge | None = None
    position = 0
    while match := _CHALLENGE_PART.match(text, position):
        position = match.end()
        if (scheme := match["scheme"]) is not None:
            if challenge is not None:
                yield challenge
            challenge = Challenge(scheme.lower(), {})
        elif challenge is not None and len(challenge.parameters) < _PARAMETERS:
            quoted = match["quoted"]
            value = match["token"] if quoted is None else _ESCAPE.sub(r"\1", quoted)
            challenge.parameters.setdefault(match["name"].lower(), value)
    if challenge is not None:
        yield challenge


def select_challenge(challenges: Iterable[Challenge]) -> Challenge | None:
    """Return the challenge that a client of OAuth answers: DPoP or Bearer, with the metadata of the resource if one has
    it.
    """
    usable = [each for each in challenges if each.scheme in ("bearer", "dpop")]
    return max(usable, key=lambda each: "resource_metadata" in each.parameters, default=None)


def format_challenge(scheme: str, parameters: Mapping[str, str]) -> str:
    """Return the value of a `WWW-Authenticate` header. Values have printable ASCII characters only."""
    quoted = (f'{name}="{_quote(value)}"' for name, value in parameters.items())
    return f"{scheme} {', '.join(quoted)}".rstrip()


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def parse_scopes(text: str) -> list[str]:
    """Return the scopes in a space-separated text, each once, in order (RFC 6749, 3.3)."""
    return list(dict.fromkeys(scope for scope in text.split(" ") if _SCOPE(scope)))
