"""Configuration files as documents: their content, and the line of each name. JSON with comments, TOML and YAML.

The size of a file is bounded, and only regular files are read, because the file of a project may come from a stranger.
A file that cannot be parsed is an error with line and column. YAML needs the extra `install`.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from bisect import bisect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from accord.errors import TargetError
from accord.host import jsonc
from accord.host.known_hosts import Syntax

MAX_BYTES: Mapping[Syntax, int] = {"json": 8 << 20, "toml": 1 << 20, "yaml": 1 << 20}
"""Limits of the size of a file; a parser of YAML takes a hundred times as long as one of JSON."""
MAX_PROJECT_BYTES = 256 << 10
"""Limit of the size of the file of a project, which may come from a stranger: reading it takes less than a second."""
_MAX_KEY = 300


class Document(NamedTuple):
    """A parsed file."""

    value: Mapping[str, Any]
    line: Callable[..., int]
    """Return the line of the name at the end of a path of names."""

    def at(self, *names: str) -> Any:
        """Return the value at a path of names; None if there is none."""
        return _at(self.value, names)


def read_document(path: Path, syntax: Syntax, *, limit: int | None = None) -> Document:
    """Return the content of a file of at most `limit` bytes. Raises `TargetError`."""
    return parse_document(decode_text(read_bytes(path, limit or MAX_BYTES[syntax]), path), syntax, path)


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raises `TargetError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise TargetError(f"{path} is not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(limit + 1)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise TargetError(f"{path}: {exc.strerror or exc}") from exc
    if len(content) > limit:
        raise TargetError(f"{path} is larger than {limit >> 10:,} KiB")
    return content


def decode_text(content: bytes, path: Path) -> str:
    """Return the text of a file, with its byte order mark. Raises `TargetError`."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TargetError(f"{path} is UTF-16; save it as UTF-8")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        line, column = jsonc.position(content[: exc.start].decode("utf-8"), exc.start)
        raise TargetError(f"{path}:{line}:{column}: this is not UTF-8; save the file as UTF-8") from None


def parse_document(text: str, syntax: Syntax, path: Path) -> Document:
    """Return the content of a file, an object. Raises `TargetError` with line and column."""
    return _PARSERS[syntax](text, path)


def _parse_json(text: str, path: Path) -> Document:
    try:
        root = jsonc.parse(text)
    except jsonc.JSONCError as exc:
        raise TargetError(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from None
    if root is None:
        return Document({}, lambda *names: 1)
    if root.members is None:
        raise TargetError(f"{path}:{jsonc.position(text, root.start)[0]}: expected an object")

    starts = jsonc.line_starts(text)

    def line(*names: str) -> int:
        parent = root.at(*names[:-1])
        member = parent.member(names[-1]) if parent is not None else None
        return bisect(starts, member.start) if member is not None else 1

    return Document(root.plain(), line)


def _parse_toml(text: str, path: Path) -> Document:
    text = text.removeprefix("\ufeff")
    _check_toml_keys(text, path)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:  # ValueError: also a number with too many digits
        raise TargetError(_toml_error(str(exc), text, path)) from None
    lines = _toml_lines(text)
    return Document(value, lambda *names: lines.get(names, 1))


_TOML_TOKEN = re.compile(
    r"""
    \"\"\"(?:[^"\\]|\\.|"(?!""))*+(?:\"\"\")?+ | '''(?:[^']|'(?!''))*+(?:''')?+ | \#[^\n]*+
    | (?P<key>(?:(?:"(?:[^"\\\n]|\\.)*+"?+ | '[^'\n]*+'?+ | [A-Za-z0-9_-]++)[ \t]*+(?:\.[ \t]*+)?+)++)
    | [^"'\#A-Za-z0-9_-]++
    """,
    re.VERBOSE | re.DOTALL,
)
"""A text of several lines, a comment, names with dots between them, or others."""


def _check_toml_keys(text: str, path: Path) -> None:
    """Raise `TargetError` for a key of very many names: tomllib copies the names before each of them."""
    for token in _TOML_TOKEN.finditer(text):
        if (token["key"] or "").count(".") >= jsonc.MAX_DEPTH and len(_TOML_NAME.findall(token[0])) > jsonc.MAX_DEPTH:
            line, column = jsonc.position(text, token.start())
            raise TargetError(f"{path}:{line}:{column}: invalid TOML: a key has more than {jsonc.MAX_DEPTH} names")


_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _toml_error(reason: str, text: str, path: Path) -> str:
    """Return the text for an error of tomllib, with the place at its begin."""
    match = _TOML_PLACE.search(reason)
    if match is None:
        return f"{path}: invalid TOML: {reason or 'it is nested too deeply'}"
    line, column = (match[1], match[2]) if match[1] else jsonc.position(text, len(text))
    return f"{path}:{line}:{column}: invalid TOML: {reason[: match.start()]}"


def _toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line of each table and key; tomllib has no positions. Text in long strings may look like one."""
    lines: dict[tuple[str, ...], int] = {}
    table: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        key = line.strip()
        if key.startswith("["):
            table = _toml_key(key.strip("[ \t").partition("]")[0])
            key = ""
        path = table + _toml_key(key.partition("=")[0])
        for length in range(1, min(len(path), 4) + 1):
            lines.setdefault(tuple(path[:length]), number)
    return lines


_TOML_NAME = re.compile(r""" "([^"]*)" | '([^']*)' | ([A-Za-z0-9_-]+) """, re.VERBOSE)


def _toml_key(text: str) -> list[str]:
    """Return the names of a dotted key."""
    return ["".join(match.groups("")) for match in _TOML_NAME.finditer(text[:_MAX_KEY].partition("#")[0])]


def _parse_yaml(text: str, path: Path) -> Document:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
    except ImportError:
        raise TargetError(f"{path}: YAML needs the extra `install`: pip install 'accord[install]'") from None
    try:
        value = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        problem = str(exc.problem or exc.context).partition(" with value ")[0]  # values may be secret
        raise TargetError(f"{path}{place}: invalid YAML: {problem}") from None
    except RecursionError:
        raise TargetError(f"{path}: invalid YAML: it is nested too deeply") from None
    except (YAMLError, ValueError) as exc:
        raise TargetError(f"{path}: invalid YAML ({type(exc).__name__})") from None
    if value is None:
        return Document({}, lambda *names: 1)
    if not isinstance(value, Mapping):
        raise TargetError(f"{path}: expected a mapping")
    return Document(value, lambda *names: _yaml_line(value, names))


def _at(value: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _yaml_line(value: Any, names: tuple[str, ...]) -> int:
    parent = _at(value, names[:-1])
    try:
        return int(parent.lc.key(names[-1])[0]) + 1
    except (AttributeError, KeyError, TypeError):  # a merged or generated mapping
        return 1


_PARSERS: dict[Syntax, Callable[[str, Path], Document]] = {
    "json": _parse_json,
    "toml": _parse_toml,
    "yaml": _parse_yaml,
}
