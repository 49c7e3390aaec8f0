"""The approval of a command that a configuration file wants to start, if the user did not name that file.

An approval is bound to the command line, the program and its contents, the working directory and the whole entry, with
the values of environment variables; a change of one byte needs a new approval. (Approvals that were bound to a server's
name allowed any later command of that name.) Other files that the program loads are not covered.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Command, Remote
from accord.host.consent import digest
from accord.visible_text import visible

_MAX_HASHED = 1 << 30
"""Bytes of the largest program whose contents are read."""
_RUNNERS = {"npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "PyPI", "pipx": "PyPI"}
"""Programs that download another one, and from where."""
_SELECTING = (
    "PATH",
    "LD_",
    "DYLD_",
    "PYTHON",
    "NODE_",
    "NPM_",
    "UV_",
    "PIP_",
    "RUBY",
    "PERL5",
    "JAVA_TOOL",
    "_JAVA",
    "JDK_JAVA",
    "BASH_",
    "ZDOTDIR",
    "GIT_",
    "GCONV_",
    "DOTNET_",
    "BUN_",
    "DENO_",
)
"""Beginnings of the names of variables that select which code runs."""


class CommandDescription(msgspec.Struct, frozen=True):
    """The command that starts a server, or the URL that reaches it."""

    argv: tuple[str, ...]
    program: str
    """The path of the program; empty if there is none."""
    contents: str
    """The digest of the contents of the program, and of a script that it is given."""
    folder: str
    variables: tuple[str, ...]
    """The names of the environment variables, or headers, that the configuration sets."""
    entry: str = ""
    """The digest of the entry in the file, in which a value may be as dangerous as a command: `NODE_OPTIONS`."""

    @property
    def digest(self) -> str:
        """Return the digest of all of it."""
        return digest(msgspec.json.encode(self))

    def lines(self) -> list[str]:
        """Return the description as lines of text, with hidden characters escaped."""
        if not self.program and not self.folder:
            return [
                f"connects to: {_line(self.argv[0])}",
                f"headers: {', '.join(map(_line, self.variables)) or 'none'}",
            ]
        lines = [
            f"command: {_line(' '.join(map(_quoted, self.argv)))}",
            f"program: {_line(self.program) or 'not found'}",
            f"contents: sha256 {self.contents}",
            f"folder: {_line(self.folder)}",
            f"environment variables: {', '.join(map(_line, self.variables)) or 'none'}",
        ]
        if unpinned := _unpinned(self.argv):
            lines.append(unpinned)
        if selecting := [name for name in self.variables if name.upper().startswith(_SELECTING)]:
            lines.append(f"note: these variables can select the code that runs: {', '.join(map(_line, selecting))}")
        return lines


def describe_target(target: Command | Remote, entry: Mapping[str, Any] | None = None) -> CommandDescription:
    """Return the description of a target as it would be started now; `entry` is its entry in a file.

    Reads the program, which takes time.
    """
    found = digest(msgspec.json.encode(dict(entry or {}), order="deterministic"))
    if isinstance(target, Remote):
        return CommandDescription((target.url,), "", "", "", tuple(sorted(target.headers or {})), found)
    folder = os.path.abspath(target.cwd or os.getcwd())
    program = _program(target, folder)
    words = (part for word in target.argv[1:] for part in (word, word.partition("=")[2]))
    contents = _contents([program, *(os.path.join(folder, word) for word in words)])
    real = os.path.realpath(program) if program else ""
    return CommandDescription(target.argv, real, contents, folder, tuple(sorted(target.env or ())), found)


def _program(target: Command, folder: str) -> str:
    """Return the path of the program that starts, empty if there is none. Relative paths, also those in PATH, are
    relative to the folder of the process.
    """
    if os.path.dirname(target.argv[0]):
        return shutil.which(os.path.join(folder, target.argv[0])) or ""
    path = (target.env or {}).get("PATH", os.environ.get("PATH", os.defpath))
    places = os.pathsep.join(os.path.join(folder, place) for place in path.split(os.pathsep))
    return shutil.which(target.argv[0], path=places) or ""


def _contents(files: list[str]) -> str:
    """Return the digest of the contents of those of the paths that are files."""
    total = hashlib.sha256()
    for place, file in enumerate(files):
        path = Path(file)
        try:
            if not path.is_file():
                continue
            size = path.stat().st_size
            total.update(f"{place} {size} ".encode())
            if size <= _MAX_HASHED:
                with path.open("rb") as stream:
                    total.update(hashlib.file_digest(stream, "sha256").digest())
        except (OSError, ValueError):  # a word that is no path
            continue
    return total.hexdigest()


def _unpinned(argv: tuple[str, ...]) -> str:
    """Describe a program that is downloaded without a version; empty for another one."""
    runner = Path(argv[0]).name.removesuffix(".exe").removesuffix(".cmd").lower()
    source = _RUNNERS.get(runner)
    if source is None:
        return ""
    package = next((word for word in argv[1:] if not word.startswith("-") and word not in ("run", "exec")), "")
    has_version = "@" in package[1:] or "==" in package
    if package and not has_version:
        return f"note: it runs whatever is published today on {source} as {_line(package)}: no version is named"
    return ""


def _line(text: str) -> str:
    """Return a text in one line; unlike in `single_line`, all of its spaces stay."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _quoted(word: str) -> str:
    return word if word and not set(word) & set(" \t\n\"'\\$`") else repr(word)
