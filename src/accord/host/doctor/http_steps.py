"""The steps of HTTP: the response, the `Host` header, authentication. They look at what an ordinary client received."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import msgspec

from accord.auth.oauth import OAuth
from accord.client.target import Remote
from accord.errors import AuthorizationError, HTTPError, RemoteProtocolError
from accord.host.doctor.diagnosis import Step, StepResult
from accord.host.doctor.known_facts import ConnectionAttempt, KnownFacts
from accord.host.login_explanation import REQUEST_STEP, explain
from accord.transport.http.failures import refuses_host
from accord.wire.session_file import HTTPEntry

_HEADERS = (
    "server",
    "via",
    "content-type",
    "location",
    "allow",
    "retry-after",
    "www-authenticate",
    "mcp-protocol-version",
)
"""Headers of a response that explain a failure."""
_AUTHENTICATION = (401, 403, 407)

_REMEDIES = {
    400: "is it the URL of an MCP server? Look at what it says",
    404: "there is no MCP server at this path: correct it; usual paths are /mcp and /sse",
    405: "this URL does not take POST: correct the path; usual paths are /mcp and /sse",
    406: "the server, or a proxy before it, does not accept JSON and event streams",
    410: "the server has moved: ask who runs it",
    413: "a proxy before the server limits the size of requests",
    415: "the server, or a proxy before it, does not accept application/json",
    429: "the server refuses further requests for now: wait, then try again",
    500: "the server failed: look at its log",
    502: "the proxy before the server does not reach it: is it running?",
    503: "the server is overloaded or starting: wait, then look at its log",
    504: "the proxy before the server gets no answer from it: look at its log, and at the timeouts of the proxy",
}
_PAGE = "this is a page for people, and no MCP server: correct the URL; usual paths are /mcp and /sse"


def _http_error(attempt: ConnectionAttempt) -> HTTPError | None:
    return next((each for each in attempt.causes() if isinstance(each, HTTPError)), None)


def _described(response: HTTPEntry) -> list[str]:
    """Return the status of a response, and its headers that matter."""
    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return [f"HTTP {response.status}{phrase}", *(f"{name}: {headers[name]}" for name in _HEADERS if name in headers)]


# --- HTTP ------------------------------------------------------------------------------------------------------------


async def check_http(facts: KnownFacts) -> StepResult:
    """Send the first requests of a client, and look at the responses."""
    attempt = await facts.connected()
    evidence = _described(attempt.responses[-1]) if attempt.responses else []
    error = _http_error(attempt)
    if attempt.error is None:
        return StepResult("HTTP", "passed", evidence[:1] or ["the server answers"])
    if error is not None and not _is_of_later_step(error):
        return _failed_response(error, evidence)
    if not attempt.responses and not any(isinstance(each, AuthorizationError) for each in attempt.causes()):
        return _no_response(attempt, facts.subject.seconds)
    return StepResult("HTTP", "passed", evidence[:1] or ["the server answers"])


def _is_of_later_step(error: HTTPError) -> bool:
    return error.status in _AUTHENTICATION or refuses_host(error.status, error.body.encode())


def _failed_response(error: HTTPError, evidence: list[str]) -> StepResult:
    evidence = evidence or [f"HTTP {error.status}"]
    body = [f"it says: {error.body}"] if error.body else []
    is_page = "<html" in error.body.lower() or "<!doctype html" in error.body.lower()
    if 300 <= error.status < 400:
        remedy = "accord does not follow this redirect: check the URL in location, and use it if it is the right one"
    elif error.status < 300:
        remedy = _PAGE if is_page else "this is no MCP server: correct the URL; usual paths are /mcp and /sse"
    else:
        remedy = _REMEDIES.get(error.status, _REMEDIES[500 if error.status >= 500 else 400])
    return StepResult("HTTP", "failed", [*evidence, *body], remedy)


def _no_response(attempt: ConnectionAttempt, seconds: float) -> StepResult:
    evidence = [str(attempt.error)]
    if attempt.timed_out:
        remedy = f"the server accepts connections and does not answer within {seconds:g} s: look at its log"
        return StepResult("HTTP", "failed", evidence, remedy)
    if any(isinstance(each, RemoteProtocolError) for each in attempt.causes()):
        return StepResult("HTTP", "failed", evidence, "what listens there does not speak HTTP: correct the port")
    remedy = "the connection ends before a response: is it https:// there? Otherwise look at the log of the server"
    return StepResult("HTTP", "failed", evidence, remedy)


# --- Host header -----------------------------------------------------------------------------------------------------


async def check_host_header(facts: KnownFacts) -> StepResult:
    """Recognize a server that does not answer to its name in the URL."""
    assert isinstance(facts.target, Remote), "the step is for a URL"
    attempt = await facts.connected()
    error = _http_error(attempt)
    if error is None or not refuses_host(error.status, error.body.encode()):
        return StepResult("Host header", "passed", ["the server answers to its name in the URL"])
    evidence = [*(_described(attempt.responses[-1]) if attempt.responses else [f"HTTP {error.status}"])]
    evidence += [f"it says: {error.body}"] if error.body else []
    remedy = "the server does not accept this Host header: add the name in the URL to its allowed hosts, or use another"
    return StepResult("Host header", "failed", evidence, remedy)


# --- authentication --------------------------------------------------------------------------------------------------


async def check_authentication(facts: KnownFacts) -> StepResult:
    """Look at whether the server accepts the credentials; if not, at how to log in."""
    assert isinstance(facts.target, Remote), "the step is for a URL"
    attempt = await facts.connected()
    refused = any(isinstance(each, AuthorizationError) for each in attempt.causes())
    error = _http_error(attempt)
    if not refused and (error is None or error.status not in _AUTHENTICATION):
        names = ", ".join(sorted(facts.target.headers or ()))
        return StepResult("authentication", "passed", [f"accepted with {names}" if names else "no refusal"])
    evidence = _described(attempt.responses[-1]) if attempt.responses else []
    if "authorization" in {name.lower() for name in facts.target.headers or ()}:
        body = [f"it says: {error.body}"] if error is not None and error.body else []
        remedy = "the token in the headers is refused: renew it, or remove it to log in with accord login"
        return StepResult("authentication", "failed", [*evidence, *body], remedy)
    if facts.target.auth is not None and not isinstance(facts.target.auth, OAuth):
        return StepResult("authentication", "failed", [*evidence, str(attempt.error)], "correct the login of the entry")
    return await _explained(facts.target, evidence, facts.subject.seconds)


async def _explained(target: Remote, evidence: list[str], seconds: float) -> StepResult:
    """Return the steps of a login, without logging in."""
    login = target.auth if isinstance(target.auth, OAuth) else OAuth()
    try:
        found = await asyncio.wait_for(explain(msgspec.structs.replace(target, auth=None), login), 2 * seconds)
    except TimeoutError:
        evidence.append(f"discovery did not end within {2 * seconds:g} s")
        return StepResult("authentication", "failed", evidence, f"accord auth explain {target}")
    for step in found.steps:
        if step.step == REQUEST_STEP and step.outcome == "ok":
            continue  # the response is evidence already
        place = f" at {step.url}" if step.url is not None else ""
        evidence.append(f"{step.outcome}: {step.step}: {step.text}{place}")
    return StepResult("authentication", "failed", evidence, found.next)


HTTP_STEPS = (
    Step("HTTP", check_http),
    Step("Host header", check_host_header),
    Step("authentication", check_authentication),
)
