"""An OpenAPI document (3.0, 3.1, 3.2), and the resolution of its references.

Nothing is fetched: a reference leads to a place in the same document (`#/...`), any other is refused. An error of the
whole document raises `DeclarationError`. An error of one operation raises `SchemaError`, and the other operations
remain usable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

from accord.errors import DeclarationError, SchemaError
from accord.messages.base import JSONObject
from accord.server.openapi.address import VARIABLE

Source: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]
"""A document, its text, or the path of its file."""

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
"""The methods of a path item; CONNECT is not allowed."""

_CHAIN = 32
"""The most references that may follow one another."""
_ALIAS_CHARACTERS = 10_000_000
"""The most characters that the aliases of a YAML document may add to it."""
_NUMBER_CHARACTERS = 4_300
"""The most characters of a number in YAML; Python also refuses longer ones."""
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_YAML_VALUE_ERRORS = (ValueError, LookupError, AttributeError, OverflowError)
"""Errors of PyYAML for values that do not fit their tags, such as `2026-13-01` and `!!int x`."""


class OpenAPIDocument:
    """An OpenAPI document. Raises `DeclarationError` for an invalid one."""

    def __init__(self, source: Source) -> None:
        self.content: Mapping[str, Any] = _content(source)
        """The decoded document, unchanged."""
        _check_version(self.content)
        self.paths: JSONObject = _table(self.content, "paths")

    @property
    def title(self) -> str:
        """The title of the API."""
        return str(_table(self.content, "info").get("title") or "openapi")

    @property
    def version(self) -> str:
        """The version of the API."""
        return str(_table(self.content, "info").get("version") or "0.0.0")

    @property
    def description(self) -> str | None:
        """The description of the API."""
        description = _table(self.content, "info").get("description")
        return description if isinstance(description, str) else None

    @property
    def address(self) -> str | None:
        """The URL of the first server, with its variables at their defaults."""
        servers = self.content.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else None
        if not isinstance(first, dict) or not isinstance(first.get("url"), str):
            return None
        variables = _table(first, "variables")

        def filled(match: re.Match[str]) -> str:
            variable = variables.get(match[1])
            return str(variable.get("default", "")) if isinstance(variable, dict) else match[0]

        return VARIABLE.sub(filled, first["url"])

    def operations(self) -> Iterator[tuple[str, str, Any, Any]]:
        """Yield method, path, path item and operation of each operation; the operation is not validated yet."""
        for path, item in self.paths.items():
            if not isinstance(path, str) or path.startswith("x-"):  # an extension, not a path
                continue
            try:
                resolved = self.resolve(item)
            except SchemaError:  # methods unknown; reading the operation raises the error
                yield "get", path, item, None
                continue
            yield from ((method, path, resolved, resolved[method]) for method in METHODS if method in resolved)

    def resolve(self, node: Any) -> JSONObject:
        """Return the object that `node` is or refers to. Raises `SchemaError`."""
        for _ in range(_CHAIN):
            if not isinstance(node, dict):
                raise SchemaError(f"expected an object, found {_short_repr(node)}")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.at(node["$ref"])
        raise SchemaError("its references form a cycle")

    def at(self, reference: str) -> Any:
        """Return the value that a reference leads to. Raises `SchemaError` if it is not in this document."""
        if not reference.startswith("#/"):
            raise SchemaError(
                f"it refers to {_short_repr(reference)}: only references inside the document are followed"
            )
        value: Any = self.content
        for step in unquote(reference[2:]).split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, Mapping) and key in value:
                value = value[key]
            else:
                raise SchemaError(f"it refers to {_short_repr(reference)}, which does not exist")
        return value


def _content(source: Source) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return source
    text, source_name = (source, "the text") if isinstance(source, str) and _is_text(source) else _file(source)
    try:
        content = msgspec.json.decode(text) if text.lstrip().startswith("{") else _yaml(text, source_name)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise DeclarationError(f"{source_name} is not an OpenAPI document: it is not JSON: {exc}") from exc
    if not isinstance(content, dict):
        raise DeclarationError(
            f"{source_name} is not an OpenAPI document: it must be an object, not {type(content).__name__}"
        )
    return content


def _is_text(source: str) -> bool:
    return "\n" in source or source.lstrip().startswith("{")


def _file(path: str | os.PathLike[str]) -> tuple[str, str]:
    if str(path).startswith(("http://", "https://")):
        raise DeclarationError(f"documents are not downloaded: save {path} to a file and give its path")
    try:
        return Path(path).read_text(encoding="utf-8-sig"), str(path)
    except (OSError, ValueError) as exc:
        raise DeclarationError(f"the OpenAPI document {str(path)!r:.200} cannot be read: {exc}") from exc


def _yaml(text: str, source_name: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise DeclarationError(
            f"{source_name} is not JSON; where it is YAML: `pip install pyyaml`, or save it as JSON"
        ) from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _check_aliases(root, len(text) + _ALIAS_CHARACTERS, source_name)
        return loader.construct_document(root)
    except (yaml.YAMLError, RecursionError, *_YAML_VALUE_ERRORS) as exc:
        raise DeclarationError(f"{source_name} is not an OpenAPI document: {exc}") from exc


def _check_aliases(root: Any, most: int, source_name: str) -> None:
    """Raise `DeclarationError` for a YAML node with more than `most` characters once its aliases are replaced, and for
    one that contains itself: few lines can stand for gigabytes.
    """
    sizes: dict[Any, int | None] = {root: None}  # None: a node that the current one is in
    stack = [(root, iter(_inner_nodes(root)))]
    while stack:
        node, rest = stack[-1]
        for each in rest:
            if each not in sizes:
                sizes[each] = None
                stack.append((each, iter(_inner_nodes(each))))
                break
            if sizes[each] is None:
                raise DeclarationError(f"{source_name} is not an OpenAPI document: an alias contains itself")
        else:
            stack.pop()
            sizes[node] = size = _own_size(node) + sum(sizes[each] or 0 for each in _inner_nodes(node))
            if size > most:
                raise DeclarationError(
                    f"{source_name} is too large: its aliases add more than {_ALIAS_CHARACTERS:,} characters"
                )


def _own_size(node: Any) -> int:
    """Return the size of a YAML node without those in it. Raises `ValueError` for a number that is too long: to read
    `1:00:00...`, with base 60, takes quadratic time.
    """
    if not isinstance(node.value, str):
        return 1
    if len(node.value) > _NUMBER_CHARACTERS and node.tag in _NUMBER_TAGS:
        raise ValueError(f"a number of {len(node.value):,} characters")
    return 1 + len(node.value)


def _inner_nodes(node: Any) -> list[Any]:
    """Return the keys and values, or the items, of a YAML node; none for a text."""
    if isinstance(node.value, str):
        return []
    return [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]


def _check_version(content: Mapping[str, Any]) -> None:
    version = content.get("openapi")
    if isinstance(version, str) and version.startswith("3."):
        return
    if "swagger" in content:
        raise DeclarationError(f"Swagger {content['swagger']} is not supported: convert it to OpenAPI 3")
    raise DeclarationError(f"an OpenAPI document must have `openapi: 3.x`, not {version!r:.100}")


def _table(holder: Mapping[str, Any], key: str) -> JSONObject:
    """Return an object member, or an empty object if it is missing. Raises `DeclarationError` for any other type."""
    member = holder.get(key)
    if member is None:
        return {}
    if not isinstance(member, dict):
        raise DeclarationError(f"`{key}` of an OpenAPI document is an object, not {type(member).__name__}")
    return member


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
