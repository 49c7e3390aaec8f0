"""Streamable HTTP (2026-07-28): headers that repeat values of the body must match them."""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import Any

from accord.check.engine.ordinary_traffic import minimal_arguments
from accord.check.engine.rule import HTTP, CaseVariant, NotObserved, Violation, rule
from accord.check.probes.content import get_object
from accord.check.probes.probe import Probe
from accord.check.probes.raw_http import (
    describe_response,
    encode_post,
    error_of,
    has_result,
    http_evidence,
    raw_connection,
    read_responses,
    require_ordered_results,
    require_refusal,
    send_pieces,
    traceable_request,
)
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject
from accord.wire.headers import mirrored

_PLACE = "basic/transports/streamable-http"
_STANDARD = f"{_PLACE}#standard-request-headers"
_VALIDATION = f"{_PLACE}#server-validation"


_rule = partial(rule, since="2026-07-28", over=HTTP)


@_rule(
    "http/method-header",
    "must",
    variants=[
        CaseVariant("no Mcp-Method", value=None),
        CaseVariant("another method in Mcp-Method", value="tools/list"),
        CaseVariant("Mcp-Method in capital letters", value="SERVER/DISCOVER"),
        CaseVariant("an empty Mcp-Method", value=""),
    ],
    at=(_STANDARD, _VALIDATION),
    cause="The header is not compared with the body: a proxy that routes by the header sees another "
    "request than the server.",
)
async def http_method_header(probe: Probe, value: str | None) -> None:
    """A request whose Mcp-Method is missing, or differs from its body, gets status 400 and error -32020."""
    # "Header values (such as method names) are case-sensitive."
    what = "a request without Mcp-Method" if value is None else f"Mcp-Method {value!r}"
    await _require_mismatch(probe, probe.build_request("server/discover"), {"Mcp-Method": value}, what)


_NAMES: dict[str, Any] = {
    "no Mcp-Name": None,
    "another name": "accord-check-another",
    "an empty name": "",
    "another name in Base64": f"=?base64?{base64.b64encode(b'accord-check-another').decode()}?=",
    "invalid Base64": "=?base64?***?=",
}


@_rule(
    "http/name-header",
    "must",
    case="five wrong values for the URI of a resource",
    needs="resources",
    at=(_STANDARD, _VALIDATION),
    cause="The header is not compared with the body: a proxy authorizes another tool than the server calls.",
)
async def http_name_header(probe: Probe) -> None:
    """A request whose Mcp-Name is missing, or differs from its body, gets status 400 and error -32020."""
    resources = await probe.resources()
    if not resources:
        raise NotObserved("the server has no resource")
    await _wrong_names(probe, "resources/read", {"uri": resources[0].get("uri")})


@http_name_header.case("five wrong values for the name of a prompt", needs="prompts")
async def http_name_header_prompt(probe: Probe) -> None:
    prompts = await probe.prompts()
    if not prompts:
        raise NotObserved("the server has no prompt")
    await _wrong_names(probe, "prompts/get", {"name": prompts[0].get("name"), "arguments": {}})


@http_name_header.case("five wrong values for the name of a tool", needs="tools", calls=True)
async def http_name_header_tool(probe: Probe) -> None:
    tool = (await probe.callable_tools())[0]
    await _wrong_names(
        probe, "tools/call", {"name": tool.get("name"), "arguments": get_object(minimal_arguments(tool))}
    )


async def _wrong_names(probe: Probe, method: str, params: JSONObject) -> None:
    for what, value in _NAMES.items():
        await _require_mismatch(
            probe, probe.build_request(method, params), {"Mcp-Name": value}, f"{method} with {what}"
        )


@_rule(
    "http/name-encoded",
    "must",
    case="the URI of a resource in Base64",
    needs="resources",
    at=(_VALIDATION, f"{_PLACE}#value-encoding"),
    cause="The header is compared without decoding.",
)
async def http_name_encoded(probe: Probe) -> None:
    """The server decodes an Mcp-Name in Base64 before it compares the value."""
    resources = await probe.resources()
    if not resources:
        raise NotObserved("the server has no resource")
    uri = str(resources[0].get("uri"))
    value = f"=?base64?{base64.b64encode(uri.encode()).decode()}?="
    await _require_accepted(
        probe, probe.build_request("resources/read", {"uri": uri}), {"Mcp-Name": value}, "Mcp-Name in Base64"
    )


@_rule(
    "http/header-names",
    "must",
    case="header names in capital letters",
    at=f"{_PLACE}#case-sensitivity",
    cause="Header names are compared case-sensitively: HTTP libraries differ in how they write them.",
)
async def http_header_names(probe: Probe) -> None:
    """Header names are case-insensitive."""
    message = traceable_request(probe)
    whole, body = encode_post(probe, message)
    shouted = re.sub(rb"(?im)^mcp-[^:]+", lambda name: name[0].upper(), whole)
    async with raw_connection(probe) as socket:  # what posts for us writes all names in lower case
        await send_pieces(probe, socket, shouted + body)
        require_ordered_results([message], await read_responses(probe, socket, [message]))


