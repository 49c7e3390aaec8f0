"""Paths of files as servers may read them.

A server may or may not decode `%2e`, turn `\\` into `/`, take a path for a URL that ends at `?` or `#`, or remove `..`
before it follows symbolic links. So a text has several readings.

A text has none, and is unclear, if it cannot be read safely: a relative path without a known working directory, or one
that begins like an option or a variable, a NUL or another control character, blanks at the ends, the home of another
user, a link of `/proc`, a device or stream of Windows, a short name (`PROGRA~1`), a symbolic link that cannot be read.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from accord.host.policy.real_paths import PathSystem

_MAX_CHARACTERS = 4_096
_MAX_PARTS = 256
_MAX_ROUNDS = 4
"""How often a text is decoded and cut until there is nothing new."""

_DEVICE_NAME = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_SHORT_NAME = re.compile(r"~[0-9]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_DRIVE = re.compile(r"[A-Za-z]:\\")
_AFTER_PATH = re.compile(r"[?#]")
_PREFIXES = ("\\\\?\\", "//?/")


class UnclearPath(Exception):
    """A text that cannot be read as a path in one safe way."""


def real_readings(text: str, system: PathSystem, base: str | None) -> Iterator[str]:
    """Return the real paths that a text may stand for. Raises `UnclearPath` and `OSError`."""
    for path in _absolute_readings(text, system, base):
        if len(parts_of(path, system)) > _MAX_PARTS:
            raise UnclearPath(f"it has more than {_MAX_PARTS} parts")
        normal = ntpath.normpath(path) if system.windows else posixpath.normpath(path)
        for real in (system.real_path(path), system.real_path(normal)):
            if system.windows and any(_SHORT_NAME.search(part) for part in parts_of(real, system)):
                raise UnclearPath("it has a short name of Windows")
            yield real


def real_folder(folder: str, system: PathSystem) -> str:
    """Return the real path of a folder in a rule, which is taken literally. Raises `UnclearPath` and `OSError`."""
    absolute = absolute_folder(folder, system)
    normal, real = (ntpath if system.windows else posixpath).normpath(absolute), system.real_path(absolute)
    if system.real_path(normal) != real:
        raise UnclearPath(f"programs read the folder {folder} differently")
    return real


def absolute_folder(folder: str, system: PathSystem) -> str:
    """Return the path of a folder in a rule: an absolute one, or one that begins with `~`. Raises `UnclearPath`."""
    _check_characters(folder)
    return _absolute(folder, system, None)


def parts_of(path: str, system: PathSystem) -> list[str]:
    """Return the names on the way to a path, on Windows with the drive or share before them."""
    if not system.windows:
        return [part for part in path.split("/") if part]
    drive, rest = ntpath.splitdrive(path)
    return [drive, *(part for part in rest.split("\\") if part)]


def _absolute_readings(text: str, system: PathSystem, base: str | None) -> Iterator[str]:
    _check_characters(text)
    written = text
    if text[:5].lower() == "file:":
        written = _path_of_uri(text, system)
        text = unquote(written, errors="strict")
    elif _SCHEME.match(text) and text.partition(":")[2].startswith("//"):
        raise UnclearPath("it is a URL")
    for variant in _variants(text, system):
        _check_characters(variant)
        _check_dots(variant, written, system)
        yield _absolute(variant, system, base)


def _variants(text: str, system: PathSystem) -> set[str]:
    """Return a text as it is, decoded, cut where a URL ends, and with other separators."""
    found, new = {text}, {text}
    for _ in range(_MAX_ROUNDS):
        new = {other for each in new for other in _further(each, system)} - found
        if not new:
            return found
        found |= new
    raise UnclearPath("it is encoded several times")


def _further(text: str, system: PathSystem) -> Iterator[str]:
    yield unquote(text, errors="strict")
    end = _AFTER_PATH.search(text, 4 if text[:4] in _PREFIXES else 0)  # `\\\\?\\` is no end
    yield text[: end.start()].rstrip() or text if end is not None else text
    if not system.windows:
        yield text.replace("\\", "/")


def _absolute(text: str, system: PathSystem, base: str | None) -> str:
    return (_absolute_windows if system.windows else _absolute_posix)(text, system, base)


def _check_characters(text: str) -> None:
    if not text:
        raise UnclearPath("it is empty")
    if len(text) > _MAX_CHARACTERS:
        raise UnclearPath(f"it is longer than {_MAX_CHARACTERS:,} characters")
    if text != text.strip():
        raise UnclearPath("it has blanks at an end")
    if not text.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UnclearPath("it has a control character")
    if not text.isascii() and _separators(_best_fit(text)) != _separators(text):
        raise UnclearPath("it has a character that some programs turn into a separator")


def _check_dots(variant: str, written: str, system: PathSystem) -> None:
    """Raise `UnclearPath` for `..` that only some programs see, or that removes an empty part for some programs."""
    parts, before = (re.split(r"[/\\]" if system.windows else "/", each) for each in (variant, written))
    dots = parts.count("..")
    if dots > before.count(".."):
        raise UnclearPath("some programs find a .. in it")
    if dots and "" in parts[2:-1]:
        raise UnclearPath("it has an empty part and a ..")


def _best_fit(text: str) -> str:
    """Return a text as programs write it that normalize it, or convert it to an old character set."""
    return unicodedata.normalize("NFKC", text).translate(_SLASHES)


_SLASHES = {0x2044: "/", 0x2215: "/", 0x2216: "\\", 0x29F5: "\\", 0x00A5: "\\", 0x20A9: "\\"}


def _separators(text: str) -> list[str]:
    """Return the parts of a path that lead somewhere, in order: separators, and `..` between them."""
    return [part for part in re.split(r"([/\\:])", text) if part in ("/", "\\", ":", "..")]


def _path_of_uri(text: str, system: PathSystem) -> str:
    """Return the encoded path of a `file:` URI (RFC 8089). Raises `UnclearPath` if programs may disagree about it."""
    rest = text[5:]
    if "?" in rest or "#" in rest:
        raise UnclearPath("its file: URI has a query or a fragment")
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    if not path.startswith("/") or (authority and authority.lower() != "localhost"):
        raise UnclearPath("its file: URI is not file:///path")
    return path[1:] if system.windows and re.match(r"/[A-Za-z](?::|%3[Aa])", path) else path


def _absolute_posix(text: str, system: PathSystem, base: str | None) -> str:
    path = text
    if text.startswith("~"):
        if text[1:2] not in ("", "/"):
            raise UnclearPath("it names the home of another user")
        path = f"{system.home}/{text[1:]}"
    elif not text.startswith("/"):
        path = f"{_base_of(text, base, base is not None and base.startswith('/'))}/{text}"
    path = re.sub("//+", "/", path)
    if posixpath.normpath(path).startswith(("/proc/", "/dev/fd", "/dev/std")):
        raise UnclearPath("it is another file for each process")
    return path


def _base_of(text: str, base: str | None, is_absolute: bool) -> str:
    """Return the folder of a relative path."""
    if base is None or not is_absolute:
        raise UnclearPath("it is relative, and the working directory of the server is not known")
    if text[0] in "-$%":
        raise UnclearPath("it may be read as an option or a variable")
    return base


def _absolute_windows(text: str, system: PathSystem, base: str | None) -> str:
    path = _without_prefix(text.replace("/", "\\"))
    if path.startswith("~"):
        if path[1:2] not in ("", "\\"):
            raise UnclearPath("it names the home of another user")
        path = f"{system.home}\\{path[1:]}"
    elif path.startswith("\\\\"):
        _check_share(path)
    elif path.startswith("\\") or path[1:2] == ":":
        if not _DRIVE.match(path):
            raise UnclearPath("it is relative to a drive")
    else:
        path = f"{_base_of(path, base, base is not None and _DRIVE.match(base) is not None)}\\{path}"
    drive, rest = ntpath.splitdrive(path)
    for part in rest.split("\\"):
        _check_windows_name(part)
    return drive.upper() + re.sub(r"\\\\+", r"\\", rest)


def _without_prefix(path: str) -> str:
    r"""Return a path without `\\?\`, which turns off the normalization of Windows."""
    if path[:4] not in ("\\\\?\\", "\\\\.\\", "\\??\\"):
        return path
    rest = path[4:]
    rest = f"\\\\{rest[4:]}" if rest[:4].upper() == "UNC\\" else rest
    if not rest.startswith("\\\\") and not _DRIVE.match(rest):
        raise UnclearPath("it is a device")
    if {".", ".."}.intersection(rest.split("\\")):
        raise UnclearPath("it has dots after a prefix that turns off their meaning")
    return rest


def _check_share(path: str) -> None:
    server, _, rest = path[2:].partition("\\")
    share = rest.partition("\\")[0]
    if not server or not share or share.endswith("$") or server in (".", "?") or "@" in server:
        raise UnclearPath("it is not a plain share of a server")


def _check_windows_name(part: str) -> None:
    if part in ("", ".", ".."):
        return
    if part[-1] in ". " or any(character in '<>:"|?*' for character in part) or _DEVICE_NAME.fullmatch(part):
        raise UnclearPath("it has a name that Windows changes, or a device or stream")
