"""docs/protocol.md, made of the tables that the code runs on, and of the tests that cover them.

`pytest tests/test_protocol_table.py --update` writes the page anew. What covers a row stands in protocol_coverage.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from accord import errors
from accord.messages.base import LIVES
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.error_data import MissingClientCapabilityData, UnsupportedVersionData, URLElicitationRequiredData
from accord.messages.input_required import INPUT_RESPONSES
from accord.messages.methods import CLIENT, METHODS, SERVER, Method, Sender, table
from accord.messages.revision import LATEST, RULES, is_in_revision
from accord.messages.views import view
from accord.wire import headers

from tests.protocol_coverage import COVERAGE, SHAPE

CODE = re.compile(r"^-\d+( \([\d-]+\))?:? ")
"""How the docstring of an error begins."""

YES, INSIDE, NO = "●", "○", ""

HEAD = """# Protocol

This page lists every method, notification, capability, error code and header of the five revisions, with the test that
covers it. It is generated from the tables that accord runs on (`messages/methods.py`, `messages/capabilities.py`,
`errors.py`, `wire/headers.py`); a test fails if it is out of date.

| mark | meaning |
| --- | --- |
| ● | the revision has it |
| ○ | sent as an input request in the result of another request, with `resultType: "input_required"` |
| *needs* | the capability that the receiver must declare |
| *offers* | the capability that the sender must declare |
| *its shape* | accord encodes and decodes the message, but has no behaviour for it |
| *scenario* | a scenario of the official [conformance suite](conformance.md) |
"""


class Row(NamedTuple):
    """One line of the page: `key` is its name in protocol_coverage."""

    key: str
    name: str
    marks: tuple[str, ...]
    """One for each revision."""
    about: tuple[str, ...]


class Section(NamedTuple):
    """One table of the page."""

    title: str
    about: tuple[str, ...]
    """The heads of the columns between the revisions and the tests."""
    rows: tuple[Row, ...]


def sections() -> list[Section]:
    """Everything on the page."""
    return [
        Section("Requests of the client", ("needs", "notes"), tuple(_methods(CLIENT, notifications=False))),
        Section("Notifications of the client", ("offers",), tuple(_methods(CLIENT, notifications=True))),
        Section("Requests of the server", ("needs", "notes"), tuple(_methods(SERVER, notifications=False))),
        Section("Notifications of the server", ("offers",), tuple(_methods(SERVER, notifications=True))),
        Section("Capabilities of a client", (), tuple(_capabilities("client", ClientCapabilities))),
        Section("Capabilities of a server", (), tuple(_capabilities("server", ServerCapabilities))),
        Section("Error codes", ("exception", "meaning"), tuple(_errors())),
        Section("HTTP", ("purpose",), tuple(_http())),
    ]


# --- rows ------------------------------------------------------------------------------------------------------------


def _methods(sender: Sender, *, notifications: bool) -> Iterator[Row]:
    named: dict[str, list[Method]] = {}
    for row in METHODS:
        if row.notification is notifications and row.sender in (sender, "both"):
            named.setdefault(row.name, []).append(row)
    for name, rows in named.items():
        marks = tuple(_mark(name, revision, sender) for revision in RULES)
        yield Row(f"{sender} {name}", f"`{name}`", marks, _about(rows, notifications))


def _mark(name: str, revision: str, sender: Sender) -> str:
    if name in table(revision, sender):
        return YES
    return INSIDE if sender == SERVER and revision == LATEST and name in INPUT_RESPONSES else NO


def _about(rows: list[Method], notifications: bool) -> tuple[str, ...]:
    """The capability that it takes, and what is special about it."""
    needs, offers = ({getattr(row, what) for row in rows} - {None} for what in ("needs", "offers"))
    paths = [f"`{_in_camel_case(path)}`" for path in sorted(offers)] if notifications else []
    paths += [f"needs `{_in_camel_case(path)}`" if notifications else f"`{path}`" for path in sorted(needs)]
    if notifications:
        return (", ".join(paths),)
    return ", ".join(paths), "may request input" if rows[0].may_ask else "stays open" if rows[0].stays else ""


def _capabilities(who: str, type_: type) -> Iterator[Row]:
    paths: dict[str, set[str]] = {}
    for revision in RULES:
        for path in _paths(view(type_, revision)):
            paths.setdefault(path, set()).add(revision)
    for path, revisions in sorted(paths.items()):
        marks = tuple(YES if revision in revisions else NO for revision in RULES)
        yield Row(f"capability of a {who}: {path}", f"`{path}`", marks, ())


def _paths(type_: Any, above: str = "") -> Iterator[str]:
    """The names in a type of capabilities, and in what they hold: `roots`, `roots.listChanged`."""
    for field in msgspec.structs.fields(type_):
        path = above + field.encode_name
        yield path
        for inner in _structs(field.type):
            yield from _paths(inner, f"{path}.")


def _structs(hint: Any) -> Iterator[type]:
    """The types of messages that a hint leads to."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    elif get_origin(hint) is not dict:
        for inner in get_args(hint):
            yield from _structs(inner)


