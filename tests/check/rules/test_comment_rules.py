"""The rules that only the comments of the schemas have: what is right by them, and what they do not look at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord.check.rules.elicitation import asking_page_ids, asking_tool_output, asking_tool_results
from accord.check.rules.resource_reads import resources_template_type, resources_text
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.transport.base import Transport

from tests.check.rules.test_traffic_rules import Say, answers, asks, broken, judged, reads, record

SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def was_read(uri: str, **content: Any) -> tuple[Say, Say]:
    given = answers(uri, contents=[{"uri": uri, **content}])
    return ("→", asks(uri, "resources/read", uri=uri)), ("←", given)


def lists(method: str, key: str, *found: Any) -> tuple[Say, Say]:
    return ("→", asks(method, method)), ("←", answers(method, **{key: list(found)}))


TEMPLATES = lists("resources/templates/list", "resourceTemplates", {"uriTemplate": "a://{b}", "mimeType": "text/csv"})


# --- text ----------------------------------------------------------------------------------------------------------


def test_text_of_any_kind_is_text() -> None:
    assert judged(resources_text, *was_read("a:b", mimeType="image/svg+xml", text="<svg/>")) == 1
    assert judged(resources_text, *was_read("a:b", mimeType="audio/x-mpegurl", text="#EXTM3U")) == 1
    assert judged(resources_text, *was_read("a:b", text="\ufffd\t\x1b[0m")) == 1


def test_bytes_and_pictures_are_no_text() -> None:
    assert "right" in broken(resources_text, *was_read("right:", mimeType="image/PNG; q=1", text="x"))
    assert "a:b" in broken(resources_text, *was_read("a:b", text="PK\0"))


def test_our_own_values_may_be_returned() -> None:
    assert judged(resources_text, *was_read("a:\0", text="there is no a:\0")) == 0


# --- templates -----------------------------------------------------------------------------------------------------


def test_a_type_may_have_parameters_and_be_left_out() -> None:
    assert judged(resources_template_type, *TEMPLATES, *was_read("a://1", mimeType="Text/CSV; charset=utf-8")) == 1
    assert judged(resources_template_type, *TEMPLATES, *was_read("a://1", text="1")) == 0


def test_another_type_than_that_of_the_template_is_seen() -> None:
    assert "text/csv" in broken(resources_template_type, *TEMPLATES, *was_read("a://1", mimeType="text/plain"))


def test_what_is_listed_by_itself_has_a_type_of_its_own() -> None:
    listed = lists("resources/list", "resources", {"uri": "a://1", "name": "1"})
    assert judged(resources_template_type, *TEMPLATES, *listed, *was_read("a://1", mimeType="text/plain")) == 0


def test_two_templates_may_lead_to_one_uri() -> None:
    other = {"uriTemplate": "{+any}", "mimeType": "text/plain"}
    both = lists("resources/templates/list", "resourceTemplates", {"uriTemplate": "a://{b}", "mimeType": "a/b"}, other)
    assert judged(resources_template_type, *both, *was_read("a://1", mimeType="text/plain")) == 1


# --- models and pages ----------------------------------------------------------------------------------------------


def sampling(result: Any, **tool: Any) -> Say:
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    given = {"type": "tool_result", "toolUseId": "1", "content": [], **result}
    said = [{"role": "assistant", "content": use}, {"role": "user", "content": given}]
    tools = [{"name": "add", "inputSchema": {"type": "object"}, **tool}]
    return "←", asks(1, "sampling/createMessage", messages=said, maxTokens=1, tools=tools)


def test_a_result_that_fits_its_schema_is_right() -> None:
    assert judged(asking_tool_output, sampling({"structuredContent": {"sum": 3}}, outputSchema=SUM)) == 1
    assert judged(asking_tool_results, sampling({})) == 1


@pytest.mark.parametrize("told", [{}, {"structuredContent": {"total": 3}}])
def test_a_result_without_a_schema_or_a_form_is_not_judged(told: Any) -> None:
    assert judged(asking_tool_output, sampling(told)) == 0
    assert judged(asking_tool_output, sampling({}, outputSchema=SUM)) == 0


def test_a_result_that_does_not_fit_is_seen() -> None:
    assert "outputSchema" in broken(asking_tool_output, sampling({"structuredContent": {"sum": "3"}}, outputSchema=SUM))


def page(id: Any, url: str) -> Say:
    return "←", asks(url, "elicitation/create", mode="url", message="Go", elicitationId=id, url=url)


def test_a_page_may_be_requested_again_and_another_conversation_may_count_anew() -> None:
    again = record(page("1", "https://a.test/1"), page("1", "https://a.test/1"), page("2", "https://a.test/2"))
    another = record(page("1", "https://a.test/3"))
    assert reads(asking_page_ids)([again, another]) == 4


# --- roots ---------------------------------------------------------------------------------------------------------


class AsksForRoots:
    """A server by hand: it asks for the roots when it is opened, and when they change."""

    async def serve(self, transport: Transport) -> None:
        await transport.open()
        asked = 0
        while messages := await transport.receive():
            for message in [json.loads(each) for each in messages if isinstance(each, bytes)]:
                method = message.get("method")
                if method in ("notifications/initialized", "notifications/roots/list_changed"):
                    asked += 1
                    transport.send(json.dumps(asks(f"roots-{asked}", "roots/list")).encode())
                elif method == "initialize":
                    info = {"name": "by hand", "version": "1"}
                    version = message["params"]["protocolVersion"]
                    hello = answers(message["id"], protocolVersion=version, capabilities={}, serverInfo=info)
                    transport.send(json.dumps(hello).encode())
                elif "id" in message and method:
                    transport.send(json.dumps(answers(message["id"])).encode())
            transport.flush()


async def test_a_server_that_requests_changed_roots_again_is_right() -> None:
    settings = CheckSettings(only=("asking/roots-again",), revisions=("2025-11-25",), timeout=5)
    report = await check_server(AsksForRoots(), settings)
    assert [(each.rule, each.verdict) for each in report.outcomes] == [("asking/roots-again", "pass")]
