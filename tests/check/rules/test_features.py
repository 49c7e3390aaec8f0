"""The rules about tools, resources, prompts, completion, logging, pages and caching find nothing where all is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Server
from accord.check.probes.content import all_strings, base64_fault, mime_fault, uri_fault
from accord.check.probes.schemas import invalid_arguments, matches_schema
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.messages.revision import REVISIONS

from tests.check.mutants.feature_servers import changing, paged, showing

AREAS = ("tools", "resources", "prompts", "completion", "logging", "pagination", "caching")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("server", [changing, paged, showing])
async def test_a_right_server_has_no_findings(server: Callable[[], Server], revision: str) -> None:
    settings = CheckSettings(only=AREAS, revisions=(revision,), call_tools=True, timeout=10, jobs=4)
    report = await check_server(server(), settings)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []


async def test_a_server_that_has_nothing_breaks_none_of_these_rules() -> None:
    report = await check_server(Server("empty", "1.0.0"), CheckSettings(only=AREAS, timeout=10))
    assert [(each.rule, each.text) for each in report.findings] == []


async def test_without_leave_no_tool_is_called() -> None:
    calls: list[str] = []
    server = Server("shy", "1.0.0")
    server.tool(name="trigger_change", description="Not to be called.")(lambda: calls.append("called"))
    report = await check_server(server, CheckSettings(only=AREAS, timeout=10))
    assert calls == []
    assert {each.verdict for each in report.outcomes if each.rule == "tools/list-changed"} <= {
        "not-observed",
        "not-applicable",
    }


GOOD_URIS = (
    "https://example.com/a?b=c#d",
    "file:///a/b%20c",
    "urn:isbn:0",
    "a:",
    "x+y-z.1://user@[::1]:80/",
    "mailto:a@b",
    "note://internal/a;b=1,2",
)


@pytest.mark.parametrize("uri", GOOD_URIS)
def test_a_uri_of_rfc_3986_is_right(uri: str) -> None:
    assert uri_fault(uri) is None


@pytest.mark.parametrize(
    "uri", ["", "a", "/a", "a b:c", "1a:b", "a://b c", "a:é", "a:%2", "a:b#c#d", "a:{b}", "a:\n", None, 5]
)
def test_an_invalid_uri_is_an_error(uri: Any) -> None:
    assert uri_fault(uri)


def test_a_long_uri_is_judged_at_once() -> None:
    assert uri_fault("a://" + "b" * 1_000_000 + " ")


@pytest.mark.parametrize(
    "mime", ["text/plain", "image/svg+xml", "text/html; charset=utf-8", 'a/b;c="d e"', "inode/directory"]
)
def test_a_mime_type_is_right(mime: str) -> None:
    assert mime_fault(mime) is None


@pytest.mark.parametrize("mime", ["", "png", "image/", "/png", "image png", "a/b; c", None])
def test_an_invalid_mime_type_is_an_error(mime: Any) -> None:
    assert mime_fault(mime)


@given(st.binary())
def test_what_was_encoded_is_base64(data: bytes) -> None:
    import base64

    assert base64_fault(base64.b64encode(data).decode()) is None
    assert base64_fault(base64.encodebytes(data).decode()) is None


@pytest.mark.parametrize("data", ["a", "data:image/png;base64,AA==", "é", "AA=", "A-_A", None])
def test_invalid_base64_is_an_error(data: Any) -> None:
    assert base64_fault(data)


SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "string"}}},
    {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}},
)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_arguments_that_do_not_fit_are_found_and_do_not_fit(schema: dict[str, Any]) -> None:
    found = list(invalid_arguments(schema))
    assert found
    assert all(matches_schema(schema, arguments) is False for arguments in found)


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {"type": "object", "properties": {"a": {}}}, {"$ref": "http://x/"}]
)
def test_nothing_is_made_up_that_a_schema_does_not_forbid(schema: dict[str, Any]) -> None:
    assert list(invalid_arguments(schema)) == []


def test_all_texts_of_a_value_are_found() -> None:
    assert list(all_strings({"a": ["b", {"c": "d"}, 5], "e": "f"})) == ["b", "d", "f"]