def _revisions_of(type_: type) -> list[str]:
    return [revision for revision in RULES if is_in_revision(revision, *LIVES[type_])]


ERRORS: dict[type[errors.ProtocolError], list[str]] = {
    errors.ResourceNotFound: [
        name for name, rules in RULES.items() if rules.resource_not_found == errors.RESOURCE_NOT_FOUND
    ],
    errors.HeaderMismatch: [name for name, rules in RULES.items() if not rules.handshake],
    errors.MissingClientCapability: _revisions_of(MissingClientCapabilityData),
    errors.UnsupportedVersion: _revisions_of(UnsupportedVersionData),
    errors.UrlElicitationRequired: _revisions_of(URLElicitationRequiredData),
    errors.SamplingDeclined: [name for name, rules in RULES.items() if rules.server_requests],
}
"""The revisions of an error that not every revision has."""


def _errors() -> Iterator[Row]:
    for error in sorted(_codes(errors.ProtocolError), key=lambda error: error.default_code):
        lives = ERRORS.get(error, list(RULES))
        meaning = CODE.sub("", (inspect.getdoc(error) or "").split("\n")[0])
        marks = tuple(YES if revision in lives else NO for revision in RULES)
        yield Row(f"error {error.default_code}", f"{error.default_code}", marks, (f"`{error.__name__}`", meaning))


def _codes(error: type[errors.ProtocolError]) -> Iterator[type[errors.ProtocolError]]:
    for subclass in error.__subclasses__():
        if "default_code" in vars(subclass):
            yield subclass


class Life(NamedTuple):
    """Something of HTTP: what it is for, and the first and the last revision that has it."""

    about: str
    first: str | None = None
    last: str | None = None


HTTP: dict[str, Life] = {
    "POST": Life("sends a message; the response is JSON or an event stream", "2025-03-26"),
    "GET": Life("opens the GET stream, or resumes a stream after an event", "2025-03-26", "2025-11-25"),
    "DELETE": Life("ends a session", "2025-03-26", "2025-11-25"),
    "HTTP+SSE": Life("one event stream, whose first event has the URL for POST", None, "2024-11-05"),
    headers.SESSION_ID.decode(): Life("the id of the session", "2025-03-26", "2025-11-25"),
    headers.LAST_EVENT_ID.decode(): Life(
        "the id of the last event that the client received", "2025-03-26", "2025-11-25"
    ),
    headers.PROTOCOL_VERSION.decode(): Life("the revision of the request", "2025-06-18"),
    headers.METHOD.decode(): Life("the method of the body", LATEST),
    headers.NAME.decode(): Life("the name of the tool or prompt, or the URI of the resource", LATEST),
    f"{headers.PARAM_PREFIX.decode()}*": Life(f"an argument whose schema has `{headers.ANNOTATION}`", LATEST),
}
"""Ways and headers of HTTP; what the specification says of them stands in no type."""


def _http() -> Iterator[Row]:
    revisions = list(RULES)
    for name, (about, first, last) in HTTP.items():
        begins = revisions.index(first) if first else 0
        ends = revisions.index(last) if last else len(revisions)
        marks = tuple(YES if begins <= at <= ends else NO for at in range(len(revisions)))
        yield Row(f"HTTP {name}", f"`{name}`", marks, (about,))


def _in_camel_case(path: str) -> str:
    first, *rest = path.split("_")
    return first + "".join(word.capitalize() for word in rest)


# --- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *(line for section in sections() for line in _section(section))])


def _section(section: Section) -> Iterator[str]:
    revisions = tuple(RULES)
    yield f"## {section.title}\n"
    yield _line(("name", *revisions, *section.about, "test"))
    yield _line(("---", *(":-:" for _ in revisions), *("---" for _ in section.about), "---"))
    for row in section.rows:
        yield _line((row.name, *row.marks, *row.about, _covered_by(row.key)))
    yield ""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _covered_by(key: str) -> str:
    """The test as a sentence, with a link to its file."""
    file, _, name = COVERAGE.get(key, "").partition("::")
    test, _, scenario = name.rstrip("]").partition("[")
    sentence = scenario or test.removeprefix("test_").replace("_", " ")
    kind = "scenario: " if scenario else "its shape: " if COVERAGE.get(key) == SHAPE else ""
    return f"{kind}[{sentence}](../{file})" if file else "nothing"
