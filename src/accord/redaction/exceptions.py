"""Redaction of the texts of exceptions and of log records."""

from __future__ import annotations

import logging
import os
import traceback

from accord.errors import AccordError, describe, innermost
from accord.lazy_patterns import lazy_pattern
from accord.redaction.beginnings import cut, redact_beginning
from accord.redaction.forms import REDACTED
from accord.redaction.values import redact

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
_TRACEBACK = 12_000
"""Limit of a traceback, in characters."""
_LEAST_CREDENTIAL = 8
"""A shorter text would occur in any traceback."""


def describe_redacted(exc: BaseException) -> str:
    """Return the text for a peer about an unexpected exception: its type and its text, with secrets and absolute file
    paths replaced; of a long text, the beginning. The text of an `AccordError`, such as `ToolError`, is unchanged.
    """
    exc = innermost(exc)
    text = describe(exc)
    if isinstance(exc, AccordError):
        return text
    name, colon, message = text.partition(": ")  # a type named `SecretError` does not make the text secret
    message, mark = cut(message)
    for filename in (getattr(exc, "filename", None), getattr(exc, "filename2", None)):
        if isinstance(filename, str | bytes) and os.path.isabs(filename):
            message = message.replace(repr(filename), repr(_PATH)).replace(os.fsdecode(filename), _PATH)
    return f"{redact(name)}{colon}{redact(_FILES.sub(_PATH, message))}{mark}"


def redact_record(record: logging.LogRecord) -> bool:
    """Redact the text of a log record, and its traceback, which formatters take from `exc_text`; of long ones, only the
    beginning stays. A filter for loggers; always returns True.
    """
    message = _message(record)
    redacted = redact_beginning(message)
    if redacted != message:
        record.msg, record.args = redacted, ()
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        record.exc_text = redacted_traceback(record.exc_info[1])
    return True


def _message(record: logging.LogRecord) -> str:
    """Return the text of a log record. An error here would reach the program that logs: logging reports it later."""
    try:
        return record.getMessage()
    except Exception as exc:
        record.msg, record.args = f"a log message cannot be formatted: {record.msg!r:.200}: {describe(exc)}", ()
        return record.getMessage()


def redacted_traceback(exc: BaseException, *credentials: str | None) -> str:
    """Return the traceback of an exception without secrets, and without these credentials, which error messages often
    quote; of a long one, the beginning.
    """
    text = "".join(traceback.format_exception(exc)).rstrip("\n")
    for credential in credentials:
        if credential is not None and len(credential) >= _LEAST_CREDENTIAL:
            text = text.replace(credential, REDACTED)
    return redact_beginning(text, _TRACEBACK)
