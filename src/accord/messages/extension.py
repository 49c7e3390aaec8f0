"""Extensions: additions of third parties to the protocol (2026-07-28, Versioning, Extension Negotiation).

An extension is one value that both sides receive. Each side declares its settings under the name of the extension;
its methods may be sent only to a side that has declared it: "the supporting party MUST either revert to core
protocol behavior or reject the request with an appropriate error".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from accord.messages.base import JSONObject
from accord.messages.meta import check_meta_key
from accord.messages.methods import Method

_NAME = re.compile(r"[^/\s]+/[^/\s]+")


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """An extension of the protocol.

    `name` has a prefix of your own: "com.example/search". `settings` are what this side declares for it. `methods` are
    its requests and notifications, each `Method(NAME, SENDER, PARAMS_TYPE, RESULT_TYPE)`. `results` are its result
    types, by their `resultType`. With `declared_by="server"`, clients use it without declaring it. Raises `ValueError`
    for an invalid or reserved name.
    """

    name: str
    settings: JSONObject = {}
    methods: tuple[Method, ...] = ()
    results: Mapping[str, type[Any]] = {}
    declared_by: Literal["both", "server"] = "both"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} is not a valid extension name: it needs a prefix, such as 'com.example/search'"
            )
        check_meta_key(self.name, known={self.name} if _is_official(self.name) else ())

    @property
    def capability(self) -> str:
        """Return the path of the capability that both sides declare."""
        return f"extensions:{self.name}"

    def rows(self) -> list[Method]:
        """Return the methods of the extension; each needs the extension on the side that receives it, and offers it on
        the side that sends it."""
        return [
            msgspec.structs.replace(
                row,
                needs=row.needs or self._capability_of("client" if row.sender == "server" else "server"),
                offers=row.offers or self._capability_of(row.sender),
            )
            for row in self.methods
        ]

    def _capability_of(self, side: str) -> str | None:
        return None if side == "client" and self.declared_by == "server" else self.capability


def _is_official(name: str) -> bool:
    """Return whether a name belongs to an official extension: the prefix itself, without more labels."""
    return name.startswith("io.modelcontextprotocol/")


def settings_of(extensions: Sequence[Extension]) -> dict[str, JSONObject] | None:
    """Return the settings that a side with these extensions declares. Raise `ValueError` if two have the same name."""
    declared = {extension.name: dict(extension.settings) for extension in extensions}
    if len(declared) < len(extensions):
        raise ValueError("two extensions have the same name")
    return declared or None


def rows_of(extensions: Sequence[Extension]) -> list[Method]:
    """Return the methods of all extensions."""
    return [row for extension in extensions for row in extension.rows()]


def results_of(extensions: Sequence[Extension]) -> dict[str, type[Any]]:
    """Return the result types of all extensions, by their `resultType`."""
    return {kind: type_ for extension in extensions for kind, type_ in extension.results.items()}
