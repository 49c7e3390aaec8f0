"""Names of tools, as providers of models allow them: `[a-zA-Z0-9_-]{1,64}`.

The Model Context Protocol allows more ("SHOULD be between 1 and 128 characters", and dots). A name that a provider
would refuse is sent as an alias, and the alias in the answer becomes the name again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from accord.messages.content import ToolUseContent
from accord.messages.sampling import CreateMessageParams, blocks_of

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_PREFIX = 51
"""Characters of a name that its alias begins with; the rest is for the digest."""


class ToolNames:
    """The names of the tools in one request, and their aliases."""

    def __init__(self, names: Iterable[str]) -> None:
        given = list(dict.fromkeys(names))
        self._aliases = {name: name for name in given if _ALLOWED(name)}
        for name in given:
            if name not in self._aliases:
                self._aliases[name] = self._free_alias(name)
        self._names = {alias: name for name, alias in self._aliases.items()}

    @classmethod
    def of_request(cls, params: CreateMessageParams) -> ToolNames:
        """Return the names in the tools of a request and in the uses of tools in its messages."""
        used = [
            block.name
            for message in params.messages
            for block in blocks_of(message)
            if isinstance(block, ToolUseContent)
        ]
        return cls([*(tool.name for tool in params.tools or ()), *used])

    def encode(self, name: str) -> str:
        """Return the name that is sent to the provider."""
        return self._aliases.get(name, name)

    def decode(self, alias: str) -> str:
        """Return the name that the provider means; of a name that was never sent, the name itself."""
        return self._names.get(alias, alias)

    def _free_alias(self, name: str) -> str:
        taken = set(self._aliases.values())
        for salt in range(len(taken) + 1):
            digest = sha256(f"{salt}:{name}".encode(errors="surrogatepass")).hexdigest()[:12]
            alias = f"{_REFUSED.sub('_', name[:_PREFIX])}_{digest}"
            if alias not in taken:
                return alias
        raise AssertionError("one of the salts gives a free alias")
