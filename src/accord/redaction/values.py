"""Secrets in values: those under a secret name, beside one, and in texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from accord.lazy_patterns import lazy_pattern
from accord.redaction import json_splice
from accord.redaction.forms import KEY_PARTS, LEAST_WORD, PRIVATE_MEMBERS, REDACTED
from accord.redaction.json_splice import JSONPart
from accord.redaction.names import PLAIN_NAME, names_secret
from accord.redaction.text import EncodedParts, encoded_parts, has_too_many_places, may_have_secret, redact_text

_DEPTH = 64
"""Limit of the nesting depth; deeper values are replaced."""

_SCHEMA_KEYWORDS = {"$ref", "type", "format", "title", "description", "items", "properties", "required", "anyOf"}
_SCHEMA_KEYWORDS |= {"oneOf", "allOf", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
_SCHEMA_KEYWORDS |= {"readOnly", "writeOnly", "deprecated", "additionalProperties"}
"""Keywords of JSON Schema whose values are no example of a value."""

_PLAIN_TYPES = {int, float, bool, type(None)}
_SEARCHED_TEXTS = 2
"""Limit of the texts around JSON that may be cut, or stand among other text: each of them is searched as a whole."""
_PLAIN_NAME = lazy_pattern(PLAIN_NAME)
_NAME_KEYS = ("name", "Name", "key", "Key", "header")
_VALUE_KEYS = ("value", "Value")
"""Keys of an object that has the name and the value of a variable or a header, as many formats have it."""
_LATE = lazy_pattern(rf"""value|["'](?:{KEY_PARTS})\\{{0,3}}["']""")
"""Keys whose value is secret because of another member, which may follow after it."""


def redact(value: Any) -> Any:
    """Return the value with "[redacted]" in place of what looks secret; the same object if nothing does.

    Dicts, lists, tuples and texts are searched. Other values (numbers, bytes, your own objects) are unchanged: convert
    them to plain data first. Keys are redacted too; keys that become equal are merged.
    """
    return _Redaction(encoded_parts()).value(value, 0)


def secret_values(variables: Mapping[str, str]) -> list[str]:
    """Return the values whose names are those of secrets."""
    return [value for name, value in variables.items() if redact({name: value})[name] != value]


_Search = Callable[["_Redaction", Any, int], Any]


class _Redaction:
    """The redaction of one value: each container in it is searched once, however often it occurs."""

    def __init__(self, parts: EncodedParts, texts: int = 0) -> None:
        self._parts = parts
        self._texts = texts
        """Number of texts around the value, whose JSON it is."""
        self._done: dict[tuple[int, _Search], Any] = {}
        self._plain: set[str] = set()

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value if value in self._plain else self._searched(value, depth)
        if isinstance(value, dict):
            return self._once(_Redaction._object, value, depth)
        return self._once(_Redaction._array, value, depth) if isinstance(value, list | tuple) else value

    def _once(self, search: _Search, value: Any, depth: int) -> Any:
        """Return a container without secrets."""
        if depth == _DEPTH:
            return REDACTED
        key = id(value), search
        if key not in self._done:
            self._done[key] = search(self, value, depth + 1)
        return self._done[key]

    def _searched(self, text: str, depth: int) -> str:
        is_word = len(text) < LEAST_WORD and text.isalnum()
        redacted = text if is_word else self._text(text, depth)
        if redacted is text and "%" not in text:  # what is decoded is counted each time
            self._plain.add(text)
        return redacted

    def _text(self, text: str, depth: int) -> str:
        if self._texts == 0 and has_too_many_places(text):
            return REDACTED
        parts = self._json_in(text) if depth < _DEPTH else []
        found = self._without_secrets_in(parts, text, depth)
        if self._texts and len(parts) == 1 and parts[0].is_all_of(text):
            return found  # JSON inside JSON inside a text is a part of that text, which is searched as a whole
        return redact_text(found, self._parts)

    def _json_in(self, text: str) -> list[JSONPart]:
        """Return the JSON in a text, if it may have secrets."""
        if "{" not in text and "[" not in text:
            return []
        is_searched = self._texts < _SEARCHED_TEXTS
        if may_have_secret(text) or "\\u" in text or "\\/" in text or (is_searched and _may_lack_a_name(text)):
            return json_splice.find(text, is_searched=is_searched)
        return []

    def _without_secrets_in(self, parts: list[JSONPart], text: str, depth: int) -> str:
        """Return a text without the secrets that their places in JSON show, in lists and objects and beside their
        names, such as the text of a result, which repeats the structured one.
        """
        redaction = _Redaction(self._parts, self._texts + 1)  # the objects of this text end here
        pieces: list[str] = []
        end = 0
        for part in parts:
            after = redaction.value(part.value, depth + 1)
            is_same = after is part.value
            pieces += text[end : part.start], text[part.start : part.end] if is_same else part.spliced(after)
            end = part.end
        found = "".join([*pieces, text[end:]])
        return text if found == text else found

    def _object(self, value: Any, depth: int) -> Any:
        if not value:
            return value
        is_key = "kty" in value  # a JSON Web Key
        redacted = {
            self.value(key, depth): REDACTED if is_key and key in PRIVATE_MEMBERS else self._member(key, item, depth)
            for key, item in value.items()
        }
        if any(key in value for key in _VALUE_KEYS) and any(
            key in _NAME_KEYS and _is_secret_name(item) for key, item in value.items()
        ):
            redacted |= {key: _hidden(value[key]) for key in _VALUE_KEYS if key in value}
        return value if _is_same(redacted, value) else redacted

    def _member(self, key: object, item: Any, depth: int) -> Any:
        if not isinstance(key, str) or not names_secret(key):
            if key == "properties" and isinstance(item, dict):
                return self._once(_Redaction._parameters, item, depth)
            return self.value(item, depth)
        if key.lower() == "pass" and not isinstance(item, str):
            return self.value(item, depth)  # the number of passed tests
        return _hidden(item)

    def _parameters(self, value: dict[Any, Any], depth: int) -> Any:
        """Return the `properties` of a JSON Schema: their names are those of parameters, and their values are schemas,
        of which only defaults and examples may be secret.
        """
        schemas = {
            name: self._secret_schema(schema, depth)
            if isinstance(name, str) and names_secret(name) and _is_schema(schema)
            else self._member(name, schema, depth)
            for name, schema in value.items()
        }
        return value if _is_same(schemas, value) else schemas

    def _secret_schema(self, schema: dict[Any, Any], depth: int) -> Any:
        """Return the schema of a secret parameter."""
        redacted = {
            key: self._member(key, item, depth) if key in _SCHEMA_KEYWORDS else _hidden(item)
            for key, item in schema.items()
        }
        return schema if _is_same(redacted, schema) else redacted

    def _array(self, value: Any, depth: int) -> Any:
        redacted = [item if type(item) in _PLAIN_TYPES else self.value(item, depth) for item in value]
        options = [place for place, item in enumerate(value[:-1]) if type(item) is str and item[:1] == "-"]
        for place in options:  # the arguments of a program
            item = value[place + 1]
            if names_secret(value[place]) and isinstance(item, str) and not item.startswith("-"):
                redacted[place + 1] = _hidden(item)
        if len(value) == 2 and _is_header(value):
            redacted[1] = _hidden(value[1])
        if all(map(is_, redacted, value)):
            return value
        return redacted if isinstance(value, list) else tuple(redacted)


def _is_same(redacted: dict[Any, Any], value: dict[Any, Any]) -> bool:
    """Return whether nothing was redacted in an object."""
    return (
        len(redacted) == len(value)
        and all(map(is_, redacted, value))
        and all(map(is_, redacted.values(), value.values()))
    )


def _is_secret_name(value: object) -> bool:
    return isinstance(value, str) and names_secret(value)


def _may_lack_a_name(text: str) -> bool:
    """Return whether a text with JSON may have been cut before what makes a value secret. All other JSON that has no
    part of a secret name is not decoded, which takes four times longer.
    """
    is_cut = any(text.count(start) != text.count(end) for start, end in ("{}", "[]"))
    return (is_cut or text.rstrip()[-1:] not in ("}", "]")) and _LATE.search(text) is not None


def _hidden(value: Any) -> Any:
    """Return the replacement of a secret. null, true and false may say whether there is one, but do not reveal it."""
    return value if isinstance(value, bool | None) or value in ("", REDACTED) else REDACTED


def _is_header(value: Any) -> bool:
    """Return whether a pair is the name and the value of a secret header: `["Authorization", "Bearer x"]`."""
    return (
        all(isinstance(item, str) for item in value)
        and value[0].replace("-", "_").isidentifier()
        and names_secret(value[0])
        and not _PLAIN_NAME.fullmatch(value[1])
    )


def _is_schema(value: object) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(("type", "$ref", "anyOf", "oneOf", "allOf"))
