"""The comparison of two sessions: what the servers offer, and what they answered to the same requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from typing import Any, Literal

import msgspec

from accord.check.probes.message_log import decode_json
from accord.check.surface.changes import changes_by_revision
from accord.check.surface.schema_changes import Change
from accord.check.surface.surface import LISTS, by_revision
from accord.inspector.traffic.comparison import LIST_METHODS, MAX_COMPARED, listed_items
from accord.inspector.traffic.index import OK, REQUEST, RESPONSE
from accord.inspector.traffic.source import TrafficSource
from accord.messages.base import JSONObject
from accord.visible_text import single_line, truncate

MAX_CHANGES = 2_000
MAX_CALLS = 2_000
"""The maximum number of requests that are compared."""
_GREETINGS = ("initialize", "server/discover")


class ComparedCall(msgspec.Struct, frozen=True, rename="camel"):
    """A request that both sessions have, or one of them; the rows of the responses."""

    request: str
    outcome: Literal["equal", "different", "only left", "only right"]
    left_row: int | None
    right_row: int | None


class SessionComparison(msgspec.Struct, frozen=True):
    """The differences of two sessions."""

    revisions: list[str]
    """The revisions in which the surfaces were compared."""
    changes: list[Change]
    calls: list[ComparedCall]
    shortened: bool


def compare_sessions(left: TrafficSource, right: TrafficSource) -> SessionComparison:
    """Return the differences of the surfaces and of the responses. Raises `OSError`."""
    old, new = _comparable(session_surfaces(left), session_surfaces(right))
    try:
        changes = changes_by_revision(by_revision({"revisions": old}), by_revision({"revisions": new}))
    except ValueError:  # an item has other types than the comparison expects
        changes = []
    calls = list(_compare_calls(left, right))
    return SessionComparison(
        revisions=sorted(old.keys() & new.keys()),
        changes=changes[:MAX_CHANGES],
        calls=calls[:MAX_CALLS],
        shortened=max(len(changes) - MAX_CHANGES, len(calls) - MAX_CALLS) > 0,
    )


# --- surfaces ------------------------------------------------------------------------------------------------------


def session_surfaces(source: TrafficSource) -> dict[str, JSONObject]:
    """Return what the servers of a session offered last, by revision: the lists that it has. Raises `OSError`."""
    index = source.index
    found: dict[str, JSONObject] = {}
    wanted = {*LIST_METHODS, *_GREETINGS}
    numbers = index.methods.find(lambda text: text in wanted)
    methods, kinds, outcomes = index.methods.numbers, index.kinds, index.outcomes
    for row in range(len(index)):
        if methods[row] in numbers and kinds[row] == RESPONSE and outcomes[row] == OK:
            revision = index.revisions.text(row)
            if revision and index.sizes[row] <= MAX_COMPARED:
                add_response(source, row, found.setdefault(revision, {}))
    return found


def add_response(source: TrafficSource, row: int, surface: JSONObject) -> None:
    """Add what a response says to the surface of its server: a list, its next page, or the greeting."""
    message = decode_json(source.reader.message(row))
    kind = LIST_METHODS.get(source.index.methods.text(row))
    if kind is not None:
        if kind not in surface or not _has_cursor(source, row):
            surface[kind] = {}
        surface[kind].update({item[LISTS[kind].key]: item for item in listed_items(message, kind)})
        return
    result = message.get("result") if isinstance(message, dict) else None
    if isinstance(result, dict):
        instructions, capabilities = result.get("instructions"), result.get("capabilities")
        surface["instructions"] = instructions if isinstance(instructions, str) else None
        surface["capabilities"] = capabilities if isinstance(capabilities, dict) else None


def _comparable(
    old: dict[str, JSONObject], new: dict[str, JSONObject]
) -> tuple[dict[str, JSONObject], dict[str, JSONObject]]:
    """Return the surfaces of the common revisions, or else of the newest ones, with what both sessions have."""
    pairs = [(revision, revision) for revision in sorted(old.keys() & new.keys())]
    if not pairs and old and new:
        pairs = [(max(old), max(new))]
    both = [(was, now, old[was].keys() & new[now].keys()) for was, now in pairs]
    return (
        {was: _filled(was, old[was], common) for was, _, common in both},
        {was: _filled(was, new[now], common) for was, now, common in both},
    )


def _filled(revision: str, surface: JSONObject, common: Set[str]) -> JSONObject:
    """Return a surface that has the common parts only, and no item of other lists."""
    parts: JSONObject = {"instructions": None, "capabilities": None, **{kind: {} for kind in LISTS}}
    return {"revision": revision, **parts, **{key: value for key, value in surface.items() if key in common}}


def _has_cursor(source: TrafficSource, row: int) -> bool:
    """Return whether a list is continued."""
    request = source.index.partners[row]
    params = _params(source, request) if request >= 0 else None
    return isinstance(params, dict) and "cursor" in params


# --- calls ---------------------------------------------------------------------------------------------------------


def _compare_calls(left: TrafficSource, right: TrafficSource) -> Iterator[ComparedCall]:
    """Yield the requests of both, in the order of the left ones; equal requests match in their order."""
    theirs: defaultdict[bytes, list[int]] = defaultdict(list)
    for key, row in _requests(right):
        theirs[key].append(row)
    for rows in theirs.values():
        rows.reverse()
    for key, row in _requests(left):
        label = _label(left, row)
        if not theirs[key]:
            yield ComparedCall(label, "only left", _response(left, row), None)
        else:
            other = theirs[key].pop()
            equal = _result(left, row) == _result(right, other)
            outcome: Literal["equal", "different"] = "equal" if equal else "different"
            yield ComparedCall(label, outcome, _response(left, row), _response(right, other))
    for rows in theirs.values():
        for row in reversed(rows):
            yield ComparedCall(_label(right, row), "only right", None, _response(right, row))


def _requests(source: TrafficSource) -> Iterator[tuple[bytes, int]]:
    """Yield the requests of the client with what identifies them: method and params, without `_meta`."""
    index = source.index
    number = 0
    for row in range(len(index)):
        if index.kinds[row] == REQUEST and index.is_by_client(row) and index.sizes[row] <= MAX_COMPARED:
            if index.methods.text(row) in _GREETINGS:
                continue
            params = _params(source, row)
            if isinstance(params, dict):
                params = {name: value for name, value in params.items() if name != "_meta"}
            yield msgspec.json.encode([index.methods.text(row), params or {}], order="sorted"), row
            number += 1
            if number >= MAX_CALLS:
                return


def _params(source: TrafficSource, row: int) -> Any:
    message = decode_json(source.reader.message(row))
    return message.get("params") if isinstance(message, dict) else None


def _result(source: TrafficSource, row: int) -> Any:
    """Return the result or the error of a request, without what differs each time."""
    response = _response(source, row)
    if response is None or source.index.sizes[response] > MAX_COMPARED:
        return None
    message = decode_json(source.reader.message(response))
    if not isinstance(message, dict):
        return None
    result = message.get("result")
    if isinstance(result, dict):
        result = {name: value for name, value in result.items() if name != "_meta"}
    return result, message.get("error")


def _response(source: TrafficSource, row: int) -> int | None:
    partner = source.index.partners[row]
    return None if partner < 0 else partner


def _label(source: TrafficSource, row: int) -> str:
    index = source.index
    return truncate(single_line(f"{index.methods.text(row)} {index.names.text(row)}".rstrip()), 300)
