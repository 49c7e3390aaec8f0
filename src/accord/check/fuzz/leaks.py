"""Find internal information in responses: stack traces, paths of code, secrets of the environment."""

from __future__ import annotations

import re
from typing import Any

import msgspec

CANARY_NAME = "ACCORD_CHECK_SECRET_TOKEN"
CANARY = "accord-check-secret-5f1c0c7e9a"
"""A secret in the environment of a server that the checker starts; no response may contain it."""

_TRACES = (
    (
        "a Python traceback",
        re.compile(r'Traceback \(most recent call last\)|^ *File "[^"\n]+", line \d+, in ', re.M),
    ),
    (
        "a JavaScript stack trace",
        re.compile(r"^ +at (?:async )?(?:[\w.<>$ ]+ \()?(?:file://|node:|/|[A-Z]:\\)\S+:\d+:\d+", re.M),
    ),
    ("a Java stack trace", re.compile(r"^[^\S\n]+at [\w.$]+\([\w$]+\.(?:java|kt|scala):\d+\)", re.M)),
    ("a Go stack trace", re.compile(r"^goroutine \d+ \[", re.M)),
    ("a Rust panic", re.compile(r"thread '[^'\n]*' panicked at ")),
    ("a .NET stack trace", re.compile(r"^[^\S\n]+at [\w.<>`]+\(.*\) in \S+:line \d+", re.M)),
)
_FOLDERS = re.compile(r"(?:/|\\)(?:site-packages|dist-packages|node_modules|\.venv|gems|\.cargo)(?:/|\\)[\w.\-/\\]+")


def find_leak(answer: Any, *, failed: bool, sent: Any) -> str | None:
    """Describe the internal information in a response, or return None.

    `failed`: the response is an error, in which a path of code is a leak too. Texts in `sent` may be repeated.
    """
    text = "\n".join(_strings(answer))
    if CANARY in text:
        return f"the environment variable {CANARY_NAME}, a secret of the server"
    sent_text = "\n".join(_strings(sent))
    for what, trace in _TRACES:
        if (found := trace.search(text)) and found[0] not in sent_text:
            return f"{what}: {_line(text, found.start())}"
    found = _FOLDERS.search(text) if failed else None
    return f"a path of its code: {found[0]}" if found and found[0] not in sent_text else None


def _line(text: str, start: int) -> str:
    return text[start:].strip().partition("\n")[0][:200]


def _strings(value: Any) -> list[str]:
    """Return every text in a JSON value, unescaped."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *_strings(each))]
    return [] if isinstance(value, msgspec.Raw) else [str(value)]
