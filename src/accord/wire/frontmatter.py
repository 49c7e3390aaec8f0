"""The frontmatter of a Markdown file: YAML between two lines `---`, as JSON (Agent Skills, SKILL.md format).

Only what JSON can say is read, by the rules of YAML 1.2: `yes` and dates are text. Anchors, tags, duplicate keys and
keys that are no text are errors, since readers of other languages would differ about them.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from typing import Any

from accord.messages.base import JSONObject

MAX_FRONTMATTER_BYTES = 32 << 10
"""A longer one takes seconds to read."""

MAX_FRONTMATTER_DEPTH = 64
"""The levels of arrays and objects, the frontmatter itself included."""

_FENCE = b"---"
_PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), float),
)
"""What an unquoted text means (YAML 1.2.2, 10.2.2 JSON schema and 10.3.2 core schema)."""


class FrontmatterError(ValueError):
    """Frontmatter that is missing or invalid. `line` is the line of the file, from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line: int = line
        self.problem: str = problem


def read_frontmatter(file: bytes) -> JSONObject:
    """Return the frontmatter of a file. Raises `FrontmatterError`, and `ModuleNotFoundError` without PyYAML."""
    text = _text_of(file)
    yaml = _yaml()
    try:
        node = yaml.compose(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        found = None if node is None else _value(node, text, set(), 1)
    except (yaml.YAMLError, RecursionError) as exc:
        mark, problem = getattr(exc, "problem_mark", None), getattr(exc, "problem", None)
        raise FrontmatterError(
            2 if mark is None else mark.line + 2, f"the frontmatter is not valid: {problem or str(exc) or 'too deep'}"
        ) from None
    if not isinstance(found, dict):
        raise FrontmatterError(2, "the frontmatter is not a mapping: write `name: ...` and `description: ...`")
    return found


def _value(node: Any, text: str, seen: set[int], depth: int) -> Any:
    """Return the value of a node of this text. `seen` has the ids of the nodes before it: an alias is the node of its
    anchor once more. Raises `FrontmatterError`.
    """
    if depth > MAX_FRONTMATTER_DEPTH:
        raise _invalid(node, f"a value is nested deeper than {MAX_FRONTMATTER_DEPTH} levels")
    if text[node.start_mark.index : node.start_mark.index + 1] in ("!", "&") or id(node) in seen:
        raise _invalid(node, "there is a tag or an anchor, which JSON does not have")
    seen.add(id(node))
    if node.id == "scalar":
        return _scalar(node) if node.style in (None, "") else node.value
    if node.id == "sequence":
        return [_value(each, text, seen, depth + 1) for each in node.value]
    found: JSONObject = {}
    for key_node, value_node in node.value:
        key = _value(key_node, text, seen, depth + 1)
        if not isinstance(key, str):
            raise _invalid(key_node, "a key is not text: write it in quotes")
        if key in found:
            raise _invalid(key_node, f"the key {key!r:.100} stands twice")
        found[key] = _value(value_node, text, seen, depth + 1)
    return found


def _scalar(node: Any) -> Any:
    """Return the value of an unquoted text."""
    convert = next((each for pattern, each in _PLAIN if pattern.fullmatch(node.value)), str)
    try:
        value = convert(node.value)
    except ValueError:
        raise _invalid(node, "a number has too many digits: write it in quotes") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(node, "a number is too large: write it in quotes")
    return value


def _invalid(node: Any, problem: str) -> FrontmatterError:
    return FrontmatterError(node.start_mark.line + 2, f"in the frontmatter, {problem}")


def _text_of(file: bytes) -> str:
    """Return the YAML between the first two lines `---`."""
    head, _, rest = file.partition(b"\n")
    if head.rstrip() != _FENCE:
        raise FrontmatterError(1, "the file does not begin with frontmatter: a line `---`, YAML, and a line `---`")
    size = 0
    for line in rest[: MAX_FRONTMATTER_BYTES + len(_FENCE) + 2].split(b"\n"):
        if line.rstrip() == _FENCE:
            return _decode(rest[:size])
        size += len(line) + 1
    if len(rest) > MAX_FRONTMATTER_BYTES:
        raise FrontmatterError(1, f"the frontmatter has no end within {MAX_FRONTMATTER_BYTES:,} bytes: a line `---`")
    raise FrontmatterError(1, "the frontmatter has no end: a line `---`")


def _decode(yaml: bytes) -> str:
    if yaml.startswith(codecs.BOM_UTF8):
        raise FrontmatterError(2, "the frontmatter begins with a byte order mark (U+FEFF): remove it")
    try:
        return yaml.decode()
    except UnicodeDecodeError as exc:
        line = yaml.count(b"\n", 0, exc.start) + 2
        raise FrontmatterError(line, "the frontmatter is not UTF-8") from None


def _yaml() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ModuleNotFoundError as exc:
        raise ModuleNotFoundError("skills need PyYAML: pip install 'accord[skills]'", name="yaml") from exc
    return yaml
