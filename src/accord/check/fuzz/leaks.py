"""What should not leave a server: traces of exceptions, folders of its code, secrets of its environment."""

from __future__ import annotations

import re
from typing import Any

import msgspec

CANARY_NAME = "ACCORD_CHECK_SECRET_TOKEN"
CANARY = "accord-check-secret-5f1c0c7e9a"
"""A secret that only the environment of the server has, where the checker starts it: it is to come back nowhere."""

_TRACES = (
    (
        "a traceback of Python",
        re.compile(r'Traceback \(most recent call last\)|^ *File "[^"\n]+", line \d+, in ', re.M),
    ),
    (
        "a stack of JavaScript",
        re.compile(r"^ +at (?:async )?(?:[\w.<>$ ]+ \()?(?:file://|node:|/|[A-Z]:\\)\S+:\d+:\d+", re.M),
    ),
    ("a stack of Java", re.compile(r"^[^\S\n]+at [\w.$]+\([\w$]+\.(?:java|kt|scala):\d+\)", re.M)),
    ("a stack of Go", re.compile(r"^goroutine \d+ \[", re.M)),
    ("a panic of Rust", re.compile(r"thread '[^'\n]*' panicked at ")),
    ("a stack of .NET", re.compile(r"^[^\S\n]+at [\w.<>`]+\(.*\) in \S+:line \d+", re.M)),
)
_FOLDERS = re.compile(r"(?:/|\\)(?:site-packages|dist-packages|node_modules|\.venv|gems|\.cargo)(?:/|\\)[\w.\-/\\]+")


def find_leak(answer: Any, *, failed: bool, sent: Any) -> str | None:
    """What of that is in an answer, in words; `failed` says that it tells of an error, where folders of code tell too
    much; what was `sent` may come back."""
    text = "\n".join(_strings(answer))
    if CANARY in text:
        return f"the environment variable {CANARY_NAME}, which only the server was given"
    ours = "\n".join(_strings(sent))
    for what, trace in _TRACES:
        if (found := trace.search(text)) and found[0] not in ours:
            return f"{what}: {_line(text, found.start())}"
    found = _FOLDERS.search(text) if failed else None
    return f"a folder of its code: {found[0]}" if found and found[0] not in ours else None


def _line(text: str, start: int) -> str:
    return text[start:].strip().partition("\n")[0][:200]


def _strings(value: Any) -> list[str]:
    """Every text in a JSON value, as a person would read it."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *_strings(each))]
    return [] if isinstance(value, msgspec.Raw) else [str(value)]
