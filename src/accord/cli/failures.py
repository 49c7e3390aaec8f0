"""Errors, as one message for the user and one exit code for a program."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from accord.errors import (
    AccordError,
    AuthorizationError,
    ConnectError,
    ConnectionLost,
    DeclarationError,
    HTTPError,
    ModelError,
    NotConnected,
    NotSupported,
    PolicyError,
    ProtocolError,
    RemoteProtocolError,
    SchemaError,
    TargetError,
    UrlElicitationRequired,
)

TOOL_FAILED, USAGE, UNREACHABLE, PROTOCOL, TIMED_OUT = 1, 2, 3, 4, 5
DEFECT, INTERRUPTED, PIPE_CLOSED = 70, 130, 141

EXIT_CODES = """\
\b
Exit codes:
  0    success
  1    the tool returned an error
  2    invalid command line, value or server file
  3    cannot connect, no authorization, or connection lost
  4    protocol error, or error response
  5    timeout
  130  interrupted by Ctrl-C"""

_MAX_LENGTH = 20_000
"""The maximum length of an error message in characters; `--json` prints all of it."""

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (TimeoutError, TIMED_OUT),
    (KeyboardInterrupt, INTERRUPTED),
    (BrokenPipeError, PIPE_CLOSED),
    (ConnectError, UNREACHABLE),
    (ConnectionLost, UNREACHABLE),
    (NotConnected, UNREACHABLE),
    (AuthorizationError, UNREACHABLE),
    (PolicyError, USAGE),
    (TargetError, USAGE),
    (DeclarationError, USAGE),
    (ProtocolError, PROTOCOL),
    (HTTPError, PROTOCOL),
    (ModelError, PROTOCOL),
    (RemoteProtocolError, PROTOCOL),
    (NotSupported, PROTOCOL),
    (SchemaError, PROTOCOL),
)
"""The first matching row decides."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of an exception."""
    if isinstance(error, ConnectError) and isinstance(error.__cause__, TimeoutError):
        return TIMED_OUT
    return next((code for kind, code in _CODES if isinstance(error, kind)), DEFECT)


def report_error(error: BaseException, *, as_json: bool = False, trace: bool = False) -> int:
    """Print an error to stderr, with `as_json` also to stdout, and return its exit code."""
    code = exit_code(error)
    if code == PIPE_CLOSED:
        _abandon_stdout()
    if code in (INTERRUPTED, PIPE_CLOSED):
        return code
    if trace or os.environ.get("ACCORD_TRACEBACK", "") not in ("", "0"):
        print(printable("".join(traceback.format_exception(error)).rstrip("\n")), file=sys.stderr)
    print(f"{red('error:')} {message(error)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": details(error)}, indent=2))
    return code


def message(error: BaseException) -> str:
    """Return the message of an exception."""
    if not isinstance(error, AccordError):
        return printable(f"{type(error).__name__}: {error} (a defect in accord; --traceback shows where)")
    pages = error.elicitations if isinstance(error, UrlElicitationRequired) else ()
    text = "\n".join([str(error), *(f"{page.get('message', '')} {page.get('url', '')}".strip() for page in pages)])
    left_out = len(text) - _MAX_LENGTH
    shown = f"{text[:_MAX_LENGTH]}\n… {left_out:,} more characters" if left_out > 0 else text
    return printable(shown).replace("\n", "\n  ")


def details(error: BaseException) -> dict[str, Any]:
    """Return the fields of an exception for `--json`."""
    fields: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, ProtocolError):
        fields.update(message=error.message, code=error.code, data=error.data)
    if isinstance(error, HTTPError):
        fields.update(status=error.status)
    if isinstance(error, AuthorizationError):
        fields.update(step=error.step, reason=error.reason, cure=error.cure or None)
    if isinstance(error, ConnectionLost):
        fields.update(exitCode=error.exit_code, stderr=error.stderr)
    return {key: value for key, value in fields.items() if value is not None}


def red(text: str) -> str:
    """Return text in red if stderr is a terminal. Does not use click, which `accord run` does not load."""
    return f"\x1b[31m{text}\x1b[0m" if has_colour(sys.stderr) else text


def has_colour(stream: Any) -> bool:
    """Return whether a stream supports colour: it is a terminal, and NO_COLOR is not set."""
    return stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")


def printable(text: str, *, as_json: bool = False) -> str:
    """Escape characters that control a terminal (C0 and C1 controls, ESC, bidirectional controls) or are invisible.

    Newlines and tabs stay. With `as_json`, text that is JSON stays equivalent JSON.
    """
    from accord.messages.bounds import INVISIBLE  # `accord --help` does not need the messages

    text = INVISIBLE.sub(lambda match: _escaped(match[0], as_json), text)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else _escaped(character, as_json)
        for character in text
    )


def _escaped(character: str, as_json: bool) -> str:
    return json.dumps(character)[1:-1] if as_json else ascii(character)[1:-1]


def _abandon_stdout() -> None:
    """Redirect the closed stdout, so that its buffer does not raise again when the interpreter exits."""
    if sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
