"""The extension MCP Apps (2026-01-26): pages of a server, their metadata, and the tools that show them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from functools import partial

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, RuleFamily, rule
from accord.check.probes import lists
from accord.check.probes.content import complete_result, get_object, get_objects, preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.probe import Probe
from accord.check.probes.schemas import listed_tools
from accord.messages.apps import APP_MIME_TYPE, source_problem, split_sources
from accord.messages.base import JSONObject
from accord.messages.tool_ui import CALLERS, UI_SCHEME
from accord.server.apps.page import blocked_loads
from accord.server.apps.page_reader import PageReader

PAGE = "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx"
_FORMAT = f"{PAGE}#ui-resource-format"
_DISCOVERY = f"{PAGE}#resource-discovery"
_LISTS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_OF_PAGES = ("csp", "permissions", "domain", "prefersBorder")
_PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
_MOST = 10
"""Number of pages that are read, and of tools that are called."""

_app_rule: RuleFamily = partial(rule, since="2025-06-18")
_page_rule: RuleFamily = partial(_app_rule, needs="resources", case="the page of each tool")


@_app_rule("apps/uri", "must", case="all tools in lists", at=(_FORMAT, _DISCOVERY), cause="The page has an HTTP URL.")
def apps_uri(logs: Sequence[MessageLog]) -> JudgedItems:
    """The URI of a tool's page begins with `ui://`."""
    for name, ui in _listed_ui(logs):
        if "resourceUri" in ui:
            yield
            uri = ui["resourceUri"]
            if not isinstance(uri, str) or not uri.startswith(UI_SCHEME):
                raise _violation(logs, f"the page of the tool {name!r} has the URI {preview_json(uri)}")


@_app_rule("apps/visibility", "must", case="all tools in lists", at=_DISCOVERY, cause="It is a text, or a wrong word.")
def apps_visibility(logs: Sequence[MessageLog]) -> JudgedItems:
    """The visibility of a tool is a list of `model` and `app`."""
    for name, ui in _listed_ui(logs):
        if "visibility" in ui:
            yield
            given = ui["visibility"]
            if not isinstance(given, list) or not given or not all(each in CALLERS for each in given):
                raise _violation(logs, f"the visibility of the tool {name!r} is {preview_json(given)}")


@_app_rule(
    "apps/metadata-place",
    "should",
    case="all tools in lists",
    at=_FORMAT,
    cause="The metadata of the page is written on the tool, where hosts ignore it: put it on the resource.",
)
def apps_metadata_place(logs: Sequence[MessageLog]) -> JudgedItems:
    """The policy, permissions, domain and border of a page are metadata of the page, not of a tool."""
    for name, ui in _listed_ui(logs):
        yield
        misplaced = [each for each in _OF_PAGES if each in ui]
        if misplaced:
            raise _violation(logs, f"_meta.ui of the tool {name!r} has {', '.join(misplaced)}")


