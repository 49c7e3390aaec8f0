"""Clients that speak HTTP+SSE wrongly, each a single change of a right one, and the rule that must catch it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from yarl import URL

from accord.client import connect
from accord.errors import AccordError, HTTPError
from accord.transport.http import sse
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.inbox import HTTPInbox
from accord.wire.sse import SSEParser

from tests.check.clients.mutants import on
from tests.check.clients.wrong import Change, mutant

OLD = "2024-11-05"


@mutant("client-sse/endpoint", revision=OLD, over="http")
def forgets_the_query_of_the_place(change: Change) -> None:
    def aim(self: Fetcher, place: str) -> bool:
        self._url = URL(urljoin(str(self._url), place)).with_query(None)
        return True

    change.patches.append((Fetcher, "set_endpoint", aim))


@mutant("client-sse/endpoint", revision=OLD, over="http")
def puts_what_it_should_post(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return ("PUT", headers) if body and on("prompts/list", body) else (verb, headers)


@mutant("client-sse/endpoint", revision=OLD, over="http")
def takes_every_place_for_a_path(change: Change) -> None:
    def aim(self: Fetcher, place: str) -> bool:
        self._url = URL(str(self.url.origin()) + place)
        return True

    change.patches.append((Fetcher, "set_endpoint", aim))


@mutant("client-sse/same-origin", revision=OLD, over="http")
def posts_wherever_it_is_told(change: Change) -> None:
    def aim(self: Fetcher, place: str) -> bool:
        self._url = URL(urljoin(str(self._url), place))
        return True

    change.patches.append((Fetcher, "set_endpoint", aim))


@mutant("client-sse/events", revision=OLD, over="http")
def reads_a_line_of_data(change: Change) -> None:
    feed = SSEParser.feed

    def careless(self: SSEParser, chunk: bytes) -> list[Any]:
        return [event for event in feed(self, chunk) if b"\n" not in getattr(event, "data", b"")]

    change.patches.append((SSEParser, "feed", careless))


@mutant("client-sse/refused", revision=OLD, over="http")
def waits_for_the_stream_whatever_came_of_the_post(change: Change) -> None:
    change.options["timeout"] = 60.0
    change.patches.append((sse.SSETransport, "_fail", lambda self, out, error: None))


@mutant("client-sse/cut", revision=OLD, over="http")
def waits_on_a_stream_that_has_ended(change: Change) -> None:
    change.options["timeout"] = 60.0
    change.patches.append((HTTPInbox, "end", lambda self: None))


@mutant("client-sse/fallback", revision=OLD, over="http")
def knows_one_status_of_older_servers(change: Change) -> None:
    def only_405(error: AccordError | BaseException | None) -> bool:
        while error is not None:
            if isinstance(error, HTTPError) and error.status == 405:
                return True
            error = error.__cause__
        return False

    change.patches.append((connect, "may_be_sse", only_405))
