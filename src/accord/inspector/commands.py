"""Commands: what the page asks Python to do. Each has a name, the type of its parameters, and a function.

`POST /api/NAME` with a JSON object as its body; the response is JSON. Values of a peer travel as texts of JSON: the
page would change numbers such as 1.0 and 2**53 + 1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec


class InspectorError(Exception):
    """A command cannot be carried out: what happened, and what to do. `status` is that of the response."""

    def __init__(self, error: str, cure: str = "", *, status: int = 409) -> None:
        super().__init__(error)
        self.error: str = error
        self.cure: str = cure
        self.status: int = status


class CommandParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base class of the parameters of a command."""


class NoParams(CommandParams, frozen=True):
    """No parameters."""


class ServerParams(CommandParams, frozen=True):
    """The name of a server."""

    server: str


class PageCommand(msgspec.Struct, frozen=True):
    """A command. Its function takes the `Workspace` and the parameters, and returns what `msgspec` encodes, a file
    (`Download`), or None.

    With `upload`, the body of the request is a file: the function gets its path, and deletes or keeps it.
    """

    params: type[CommandParams]
    function: Callable[[Any, Any], Awaitable[Any]]
    upload: bool = False


class Upload(CommandParams, frozen=True):
    """A file that a page sent, in the temporary folder of the workspace. `name` is its name on the user's machine."""

    path: Path
    name: str = ""


class Download(msgspec.Struct, frozen=True):
    """A file for the page; `path` is read while it is sent. `delete`: it is a temporary file of this download."""

    name: str
    path: Path
    type: str = "application/octet-stream"
    delete: bool = False
