"""Secrets in a text: those of a known form, and the values after secret names.

The number of places that are checked one by one is limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from string import ascii_letters, digits

from accord.lazy_patterns import lazy_pattern
from accord.redaction.forms import LIKE_A_SECRET, REDACTED, may_have_form, redact_forms
from accord.redaction.names import MOST_CHARACTERS, PLAIN_NAME, SPACED_NAMES, STEMS, WORD, names_secret

_PLACES = 5_000
"""Limit of words like "token" in one text, and of percent-encoded parts in all texts of a value; a text with more is
replaced as a whole.
"""

_LEAST_STEM = min(map(len, STEMS))

EncodedParts = Iterator[int]
"""The budget of percent-encoded parts of one value: an item for each that may yet be checked."""

_HEADERS = {"authorization", "cookie"}
"""Headers whose value extends to the end of the line."""

_KIND_OF_KEY = lazy_pattern(r"(?i)(?<![a-z])(?:api|access|secret|private)[ ]\Z")
_LETTERS = ascii_letters + digits + "_-"
_REST = lazy_pattern(rf"[A-Za-z0-9_-]{{0,{MOST_CHARACTERS}}}+")
_HTML_QUOTE = "&(?:quot|apos|#3[49]);"
_EQUALS = lazy_pattern(
    rf"""(?:\\{{0,15}}["']\]?|{_HTML_QUOTE}|`|[*]{{2}}|[ ]provided)?[ \t]{{0,16}}"""
    r"(?:=>|->(?=[ \t]?[^\d\s]{0,64}\d)|:=|={1,4}|:|\\{1,3}u003[dDaA])"
    rf"[ \t]{{0,16}}(?:{_HTML_QUOTE})?"
)
_SENTENCE = lazy_pattern(rf"""[ ](?:(?:is|was):?[ ]["']?|["'])(?P<secret>\[redacted\]|{LIKE_A_SECRET}[^\s"']{{6,}})""")
"""A word like a secret behind a name: `the token is a1b2c3`, `the token 'a1b2c3'`."""
_FORM_FIELD = lazy_pattern(r"""["']\r?\n\r?\n""")
"""The end of the name of a field in a form."""
_BETWEEN = lazy_pattern(r"""[:=> \t\n]|["'],|\\u003""")
_NEXT_ARGUMENT = lazy_pattern(r"""["'],[ ]?(?=b?["'])""")
_PAIR_START = ('["', "['", '("', "('", '[\\"', '(\\"')
_PAIR = lazy_pattern(rf"""\\?["'],[ ]?(?=\\?["'](?!{PLAIN_NAME}\\?["'])[^"'\\]*+(?:\\?["'][\])]|\Z))""")
"""The separator of the name and the value of a header in a list."""
_AFTER_KEY = lazy_pattern(r"""[:=]\s{0,16}\\{0,3}["']?\Z""")
_VALUE = lazy_pattern(r"""(?<![A-Za-z_-])(?i:(?:value\\{0,3}["']?[ \t]{0,3}[:=]|content=)[ \t]{0,3})""")
_EDGE = lazy_pattern(r"[{}<>()\[\]]|\n[ \t]{0,64}(?:-[ ]|\r?\n)")
_RECORD = 300
"""Limit of a record, such as `name="token" value="..."`, on each side of the name, in characters."""
_COUNT = lazy_pattern(r"\d{1,9}(?![\w-])")
_MARKUP = lazy_pattern(r"(?:<!\[CDATA\[)?[^<]*+")
_TAG_END = lazy_pattern(r"(?:[ \t][^<>]{0,200}+)?>")
_BLANKS = lazy_pattern(r"[ \t]{1,16}(?:\\\r?\n[ \t]{0,16})?")
_QUOTED = lazy_pattern(
    r"""("{3})(?:[^"]++|"(?!""))*+|('{3})(?:[^']++|'(?!''))*+|(")(?:[^"\\]++|\\.)*+|(')(?:[^'\\]++|\\.)*+|(\\{1,15}["'])[^"'\\]*+""",
    re.DOTALL,
)
_LIST = lazy_pattern(
    r"""\[\s{0,16}(?P<items>(?=["'])(?:"(?:[^"\\]++|\\.)*+"?|'(?:[^'\\]++|\\.)*+'?|[\s,]++)++|(?=\\{1,3}["'])[^\[\]{}]++)""",
    re.DOTALL,
)
"""A quoted text; in JSON inside JSON the quote is written `\"`."""
_PREFIX = lazy_pattern(r"""(?:(?:[bBrRfFuU]{1,2}|\w{1,32}\()(?=["']))?""")
"""The prefix of a literal, such as `b'...'` and `Some("...")`."""
_NESTED = lazy_pattern(r"""[\[{]\s{0,3}(?:["'\[{\]}\\]|\Z)""")
_PLAIN = lazy_pattern(r"""(?:(?:!{1,2}|&)[\w-]{1,32}[ ])?[^\s&;"'<>]*+""")
"""A word, in YAML with a tag or an anchor."""
_LINE = lazy_pattern(r"[^\r\n]*+")
_LINE_IN_QUOTES = {"'": lazy_pattern(r"[^\r\n']*+"), '"': lazy_pattern(r'[^\r\n"]*+')}
_BREAK = r"[ \t]{0,3}(?:\r?\n|(?:\\r)?\\n)"
"""A line break, which JSON writes as `\\n`."""
_REST_OF_LINE = r"(?:[^\r\n\\]++|\\(?!r?n|r\\n))*+"
_QUOTE_BELOW = lazy_pattern(rf"""{_BREAK}[ \t]{{0,64}}(?=["'])""")
_BLOCK = (
    rf"[|>][+\d-]{{0,2}}(?:[ \t]{{1,8}}#[^\r\n\\]{{0,200}})?{_BREAK}(?P<indent>[ \t]{{1,64}})"
    rf"(?P<block>(?=[^\s\\]){_REST_OF_LINE}(?:(?:{_BREAK})++(?P=indent){_REST_OF_LINE})*+)"
)
"""A block of lines in YAML."""
_HEADER_BELOW = lazy_pattern(rf"{_BLOCK}|{_BREAK}[ \t]{{1,64}}(?P<value>(?=[^\s\\]){_REST_OF_LINE})")
"""The value of a header on a line of its own, which begins with a blank (RFC 9112, 5.2), or a block in YAML."""
_WORD_BELOW = (
    rf"{_BREAK}(?:[ \t]{{1,64}}|(?=\[redacted\]|{LIKE_A_SECRET}\S{{6}}))"
    rf"(?P<word>\[redacted\]|(?![\w.-]{{1,64}}(?::|=++[^\s=])|[\[{{(|>#-])[^\s&;\"'<>\\]++)"
    r"(?=[ \t]{0,3}(?:[\"'\r\n]|\\[rn]|\Z))"
)
"""A line of one word, without a name; if it is not indented, a word with letters and digits."""
_ITEM = rf"-[ \t]{{1,4}}{LIKE_A_SECRET}[^\s\\\"']{{6,}}"
_ITEMS_BELOW = (
    rf"{_BREAK}(?P<margin>[ \t]{{0,64}})(?P<items>{_ITEM}(?:{_BREAK}(?P=margin)-[ \t]{{1,4}}{_REST_OF_LINE})*+)"
)
"""A list in YAML, whose first item has letters and digits."""
_BELOW = lazy_pattern(rf"{_BLOCK}|{_ITEMS_BELOW}|{_WORD_BELOW}")
_ENCODED = lazy_pattern(
    r"""(?<![^\s"'<>&=?;,])(?:[^\s"'<>&=?;,%]++|%(?![0-9A-Fa-f]{2}))*+%[0-9A-Fa-f]{2}[^\s"'<>&=?;,]*+"""
)
"""A part of a text that is percent-encoded."""
_ENCODED_NAME = lazy_pattern(r"""(?<![\w%.-])(?=[\w.-]*+%[0-9A-Fa-f]{2})([\w%.-]++)=([^\s&;"'<>]*+)""")
_OTHER_LETTERS = "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455"
_OTHER_LETTERS += "\u0410\u0421\u0415\u041e\u0420\u0425\u0423\u0406\u0405\u041a\u0422"
_OTHER_LETTERS += "\u03bf\u0391\u0395\u0399\u039a\u039f\u03a1\u03a4\u03a5\u017f\u212a\u0130"
_LOOK_ALIKES = {0xFF01 + place: 0x21 + place for place in range(94)} | str.maketrans(
    f"{_OTHER_LETTERS}\u00a0\u3000\u201c\u201d\u2018\u2019", "aceopxyisACEOPXYISKToAEIKOPTYsKI  \"\"''"
)
"""Fullwidth, Cyrillic, Greek and other letters, blanks and quotes, with the ASCII that they look like."""
_LEVELS = 3
"""Number of times that a percent-encoded text is decoded."""
_URL_CHARACTERS = "/:@!$()*+|#{}"
"""Characters that stay as they are in a part where none of them was encoded."""
_CHALLENGE = "(?:algs|error|error_description|error_uri|realm|resource_metadata|scope)"
"""Parameters of a challenge (RFC 6750, 3; RFC 9728, 5.1), which stand where credentials do."""
_SCHEME = lazy_pattern(
    rf"(?i:bearer|dpop)[ \t]{{1,3}}(?!{_CHALLENGE}=)(?=[\w.~+/=-]{{8}})"
    r"|(?i:basic)[ \t]{1,3}(?=[a-z]{0,40}[A-Z0-9+/=])(?=[\w.~+/=-]{8})"
)
_CREDENTIAL = lazy_pattern(r"[\w.~+/=-]*+")


def encoded_parts() -> EncodedParts:
    """Return a full budget, which all texts of one value share."""
    return iter(range(_PLACES))


def redact_text(text: str, parts: EncodedParts) -> str:
    """Return a text without secrets; the same object if it has none."""
    try:
        return _redacted(text, 0, parts)
    except _TooManyParts:
        return REDACTED


class _TooManyParts(Exception):
    """A text has more percent-encoded parts than are checked one by one."""


def _redacted(text: str, level: int, parts: EncodedParts) -> str:
    """Return a text without secrets that was percent-decoded `level` times."""
    redacted = redact_forms(text)
    redacted = _named(redacted)
    if "%" in redacted and level < _LEVELS and may_have_secret(redacted):
        redacted = _decoded_parts(redacted, level + 1, parts)
    return text if redacted == text else redacted


def may_have_secret(text: str) -> bool:
    """Return whether `redact` may change a text, or JSON data of which it has all keys and texts; much faster.

    It is false only if the text has no part of a secret name and no known form, also if it is percent-decoded.
    """
    for _ in range(_LEVELS + 1):
        low = _lower(_plain(text))
        for stem in STEMS:  # each call of a generator would take longer than the search
            if stem in low:
                return True
        if may_have_form(text) or SPACED_NAMES.search(low) is not None:
            return True
        if "%" not in text:
            return False
        text = _decoded(text)
    return False


def has_too_many_places(text: str) -> bool:
    """Return whether `redact_text` replaces a text as a whole, without the time to find JSON in it."""
    if len(text) <= _PLACES * _LEAST_STEM:
        return False
    plain = _plain(text)
    return _BETWEEN.search(plain) is not None and len(_places(_lower(plain))) > _PLACES


def _decoded_parts(text: str, level: int, parts: EncodedParts) -> str:
    """Return a text without the secrets in its percent-encoded parts."""
    found = _ENCODED.findall(text)
    if sum(1 for _ in islice(parts, len(found))) < len(found):
        raise _TooManyParts
    if not may_have_secret("\n".join(found)):
        return text
    text = _ENCODED_NAME.sub(_without_value, text)
    return _ENCODED.sub(lambda part: _encoded(part[0], level, parts), text)


def _without_value(member: re.Match[str]) -> str:
    name, value = member.groups()
    return f"{name}={REDACTED}" if value and names_secret(_decoded(name)) else member[0]


def _encoded(part: str, level: int, parts: EncodedParts) -> str:
    """Return a percent-encoded part of a text without the secrets in it."""
    from urllib.parse import quote

    decoded = _decoded(part)
    if not may_have_secret(decoded):
        return part
    redacted = _redacted(decoded, level, parts)
    if redacted is decoded:
        return part
    never_encoded = [char for char in _URL_CHARACTERS if part.count(char) == decoded.count(char)]
    return quote(redacted, safe="".join(["[]", *never_encoded]), errors="replace")


def _decoded(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text)


def _named(text: str) -> str:
    """Return the text without the values of secret names."""
    plain = _plain(text)
    if _BETWEEN.search(plain) is None:
        return text
    places = _places(_lower(plain))
    if len(places) > _PLACES:
        return REDACTED
    parts: list[str] = []
    end = 0
    for place in sorted(places):
        if place >= end and (span := _secret_at(plain, place, end)) is not None:
            parts += text[end : span[0]], REDACTED
            end = span[1]
    return "".join([*parts, text[end:]]) if parts else text


def _places(low: str) -> list[int]:
    """Return the positions of the stems in a text in lower case, at most `_PLACES` + 1."""
    places: list[int] = []
    for stem in STEMS:
        place = low.find(stem)
        while place >= 0 and len(places) <= _PLACES:
            places.append(place)
            place = low.find(stem, place + len(stem))
    return places


def _secret_at(text: str, place: int, begin: int) -> tuple[int, int] | None:
    """Return the span of the secret beside the name, or the HTTP scheme, at this position, or None."""
    before = text[max(begin, place - MOST_CHARACTERS) : place]
    first = place - len(before) + len(before.rstrip(_LETTERS))
    last = _end(_REST, text, place)
    name = text[first:last]
    if name.lower().rpartition("-")[2] == "key" and (
        _KIND_OF_KEY.search(text, max(begin, first - 9), first) or text.startswith((" is", " was"), last)
    ):
        name = "secret key"
    if names_secret(name) and (span := _named_at(text, name, first, last, begin)) is not None:
        return span
    scheme = _SCHEME.match(text, place)
    return None if scheme is None else _span(_CREDENTIAL, text, scheme.end())


def _named_at(text: str, name: str, first: int, last: int, begin: int) -> tuple[int, int] | None:
    """Return the span of the secret with a name."""
    if text[max(first - 1, 0) : first] in ("<", ":") and (tag := _TAG_END.match(text, last)):
        return _span(_MARKUP, text, tag.end())
    if sentence := _SENTENCE.match(text, last):
        return sentence.span("secret")
    between = _separator(text, name, first, last)
    if between is None:
        return _in_record(text, name, first, last, begin)
    if name.lower() == "pass" and _COUNT.match(text, between.end()):
        return None
    return _value_at(text, between.end(), name, text[first - 1 : first])


def _separator(text: str, name: str, first: int, last: int) -> re.Match[str] | None:
    """Return what is between a name and its value."""
    if between := _EQUALS.match(text, last):
        return between
    if name.startswith("-"):
        return _BLANKS.match(text, last) or _NEXT_ARGUMENT.match(text, last)
    before = text[max(first - 3, 0) : first]
    if before.endswith(("b'", 'b"')):
        return _NEXT_ARGUMENT.match(text, last)  # a header, as ASGI has it: (b"cookie", b"...")
    return (_PAIR.match(text, last) if before.endswith(_PAIR_START) else None) or _FORM_FIELD.match(text, last)


def _in_record(text: str, name: str, first: int, last: int, begin: int) -> tuple[int, int] | None:
    """Return the span of the value in the record in which the name is one, too: `name="token" value="..."`."""
    is_value = _AFTER_KEY.search(text, max(begin, first - 24), first) is not None
    if not is_value and text[last : last + 1] not in ("'", '"', "\\", "\r", "\n"):
        return None
    start = max(begin, first - _RECORD)
    start = max((edge.end() for edge in _EDGE.finditer(text, start, first)), default=start)
    before = text[start:first]  # what follows is not read again for each name
    for value in _VALUE.finditer(before):
        span = _value_at(before, value.end(), name, "")
        if is_value and span is not None and span[1] < len(before):
            return start + span[0], start + span[1]
    edge = _EDGE.search(text, last, last + _RECORD)
    found = _VALUE.search(text, last, edge.start() if edge else last + _RECORD)
    return None if found is None else _value_at(text, found.end(), name, "")


def _value_at(text: str, start: int, name: str, before: str) -> tuple[int, int] | None:
    """Return the span of the value of a secret name. `before` is the character before the name, such as an opening
    quote."""
    if quoted := _QUOTED.match(text, _end(_PREFIX, text, _end(_QUOTE_BELOW, text, start))):
        inner = quoted.end(quoted.lastindex or 0)
        return (inner, quoted.end()) if quoted.end() > inner else None
    if listed := _LIST.match(text, start):
        return listed.span("items")
    if _NESTED.match(text, start):
        return None  # its members have their own names
    is_header = WORD.findall(name)[-1].lower() in _HEADERS
    if below := (_HEADER_BELOW if is_header else _BELOW).match(text, start):
        return below.span(below.lastgroup or 0)
    return _span(_LINE_IN_QUOTES.get(before, _LINE) if is_header else _PLAIN, text, start)


def _span(pattern: re.Pattern[str], text: str, start: int) -> tuple[int, int] | None:
    end = _end(pattern, text, start)
    return (start, end) if end > start else None


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _lower(text: str) -> str:
    """Return a text in lower case, in which each character has the same place."""
    return text.replace("\u0130", "i").lower()  # its lower case has two letters


def _plain(text: str) -> str:
    """Return a text with ASCII in place of what looks like it, in which each character has the same place."""
    return text if text.isascii() else text.translate(_LOOK_ALIKES)
