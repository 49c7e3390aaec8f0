"""Elicitation and sampling: forms, URLs, and the messages with tool results that are sent to a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from accord.check.engine.rule import JudgedItems, Violation, rule
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.input_requests import ServerInputRequest, input_requests, sampling_requests
from accord.check.probes.message_log import MessageLog
from accord.check.probes.schemas import schema_mismatch
from accord.messages.base import JSONObject
from accord.messages.revision import RULES

_SECRETS = re.compile(r"(?i)(^|[_\- ])(pass(word|wd|phrase)?|secret|api[_\- ]?key|access[_\- ]?token|credit[_\- ]?card"
                      r"|card[_\- ]?number|cvv|ssn|private[_\- ]?key)s?($|[_\- ])")  # fmt: skip
_WORDS = ("title", "description")
_LINK = re.compile(r"(?i)https?://(?!([a-z0-9-]+\.)*example(\.|[/\s]|$))[^\s/]")
_PRIMITIVE = ("string", "number", "integer", "boolean")
_COMPOSED = ("allOf", "not", "$ref", "if", "properties", "patternProperties", "items")


@rule(
    "asking/form",
    "must",
    case="the schemas of all forms",
    at="client/elicitation#requested-schema",
    since="2025-06-18",
    cause="The schema of a whole data type is sent, with nested objects, lists and references: use flat fields.",
)
def asking_form(logs: Sequence[MessageLog]) -> JudgedItems:
    """The schema of a form is a flat object of strings, numbers, booleans and enums."""
    for question in _forms(logs):
        yield
        wrong = _fault(question.params.get("requestedSchema"), question.received.log.revision)
        if wrong:
            raise question.violation(wrong)


def _fault(schema: Any, revision: str) -> str:
    """Return what is wrong with the schema of a form; empty if nothing is."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return f"the schema of a form is not an object: {preview_json(schema)}"
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return "the schema of a form has no properties"
    for name, field in properties.items():
        if not isinstance(field, dict) or not _is_plain(field, revision):
            return f"the schema of the field {name!r} is {preview_json(field, 120)}"
    return ""


def _is_plain(field: JSONObject, revision: str) -> bool:
    if field.get("type") == "array":
        items = field.get("items")
        return RULES[revision].form_multi_select and isinstance(items, dict) and ("enum" in items or "anyOf" in items)
    is_choice = "enum" in field or "oneOf" in field
    return (field.get("type") in _PRIMITIVE or is_choice) and not any(keyword in field for keyword in _COMPOSED)


