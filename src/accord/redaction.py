"""Redaction of secrets in log messages: "log messages MUST NOT contain credentials or secrets"
(server/utilities/logging).

A secret is recognized by its name, as a key, as the value beside it (`{"name": "API_KEY", "value": ...}`,
`["--api-key", ...]`) or in a text (`token=...`, `"password": "..."`, `--api-key ...`), or by its form (a token of a
well-known service, a JWT, a private key, the password in a URL). Both are guesses; a secret with another name and no
known form is not found: redaction is a safety net, and no reason to log secrets.

A name is split into words, in snake, kebab or camel case: `apiKey` is secret; `tokens_used`, `tokenizer` and
`token_type` are not. Time is linear in the size of the value: no expression reads the same part of a text twice, and
the number of places that are checked one by one is limited.
"""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from operator import is_
from string import ascii_letters, digits
from typing import Any, TypeGuard

from accord.errors import AccordError, describe, innermost
from accord.lazy_patterns import lazy_pattern

REDACTED = "[redacted]"

_DEPTH = 64
"""Limit of the nesting depth; deeper values are replaced."""
_PLACES = 5_000
"""Limit of words like "token" in one text; a text with more is replaced as a whole."""
_NAME = 64
"""Number of characters of a name on each side of such a word."""


def redact(value: Any) -> Any:
    """Return the value with "[redacted]" in place of what looks secret; the same object if nothing does.

    Dicts, lists, tuples and texts are searched. Other values (numbers, bytes, your own objects) are unchanged: convert
    them to plain data first. Keys are redacted too; keys that become equal are merged.
    """
    return _Redaction().value(value, 0)


def may_have_secret(text: str) -> bool:
    """Return whether `redact` may change a text, or JSON data of which it has all keys and texts; much faster.

    It is false only if the text has no part of a secret name and no known form.
    """
    low = text.replace("\u0130", "i").lower()  # its lower case has two letters
    return (
        any(stem in low for stem in _STEMS)
        or any(mark in text for mark in _MARKS)
        or _FORMS.search(text) is not None
        or _SPACED_NAMES.search(low) is not None
        or ("://" in text and any(pattern.search(text) for pattern in _URL_PATTERNS))
    )


def secret_values(variables: Mapping[str, str]) -> list[str]:
    """Return the values whose names are those of secrets."""
    return [value for name, value in variables.items() if redact({name: value})[name] != value]


def describe_redacted(exc: BaseException) -> str:
    """Return the text for a peer about an unexpected exception: its type and its text, with secrets and absolute file
    paths replaced. The text of an `AccordError`, such as `ToolError`, is unchanged.
    """
    exc = innermost(exc)
    text = describe(exc)
    if isinstance(exc, AccordError):
        return text
    name, colon, message = text.partition(": ")  # a type named `SecretError` does not make the text secret
    for filename in (getattr(exc, "filename", None), getattr(exc, "filename2", None)):
        if isinstance(filename, str | bytes) and os.path.isabs(filename):
            message = message.replace(repr(filename), repr(_PATH)).replace(os.fsdecode(filename), _PATH)
    return f"{redact(name)}{colon}{redact(_FILES.sub(_PATH, message))}"


def redact_record(record: logging.LogRecord) -> bool:
    """Redact the text of a log record, and its traceback, which formatters take from `exc_text`. A filter for loggers;
    always returns True.
    """
    message = record.getMessage()
    redacted = str(redact(message))
    if redacted != message:
        record.msg, record.args = redacted, ()
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
        record.exc_text = str(redact(text))
    return True


_PATH = "[path]"
_ROOTS = (
    "home|Users|root|var|etc|tmp|usr|opt|srv|mnt|media|private|Library|Volumes|app|workspace|proc|run|data|code|nix"
)
_FILES = lazy_pattern(
    rf"""(?x)(?<=["'])/(?:{_ROOTS})/[^"'\n]*+(?=["'])                     # in quotes: it may have blanks
    | (?:(?<![\w./:-])|(?<=file://))/(?:{_ROOTS})/[^\s"'<>|:;,()\[\]{{}}]*+
    | (?:(?<![\w/])|(?<=file:///))(?:[A-Za-z]:\\|[A-Z]:/(?!/))(?:[^\s"'<>|:;,()]|\\)*+  # Windows
    | (?<![\w\\])\\\\[\w.-]++\\[^\s"'<>|:;,()]*+
    """
)
"""Absolute paths of files; `/v1/users` may be the path of a URL."""


