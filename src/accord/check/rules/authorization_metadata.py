"""Authorization: the metadata of a protected resource (RFC 9728), and where clients find it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from accord.check.engine.rule import NotApplicable, NotObserved, Violation
from accord.check.probes.access import NO_OAUTH, Access, ResourceDocument, describe, evidence, is_local
from accord.check.rules.authorization import access_rule

LOCATION = (
    "basic/authorization#authorization-server-location",
    "basic/authorization/authorization-server-discovery#authorization-server-location",
)
SINCE = "2025-06-18"
_DEFAULT_PATHS = ("/authorize", "/token")
_GONE = (404, 410)


@access_rule(
    "authorization/conforms",
    "should",
    case="the metadata",
    at="basic/authorization#protocol-requirements",
    since=SINCE,
    cause="The server has credentials of its own kind: clients have to be configured by hand.",
)
async def authorization_conforms(access: Access) -> None:
    """A server over HTTP that requires authorization follows the specification: it publishes OAuth metadata."""
    try:
        await access.metadata()
    except NotApplicable as exc:
        if str(exc) == NO_OAUTH:
            raise Violation(NO_OAUTH, evidence=evidence(await access.refusal())) from exc
        raise


@access_rule(
    "authorization/metadata",
    "must",
    case="the metadata",
    at=LOCATION,
    since=SINCE,
    cause="The URL in the challenge is wrong behind the proxy, or the metadata itself requires a token.",
)
async def authorization_metadata(access: Access) -> None:
    """The metadata of the resource is a JSON object, at the URL in the challenge or at a well-known URI."""
    found = await access.metadata()
    if not isinstance(found.document.get("resource"), str):
        raise found.violation(f"`resource` is {found.document.get('resource')!r}")


@access_rule(
    "authorization/metadata-url",
    "must",
    case="the challenge to a request without a token",
    at=LOCATION,
    since=SINCE,
    until="2025-11-25",
    cause="Clients of this revision look only there.",
)
async def authorization_metadata_url(access: Access) -> None:
    """The challenge names the URL of the metadata."""
    found = await access.metadata()
    if not found.named:
        raise Violation("the challenge has no resource_metadata", evidence=evidence(await access.refusal()))


@access_rule(
    "authorization/resource",
    "must",
    case="the metadata",
    at=(*LOCATION, "basic/authorization#canonical-server-uri"),
    since=SINCE,
    cause="The public URL of the server is configured wrongly: clients refuse the metadata (RFC 9728, 3.3), or request "
    "tokens for another server.",
)
async def authorization_resource(access: Access) -> None:
    """`resource` in the metadata is the URL of the server, or a URL above it."""
    found = await access.metadata()
    resource = found.document.get("resource")
    if not isinstance(resource, str):
        raise NotApplicable("the metadata has no `resource`")
    if access.is_tried_locally and not is_local(resource):
        raise NotObserved(f"`resource` is {resource}, and the server is checked on this machine")
    if not _contains(resource, access.wire.url):
        raise found.violation(f"`resource` is {resource}, and the URL of the server {access.wire.url}")


@access_rule(
    "authorization/resource-form",
    "should",
    case="the metadata",
    at="basic/authorization#canonical-server-uri",
    since=SINCE,
    cause="Clients compare URLs as texts: both forms in use are two audiences.",
)
async def authorization_resource_form(access: Access) -> None:
    """`resource` has no trailing slash without a path."""
    found = await access.metadata()
    resource = found.document.get("resource")
    if isinstance(resource, str) and urlsplit(resource).path == "/":
        raise found.violation(f"`resource` is {resource}: write it without the slash")


def _contains(resource: str, url: str) -> bool:
    """Return whether a resource is a URL or above it, on the same origin; the case of scheme and host is ignored."""
    try:
        above, below = urlsplit(resource), urlsplit(url)
        same = (above.scheme.lower(), above.hostname, above.port) == (below.scheme, below.hostname, below.port)
    except ValueError:
        return False
    path = above.path.rstrip("/")
    return same and (below.path.rstrip("/") == path or below.path.startswith(f"{path}/"))


@access_rule(
    "authorization/servers",
    "must",
    case="the metadata",
    at=LOCATION,
    since=SINCE,
    cause="RFC 9728 leaves the field out where MCP requires it: clients cannot find out where to log in.",
)
async def authorization_servers(access: Access) -> None:
    """The metadata has `authorization_servers`, with the URL of at least one."""
    found = await access.metadata()
    servers: Any = found.document.get("authorization_servers")
    if not isinstance(servers, list) or not servers:
        raise found.violation(f"`authorization_servers` is {servers!r}")
    wrong = [each for each in servers if not isinstance(each, str) or not urlsplit(each).hostname]
    if wrong:
        raise found.violation(f"`authorization_servers` has {wrong[0]!r}, which is not a URL")


@access_rule(
    "authorization/issuers-https",
    "must",
    case="the metadata",
    at=(
        "basic/authorization#communication-security",
        "basic/authorization/security-considerations#communication-security",
    ),
    since=SINCE,
    cause="A development setting is in production: a login over http can be read by others.",
)
async def authorization_issuers_https(access: Access) -> None:
    """The authorization servers in the metadata have https URLs; on this machine also http."""
    found = await access.metadata()
    for each in _texts(found):
        if urlsplit(each).scheme != "https" and not is_local(each):
            raise found.violation(f"the authorization server {each} is not https")


def _texts(found: ResourceDocument) -> list[str]:
    servers = found.document.get("authorization_servers")
    return [each for each in servers if isinstance(each, str)] if isinstance(servers, list) else []


@access_rule(
    "authorization/server-metadata",
    "should",
    case="the metadata of the authorization server",
    at="basic/authorization#server-metadata-discovery",
    since="2025-03-26",
    until="2025-06-18",
    cause="In this revision, the server is the authorization server, too: clients look for its metadata at its origin.",
)
async def authorization_server_metadata(access: Access) -> None:
    """The origin of the server has the metadata of its authorization server."""
    if await _server_metadata(access) is None:
        raise Violation("there is no metadata at /.well-known/oauth-authorization-server")


@access_rule(
    "authorization/default-endpoints",
    "must",
    case="the default endpoints",
    at="basic/authorization#fallbacks-for-servers-without-metadata-discovery",
    since="2025-03-26",
    until="2025-06-18",
    cause="Clients of this revision find neither metadata nor the default endpoints.",
)
async def authorization_default_endpoints(access: Access) -> None:
    """A server without metadata of its authorization server has the endpoints /authorize and /token."""
    if await _server_metadata(access) is not None:
        raise NotApplicable("the server has metadata of its authorization server")
    responses = [await access.wire.fetch_url("GET", _at_origin(access, path)) for path in _DEFAULT_PATHS]
    missing = [each for each in responses if each.status in _GONE or not each.status]
    if len(missing) == len(responses):
        raise NotApplicable(NO_OAUTH)
    if missing:
        raise Violation(f"there is no metadata, and GET {missing[0].url} returned {describe(missing[0])}")


async def _server_metadata(access: Access) -> Any:
    """Return the metadata of the authorization server at the origin of the server; None without it. Raises
    `NotApplicable` for a server that names its authorization servers as later revisions do, or has no OAuth.
    """
    from_challenge = (await access.challenge()).parameters
    if "resource_metadata" in from_challenge:
        raise NotApplicable("the server names its authorization servers in the metadata of the resource")
    return await access.server_metadata()


def _at_origin(access: Access, path: str) -> str:
    parts = urlsplit(access.wire.url)
    return f"{parts.scheme}://{parts.netloc}{path}"