@rule(
    "asking/no-secrets",
    "must",
    case="the fields of all forms",
    at="client/elicitation#security-considerations",
    since="2025-06-18",
    cause="The client reads the values of a form: request secrets by URL elicitation instead.",
)
def asking_no_secrets(logs: Sequence[MessageLog]) -> JudgedItems:
    """A form does not request passwords, keys or other secrets."""
    for question in _forms(logs):
        yield
        schema = question.params.get("requestedSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for name in properties if isinstance(properties, dict) else ():
            if _SECRETS.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", name)):
                raise question.violation(f"a form requests {name!r}")


@rule(
    "asking/no-links",
    "should",
    case="the texts of all forms",
    at="client/elicitation#safe-url-handling",
    since="2025-11-25",
)
def asking_no_links(logs: Sequence[MessageLog]) -> JudgedItems:
    """The texts of a form contain no links: only URL elicitation sends a user to a page."""
    for question in _forms(logs):
        yield
        fields = get_object(question.params, "requestedSchema", "properties").values()
        # a field for a URL may show what one looks like
        entry = [get_object(field) for field in fields if get_object(field).get("format") != "uri"]
        for text in (question.params.get("message"), *(each.get(key) for each in entry for key in _WORDS)):
            if isinstance(text, str) and _LINK.search(text):
                raise question.violation(f"a form has the text {text[:120]!r}")


@rule(
    "asking/url",
    "must",
    case="the URLs of all elicitations",
    at="client/elicitation#url-mode-elicitation-requests",
    since="2025-11-25",
)
def asking_url(logs: Sequence[MessageLog]) -> JudgedItems:
    """The URL of an elicitation is valid."""
    for question in _pages(logs):
        yield
        if not _is_url(question.params.get("url")):
            raise question.violation(f"the URL is {preview_json(question.params.get('url'))}")


@rule(
    "asking/url-safe",
    "must",
    case="the URLs of all elicitations",
    at="client/elicitation#safe-url-handling",
    since="2025-11-25",
    cause="The URL itself grants access: the page must authenticate the user.",
)
def asking_url_safe(logs: Sequence[MessageLog]) -> JudgedItems:
    """The URL of an elicitation contains no credentials."""
    for question, url in _urls(logs):
        yield
        if url.username or url.password:
            raise question.violation("the URL contains a user name or a password")


@rule(
    "asking/url-https",
    "should",
    case="the URLs of all elicitations",
    at="client/elicitation#safe-url-handling",
    since="2025-11-25",
)
def asking_url_https(logs: Sequence[MessageLog]) -> JudgedItems:
    """The URL of an elicitation uses HTTPS, unless it is on the local machine."""
    for question, url in _urls(logs):
        yield
        if url.scheme == "http" and url.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise question.violation(f"the URL is {url.geturl()}")


@rule(
    "asking/completed",
    "must",
    case="all notifications/elicitation/complete",
    at="client/elicitation#completion-notifications",
    since="2025-11-25",
    until="2026-07-28",
)
def asking_completed(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server notifies only the client that got the elicitation of its completion, with the same id."""
    for log in logs:
        known = {preview_json(page.get("elicitationId")) for page in _requested_pages(log)}
        for message in log.received_messages():
            if message.get("method") == "notifications/elicitation/complete":
                yield
                params = message.get("params")
                id = preview_json(params.get("elicitationId") if isinstance(params, dict) else None)
                if id not in known:
                    raise Violation(f"the elicitation {id} was completed, but this client did not get it")


@rule(
    "asking/page-ids",
    "should",
    case="the ids of all URL elicitations",
    at=("client/elicitation#url-mode-elicitation-requests", "schema#elicitrequesturlparams"),
    since="2025-11-25",
    until="2026-07-28",
    cause="The id is a constant, or the name of the tool: the client cannot tell which elicitation was completed.",
)
def asking_page_ids(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each URL elicitation has a unique id."""
    for log in logs:
        known: dict[str, str] = {}  # of one conversation: a server may begin again to count with the next
        for page in _requested_pages(log):
            yield
            id, url = preview_json(page.get("elicitationId")), preview_json(page.get("url"))
            if known.setdefault(id, url) != url:
                raise Violation(f"{known[id]} and {url} both have the id {id}")


@rule(
    "asking/url-required",
    "must",
    case="all errors -32042",
    at="client/elicitation#url-elicitation-required-error",
    since="2025-11-25",
    until="2026-07-28",
)
def asking_url_required(logs: Sequence[MessageLog]) -> JudgedItems:
    """An error -32042 lists the required URL elicitations, each with mode, id, URL and message."""
    for log in logs:
        for message in log.received_messages():
            error = message.get("error")
            if isinstance(error, dict) and error.get("code") == -32042:
                yield
                listed = list(_pages_in_error(message))
                if not listed or not all(_is_whole(each) for each in listed):
                    raise Violation(f"the data of error -32042 is {preview_json(error.get('data'))}")


def _forms(logs: Sequence[MessageLog]) -> Iterator[ServerInputRequest]:
    return (question for question in input_requests(logs) if question.is_form)


def _pages(logs: Sequence[MessageLog]) -> Iterator[ServerInputRequest]:
    return (question for question in input_requests(logs) if question.is_url)


def _urls(logs: Sequence[MessageLog]) -> Iterator[tuple[ServerInputRequest, SplitResult]]:
    """Yield the valid URLs of all elicitations."""
    for question in _pages(logs):
        url = str(question.params.get("url"))
        if _is_url(url):
            yield question, urlsplit(url)


def _requested_pages(log: MessageLog) -> Iterator[JSONObject]:
    """Yield each URL elicitation that a client got, by a request or by an error -32042."""
    yield from (question.params for question in _pages([log]))
    yield from (page for message in log.received_messages() for page in _pages_in_error(message))


def _pages_in_error(message: JSONObject) -> Iterator[JSONObject]:
    """Return the elicitations that an error -32042 lists."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    listed = data.get("elicitations") if isinstance(data, dict) else None
    return (each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict))


def _is_whole(page: JSONObject) -> bool:
    texts = (page.get("elicitationId"), page.get("url"), page.get("message"))
    return page.get("mode") == "url" and all(isinstance(each, str) for each in texts)


def _is_url(value: Any) -> bool:
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return False
    try:
        split = urlsplit(value)
    except ValueError:
        return False
    return bool(split.scheme and (split.netloc or split.path))


@rule(
    "asking/tool-results",
    "must",
    case="the messages of all sampling requests",
    at="client/sampling#message-content-constraints",
    since="2025-11-25",
)
def asking_tool_results(logs: Sequence[MessageLog]) -> JudgedItems:
    """A sampling message with tool results has one result for each tool use, and no other content."""
    for question in sampling_requests(logs):
        yield
        used: list[str] = []
        for blocks in _message_blocks(question.params):
            results = [preview_json(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
            if results and len(results) != len(blocks):
                raise question.violation("a message with tool results has other content, too")
            if (used or results) and sorted(used) != sorted(results):
                raise question.violation(f"the model used {used}, but the results are of {results}")
            used = [preview_json(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


@rule(
    "asking/tool-output",
    "should",
    case="the tool results in all sampling requests",
    at="schema#toolresultcontent",
    since="2025-11-25",
    cause="The schema describes another form than the one that is passed to the model.",
)
def asking_tool_output(logs: Sequence[MessageLog]) -> JudgedItems:
    """The structured tool results in a sampling request match the `outputSchema` of the tool."""
    for question in sampling_requests(logs):
        schemas = {
            preview_json(tool.get("name")): get_object(tool, "outputSchema")
            for tool in get_objects(question.params, "tools")
        }
        for name, result in _results(question.params):
            if schemas.get(name) and "structuredContent" in result:
                yield
                if fault := schema_mismatch(schemas[name], result["structuredContent"]):
                    raise question.violation(f"the result of {name} does not match its outputSchema: {fault}")


def _results(params: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield each tool result that is sent to a model, with the name of its tool."""
    used: dict[str, str] = {}
    for blocks in _message_blocks(params):
        for block in blocks:
            if block.get("type") == "tool_use":
                used[preview_json(block.get("id"))] = preview_json(block.get("name"))
            elif block.get("type") == "tool_result":
                yield used.get(preview_json(block.get("toolUseId")), ""), block


def _message_blocks(params: JSONObject) -> Iterator[list[JSONObject]]:
    """Yield the content blocks of each message."""
    for message in get_objects(params, "messages"):
        content = message.get("content")
        yield [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
