"""Servers whose resources are wrong."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import Fickle, changing
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import refuse, undeclare

UPDATED = {
    "jsonrpc": "2.0",
    "method": "notifications/resources/updated",
    "params": {"uri": "right://text"},
}


def resource(change: Change, alter: Any) -> None:
    """Change the first resource that is listed."""

    @change.answers("resources/list")
    def _(request: Any, answer: Any) -> Any:
        if answer.get("result", {}).get("resources"):
            alter(answer["result"]["resources"][0])
        return answer


def read(change: Change, contents: Any) -> None:
    """Change what is read: `contents` of the URI, None to leave it."""

    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        uri = request["params"].get("uri")
        found = contents(uri, answer)
        return answer if found is None else {"jsonrpc": "2.0", "id": request["id"], "result": given(found)}


def given(contents: Any) -> Any:
    return {"contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@mutant("resources/declared", revision="2024-11-05")
def resources_that_are_not_declared(change: Change) -> None:
    undeclare(change, "resources")


@mutant("resources/listed", revision="2025-03-26")
def a_capability_without_a_list(change: Change) -> None:
    refuse(change, "resources/list")


@mutant("resources/same-everywhere", server=Fickle)
def resources_of_each_connection(change: Change) -> None:
    """The server is wrong by itself."""


@mutant("resources/list-changed", server=changing)
def a_list_that_changes_in_silence(change: Change) -> None:
    change.notifications("notifications/resources/list_changed")(lambda message: None)


@mutant("resources/unique-uris")
def two_resources_of_one_uri(change: Change) -> None:
    @change.answers("resources/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["resources"].append(answer["result"]["resources"][0])
        return answer


@mutant("resources/uris", revision="2025-06-18")
def a_path_for_a_uri(change: Change) -> None:
    resource(change, lambda each: each.update(uri="/home/somebody/text"))


@mutant("resources/uris")
def a_uri_with_a_blank(change: Change) -> None:
    resource(change, lambda each: each.update(uri="right://a text"))


@mutant("resources/templates", revision="2025-11-25")
def a_template_that_is_not_closed(change: Change) -> None:
    @change.answers("resources/templates/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["resourceTemplates"][0]["uriTemplate"] = "right://item/{number"
        return answer


@mutant("resources/last-modified", revision="2025-06-18")
def a_date_as_people_write_it(change: Change) -> None:
    resource(change, lambda each: each.update(annotations={"lastModified": "12 January 2025"}))


@mutant("resources/subscribe", revision="2025-06-18")
def a_capability_without_subscriptions(change: Change) -> None:
    refuse(change, "resources/subscribe")


@mutant("resources/subscribe", revision="2024-11-05")
def subscriptions_for_ever(change: Change) -> None:
    refuse(change, "resources/unsubscribe")


@mutant("resources/updated", revision="2025-11-25", server=changing)
def changes_in_silence(change: Change) -> None:
    change.notifications("notifications/resources/updated")(lambda message: None)


@mutant("resources/updated", server=changing)
def changes_in_silence_in_2026(change: Change) -> None:
    change.notifications("notifications/resources/updated")(lambda message: None)


@mutant("resources/updated-unasked", revision="2025-03-26")
def changes_that_everybody_hears_of(change: Change) -> None:
    change.before("resources/list")(lambda request: [UPDATED])


@mutant("resources/readable", revision="2025-06-18")
def a_list_of_what_is_not_there(change: Change) -> None:
    refuse(change, "resources/read", -32002)


@mutant("resources/missing")
def the_code_of_earlier_revisions(change: Change) -> None:
    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        if "error" in answer:
            answer["error"]["code"] = -32002
        return answer


@mutant("resources/missing-code", revision="2025-11-25")
def any_other_error_for_what_is_not_there(change: Change) -> None:
    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        if "error" in answer:
            answer["error"]["code"] = -32603
        return answer


@mutant("resources/missing-not-empty")
def nothing_for_what_is_not_there(change: Change) -> None:
    read(change, lambda uri, answer: [] if "error" in answer and "nobody" in str(uri) else None)


@mutant("resources/uri-checked", revision="2024-11-05")
def a_text_for_anything(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        return None if isinstance(uri, str) and ":/" in uri else [{"uri": "right://text", "text": "text"}]

    read(change, found)


@mutant("resources/traversal")
def a_way_up(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        up = isinstance(uri, str) and "../etc/passwd" in unquote(uri)
        return [{"uri": uri, "text": "root:x:0:0:root:/root:/bin/sh"}] if up else None

    read(change, found)


@mutant("resources/traversal", revision="2025-06-18")
def a_way_up_that_is_escaped_twice(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        up = isinstance(uri, str) and "..%252fetc" in uri
        return [{"uri": uri, "text": "root:x:0:0:root:/root:/bin/sh"}] if up else None

    read(change, found)


@mutant("resources/blob", revision="2025-03-26")
def bytes_in_hexadecimal(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        return [{"uri": uri, "blob": "00:01"}] if uri == "right://blob" else None

    read(change, found)


@mutant("resources/hostile-uri")
def a_template_that_tries_every_way_to_match(change: Change) -> None:
    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        return None if ",,,," in str(request["params"].get("uri")) else answer
