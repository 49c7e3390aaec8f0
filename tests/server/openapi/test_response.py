"""What becomes of an answer: structured, text, an image, a file, or the error that it is."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import unquote

import pytest

from accord import AudioContent, Client, EmbeddedResource, ImageContent, Limits, RouteMap, Server
from accord.client.results import ToolResult

from tests.server.openapi.echo import JSON, Echo, always, answering, body, document, get, parameter
from tests.server.openapi.loopback import on_loopback

PET: JSON = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}


async def called(answer: Any, operation: JSON, **options: Any) -> ToolResult:
    """The result of the one tool of an API that answers so."""
    server = Server("api", limits=options.pop("limits", Limits()))
    server.add_fastapi(Echo({"/a": {"get": {"operationId": "a", **operation}}}, answer), **options)
    async with Client(server) as client:
        return await client.call_tool("a")


async def test_an_answer_as_described_is_structured() -> None:
    result = await called(always({"id": 1}), answering(PET))
    assert (result.structured_content, result.text) == ({"id": 1}, '{"id":1}')


@pytest.mark.parametrize("status", ["2XX", "201"])
async def test_any_success_describes_the_answer(status: str) -> None:
    result = await called(always({"id": 1}, status=201), answering(PET, status=status))
    assert result.structured_content == {"id": 1}


async def test_null_where_something_may_be_left_out_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    result = await called(always({"id": 1, "at": None}), answering(PET))
    assert not result.is_error
    assert result.structured_content == {"id": 1}
    strict = await called(always({"id": 1, "at": None}), answering(PET), strict=True)
    assert strict.is_error
    assert "$.at" in strict.text
    assert "It did answer" not in strict.text


async def test_an_answer_that_is_not_as_described_is_returned_as_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "accord.server"):
        result = await called(always({"id": "one"}), answering(PET))
    assert result.is_error
    said, answer = (block.text for block in result.content)  # type: ignore[union-attr]
    assert said.startswith("GET /a was answered with HTTP 200 OK, not as its OpenAPI document has it: ")
    assert answer == '{"id": "one"}'
    assert "tool 'a': GET /a was answered with HTTP 200 OK" in caplog.text


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"[" + b"1e300," * 1_001 + b"0]"])
async def test_what_is_no_json_where_it_should_be_does_no_harm(content: bytes) -> None:
    assert (await called(always(content), answering(PET))).is_error


async def test_where_successes_differ_nothing_is_promised() -> None:
    operation = answering(PET)
    operation["responses"]["202"] = {"description": "later"}
    result = await called(always({"id": "one"}), operation)
    assert (result.is_error, result.text) == (False, '{"id": "one"}')
    result = await called(always({"id": "one"}), answering(PET), structured=False)
    assert (result.is_error, result.text) == (False, '{"id": "one"}')


async def test_media_are_content() -> None:
    assert (await called(always(b"\x89PNG", media="image/png"), get())).content == [
        ImageContent(data="iVBORw==", mime_type="image/png")
    ]
    assert (await called(always(b"\0", media="audio/wav"), get())).content == [
        AudioContent(data="AA==", mime_type="audio/wav")
    ]
    (file,) = (await called(always(b"\0", media="application/zip"), get())).content
    assert isinstance(file, EmbeddedResource)
    assert (file.resource.uri, file.resource.mime_type, file.resource.blob) == (
        "http://localhost/a",
        "application/zip",
        "AA==",
    )
    assert (await called(always("ü".encode("latin-1"), media="text/plain; charset=ISO-8859-1"), get())).text == "ü"
    assert (await called(always(b"\xff", media="text/plain; charset=nonsense"), get())).text == "\ufffd"
    assert (await called(always(b"", status=204), get())).text == "HTTP 204 No Content"


async def test_a_refusal_has_its_status_and_its_beginning() -> None:
    content = b'{"error": "' + b"x" * 10_000 + b'"}'
    result = await called(always(content, status=503, retry_after="7"), get())
    assert result.is_error
    assert result.text.startswith('GET /a: HTTP 503 Service Unavailable; try again after 7 s; it says {"error": "xxx')
    assert len(result.text) < 700
    odd = await called(always(b"\x1b[31m\r\nred", status=599, media="text/plain"), get())
    assert odd.text == "GET /a: HTTP 599; it says \\x1b[31m red"


async def test_secrets_of_ours_are_not_sent() -> None:
    headers = {"Authorization": "Bearer t0ken-of-ours", "X-Key": "k3y-of-ours"}
    said = b'{"sent": "t0ken-of-ours k3y-of-ours q-of-ours", "password": "hunter22"}'
    result = await called(always(said, status=401), get(), headers=headers, query={"key": "q-of-ours"})
    assert "of-ours" not in result.text
    assert "hunter22" not in result.text


async def test_an_answer_may_be_too_large() -> None:
    result = await called(always(b"x" * 2_000), get(), limits=Limits(upstream_bytes=1_000))
    assert result.text == "GET /a: the answer is larger than 1,000 bytes (Limits.upstream_bytes)"


@pytest.mark.parametrize(
    ("status", "location", "text"),
    [
        (302, "/v1/b", "/v1/b"),
        (307, "b", "/v1/b"),
        (302, "/v2/b", "GET /a: HTTP 302: redirected outside the API"),
        (302, "http://evil.example/v1/b", "GET /a: HTTP 302: redirected outside the API"),
        (302, "/v1/a", "redirected more than 5 times"),
        (302, "", "HTTP 302 Found"),
        (304, "/v1/b", "HTTP 304"),
    ],
)
async def test_redirects_are_followed_under_the_base(status: int, location: str, text: str) -> None:
    def answer(asked: JSON) -> tuple[int, dict[str, str], bytes]:
        if asked["path"] == "/v1/a":
            return status, {"location": location}, b""
        return 200, {"content-type": "text/plain"}, asked["path"].encode()

    result = await called(answer, get(), base_url="http://localhost/v1", headers={"X-Key": "k"})
    assert text in result.text


@pytest.mark.parametrize(
    "location", ["/v1/tenants/1", "http://localhost:80/v1/%74enants/1", "tenants//1?x", "/v1/Tenants/1/"]
)
async def test_a_redirect_is_not_followed_to_a_skipped_operation(location: str) -> None:
    echo = Echo(
        {
            "/go": {"get": get(parameter("to"), operationId="go")},
            "/tenants/{id}": {"get": get(parameter("id", "path"))},
        },
        redirecting,
    )
    server = Server("api")
    server.add_fastapi(echo, base_url="http://localhost/v1", routes=[RouteMap(pattern="^/tenants", into="skip")])
    async with Client(server) as client:
        assert (await client.call_tool("go", {"to": "/v1/open"})).text == "/v1/open"
        result = await client.call_tool("go", {"to": location})
    assert result.is_error
    assert "to an operation that is not offered" in result.text
    assert [asked["path"] for asked in echo.asked] == ["/v1/go", "/v1/open", "/v1/go"]


async def test_an_operation_that_says_more_than_a_skipped_one_is_not_redirected_to_that() -> None:
    echo = Echo(
        {
            "/go/{id}": {"get": get(parameter("id", "path"), parameter("to"), operationId="go")},
            "/{tenant}/{page}": {"get": get(parameter("tenant", "path"), parameter("page", "path"))},
        },
        lambda asked: (302, {"location": unquote(asked["query"][3:])}, b"") if asked["query"] else (200, {}, b"there"),
    )
    server = Server("api")
    server.add_fastapi(echo, routes=[RouteMap(pattern="tenant", into="skip")])
    async with Client(server) as client:
        assert (await client.call_tool("go", {"id": "1", "to": "/go/2"})).text == "there"
        for location in ("/acme/secret", "/go%2F../acme/secret", "/acme/secret.json"):
            result = await client.call_tool("go", {"id": "1", "to": location})
            assert result.is_error, location
            assert "not followed" in result.text


@pytest.mark.parametrize("member", ["_method=DELETE", "x=1&_Method=delete", "x;_method=DELETE", "%5Fmethod=DELETE"])
async def test_a_redirect_does_not_choose_the_method_of_a_skipped_operation(member: str) -> None:
    item = {
        "post": {"operationId": "change", "parameters": [parameter("id", "path"), parameter("to")]},
        "delete": get(parameter("id", "path")),
    }
    echo = Echo(
        {"/things/{id}": item},
        lambda asked: (
            (307, {"location": unquote(asked["query"][3:])}, b"") if "to=" in asked["query"] else (200, {}, b"")
        ),
    )
    server = Server("api")
    server.add_fastapi(echo, routes=[RouteMap(methods={"DELETE"}, into="skip")])
    async with Client(server) as client:
        assert not (await client.call_tool("change", {"id": "1", "to": "/things/2?x=_method"})).is_error
        result = await client.call_tool("change", {"id": "1", "to": f"/things/2?{member}"})
    assert result.is_error
    assert "to an operation that is not offered" in result.text
    assert len(echo.asked) == 3


def redirecting(asked: JSON) -> tuple[int, dict[str, str], bytes]:
    if asked["path"] == "/v1/go":
        return 302, {"location": unquote(asked["query"].removeprefix("to="))}, b""
    return 200, {"content-type": "text/plain"}, asked["path"].encode()


async def test_a_post_is_not_sent_again_as_something_else() -> None:
    server = Server("api")
    server.add_fastapi(Echo({"/a": {"post": {"operationId": "a"}}}, always(b"", status=303, location="/b")))
    async with Client(server) as client:
        result = await client.call_tool("a")
    assert result.text == "POST /a: HTTP 303, which a POST does not follow"


async def test_an_application_that_raises_or_says_nothing_ends_its_own_call() -> None:
    async def raises(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret of the application")

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        return None

    for app, text in ((raises, "GET /a: the application failed: RuntimeError"), (silent, "ended without an answer")):
        app.openapi = lambda: document({"/a": {"get": {"operationId": "a"}}})  # type: ignore[attr-defined]
        server = Server("api")
        server.add_fastapi(app)
        async with Client(server) as client:
            result = await client.call_tool("a")
        assert result.is_error
        assert text in result.text
        assert "secret" not in result.text


async def test_an_application_that_does_not_start_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    app.openapi = lambda: document({"/a": {"get": {"operationId": "a"}}})  # type: ignore[attr-defined]
    server = Server("api")
    server.add_fastapi(app)
    async with Client(server) as client:
        for _ in range(2):
            result = await client.call_tool("a")
            assert "the application did not start" in result.text
            assert "no database" not in result.text  # Starlette gives a whole traceback
    assert "the application did not start: no database" in caplog.text


async def test_silence_ends_in_time() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await asyncio.Event().wait()

    app.openapi = lambda: document({"/a": {"get": {"operationId": "a"}}})  # type: ignore[attr-defined]
    server = Server("api")
    server.add_fastapi(app, timeout=0.05)
    async with on_loopback(app) as url:
        server.add_openapi(app.openapi(), base_url=url, timeout=0.05, prefix="far")  # type: ignore[attr-defined]
        async with Client(server) as client:
            for name in ("a", "far_a"):
                result = await client.call_tool(name)
                assert result.text == "GET /a was not answered within 0.05 s"


async def test_over_a_socket_no_cookie_is_stored_and_the_bounds_hold() -> None:
    def answer(asked: JSON) -> tuple[int, dict[str, str], bytes]:
        headers = {"content-type": "text/plain", "set-cookie": "session=of-the-first"}
        return 200, headers, b"x" * 5_000 if asked["query"] else asked["headers"].get("cookie", "none").encode()

    app = Echo({"/a": {"get": get({"name": "q", "in": "query"}, operationId="a")}}, answer)
    server = Server("api", limits=Limits(upstream_bytes=1_000))
    async with on_loopback(app) as url:
        server.add_openapi(app.openapi(), base_url=url)
        async with Client(server) as client:
            assert [(await client.call_tool("a")).text for _ in range(2)] == ["none", "none"]
            assert "larger than 1,000 bytes" in (await client.call_tool("a", {"q": "large"})).text
    async with Client(server) as client:
        gone = await client.call_tool("a")
        assert gone.is_error
        assert "no connection to 127.0.0.1" in gone.text


async def test_a_path_over_a_socket_is_sent_as_it_was_built() -> None:
    app = Echo({"/a/{id}": {"get": get({"name": "id", "in": "path"}, operationId="a")}})
    server = Server("api")
    async with on_loopback(app) as url:
        server.add_openapi(app.openapi(), base_url=f"{url}/v1", slashes=["id"])
        async with Client(server) as client:
            for value in ("a/b", "x?y#z", "%41", "ü", "a+b c", "http://evil.example"):
                assert not (await client.call_tool("a", {"id": value})).is_error
            for value in ("../b", "..", "%2e%2e"):
                assert (await client.call_tool("a", {"id": value})).is_error
    paths = [asked["path"] for asked in app.asked]
    encoded = ["a%2Fb", "x%3Fy%23z", "%2541", "%C3%BC", "a%2Bb%20c", "http%3A%2F%2Fevil.example"]
    assert paths == [f"/v1/a/{each}" for each in encoded]


async def test_a_large_body_is_sent_without_a_report() -> None:
    app = Echo({"/a": {"post": {**body({"type": "string"}, "text/plain"), "operationId": "a"}}}, length)
    server = Server("api")
    async with on_loopback(app) as url:
        server.add_openapi(app.openapi(), base_url=url)
        async with Client(server) as client:
            assert (await client.call_tool("a", {"body": "x" * 20})).text == "20"
            assert int((await client.call_tool("a", {"body": "x" * (3 << 20)})).text) > 60_000


def length(asked: JSON) -> tuple[int, dict[str, str], bytes]:
    """How much there was in the first piece of a body."""
    return 200, {"content-type": "text/plain"}, str(len(asked["body"])).encode()
