"""The beginning of a text without secrets: what an error, a log line or a span carries of a text whose length a peer
decides. The time to redact it has a limit.

A text is cut before it is redacted, and so that nothing is left of a secret that extends over the cut: redaction finds
the end of a text in place of the end of a secret, except where the characters after the secret make it one, such as the
`@` of `://user:password@host`. Such a secret has no blank and no quote, so the text ends after the last of these, or
later if what follows has no secret. In JSON, a later name may make a member secret: the text ends before an object
whose name follows after the cut.
"""

from __future__ import annotations

from accord.redaction.text import may_have_secret
from accord.redaction.values import redact

MOST_CHARACTERS = 8_000
"""Limit of a text that is redacted while others wait, in characters."""
_MOST_ESCAPES = 500
"""Limit of the percent signs of a beginning: a part that is encoded three times takes a hundred times longer."""
_ENDS = " \t\r\n\"'<>"
"""Characters that no secret has that is recognized by what follows."""
_WORD = 128
"""A form is recognized by fewer characters, unless it has one of `_OPEN`."""
_OPEN = ("eyJ", ":/", ":\\", "%")
_OBJECT = 4_000
"""Characters of a JSON object in which its name is expected."""
_NAMES = ('name\\"', 'name"', "name'", 'kty\\"', 'kty"', "kty'")


def redact_beginning(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the beginning of a text, of at most `most` characters, without secrets, and with the length of the text if
    it is longer.
    """
    beginning, mark = cut(text, most)
    return f"{redact(beginning)}{mark}"


def cut(text: str, most: int = MOST_CHARACTERS) -> tuple[str, str]:
    """Return the beginning of a text, which `redact` frees of all secrets that the text has there, and a mark with the
    length of a longer text, to append to it.
    """
    beginning = "%".join(text[:most].split("%", _MOST_ESCAPES)[:_MOST_ESCAPES])
    most = len(beginning)
    if most == len(text):
        return text, ""
    end = 1 + max(text.rfind(character, 0, most) for character in _ENDS)
    if _is_plain(text[end:most]):
        end = most - _WORD
    start = text.rfind("{", 0, end)
    if start > text.rfind("}", 0, end) and any(name in text[end - 16 : end + _OBJECT] for name in _NAMES):
        end = start
    return text[:end], f"… ({len(text):,} characters)"


def _is_plain(word: str) -> bool:
    """Return whether a word that is cut has no secret, except perhaps in its last characters."""
    return len(word) > _WORD and not any(each in word for each in _OPEN) and not may_have_secret(word)