@_app_rule(
    "apps/text",
    "must",
    case="all results of tools with a page",
    at=f"{PAGE}#server-behavior",
    cause="The data is returned as structured content only: hosts without apps, and models, read the content.",
)
def apps_text(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a tool with a page has content."""
    tools = {name for name, ui in _listed_ui(logs) if ui.get("resourceUri")}
    for each in answered_requests(logs, "tools/call"):
        result, name = complete_result(each.result), get_object(each.request, "params").get("name")
        if isinstance(name, str) and name in tools and "content" in result:
            yield
            if not result["content"] and not result.get("isError"):
                raise each.violation(f"the result of the tool {name!r} has no content")


@apps_text.case("calls of tools with a page", needs="tools", calls=True)
async def apps_text_calls(probe: Probe) -> None:
    names = {str(tool.get("name")) for tool in await _tools_with_page(probe)}
    tools = [tool for tool in await probe.callable_tools() if tool.get("name") in names][:_MOST]
    answers = [answer for tool in tools if (answer := await lists.call_tool(probe, tool)) is not None]
    results = [result for answer in answers if "content" in (result := complete_result(answer.result))]
    if not results:
        raise NotObserved("no tool with a page returned a result")
    if any(not result["content"] and not result.get("isError") for result in results):
        raise probe.violation("the result of a tool with a page has no content", symptom=apps_text.id)


@_page_rule("apps/readable", "must", at=_DISCOVERY, cause="The tool names a page that is not registered.")
async def apps_readable(probe: Probe) -> None:
    """The page of a tool can be read."""
    for uri in await _uris(probe):
        answer = await probe.request("resources/read", {"uri": uri})
        if answer.error is not None or not get_objects(answer.result, "contents"):
            raise probe.violation(f"resources/read of {uri!r} returned {preview_json(answer.error or answer.result)}")


@_page_rule("apps/mime-type", "must", at=_FORMAT, cause="The MIME type is text/html: add `;profile=mcp-app`.")
async def apps_mime_type(probe: Probe) -> None:
    """The MIME type of a page is `text/html;profile=mcp-app`."""
    for uri, contents in await _pages(probe):
        if contents.get("mimeType") != APP_MIME_TYPE:
            raise probe.violation(f"the page {uri!r} has the MIME type {preview_json(contents.get('mimeType'))}")


@_page_rule("apps/document", "must", at=_FORMAT, cause="The page is a fragment, or its blob is not Base64.")
async def apps_document(probe: Probe) -> None:
    """A page is an HTML5 document, as text or in Base64."""
    for uri, contents in await _pages(probe):
        text = _text(contents)
        if text is None or not PageReader(text).has_doctype:
            what = "no text and no Base64" if text is None else f"no <!doctype html>: {text[:80]!r}"
            raise probe.violation(f"the page {uri!r} has {what}")


@_page_rule(
    "apps/handshake",
    "should",
    at=f"{PAGE}#lifecycle",
    cause="The page is an ordinary web page: without ui/initialize hosts keep it hidden.",
)
async def apps_handshake(probe: Probe) -> None:
    """A page sends `ui/initialize`."""
    seen = False
    for uri, contents in await _pages(probe):
        text = _text(contents) or ""
        if not PageReader(text).has_foreign_script:
            seen = True
            if "ui/initialize" not in text:
                raise probe.violation(f"the page {uri!r} has no ui/initialize, and no script that could send it")
    if not seen:
        raise NotObserved("scripts of other origins may do the handshake")


@_page_rule("apps/metadata", "must", at=_FORMAT, cause="A list is written as text, or a permission as true.")
async def apps_metadata(probe: Probe) -> None:
    """The metadata of a page has the types of the specification."""
    for uri, contents in await _pages(probe):
        if problem := _metadata_problem(get_object(contents, "_meta", "ui")):
            raise probe.violation(f"_meta.ui of the page {uri!r}: {problem}")


@_page_rule(
    "apps/sources",
    "must",
    at=f"{PAGE}#4-content-security-policy-enforcement",
    cause="A path, a keyword of CSP or a local address is declared: hosts write origins into a header.",
)
async def apps_sources(probe: Probe) -> None:
    """The sources of a page are encrypted origins of other machines."""
    for uri, contents in await _pages(probe):
        for name in _LISTS:
            _, invalid = split_sources(get_object(contents, "_meta", "ui", "csp").get(name))
            if invalid:
                why = source_problem(invalid[0])
                raise probe.violation(f"the page {uri!r} has the source {invalid[0]!r:.200} in {name}: {why}")


@_page_rule(
    "apps/loads",
    "should",
    at=f"{PAGE}#host-behavior",
    cause="A file beside the page, a CDN or an API is used: put it into the page, or declare its origin.",
)
async def apps_loads(probe: Probe) -> None:
    """A page loads only from the origins that it declares."""
    for uri, contents in await _pages(probe):
        problem = next(blocked_loads(_text(contents) or "", get_object(contents, "_meta", "ui", "csp")), None)
        if problem:
            raise probe.violation(f"the page {uri!r}{problem}")


# --- what is judged ------------------------------------------------------------------------------------------------


def _listed_ui(logs: Sequence[MessageLog]) -> Iterator[tuple[str, JSONObject]]:
    for name, tool in listed_tools(logs).items():
        if ui := get_object(tool, "_meta", "ui"):
            yield name, ui


def _violation(logs: Sequence[MessageLog], text: str) -> Exception:
    return next(iter(answered_requests(logs, "tools/list"))).violation(text)


async def _tools_with_page(probe: Probe) -> list[JSONObject]:
    """Return the tools with a page. Raises `NotApplicable` if there is none."""
    tools = [tool for tool in await probe.tools() if get_object(tool, "_meta", "ui").get("resourceUri")]
    if not tools:
        raise NotApplicable("no tool has a page")
    return tools


async def _uris(probe: Probe) -> list[str]:
    uris = [get_object(tool, "_meta", "ui")["resourceUri"] for tool in await _tools_with_page(probe)]
    return [*dict.fromkeys(str(uri) for uri in uris)][:_MOST]


async def _pages(probe: Probe) -> list[tuple[str, JSONObject]]:
    """Return the contents of each page that can be read, with its URI. Raises `NotObserved` if none can."""
    found: list[tuple[str, JSONObject]] = []
    for uri in await _uris(probe):
        contents = get_objects((await probe.request("resources/read", {"uri": uri})).result, "contents")
        found += [(uri, each) for each in contents[:1]]
    if not found:
        raise NotObserved("no page could be read")
    return found


def _text(contents: JSONObject) -> str | None:
    if isinstance(contents.get("text"), str):
        return str(contents["text"])
    try:
        return base64.b64decode(str(contents.get("blob") or "?"), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _metadata_problem(ui: JSONObject) -> str | None:
    csp, permissions = ui.get("csp", {}), ui.get("permissions", {})
    if not isinstance(csp, dict) or not isinstance(permissions, dict):
        return "csp and permissions are objects"
    for name in _LISTS:
        given = csp.get(name, [])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            return f"csp.{name} is {preview_json(given)}, not a list of texts"
    for name in _PERMISSIONS:
        if not isinstance(permissions.get(name, {}), dict):
            return f"permissions.{name} is {preview_json(permissions[name])}, not an object"
    if not isinstance(ui.get("domain", ""), str):
        return f"domain is {preview_json(ui['domain'])}, not a text"
    if not isinstance(ui.get("prefersBorder", True), bool):
        return f"prefersBorder is {preview_json(ui['prefersBorder'])}, neither true nor false"
    return None
