"""The approval of a command that a configuration file wants to start, if the user did not name that file.

An approval is bound to the command line, the program and its contents, the working directory and the whole entry, with
the values of environment variables; a change of one byte needs a new approval. (Approvals that were bound to a server's
name allowed any later command of that name.) Other files that the program loads are not covered.

It is also bound to accord's own settings in that file: a policy of a stranger could allow all calls without a prompt.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from accord.client.target import Command, Remote
from accord.host.consent import digest
from accord.host.definitions import json_lines
from accord.host.secret_references import login_places, references
from accord.lazy_patterns import lazy_pattern
from accord.visible_text import encodable, readable, visible

_MAX_HASHED = 1 << 30
"""Bytes of a program and the files in its arguments that are read: arguments can name a large one again and again."""
_PART_BYTES = 1 << 18
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


class CommandDescription(msgspec.Struct, frozen=True, omit_defaults=True):
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
    references: tuple[str, ...] = ()
    """The environment variables and secrets of the user in the entry, whose values the server receives."""
    login: tuple[str, ...] = ()
    """The servers that the login of the entry names, besides that of the URL."""
    settings: str = ""
    """accord's own settings in the file that apply to the server, as JSON; empty without any."""

    @property
    def digest(self) -> str:
        """Return the digest of all of it."""
        return digest(msgspec.json.encode(encodable(msgspec.to_builtins(self))))  # a path need not be UTF-8

    def lines(self) -> list[str]:
        """Return the description as lines of text, with hidden characters escaped."""
        received = ", ".join(map(_line, self.references))
        received_lines = [f"receives the values of: {received}"] if received else []
        return [*self._command_lines(), *self._login_lines(), *received_lines, *self._setting_lines()]

    def _command_lines(self) -> list[str]:
        if not self.program and not self.folder:
            return [
                f"connects to: {_line(self.argv[0])}",
                *_host_note(self.argv[0]),
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

    def _login_lines(self) -> list[str]:
        if not self.login:
            return []
        places = (place.partition(" ") for place in self.login)
        notes = (note for key, _, url in places for note in _host_note(url, f" of {key}"))
        return [f"login: {', '.join(map(_line, self.login))}", *notes]

    def _setting_lines(self) -> list[str]:
        if not self.settings:
            return []
        shown = json_lines(readable(self.settings.encode()))
        head = "settings in the file, which would apply; a policy in them decides which calls you are asked about:"
        return [head, *(f"  | {line}" for line in shown)]


def describe_target(
    target: Command | Remote, entry: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
) -> CommandDescription:
    """Return the description of a target as it would be started now; `entry` is its entry in a file, and `settings` are
    accord's own settings there.

    Reads the program, which takes time. Raises `TargetError`.
    """
    found = digest(msgspec.json.encode(dict(entry or {}), order="deterministic"))
    applied = msgspec.json.encode(dict(settings), order="deterministic").decode() if settings else ""
    further = found, tuple(sorted(references(entry))), tuple(login_places(entry or {})), applied
    if isinstance(target, Remote):
        return CommandDescription((target.url,), "", "", "", tuple(sorted(target.headers or {})), *further)
    folder = os.path.realpath(target.cwd or os.getcwd())
    program = _program(target, folder)
    words = (part for word in target.argv[1:] for part in (word, word.partition("=")[2]))
    contents = _contents([program, *(os.path.join(folder, word) for word in words)])
    real = os.path.realpath(program) if program else ""
    return CommandDescription(target.argv, real, contents, folder, tuple(sorted(target.env or ())), *further)


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
    """Return the digest of the contents of those of the paths that are files; the first is the program. Of those that
    the limit leaves out, it has the times of their last change.
    """
    found = {file: status for file in dict.fromkeys(files) if (status := _status(file)) is not None}
    sizes = {file: status.st_size for file, status in found.items()}
    contents = _digests(sizes, sorted(sizes, key=lambda file: (file != files[0], sizes[file])))
    total = hashlib.sha256()
    for place, file in enumerate(files):
        if file in found:
            total.update(f"{place} {sizes[file]} ".encode() + contents.get(file, _last_change(found[file])))
    return total.hexdigest()


def _digests(sizes: Mapping[str, int], order: Iterable[str]) -> dict[str, bytes]:
    """Return the digests of files, of as many as the limit allows."""
    found, left = {}, _MAX_HASHED
    for file in order:
        if sizes[file] <= left:
            left -= sizes[file]
            with contextlib.suppress(OSError):
                found[file] = _digest_of(file, sizes[file])
    return found


def _digest_of(file: str, size: int) -> bytes:
    """Return the digest of the first `size` bytes of a file: one of /proc, of size 0, may have no end."""
    total = hashlib.sha256()
    with open(file, "rb") as stream:
        while part := stream.read(min(size, _PART_BYTES)):
            total.update(part)
            size -= len(part)
    return total.digest()


def _status(file: str) -> os.stat_result | None:
    """Return the status of a file; None for a word that is no path of one."""
    try:
        path = Path(file)
        return path.stat() if path.is_file() else None
    except (OSError, ValueError):
        return None


def _last_change(status: os.stat_result) -> bytes:
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}".encode()


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


def _host_note(url: str, of: str = "") -> list[str]:
    """Name the host of a URL that seems to be at another one: before an `@`, or in letters that look like ASCII."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a login at no URL, which fails
        return []
    host = parts.hostname or ""
    is_clear = "@" not in parts.netloc and host.isascii()
    return [] if is_clear else [f"note: the host{of} is {host.encode('unicode_escape').decode()}"]


def _line(text: str) -> str:
    """Return a text in one line; unlike in `single_line`, all of its spaces stay."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _quoted(word: str) -> str:
    return word if word and not set(word) & set(" \t\n\"'\\$`") else repr(word)
