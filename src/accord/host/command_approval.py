"""The approval of a command that a configuration file wants to start, if the user did not name that file.

An approval is bound to the command line, the program and its contents, the working directory and the whole entry, with
the values of environment variables; a change of one byte needs a new approval. (Approvals that were bound to a server's
name allowed any later command of that name.) Other files that the program loads are not covered.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Command, Remote
from accord.host.consent import digest
from accord.lazy_patterns import lazy_pattern
from accord.visible_text import visible

_MAX_HASHED = 1 << 30
"""Bytes of the largest program whose contents are read."""
_RUNNERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "npx": ("npm", ()),
    "bunx": ("npm", ()),
    "pnpx": ("npm", ()),
    "npm": ("npm", ("exec",)),
    "pnpm": ("npm", ("dlx",)),
    "yarn": ("npm", ("dlx",)),
    "bun": ("npm", ("x",)),
    "uvx": ("PyPI", ()),
    "uv": ("PyPI", ("tool", "run")),
    "pipx": ("PyPI", ("run",)),
}
"""Programs that download another one: from where, and with which words."""
_PACKAGE_OPTIONS = {"npm": ("-p", "--package"), "PyPI": ("--from", "--spec")}
_MORE_PACKAGES = ("--with",)
_OTHER_OPTIONS = ("--registry", "--index", "--index-url", "--default-index", "--python", "--directory", "--cache-dir")
"""Options whose value is no package."""
_FLAGS = ("-y", "--yes", "-q", "--quiet", "--offline", "--prefer-offline", "--isolated", "--no-install", "--")
_EXACT = {
    "npm": lazy_pattern(r"^@?[^@]+@\d+\.\d+\.\d[\w.+-]*$"),
    "PyPI": lazy_pattern(r"^[^@=:/]+(?:@|==)\d[\w.+!-]*$"),
}
"""A package with its version: others, such as `@latest` and `@^1.2`, change with what is published."""
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


# --- packages ----------------------------------------------------------------------------------------------------


def _unpinned(argv: tuple[str, ...]) -> str:
    """Describe a program that is downloaded in no exact version; empty for another one."""
    runner = Path(argv[0]).name.removesuffix(".exe").removesuffix(".cmd").lower()
    source, subcommand = _RUNNERS.get(runner, ("", ()))
    words = argv[1:]
    if not source or words[: len(subcommand)] != subcommand:
        return ""
    packages = _packages(words[len(subcommand) :], _PACKAGE_OPTIONS[source])
    unpinned = [package for package in packages if not _EXACT[source].search(package)]
    if not unpinned:
        return ""
    names = ", ".join(map(_line, unpinned))
    return f"note: it runs whatever is published today on {source} as {names}: no exact version is named"


def _packages(words: Iterable[str], options: Container[str]) -> list[str]:
    """Return the packages that a runner downloads: those of its options, else the first word that is none. The word
    behind an unknown option may be its value or the package, so that it counts too.
    """
    named: list[str] = []
    more: list[str] = []
    first: list[str] = []
    before = ""
    for word in words:
        if word.startswith("-"):
            before, _, value = word.partition("=")
            if value and (before in options or before in _MORE_PACKAGES):
                (named if before in options else more).append(value)
            before = "" if value or before in _FLAGS else before
            continue
        if before in options or before in _MORE_PACKAGES:
            (named if before in options else more).append(word)
        elif before not in _OTHER_OPTIONS:
            first.append(word)
            if not before:
                break
        before = ""
    return [*(named or first), *more]


def _line(text: str) -> str:
    """Return a text in one line; unlike in `single_line`, all of its spaces stay."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _quoted(word: str) -> str:
    return word if word and not set(word) & set(" \t\n\"'\\$`") else repr(word)