@_rule(
    "http/param-header",
    "must",
    case="a header with another value than its argument, and a missing header",
    needs="tools",
    calls=True,
    at=(f"{_PLACE}#custom-headers-from-tool-parameters", _VALIDATION),
    cause="Only the standard headers are compared: arguments with x-mcp-header have headers, too.",
)
async def http_param_header(probe: Probe) -> None:
    """A call whose Mcp-Param headers differ from its arguments gets status 400 and error -32020."""
    tool, header, _ = await _tool_with_header(probe)
    message = probe.build_request(
        "tools/call", {"name": tool.get("name"), "arguments": get_object(minimal_arguments(tool))}
    )
    for value, what in (("accord-check-another", "another value"), (None, "no value")):
        await _require_mismatch(probe, message, {f"Mcp-Param-{header}": value}, f"{what} in Mcp-Param-{header}")


@_rule(
    "http/param-absent",
    "must",
    case="a call without an optional argument that has a header",
    needs="tools",
    calls=True,
    at=f"{_PLACE}#client-behavior",
    cause="All headers that the schema names are required, whatever the arguments.",
)
async def http_param_absent(probe: Probe) -> None:
    """An absent or null argument requires no Mcp-Param header."""
    tool, _, path = await _tool_with_header(probe, required=False)
    arguments = {name: value for name, value in get_object(minimal_arguments(tool)).items() if name != path}
    message = probe.build_request("tools/call", {"name": tool.get("name"), "arguments": arguments})
    response = await probe.post(message, misbehaved=False)
    if error_of(response).get("code") == HEADER_MISMATCH:
        raise Violation(f"the server answered with {describe_response(response)}", evidence=http_evidence(response))


_NO_HEADER = "accord-check-n\u00e9"
"""Not ASCII: the header must have it in Base64."""


@_rule(
    "http/bad-values",
    "must",
    case="a name with non-ASCII characters in Mcp-Name",
    needs="tools",
    at=(_VALIDATION, f"{_PLACE}#value-encoding", f"{_PLACE}#server-behavior-for-custom-headers"),
    cause="Non-ASCII bytes are decoded as UTF-8 or Latin-1: a proxy may decode them differently.",
)
async def http_bad_values(probe: Probe) -> None:
    """A header with characters that headers must not contain gets status 400 and error -32020."""
    message = probe.build_request("tools/call", {"name": _NO_HEADER, "arguments": {}})
    await _require_mismatch(probe, message, {"Mcp-Name": _NO_HEADER}, "non-ASCII characters in Mcp-Name")


@http_bad_values.case("an argument with non-ASCII characters in its header", needs="tools", calls=True)
async def http_bad_values_argument(probe: Probe) -> None:
    tool, header, argument = await _tool_with_header(probe, type_="string")
    arguments = {**get_object(minimal_arguments(tool)), argument: _NO_HEADER}
    message = probe.build_request("tools/call", {"name": tool.get("name"), "arguments": arguments})
    await _require_mismatch(
        probe, message, {f"Mcp-Param-{header}": _NO_HEADER}, f"non-ASCII characters in Mcp-Param-{header}"
    )


@_rule(
    "http/param-numbers",
    "should",
    case="an integer with a decimal point",
    needs="tools",
    calls=True,
    at=_VALIDATION,
    cause="Header and argument are compared as strings.",
)
async def http_param_numbers(probe: Probe) -> None:
    """The server compares a number in an Mcp-Param header as a number: 42.0 equals 42."""
    tool, header, path = await _tool_with_header(probe, type_="integer")
    arguments = get_object(minimal_arguments(tool))
    message = probe.build_request("tools/call", {"name": tool.get("name"), "arguments": arguments})
    response = await probe.post(message, {f"Mcp-Param-{header}": f"{arguments[path]}.0"}, misbehaved=False)
    if error_of(response).get("code") == HEADER_MISMATCH:
        raise Violation(f"{arguments[path]}.0 is refused as another number", evidence=http_evidence(response))


async def _tool_with_header(
    probe: Probe, *, required: bool = True, type_: str | None = None
) -> tuple[JSONObject, str, str]:
    """Return a callable tool with an argument that has a header, required or optional, and this argument."""
    for tool in await probe.callable_tools():
        schema = tool.get("inputSchema")
        try:
            found = mirrored(schema)
        except ValueError:
            continue
        properties = schema.get("properties") if isinstance(schema, dict) else None
        wanted = schema.get("required") if isinstance(schema, dict) else None
        for header, path in found.items():
            is_required = isinstance(wanted, list) and path[0] in wanted
            fits = type_ is None or (isinstance(properties, dict) and properties[path[0]].get("type") == type_)
            if len(path) == 1 and is_required is required and fits:
                return tool, header, path[0]
    raise NotObserved("no callable tool has such an argument with x-mcp-header")


async def _require_mismatch(probe: Probe, message: JSONObject, headers: dict[str, Any], what: str) -> None:
    require_refusal(probe, await probe.post(message, headers), what, status=400, code=HEADER_MISMATCH)


async def _require_accepted(probe: Probe, message: JSONObject, headers: dict[str, Any], what: str) -> None:
    response = await probe.post(message, headers, misbehaved=False)
    if not has_result(response):
        raise Violation(f"{what} returned {describe_response(response)}", evidence=http_evidence(response))
