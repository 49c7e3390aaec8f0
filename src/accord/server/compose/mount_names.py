"""The mapping of names and URIs of a mounted server: `forecast` inside is `prefix_forecast` outside."""

from __future__ import annotations

import re

from accord.errors import DeclarationError
from accord.messages.completion import PromptReference, Reference, ResourceTemplateReference

_PREFIX = re.compile(r"[A-Za-z0-9_.-]+")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://)?)(.*)", re.DOTALL)


class MountNames:
    """The mapping for a prefix, which may be empty: then names stay. Raises `DeclarationError` for an
    invalid prefix.
    """

    def __init__(self, prefix: str) -> None:
        if prefix and not _PREFIX.fullmatch(prefix):
            raise DeclarationError(f"a prefix may contain only letters, digits, `_`, `-` and `.`, not {prefix!r}")
        self.prefix: str = prefix

    def name(self, name: str) -> str:
        """Return the outer name of a tool or prompt: `acme_forecast`."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def inner_name(self, name: str) -> str | None:
        """Return the inner name, or None for a name that is not of this mount."""
        start = f"{self.prefix}_" if self.prefix else ""
        return name[len(start) :] if name.startswith(start) else None

    def uri(self, uri: str) -> str:
        """Return the outer URI or template: `weather://acme/oslo`."""
        match = _URI.fullmatch(uri)
        if not self.prefix or match is None:
            return uri
        return f"{match[1]}{self.prefix}/{match[2]}"

    def inner_uri(self, uri: str) -> str | None:
        """Return the inner URI, or None for a URI that is not of this mount."""
        match = _URI.fullmatch(uri)
        if not self.prefix or match is None:
            return uri if not self.prefix else None
        start = self.prefix + "/"
        return match[1] + match[2][len(start) :] if match[2].startswith(start) else None

    def inner(self, kind: str, name: str) -> str | None:
        """Return the inner name of a "tool" or "prompt", URI of a "resource" or text of a "resource template"; None for
        one that is not of this mount.
        """
        return self.inner_name(name) if kind in ("tool", "prompt") else self.inner_uri(name)

    def inner_ref(self, ref: Reference) -> Reference | None:
        """Return the inner reference of a completion, or None for one that is not of this mount."""
        if isinstance(ref, PromptReference):
            name = self.inner_name(ref.name)
            return None if name is None else PromptReference(name=name)
        uri = self.inner_uri(ref.uri)
        return None if uri is None else ResourceTemplateReference(uri=uri)
