"""The names and URIs of a mounted server: `forecast` inside is `prefix_forecast` outside."""

from __future__ import annotations

import re

from accord.errors import DeclarationError
from accord.messages.completion import PromptReference, Reference, ResourceTemplateReference

_PREFIX = re.compile(r"[A-Za-z0-9_.-]+")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://)?)(.*)", re.DOTALL)


class MountNames:
    """`prefix` may be empty: then the names stay as they are. Raises `DeclarationError` for what can be no prefix."""

    def __init__(self, prefix: str) -> None:
        if prefix and not _PREFIX.fullmatch(prefix):
            raise DeclarationError(f"a prefix may contain only letters, digits, `_`, `-` and `.`, not {prefix!r}")
        self.prefix: str = prefix

    def name(self, name: str) -> str:
        """The name of a tool or prompt, as it is outside: `acme_forecast`."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def inner_name(self, name: str) -> str | None:
        """The name inside; None for what is not from here."""
        start = f"{self.prefix}_" if self.prefix else ""
        return name[len(start) :] if name.startswith(start) else None

    def uri(self, uri: str) -> str:
        """A URI or template as it is outside: `weather://acme/oslo`."""
        found = _URI.fullmatch(uri)
        if not self.prefix or found is None:
            return uri
        return f"{found[1]}{self.prefix}/{found[2]}"

    def inner_uri(self, uri: str) -> str | None:
        """The URI inside; None for what is not from here."""
        found = _URI.fullmatch(uri)
        if not self.prefix or found is None:
            return uri if not self.prefix else None
        start = self.prefix + "/"
        return found[1] + found[2][len(start) :] if found[2].startswith(start) else None

    def inner(self, kind: str, name: str) -> str | None:
        """The name inside of a "tool" or "prompt", the URI of a "resource", the text of a "resource template"; None for
        what is not from here.
        """
        return self.inner_name(name) if kind in ("tool", "prompt") else self.inner_uri(name)

    def inner_ref(self, ref: Reference) -> Reference | None:
        """What is completed, as it is inside; None for what is not from here."""
        if isinstance(ref, PromptReference):
            name = self.inner_name(ref.name)
            return None if name is None else PromptReference(name=name)
        uri = self.inner_uri(ref.uri)
        return None if uri is None else ResourceTemplateReference(uri=uri)
