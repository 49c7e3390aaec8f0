"""What can go wrong between a host and a provider, in all three APIs: retries, broken streams, limits, secrets."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from accord.errors import DeclarationError, ModelError, TargetError
from accord.host import AnthropicModel, ChatCompletionsModel, ModelLimits, ResponsesModel
from accord.transport.http.settings import HTTPSettings

from tests.host.models.fake_provider import Answer, FakeProvider, FakeResponse, as_json, event, streamed
from tests.host.models.providers import API, APIS, CALLS, HELLO, KEY, ask, each_api, text_of
from tests.waiting import until

OVERLOADED = as_json({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529)


def failed(status: int, message: str = "no", **headers: str) -> FakeResponse:
    error = {"error": {"type": "some_error", "message": message}}
    return as_json(error, status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def answered(api: API) -> FakeResponse:
    return streamed(api.answers.stream(HELLO))


async def call(provider: FakeProvider, api: API, **settings: Any) -> str:
    found = await api.connect(provider, **settings).create_message(ask())
    return text_of(found.result)


async def error_of(provider: FakeProvider, api: API, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await call(provider, api, **settings)
    text = "".join(traceback.format_exception(caught.value))
    assert KEY not in text
    return caught.value


# --- retries -------------------------------------------------------------------------------------------------------


@each_api
@pytest.mark.parametrize("failure", [failed(500), failed(408), failed(409), failed(503), OVERLOADED, failed(429)])
async def test_a_failure_that_may_pass_is_tried_again(api: API, failure: FakeResponse) -> None:
    async with FakeProvider(failure, failure, answered(api)) as provider:
        assert await call(provider, api) == "Hello, wörld: 😀 tea"
    assert len(provider.requests) == 3
    assert provider.requests[0].body == provider.requests[2].body


@each_api
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_failure_that_stays_is_not_tried_again(api: API, status: int) -> None:
    async with FakeProvider(failed(status, "bad thing"), answered(api)) as provider:
        error = await error_of(provider, api)
    assert len(provider.requests) == 1
    assert error.status == status
    assert error.code == "some_error"
    assert f"fake-model at 127.0.0.1:{provider.url.rpartition(':')[2]}: HTTP {status}" in str(error)
    assert "some_error: bad thing" in str(error)


@each_api
async def test_a_header_decides_about_a_retry(api: API) -> None:
    async with FakeProvider(failed(400, x_should_retry="true"), answered(api)) as provider:
        assert await call(provider, api)
    async with FakeProvider(failed(500, x_should_retry="false"), answered(api)) as provider:
        assert (await error_of(provider, api)).status == 500


@each_api
async def test_retries_are_limited(api: API) -> None:
    async with FakeProvider(*[failed(500)] * 9) as provider:
        error = await error_of(provider, api, limits=ModelLimits(retries=2, retry_seconds=0.001))
    assert len(provider.requests) == 3
    assert "3 attempts failed" in str(error)


@each_api
@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms", "date"])
async def test_the_pause_is_what_the_provider_sets(api: API, header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def record(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    value = {"retry-after": "7", "retry-after-ms": "7000", "date": date}[header]
    limit = failed(429, **{"retry-after" if header == "date" else header: value})
    async with FakeProvider(limit, answered(api)) as provider:
        monkeypatch.setattr("accord.host.models.http.asyncio.sleep", record)
        assert await call(provider, api)
    (pause,) = pauses
    assert 7 <= pause <= 30


@each_api
async def test_a_pause_that_is_too_long_is_an_error_at_once(api: API) -> None:
    async with FakeProvider(failed(429, retry_after="3600"), answered(api)) as provider:
        error = await error_of(provider, api)
    assert error.retry_after == 3600
    assert "it allows a retry after 3600 s" in str(error)
    assert len(provider.requests) == 1


@each_api
async def test_a_pause_beyond_the_total_time_is_an_error_at_once(api: API) -> None:
    async with FakeProvider(failed(429, retry_after="50"), answered(api)) as provider:
        error = await error_of(provider, api, limits=ModelLimits(total_seconds=40))
    assert error.retry_after == 50


@each_api
@pytest.mark.parametrize("code", ["insufficient_quota", "billing_error"])
async def test_an_exhausted_account_is_not_asked_again(api: API, code: str) -> None:
    async with FakeProvider(as_json({"error": {"type": code, "message": "You exceeded"}}, 429)) as provider:
        error = await error_of(provider, api)
    assert len(provider.requests) == 1
    assert "raise the spending limit of the account" in str(error)


@each_api
async def test_a_spend_limit_in_the_details_is_not_asked_again(api: API) -> None:
    details = {"error_code": "enforced_spend_limit_reached"}
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "limit", "details": details}}
    async with FakeProvider(as_json(body, 429)) as provider:
        await error_of(provider, api)
    assert len(provider.requests) == 1


@each_api
async def test_no_provider_at_the_url_is_an_error_that_says_so(api: API) -> None:
    async with FakeProvider() as provider:
        pass
    error = await error_of(provider, api)
    assert "TCP: no connection to 127.0.0.1" in str(error)
    assert "5 attempts failed" in str(error)


OPENAI_APIS = pytest.mark.parametrize("api", APIS[1:], ids=str)
REFUSED = "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) is supported."


@OPENAI_APIS
async def test_a_model_that_takes_no_temperature_is_asked_without(api: API) -> None:
    async with FakeProvider(failed(400, REFUSED), answered(api), answered(api)) as provider:
        model = api.connect(provider)
        for _ in range(2):
            assert (await model.create_message(ask(temperature=0.5))).output_tokens == 7
    assert [request.body.get("temperature") for request in provider.requests] == [0.5, None, None]


@OPENAI_APIS
async def test_a_temperature_of_the_options_is_never_left_out(api: API) -> None:
    async with FakeProvider(failed(400, REFUSED)) as provider:
        model = api.connect(provider, options={"temperature": 0.5})
        with pytest.raises(ModelError, match="Unsupported value: 'temperature'"):
            await model.create_message(ask())
    assert len(provider.requests) == 1


@OPENAI_APIS
async def test_another_refusal_is_an_error_with_a_temperature_too(api: API) -> None:
    async with FakeProvider(failed(400, "no"), answered(api)) as provider:
        with pytest.raises(ModelError, match="HTTP 400"):
            await api.connect(provider).create_message(ask(temperature=0.5))
    assert len(provider.requests) == 1


# --- broken answers ------------------------------------------------------------------------------------------------


@each_api
@pytest.mark.parametrize("end", ["complete", "broken"])
async def test_a_stream_that_breaks_is_tried_again_if_no_text_was_passed_on(api: API, end: Any) -> None:
    events = api.answers.stream(HELLO)
    for cut in (0, 1, len(events) // 2, len(events) - 2):
        async with FakeProvider(streamed(events[:cut], end=end), answered(api)) as provider:
            if api is not APIS[1] or cut != len(events) - 2:  # the completion is complete, and lacks only the counts
                assert await call(provider, api) == "Hello, wörld: 😀 tea"
                assert len(provider.requests) == 2


@each_api
@pytest.mark.parametrize("end", ["complete", "broken"])
async def test_a_stream_that_breaks_is_an_error_once_text_was_passed_on(api: API, end: Any) -> None:
    events = api.answers.stream(HELLO)
    passed: list[str] = []
    async with FakeProvider(streamed(events[: len(events) // 2], end=end), answered(api)) as provider:
        with pytest.raises(ModelError, match=r"the stream ended before|the connection broke in the middle") as caught:
            await api.connect(provider).create_message(ask(), on_text=passed.append)
    assert passed
    assert HELLO.parts[0][1].startswith("".join(passed))
    assert len(provider.requests) == 1
    assert caught.value.status is None


@each_api
async def test_an_error_inside_a_stream_is_tried_again_if_no_text_was_passed_on(api: API) -> None:
    events = api.answers.stream(HELLO)
    broken = streamed([*events[: len(events) // 2], api.answers.error_event])
    async with FakeProvider(broken, answered(api)) as provider:
        assert await call(provider, api) == "Hello, wörld: 😀 tea"
    async with FakeProvider(broken, answered(api)) as provider:
        with pytest.raises(ModelError, match=r"it reported an error instead of an answer: \w+_error: Overloaded"):
            await api.connect(provider).create_message(ask(), on_text=lambda text: None)
    assert len(provider.requests) == 1


@each_api
@pytest.mark.parametrize("data", ["{", '"text"', "[]", "\xff", '{"type": 5, "choices": 5}', "[" * 100_000])
async def test_invalid_json_is_an_error(api: API, data: str) -> None:
    limits = ModelLimits(retries=1, retry_seconds=0.001)
    for response in (streamed([event(data)]), FakeResponse([data.encode("latin-1")])):
        async with FakeProvider(response, response) as provider:
            error = await error_of(provider, api, limits=limits)
        assert re.search("its answer (is not valid JSON|does not have the shape|has no)", str(error))
        assert len(provider.requests) == 2
        assert len(str(error)) < 1_000


@each_api
async def test_an_answer_of_another_api_is_an_error(api: API) -> None:
    once = ModelLimits(retries=0)
    others = [each.answers for each in APIS if each is not api]
    for other in ({}, *(each.whole(HELLO) for each in others)):
        async with FakeProvider(as_json(other)) as provider:
            error = await error_of(provider, api, limits=once)
        assert "check base_url: another API may answer there" in str(error)
    for each in others:
        async with FakeProvider(streamed(each.stream(HELLO))) as provider:
            await error_of(provider, api, limits=once)


@each_api
async def test_arguments_that_are_no_json_object_are_an_error(api: API) -> None:
    for arguments in ('{"q": ', "[1]", "5", "nonsense"):
        wrong = Answer([("tool", "id_1", "search", arguments)], "tools")
        response = streamed(api.answers.stream(wrong))
        async with FakeProvider(response, response) as provider:
            error = await error_of(provider, api, limits=ModelLimits(retries=1, retry_seconds=0.001))
        assert "the arguments for the tool 'search' are no JSON object" in str(error)


@each_api
@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/plain", None])
async def test_another_content_type_is_an_error(api: API, kind: str | None) -> None:
    async with FakeProvider(FakeResponse([b"<html>Welcome</html>"], content_type=kind)) as provider:
        error = await error_of(provider, api)
    assert "instead of JSON; check base_url" in str(error)


@each_api
async def test_a_compressed_answer_is_refused(api: API) -> None:
    async with FakeProvider(FakeResponse([b"\x1f\x8b"], headers={"content-encoding": "gzip"})) as provider:
        assert "its answer is compressed (gzip)" in str(await error_of(provider, api))
    assert provider.requests[0].headers["accept-encoding"] == "identity"


@each_api
async def test_a_response_that_is_not_http_is_an_error(api: API) -> None:
    nonsense = FakeResponse(head=b"SSH-2.0-OpenSSH_9.6\r\n\r\n", end="broken")
    async with FakeProvider(*[nonsense] * 9) as provider:
        assert "does not answer in HTTP" in str(await error_of(provider, api))


@each_api
async def test_a_redirect_is_not_followed(api: API) -> None:
    elsewhere = failed(307, location="https://elsewhere.example.com/v1")
    async with FakeProvider(elsewhere, answered(api)) as provider:
        error = await error_of(provider, api)
    assert "redirects are not followed; set base_url to https://elsewhere.example.com/v1" in str(error)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"type": "t", "message": "m"}}, "t: m"),
        ({"error": {"code": "c", "message": "m"}}, "c: m"),
        ({"error": "only text"}, "only text"),
        ({"message": "top"}, "top"),
        ({"detail": [{"loc": ["body"]}]}, '[{"loc":["body"]}]'),
        ([{"error": {"code": 404, "message": "in a list"}}], "in a list"),
        ("words", "words"),
        ({"error": None}, "HTTP 400 Bad Request"),
        (5, "HTTP 400 Bad Request: 5"),
    ],
)
async def test_what_the_provider_says_is_in_the_error(body: Any, said: str) -> None:
    async with FakeProvider(as_json(body, 400, headers={"request-id": "req_1"})) as provider:
        error = await error_of(provider, APIS[0])
    assert said in str(error)
    assert "(request id req_1)" in str(error)


async def test_control_characters_of_the_provider_are_escaped() -> None:
    async with FakeProvider(as_json({"error": {"type": "\x1b[2Jt", "message": "a\nb\x1b[31m\u202e"}}, 400)) as provider:
        error = await error_of(provider, APIS[0])
    assert str(error).isprintable()
    assert error.code.isprintable()


# --- limits --------------------------------------------------------------------------------------------------------


@each_api
async def test_a_stream_without_end_is_cut(api: API) -> None:
    endless = streamed([b": ping\n\n" * 1_000], end="endless")
    async with FakeProvider(endless) as provider:
        error = await error_of(provider, api, limits=ModelLimits(response_bytes=100_000))
    assert "its answer has more than 100,000 bytes (ModelLimits.response_bytes)" in str(error)
    assert len(provider.requests) == 1


@each_api
async def test_a_large_answer_is_refused(api: API) -> None:
    endless = FakeResponse([b" " * 10_000], end="endless")
    async with FakeProvider(endless) as provider:
        error = await error_of(provider, api, limits=ModelLimits(event_bytes=100_000))
    assert "its answer has more than 100,000 bytes (ModelLimits.event_bytes)" in str(error)


@each_api
async def test_a_large_event_is_refused(api: API) -> None:
    endless = streamed([b"data: ", b"x" * 10_000], end="endless")
    async with FakeProvider(endless) as provider:
        error = await error_of(provider, api, limits=ModelLimits(event_bytes=50_000))
    assert "ModelLimits.event_bytes" in str(error)


@each_api
async def test_json_that_takes_long_to_decode_is_refused(api: API) -> None:
    nested = '{"type": "error", "error": [' + "{}," * 200_001 + "{}]}"
    call = streamed(api.answers.stream(Answer([("tool", "a", "b", f'{{"x": {nested}}}')], piece=1 << 20)))
    for response in (streamed([event(nested)]), FakeResponse([nested.encode()]), call):
        async with FakeProvider(response) as provider:
            error = await error_of(provider, api, limits=ModelLimits(retries=0))
        assert "has more than 100,000 arrays, objects and members" in str(error)


@each_api
async def test_too_many_uses_of_tools_are_refused(api: API) -> None:
    async with FakeProvider(streamed(api.answers.stream(CALLS))) as provider:
        error = await error_of(provider, api, limits=ModelLimits(tool_calls=1))
    assert "uses tools more than 1 times (ModelLimits.tool_calls)" in str(error)


@each_api
@pytest.mark.parametrize("events", [0, 3])
async def test_silence_is_limited(api: API, events: int) -> None:
    silent = streamed(api.answers.stream(HELLO)[:events], end="silent")
    async with FakeProvider(silent, silent) as provider:
        limits = ModelLimits(silence_seconds=0.05, retries=1, retry_seconds=0.001)
        error = await error_of(provider, api, limits=limits)
    assert "no data for 0.05 s (ModelLimits.silence_seconds); 2 attempts failed" in str(error)


@each_api
async def test_silence_before_the_response_is_limited(api: API) -> None:
    async with FakeProvider(FakeResponse(head=b"", end="silent")) as provider:
        error = await error_of(provider, api, limits=ModelLimits(silence_seconds=0.05, retries=0))
    assert "no data for 0.05 s" in str(error)


@each_api
async def test_the_total_time_is_limited(api: API) -> None:
    async with FakeProvider(streamed([b": ping\n\n"], end="silent")) as provider:
        error = await error_of(provider, api, limits=ModelLimits(total_seconds=0.1))
    assert "no complete answer within 0.1 s (ModelLimits.total_seconds)" in str(error)


@each_api
async def test_a_cancelled_call_closes_its_connection(api: API) -> None:
    async with FakeProvider(streamed(api.answers.stream(HELLO)[:6], end="silent")) as provider:
        passed: list[str] = []
        task = asyncio.create_task(api.connect(provider).create_message(ask(), on_text=passed.append))
        await until(lambda: passed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: all(each.done() for each in provider._tasks))


@each_api
@pytest.mark.parametrize("error", [ValueError("mine"), TimeoutError("mine"), OSError("mine")])
async def test_an_exception_of_the_callback_is_raised_and_ends_the_call(api: API, error: Exception) -> None:
    def fail(text: str) -> None:
        raise error

    async with FakeProvider(answered(api), answered(api)) as provider:
        with pytest.raises(type(error), match="mine"):
            await api.connect(provider).create_message(ask(), on_text=fail)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_positive(value: float) -> None:
    with pytest.raises(ValueError, match="silence_seconds of ModelLimits must be positive"):
        ModelLimits(silence_seconds=value)


# --- connections, headers and URLs ---------------------------------------------------------------------------------


@each_api
async def test_connections_are_reused_while_the_model_is_open(api: API) -> None:
    async with FakeProvider(*[answered(api)] * 4) as provider:
        async with api.connect(provider) as model:
            for _ in range(2):
                await model.create_message(ask())
        assert provider.connections == 1
        for _ in range(2):
            await model.create_message(ask())
    assert provider.connections == 3


@each_api
async def test_the_key_is_sent_as_the_api_wants_it(api: API) -> None:
    async with FakeProvider(answered(api)) as provider:
        await call(provider, api)
    (request,) = provider.requests
    assert (request.method, request.path) == ("POST", api.answers.path)
    if api is APIS[0]:
        assert request.headers["x-api-key"] == KEY
        assert request.headers["anthropic-version"] == "2026-10-21"
    else:
        assert request.headers["authorization"] == f"Bearer {KEY}"


@each_api
async def test_headers_of_the_settings_are_sent(api: API) -> None:
    settings = HTTPSettings(headers={"X-Api-Key": "mine-0123456789", "Authorization": "mine", "Accept": "no"})
    async with FakeProvider(answered(api)) as provider:
        await call(provider, api, http=settings)
    headers = provider.requests[0].headers
    assert (headers["x-api-key"], headers["authorization"]) == ("mine-0123456789", "mine")
    assert headers["accept"] == "text/event-stream, application/json"


@each_api
async def test_headers_of_a_function_are_sent(api: API) -> None:
    async def headers() -> dict[str, str]:
        return {"X-Token": "t"}

    async with FakeProvider(answered(api)) as provider:
        await call(provider, api, http=HTTPSettings(headers=headers))
    assert provider.requests[0].headers["x-token"] == "t"


@each_api
async def test_requests_of_more_than_a_megabyte_are_sent(api: API) -> None:
    text = "x" * (2 << 20)
    async with FakeProvider(failed(500), answered(api)) as provider:
        await api.connect(provider).create_message(ask(text))
    assert text in str(provider.requests[1].body)


@each_api
@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "http://api.localhost",
        "ftp://127.0.0.1",
        "https://user:password@api.example.com",
        "https://api.example.com/?key=1",
        "https://api.example.com/#x",
        "api.example.com",
        "https://",
    ],
)
def test_an_unsafe_url_is_refused(api: API, url: str) -> None:
    with pytest.raises(TargetError, match="base_url") as caught:
        api.model("m", base_url=url)
    assert "password" not in str(caught.value)


@each_api
@pytest.mark.parametrize("member", ["model", "messages", "input", "stream"])
def test_options_do_not_replace_the_request_itself(api: API, member: str) -> None:
    with pytest.raises(DeclarationError, match=member):
        api.model("m", api_key=KEY, options={member: 1})


@each_api
async def test_options_add_replace_and_remove_members(api: API) -> None:
    options = {"top_p": 0.9, "temperature": None, "tools": []}
    async with FakeProvider(answered(api)) as provider:
        await api.connect(provider, options=options).create_message(ask(temperature=0.5))
    body = provider.requests[0].body
    assert body["top_p"] == 0.9
    assert "temperature" not in body
    assert body["tools"] == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server with a certificate of its own, and of a client that trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {folder}/key -out {folder}/certificate".split(),
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "certificate", folder / "key")
    return server, ssl.create_default_context(cafile=str(folder / "certificate"))


async def test_a_certificate_that_is_not_trusted_is_an_error_at_once(certificate: Any) -> None:
    async with FakeProvider(tls=certificate[0]) as provider:
        error = await error_of(provider, APIS[0])
    assert "TLS: the certificate of 127.0.0.1" in str(error)
    assert "attempts" not in str(error)


async def test_a_certificate_that_is_trusted_is_enough(certificate: Any) -> None:
    async with FakeProvider(answered(APIS[0]), tls=certificate[0]) as provider:
        assert await call(provider, APIS[0], http=HTTPSettings(ssl=certificate[1]))


async def test_a_proxy_does_not_see_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    refused = FakeResponse([b"no tunnel"], 403)
    async with FakeProvider(refused) as proxy:
        model = AnthropicModel("m", api_key=KEY, http=HTTPSettings(proxy=proxy.url), limits=ModelLimits(retries=0))
        with pytest.raises(ModelError, match=r"the proxy refused to connect to api\.anthropic\.com: 403") as caught:
            await model.create_message(ask())
    assert KEY not in str(proxy.requests)
    assert KEY not in "".join(traceback.format_exception(caught.value))


# --- secrets -------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return


@each_api
async def test_the_key_is_in_no_error_no_log_and_no_repr(api: API, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = failed(500, f"the key {KEY} is wrong; Bearer {KEY}", x_request_id=KEY)
    code = as_json({"error": {"type": KEY, "message": KEY}}, 400)
    async with FakeProvider(echo, code) as provider:
        model = api.connect(provider)
        with pytest.raises(ModelError) as caught:
            await model.create_message(ask())
    assert "[redacted]" in str(caught.value)
    assert "attempt 2 follows" in caplog.text
    shown = [repr(caught.value), *traceback.format_exception(caught.value), caplog.text, repr(model)]
    shown += [repr(vars(model)), repr(vars(model._http)), repr(vars(caught.value))]
    chain: BaseException | None = caught.value
    while chain is not None:
        shown += [repr(chain), repr(vars(chain))]
        chain = chain.__cause__ or chain.__context__
    assert [text for text in shown if KEY in text] == []


@each_api
async def test_the_key_is_in_no_error_of_the_connection(api: API) -> None:
    for response in (FakeResponse(head=b"nonsense\r\n\r\n", end="broken"), FakeResponse(head=b"", end="broken")):
        async with FakeProvider(*[response] * 9) as provider:
            with pytest.raises(ModelError) as caught:
                await call(provider, api)
        chain: BaseException | None = caught.value
        while chain is not None:
            assert KEY not in repr(chain) + repr(vars(chain))
            chain = chain.__cause__ or chain.__context__


@pytest.mark.usefixtures("no_keys")
@each_api
async def test_a_model_without_a_key_says_how_to_give_one(api: API) -> None:
    variable = "ANTHROPIC_API_KEY" if api is APIS[0] else "OPENAI_API_KEY"
    with pytest.raises(ModelError, match=f"there is no API key; set {variable}, or give api_key="):
        await api.model("m").create_message(ask())


@each_api
async def test_the_key_of_the_environment_is_for_its_provider_only(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with FakeProvider(answered(api)) as provider:
        await call(provider, api, api_key=None)
    assert KEY not in str(provider.requests[0].headers)
    assert await api.model("m")._key.resolve() == KEY


@pytest.mark.parametrize("model", [AnthropicModel, ChatCompletionsModel, ResponsesModel])
def test_a_model_shows_its_name_and_url(model: Any) -> None:
    shown = repr(model("m-1", api_key=KEY, base_url="https://api.example.com/v1/"))
    assert shown == f"{model.__name__}('m-1', base_url='https://api.example.com/v1')"


def test_aiohttp_is_imported_with_the_first_request() -> None:
    program = "import sys, accord.host as host; host.ResponsesModel('m', api_key='k'); print('aiohttp' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@each_api
async def test_a_header_that_cannot_be_sent_is_an_error(api: API) -> None:
    def headers() -> dict[str, str]:
        return {"X-Token": f"{KEY}\r\nX-Evil: 1"}

    async with FakeProvider() as provider:
        error = await error_of(provider, api, http=HTTPSettings(headers=headers))
    assert "the value of header X-Token must be a string without control characters" in str(error)