class _Redaction:
    """The redaction of one value: each container in it is searched once, however often it occurs."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}
        self._parameters_done: dict[int, Any] = {}

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return _text(value)
        if not isinstance(value, dict | list | tuple):
            return value
        if depth == _DEPTH:
            return REDACTED
        if id(value) not in self._done:
            self._done[id(value)] = (self._object if isinstance(value, dict) else self._array)(value, depth + 1)
        return self._done[id(value)]

    def _object(self, value: Any, depth: int) -> Any:
        is_key = "kty" in value  # a JSON Web Key
        redacted = {
            self.value(key, depth): REDACTED if is_key and key in _PRIVATE_MEMBERS else self._member(key, item, depth)
            for key, item in value.items()
        }
        if "value" in value and isinstance(name := value.get("name"), str) and names_secret(name):
            redacted["value"] = _hidden(value["value"])  # a variable or a header, as many formats have it
        unchanged = (
            len(redacted) == len(value)
            and all(map(is_, redacted, value))
            and all(map(is_, redacted.values(), value.values()))
        )
        return value if unchanged else redacted

    def _member(self, key: object, item: Any, depth: int) -> Any:
        if not isinstance(key, str) or not names_secret(key):
            return self._parameters(item, depth) if key == "properties" else self.value(item, depth)
        if key.lower() == "pass" and not isinstance(item, str):
            return self.value(item, depth)  # the number of passed tests
        return _hidden(item)

    def _parameters(self, value: Any, depth: int) -> Any:
        """Return the `properties` of a JSON Schema: their names are those of parameters, and their values are schemas,
        of which only defaults and examples may be secret.
        """
        if not isinstance(value, dict) or depth == _DEPTH:
            return self.value(value, depth)
        if id(value) not in self._parameters_done:
            schemas = {
                name: self._secret_schema(schema, depth + 1)
                if isinstance(name, str) and len(name) <= 2 * _NAME and _is_secret(name) and _is_schema(schema)
                else self._member(name, schema, depth + 1)
                for name, schema in value.items()
            }
            unchanged = all(map(is_, schemas.values(), value.values()))
            self._parameters_done[id(value)] = value if unchanged else schemas
        return self._parameters_done[id(value)]

    def _secret_schema(self, schema: dict[Any, Any], depth: int) -> Any:
        """Return the schema of a secret parameter."""
        redacted = {
            key: self._member(key, item, depth) if key in _SCHEMA_KEYWORDS else _hidden(item)
            for key, item in schema.items()
        }
        return schema if all(map(is_, redacted.values(), schema.values())) else redacted

    def _array(self, value: Any, depth: int) -> Any:
        redacted = [self.value(item, depth) for item in value]
        for place, (option, item) in enumerate(pairwise(value), 1):  # the arguments of a program
            if _is_option(option) and names_secret(option) and isinstance(item, str) and not _is_option(item):
                redacted[place] = _hidden(item)
        if all(map(is_, redacted, value)):
            return value
        return redacted if isinstance(value, list) else tuple(redacted)


# --- secrets by form ----------------------------------------------------------------------------------------------

# Each form begins with a plain letter, and each letter occurs once: the search then skips all other characters in a
# tight loop. `(?<!(?<!\\)\w...)` matches the beginning of a word, also after a line break that is written as `\n`.
_FORMS = lazy_pattern(
    r"""(?x)
    -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY-----(?:[^-]++|-(?!----)){0,1000}+(?:-----END\ [A-Z0-9 ]{0,40}-----)?
    | eyJ(?<!(?<!\\)[\w-]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]++)?              # JWT
    | sk(?:-(?<!(?<!\\)[A-Za-z0-9]sk-)[\w-]{20,}+|_(?:live|test)_\w{16,}+)     # OpenAI, Anthropic; Stripe
    | rk_(?:live|test)_\w{16,}+ | whsec_\w{16,}+                               # Stripe
    | g(?:h[pousr]_[A-Za-z0-9]{20,}+|ithub_pat_\w{20,}+                       # GitHub
      | l(?:pat|ptt|[dfr]t|rtr|cbt|soat|oas|agent|imt|ffct)-[\w-]{16,}+) # GitLab
    | x(?:ox[a-z]|app)-[A-Za-z0-9-]{10,}+                                      # Slack
    | A(?:[KS]IA[A-Z0-9]{16}|Iza[\w-]{30,}+|GE-SECRET-KEY-[A-Z0-9]++)          # AWS, Google, age
    | ya29\.[\w-]{20,}+ | SG\.[\w-]{16,}+\.[\w-]{16,}+                         # Google, SendGrid
    | npm_[A-Za-z0-9]{30,}+ | pypi-[\w-]{50,}+ | hf_[A-Za-z0-9]{20,}+          # npm, PyPI, Hugging Face
    """
)
_URL_PASSWORD = lazy_pattern(r"""(://[^\s/:@"'<>]*+:)[^\s/"'<>]+@""")
_PASSWORD_WITH_SLASH = (
    r"""(://(?<!http://)(?<!https://)[^\s/:@"'<>]*+:)(?!\d*+/)[^\s@"'<>]{1,200}+(?:@[^\s/@"'<>]*)*(?=@)"""
)
_TOKEN_AS_USER = r"(://)(?=[A-Za-z_.~-]{0,64}\d)[\w.~-]{20,256}(?=(?::[^\s/@\"'<>]{0,256})?@)"
_LOGIN = r"(\b(?:mysql\w{0,10}|mariadb|sshpass|htpasswd|login)\b[^\n;|&]{0,100}?[ ]-p[ ]?)(?![ -])\S+"
_USER = r"((?:\bcurl\b[^\n;|&]{0,200}?[ ](?:-u|-U)|--(?:proxy-)?user)[ =]?[^\s:@/]{1,100}:)(?=\S*[^\d\s])\S+"
_NAMED_KEY = (
    r"(\b(?i:api|access|secret|private)[ ](?i:key)(?:[ ]provided)?(?:[ ]?[:=][ ]?[\"']?|[ ][\"']))(?!\[)[^\s\"',;]{6,}"
)
_SENTENCE = (  # a word with letters and digits: "the password is wrong" has no secret
    r"(\b(?i:password|passphrase|passwd|secret|token|key)[ ](?i:is|was)[ ][\"']?)"
    r"(?=[^\d\s]{0,64}\d)(?=[^A-Za-z\s]{0,64}[A-Za-z])[^\s\"']{6,}"
)

_KEY_PARTS = "d|p|q|dp|dq|qi|k"
"""The private members of a JSON Web Key (RFC 7518, 6)."""
_PRIVATE_MEMBERS = frozenset(_KEY_PARTS.split("|"))

_MARKED = (
    ("hv", r"()\bhv[sbr]\.[\w-]{16,}+"),  # Vault
    ("_v1_", r"()\bdo[opr]_v1_[a-f0-9]{32,}+"),  # DigitalOcean
    ("dapi", r"()\bdapi[a-f0-9]{32,}+"),  # Databricks
    ("dp.", r"()\bdp\.[a-z]{2,5}\.[A-Za-z0-9]{20,}+"),  # Doppler
    ("shp", r"()\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32,}+"),  # Shopify
    ("r8_", r"()\br8_[A-Za-z0-9]{30,}+"),  # Replicate
    ("gsk_", r"()\bgsk_[A-Za-z0-9]{20,}+"),  # Groq
    ("xai-", r"()\bxai-[A-Za-z0-9]{40,}+"),  # xAI
    ("nvapi-", r"()\bnvapi-[\w-]{40,}+"),  # NVIDIA
    ("dckr_", r"()\bdckr_[po]at_[\w-]{20,}+"),  # Docker
    ("sbp_", r"()\bsbp_[a-f0-9]{40,}+"),  # Supabase
    ("tskey-", r"()\btskey-[a-z]{3,16}-[\w-]{12,}+"),  # Tailscale
    ("rubygems_", r"()\brubygems_[a-f0-9]{40,}+"),  # RubyGems
    ("sntry", r"()\bsntry[su]_[\w+/=-]{40,}+"),  # Sentry
    ("figd_", r"()\bfigd_[\w-]{30,}+"),  # Figma
    ("pplx-", r"()\bpplx-[A-Za-z0-9]{20,}+"),  # Perplexity
    ("ATATT3", r"()\bATATT3[\w=-]{20,}+"),  # Atlassian
    ("1//0", r"()\b1//0[\w-]{20,}+"),  # Google
    ("ntn_", r"()\bntn_[A-Za-z0-9]{30,}+"),  # Notion
    ("lin_api_", r"()\blin_api_[A-Za-z0-9]{30,}+"),  # Linear
    ("v1.0-", r"()\bv1\.0-[a-f0-9]{20,40}-[a-f0-9]{40,}+"),  # Cloudflare
    ("/bot", r"(/bot)\d{6,12}:[\w-]{30,}+"),  # Telegram
    ("hooks.slack.com", r"(hooks\.slack\.com/services/)[\w/-]{20,}+"),
    ("/webhooks/", r"(/webhooks/\d{1,30}/)[\w-]{30,}+"),  # Discord
    ("sig=", r"([?&]sig=)[^\s&\"'<>]++"),  # Azure
    ("code=", r"([?&]code=)[^\s&\"'<>]{16,}+"),  # OAuth
    ("state=", r"([?&]state=)[^\s&\"'<>]{16,}+"),  # OAuth
    ("kty", rf"(\\{{0,3}}[\"'](?:{_KEY_PARTS})\\{{0,3}}[\"'][ ]{{0,3}}:[ ]{{0,3}}\\{{0,3}}[\"'])[\w+/=-]++"),  # JWK
    ("://", _PASSWORD_WITH_SLASH),
    ("://", _TOKEN_AS_USER),
    (" -p", _LOGIN),
    (" -u", _USER),
    ("-user", _USER),
    ("login", r"(\blogin[ \t]{1,3}\S{1,100}[ \t]{1,3}password[ \t]{1,3})\S+"),  # .netrc
    ("key", _NAMED_KEY),
    ("Key", _NAMED_KEY),
    (" is ", _SENTENCE),
    (" was ", _SENTENCE),
)
"""The second element is searched for in texts that contain the first; the secret follows the first group."""

_MARKS = tuple({mark for mark, _ in _MARKED} - {"://", "key", "Key", " is ", " was ", "login"})
"""The marks of forms that have no part of a secret name in them."""
_MARKED_PATTERNS = [(mark, lazy_pattern(pattern)) for mark, pattern in _MARKED]
_URL_PATTERNS = [_URL_PASSWORD, *(pattern for mark, pattern in _MARKED_PATTERNS if mark == "://")]

# --- secrets by name ----------------------------------------------------------------------------------------------

_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_STEMS = ["pass", "pwd", "secret", "token", "key", "auth", "cookie", "cred", "sess", "jwt", "otp", "verifier"]
_STEMS += ["signature", "bearer", "basic", "saml"]
_STEMS += [f"{kind}{joint}code" for kind in ("device", "user") for joint in ("", "_", "-")]
_STEMS += [f"client{joint}assertion" for joint in ("", "_", "-")]
"""Every secret name contains one of these, and so does every credential of HTTP."""

_SPACED_NAMES = lazy_pattern(r"(?:device|user)[^a-z]{1,128}code|client[^a-z]{1,128}assertion")
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

_SCHEMA_KEYWORDS = {"$ref", "type", "format", "title", "description", "items", "properties", "required", "anyOf"}
_SCHEMA_KEYWORDS |= {"oneOf", "allOf", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
_SCHEMA_KEYWORDS |= {"readOnly", "writeOnly", "deprecated", "additionalProperties"}
"""Keywords of JSON Schema whose values are no example of a value."""


def _hidden(value: Any) -> Any:
    """Return the replacement of a secret. null, true and false may say whether there is one, but do not reveal it."""
    return value if isinstance(value, bool | None) or value in ("", REDACTED) else REDACTED


def _is_option(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith("-")


def _is_schema(value: object) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(("type", "$ref", "anyOf", "oneOf", "allOf"))


_HEADERS = {"authorization", "cookie"}
"""Headers whose value extends to the end of the line."""


def names_secret(name: str) -> bool:
    """Return whether a name, of a variable or a field, is that of a secret: `apiKey`, `Password`, `ACCESS_TOKEN`."""
    return len(name) <= 2 * _NAME and _is_secret(name)


@lru_cache(1_000)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _TRAITS:
        return False
    pairs = zip(["", *words], words, strict=False)
    return (
        words[-1] == "auth"
        or words[-1].endswith(_ENDS)
        or any(pair in _PAIRS or (pair[1] in _SECRET and pair[0] not in _PLACES_OF_TOKENS) for pair in pairs)
    )


# --- names in a text ----------------------------------------------------------------------------------------------

_LETTERS = ascii_letters + digits + "_-"
_REST = lazy_pattern(rf"[A-Za-z0-9_-]{{0,{_NAME}}}+")
_EQUALS = lazy_pattern(r"""\\{0,3}["']?[ \t]{0,3}(?:=>|:=|={1,3}|:)[ \t]{0,3}""")
_BETWEEN = lazy_pattern(r"""[:=> \t]|["'],""")
_NEXT_ARGUMENT = lazy_pattern(r"""["'],[ ]?(?=b?["'])""")
_COUNT = lazy_pattern(r"\d{1,9}(?![\w-])")
_MARKUP = lazy_pattern(r"[^<]*+")
_BLANKS = lazy_pattern(r"[ \t]{1,3}")
_QUOTED = lazy_pattern(r"""(")(?:[^"\\]++|\\.)*+|(')(?:[^'\\]++|\\.)*+|(\\{1,3}["'])[^"'\\]*+""", re.DOTALL)
"""A quoted text; in JSON inside JSON the quote is written `\"`."""
_PREFIX = lazy_pattern(r"""(?:[bBrRfFuU]{1,2}(?=["']))?""")
"""The prefix of a Python literal, such as `b'...'`."""
_NESTED = lazy_pattern(r"""[\[{]\s{0,3}["'\[{\]}\\]""")
_PLAIN = lazy_pattern(r"""[^\s&;"'<>]*+""")
_LINE = lazy_pattern(r"[^\r\n]*+")
_CHALLENGE = "(?:algs|error|error_description|error_uri|realm|resource_metadata|scope)"
"""Parameters of a challenge (RFC 6750, 3; RFC 9728, 5.1), which stand where credentials do."""
_SCHEME = lazy_pattern(
    rf"(?i:bearer)[ \t]{{1,3}}(?!{_CHALLENGE}=)(?=[\w.~+/=-]{{8}})"
    r"|(?i:basic)[ \t]{1,3}(?=[a-z]{0,40}[A-Z0-9+/=])(?=[\w.~+/=-]{8})"
)
_CREDENTIAL = lazy_pattern(r"[\w.~+/=-]*+")


_HIDDEN = rf"\1{REDACTED}"


def _text(text: str) -> str:
    redacted = _FORMS.sub(REDACTED, text)
    if "://" in redacted:
        redacted = _URL_PASSWORD.sub(rf"\1{REDACTED}@", redacted)
    for mark, pattern in _MARKED_PATTERNS:
        if mark in redacted:
            redacted = pattern.sub(_HIDDEN, redacted)
    if _BETWEEN.search(redacted):
        redacted = _named(redacted)
    return text if redacted == text else redacted


def _named(text: str) -> str:
    """Return the text without the values of secret names."""
    places = _places(text.replace("\u0130", "i").lower())  # its lower case has two letters
    if len(places) > _PLACES:
        return REDACTED
    parts: list[str] = []
    end = 0
    for place in sorted(places):
        if place >= end and (span := _secret_at(text, place, end)) is not None:
            parts += text[end : span[0]], REDACTED
            end = span[1]
    return "".join([*parts, text[end:]]) if parts else text


def _places(low: str) -> list[int]:
    """Return the positions of the stems in a text in lower case, at most `_PLACES` + 1."""
    places: list[int] = []
    for stem in _STEMS:
        place = low.find(stem)
        while place >= 0 and len(places) <= _PLACES:
            places.append(place)
            place = low.find(stem, place + len(stem))
    return places


def _secret_at(text: str, place: int, begin: int) -> tuple[int, int] | None:
    """Return the span of the secret after the name, or the HTTP scheme, at this position, or None."""
    before = text[max(begin, place - _NAME) : place]
    first = place - len(before) + len(before.rstrip(_LETTERS))
    last = _end(_REST, text, place)
    name = text[first:last]
    if text.startswith(">", last) and text.startswith("<", first - 1) and _is_secret(name):
        return _span(_MARKUP, text, last + 1)
    between = _EQUALS.match(text, last)
    if between is None and name.startswith("--"):
        between = _BLANKS.match(text, last) or _NEXT_ARGUMENT.match(text, last)
    elif between is None and first > 1 and text.startswith(("b'", 'b"'), first - 2):
        between = _NEXT_ARGUMENT.match(text, last)  # a header, as ASGI has it: (b"cookie", b"...")
    if between is not None and _is_secret(name) and not (name.lower() == "pass" and _COUNT.match(text, between.end())):
        return _value_at(text, between.end(), name, text[first - 1 : first])
    scheme = _SCHEME.match(text, place)
    return None if scheme is None else _span(_CREDENTIAL, text, scheme.end())


def _value_at(text: str, start: int, name: str, before: str) -> tuple[int, int] | None:
    """Return the span of the value of a secret name. `before` is the character before the name, such as an opening
    quote."""
    if quoted := _QUOTED.match(text, _end(_PREFIX, text, start)):
        inner = quoted.end(quoted.lastindex or 0)
        return (inner, quoted.end()) if quoted.end() > inner else None
    if _NESTED.match(text, start):
        return None  # its members have their own names
    if _WORD.findall(name)[-1].lower() not in _HEADERS:
        return _span(_PLAIN, text, start)
    last = _end(_LINE, text, start)
    closing = text.find(before, start, last) if before in ("'", '"') else -1
    last = last if closing < 0 else closing
    return (start, last) if last > start else None


def _span(pattern: re.Pattern[str], text: str, start: int) -> tuple[int, int] | None:
    end = _end(pattern, text, start)
    return (start, end) if end > start else None


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
