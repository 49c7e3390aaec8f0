"""resources/read: listed and unknown resources, contents, and path traversal."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.content import (
    all_strings,
    base64_fault,
    complete_result,
    get_object,
    get_objects,
    preview_json,
    resource_contents,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, DeclarationError
from accord.messages.base import JSONObject
from accord.server.declare.templates import Template

_MOST = 5
"""Number of resources and templates that are read."""


@rule(
    "resources/readable",
    "must",
    case="the first listed resources",
    needs="resources",
    at="server/resources#reading-resources",
    cause="The list and the handler have different URIs; often one of them is normalized.",
)
async def resources_readable(probe: Probe) -> None:
    """A listed resource can be read: the server does not answer that it does not exist."""
    uris = [str(each.get("uri")) for each in (await probe.resources())[:_MOST]]
    if not uris:
        raise NotObserved("the server lists no resources")
    for uri in uris:
        answer = await probe.request("resources/read", {"uri": uri})
        if answer.code in (probe.rules.resource_not_found, METHOD_NOT_FOUND):
            raise probe.violation(f"{uri!r} is listed, but resources/read returned {preview_json(answer.error)}")


@rule(
    "resources/missing",
    "must",
    case="an unknown URI",
    needs="resources",
    at="server/resources#error-handling",
    since="2026-07-28",
    cause="-32002 is the code of earlier revisions: it depends on the negotiated revision.",
)
async def resources_missing(probe: Probe) -> None:
    """Reading an unknown resource returns error -32602."""
    answer = await _read_missing(probe)
    if answer.code != INVALID_PARAMS:
        symptom = "" if answer.error else resources_missing_not_empty.id
        raise probe.violation(
            f"the server answered with {preview_json(answer.error or answer.result)}", symptom=symptom
        )


@rule(
    "resources/missing-code",
    "should",
    case="an unknown URI",
    needs="resources",
    at="server/resources#error-handling",
    until="2026-07-28",
    cause="The exception of the handler becomes another error.",
)
async def resources_missing_code(probe: Probe) -> None:
    """Reading an unknown resource returns error -32002."""
    answer = await _read_missing(probe)
    probe.require_error(answer, RESOURCE_NOT_FOUND)


@rule(
    "resources/missing-not-empty",
    "must",
    case="an unknown URI",
    needs="resources",
    at="server/resources#error-handling",
    since="2026-07-28",
    cause="The lookup returns an empty list: return an error.",
)
async def resources_missing_not_empty(probe: Probe) -> None:
    """Reading an unknown resource does not return empty contents."""
    answer = await _read_missing(probe)
    if complete_result(answer.result).get("contents") == []:
        raise probe.violation("the server returned an empty array of contents")


@rule(
    "resources/uri-checked",
    "must",
    case="strings that are not URIs, and values that are not strings",
    needs="resources",
    at="server/resources#security-considerations",
    cause="The string is used as a path or a key without validation.",
)
async def resources_uri_checked(probe: Probe) -> None:
    """The server refuses to read a string that is not a URI."""
    for uri in ("", "no URI at all", "://", "\u0000", 5, None, ["a:b"]):
        answer = await probe.request("resources/read", {"uri": uri})
        if answer.error is None:
            raise probe.violation(f"reading {preview_json(uri)} returned {preview_json(answer.result)}")
    if (answer := await probe.request("resources/read", {})).error is None:
        raise probe.violation(f"reading without a URI returned {preview_json(answer.result)}")


_UP = ("../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..\\", "..%5c", "....//", "..%252f")
_DEEP = 12
_PASSWD = "root:x:0:0:"


@rule(
    "resources/traversal",
    "must",
    case="the file /etc/passwd, relative to listed resources and by templates",
    needs="resources",
    at="server/resources#security-considerations",
    cause="`..` is resolved after the check, or not at all: resolve the path first, then check it.",
)
async def resources_traversal(probe: Probe) -> None:
    """A URI cannot escape the directories that the server exposes."""
    starts = [start async for start in _traversal_bases(probe)]
    if not starts:
        raise NotApplicable("the server lists no resource with a path")
    for start in starts[:_MOST]:
        for up in _UP:
            uri = f"{start}{up * _DEEP}etc/passwd"
            answer = await probe.request("resources/read", {"uri": uri})
            if any(_PASSWD in str(each.get("text")) for each in resource_contents(complete_result(answer.result))):
                raise probe.violation(f"reading {uri!r} returned /etc/passwd")


async def _traversal_bases(probe: Probe) -> AsyncIterator[str]:
    """Yield the prefixes for path traversal: directories of listed resources, and templates up to their variable."""
    seen = {"file://", "file:///"}  # who offers all files gives nothing away
    for resource in (await probe.resources())[:_MOST]:
        head, slash, _ = str(resource.get("uri")).rpartition("/")
        if slash and head + slash not in seen:
            seen.add(head + slash)
            yield head + slash
    for template in (await probe.templates())[:_MOST]:
        head, brace, _ = str(template.get("uriTemplate")).partition("{")
        if brace and head not in seen:
            seen.add(head)
            yield head


_NEAR_MATCHES = (
    f"/{',' * 60}/",
    f"{',' * 60}/",
    "/" * 5_000,
    f"{'a' * 20_000}\n",
    "%2C" * 2_000,
    "?a=" + "&a=" * 2_000,
)


async def _require_templates(probe: Probe) -> None:
    if not await probe.templates():
        raise NotObserved("the server lists no template")


@rule(
    "resources/hostile-uri",
    "must",
    case="commas, slashes and long strings after the prefix of each template",
    kind="own",
    needs="resources",
    shares=True,
    applies=_require_templates,
    at="server/resources#security-considerations",
    cause="The template becomes a regular expression with nested repetition, which backtracks "
    "exponentially: match it in linear time.",
)
async def resources_hostile_uri(probe: Probe) -> None:
    """A long URI that almost matches a template does not delay its own response or others."""
    await _require_templates(probe)
    heads = [str(each.get("uriTemplate")).partition("{")[0] for each in (await probe.templates())[:_MOST]]
    for uri in [head + rest for head in heads for rest in _NEAR_MATCHES]:
        pending = probe.begin("resources/read", {"uri": uri})
        await probe.fence()
        await pending.wait()


@rule(
    "resources/blob",
    "must",
    case="all binary contents of resources",
    at=("server/resources#security-considerations", "server/resources#binary-content"),
    cause="Bytes are encoded as text, as a data URL or in another alphabet.",
)
def resources_blob(logs: Sequence[MessageLog]) -> JudgedItems:
    """Binary contents are base64."""
    for each in answered_requests(logs):
        for content in resource_contents(complete_result(each.result)):
            if "blob" in content:
                yield
                if fault := base64_fault(content["blob"]):
                    raise each.violation(f"{preview_json(content.get('uri'))} {fault}")


_BINARY = re.compile(
    r"image/(png|jpe?g|gif|webp|avif)|audio/(mpeg|mp4|wav|ogg|aac|flac|webm)|video/(mp4|webm|mpeg|ogg|quicktime)"
    r"|application/(zip|gzip|pdf)"
).fullmatch


@rule(
    "resources/text",
    "should",
    case="all text contents of resources",
    at=("server/resources#text-content", "schema#textresourcecontents"),
    cause="All files are read as text: binary data belongs into `blob`, as base64.",
)
def resources_text(logs: Sequence[MessageLog]) -> JudgedItems:
    """Contents in `text` are text, without NUL, and not an image, audio, video or archive."""
    for each in answered_requests(logs):
        ours = "\0" in "".join(all_strings(each.request))  # it may be given back
        for content in resource_contents(complete_result(each.result)):
            text = content.get("text")
            if isinstance(text, str) and not ours:
                yield
                if _BINARY(_kind(content)) or "\0" in text:
                    raise each.violation(
                        f"{preview_json(content.get('uri'))} ({_kind(content)}) has the text {preview_json(text, 80)}"
                    )


@rule(
    "resources/template-type",
    "should",
    case="resources of each template that has a MIME type",
    needs="resources",
    at=("server/resources#resource-templates", "schema#resourcetemplate"),
    cause="Resources of several types share a template: omit its `mimeType`.",
)
async def resources_template_type(probe: Probe) -> None:
    """A resource has the MIME type of the template that matches its URI."""
    for template in [each for each in await probe.templates() if isinstance(each.get("mimeType"), str)][:_MOST]:
        if uri := _expand_template(template):
            await probe.request("resources/read", {"uri": uri})


@resources_template_type.case("all contents of resources")
def resources_template_type_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    typed = [
        found
        for page in answered_requests(logs, "resources/templates/list")
        for found in _typed_templates(complete_result(page.result))
    ]
    listed = {
        each.get("uri")
        for page in answered_requests(logs, "resources/list")
        for each in get_objects(page.result, "resources")
    }
    for each in answered_requests(logs, "resources/read"):
        uri = str(get_object(each.request, "params").get("uri"))
        kinds = {kind for template, kind in typed if uri not in listed and template.match(uri) is not None}
        for content in resource_contents(complete_result(each.result)):
            if kinds and content.get("uri") == uri and _kind(content):
                yield
                if _kind(content) not in kinds:
                    raise each.violation(
                        f"the MIME type is {_kind(content)}, but its template has {', '.join(sorted(kinds))}"
                    )


def _typed_templates(page: JSONObject) -> Iterator[tuple[Template, str]]:
    """Return the templates of a page that have a MIME type."""
    for each in get_objects(page, "resourceTemplates"):
        with contextlib.suppress(DeclarationError):  # resources/templates tells
            if _kind(each):
                yield Template(str(each.get("uriTemplate"))), _kind(each)


def _kind(typed: JSONObject) -> str:
    """Return the MIME type without parameters; empty if there is none."""
    return str(typed.get("mimeType") or "").partition(";")[0].strip().lower()


def _expand_template(template: JSONObject) -> str | None:
    """Return a URI that matches this template; None if the template is invalid."""
    try:
        found = Template(str(template.get("uriTemplate")))
    except DeclarationError:
        return None
    return found.expand(dict.fromkeys(found.variables, "1"))


async def _read_missing(probe: Probe) -> Answer:
    """Read a resource that cannot exist, unless a template matches any URI."""
    if any(str(each.get("uriTemplate")).startswith("{") for each in await probe.templates()):
        raise NotApplicable("a template matches any URI")
    return await probe.request(
        "resources/read", {"uri": f"{probe.unknown_name}://{probe.unknown_name}/{probe.unknown_name}"}
    )
