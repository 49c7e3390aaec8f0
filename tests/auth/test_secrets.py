"""No secret of authorization reaches a log, an error, a transcript, a report or a `repr`.

Forty secrets, in the forms in which they are written (`secrets_of_oauth`), and every secret of real logins against
authorization servers that repeat all they receive.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import logging
import os
import pkgutil
import sys
import traceback
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from joserfc.jwk import ECKey

import accord
from accord import (
    Client,
    ClientCredentials,
    Context,
    CredentialStore,
    EnterpriseManaged,
    Limits,
    OAuth,
    Server,
    ToolError,
    WorkloadIdentity,
)
from accord.auth.client_authentication import SecretAuthentication
from accord.auth.dpop import DPoPAuthentication, DPoPKey
from accord.auth.http import OAuthClient
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration
from accord.auth.steps import run_steps
from accord.auth.tokens import request_tokens
from accord.check import CheckSettings, check_server, server_rules
from accord.check.engine.outcomes import NullWatcher, OutcomeCollector
from accord.check.engine.rule import Violation
from accord.check.probes.content import preview_json
from accord.check.reports.as_json import as_json
from accord.check.reports.junit import junit
from accord.check.reports.markdown import markdown
from accord.check.reports.report_page import report_page
from accord.check.reports.sarif import sarif
from accord.check.reports.terminal import report_lines
from accord.client.target import Command
from accord.http import JWT, APIKeys, Introspection
from accord.messages.base import LoggingLevel
from accord.redaction import REDACTED, redact, redact_record
from accord.server.auth.authentication import identify
from accord.testing import AuthServer, Recording, served_over_http
from accord.testing.auth_server.endpoints import AuthorizationAttempt
from accord.testing.auth_server.faults import FAULTS, Effect
from accord.testing.auth_server.records import Reply

from tests.auth.secrets_of_oauth import MARK, SECRETS, SecretOfOAuth

CLIENT_SECRET = f"{MARK}/client+secret=of robot&co"
"""With characters that forms, headers and JSON encode."""
BEARER = f"{MARK}-bearer-Wk83JdHs5"

each_secret = pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)


def test_there_are_forty_secrets() -> None:
    assert len(SECRETS) == 40
    assert all(MARK in secret.value for secret in SECRETS)


# --- what handlers and libraries log ----------------------------------------------------------------------------------


@each_secret
def test_redaction_finds_each_secret_where_it_is_written(secret: SecretOfOAuth) -> None:
    for text in secret.written:
        assert MARK not in redact(text)
        assert MARK not in json.dumps(redact({"message": text, "list": [text, {text: text}]}))
        try:
            document = json.loads(text)
        except ValueError:
            continue
        assert MARK not in json.dumps(redact(document))


@each_secret
async def test_no_level_of_the_log_for_clients_shows_a_secret(secret: SecretOfOAuth) -> None:
    server = Server("chatty", limits=Limits(logs_per_second=10_000))

    @server.tool
    async def talk(ctx: Context) -> str:
        """Log at all levels."""
        for level in get_args(LoggingLevel):
            for text in secret.written:
                ctx.log(level, text)
                ctx.log(level, {"text": text})
        return "said"

    heard: list[Any] = []
    async with Client(server, on_log=heard.append, log_level="debug") as client:
        await client.call_tool("talk")
        assert {message.level for message in heard} == set(get_args(LoggingLevel))
    assert REDACTED in repr(heard)
    assert MARK not in repr(heard)


@each_secret
async def test_no_error_of_a_handler_shows_a_secret(secret: SecretOfOAuth, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("failing")

    @server.tool
    def fail(at: int) -> str:
        """Fail with nested errors."""
        try:
            try:
                raise KeyError(secret.written[at])
            except KeyError as exc:
                raise ValueError(f"while renewing: {secret.written[at]}") from exc
        except ValueError as exc:
            raise RuntimeError(f"no login: {secret.written[at]}") from exc

    caplog.set_level(logging.DEBUG)
    async with Client(server) as client:
        for at in range(len(secret.texts)):
            result = await client.call_tool("fail", {"at": at})
            assert result.is_error
            assert MARK not in repr(result)
    formatter = logging.Formatter()
    for record in caplog.records:
        redact_record(record)
        assert MARK not in formatter.format(record)


@each_secret
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL])
def test_no_record_of_a_filtered_logger_shows_a_secret(secret: SecretOfOAuth, level: int) -> None:
    for text in secret.written:
        try:
            raise ValueError(text) from KeyError(text)
        except ValueError:
            record = logging.LogRecord("library", level, __file__, 1, "sent %s", (text,), sys.exc_info())
        redact_record(record)
        assert MARK not in logging.Formatter().format(record)


# --- logins against servers that repeat everything --------------------------------------------------------------------


class EchoingServer(AuthServer):
    """An authorization server that repeats each request to some of its endpoints in its error."""

    echoing: tuple[str, ...] = ()
    echoed: str = ""
    """What was repeated."""

    def answer(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[Reply, list[Effect]]:
        answer, effects = super().answer(method, path, query, headers, body)
        if self.requests[-1].endpoint not in self.echoing:
            return answer, effects
        text = f"{query} {json.dumps(headers)} {body.decode()}"
        self.echoed += text
        document = {"error": f"invalid_grant {text}", "error_description": text, "error_uri": text}
        challenge = f'Bearer error="invalid_token", error_description="{quote(text, safe=" {}:,=&")}"'
        shown = {"content-type": "application/json", "www-authenticate": challenge, "x-debug": quote(text)}
        return Reply(401 if "challenge" in self.echoing else 400, None, shown, json.dumps(document).encode()), effects


def written_forms(secret: str) -> set[str]:
    """Return a secret in each encoding of requests."""
    return {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        b64encode(secret.encode()).decode(),
        b64encode(f"robot:{quote_plus(secret)}".encode()).decode(),
    }


class Leaks:
    """Everything that was shown, and the secrets that must not be in it."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.secrets: set[str] = {CLIENT_SECRET}
        self.shown = ""

    async def watch(self, operation: Callable[[], Awaitable[object]]) -> None:
        """Run an operation, and collect what its outcome shows."""
        try:
            self.shown += repr(await operation())
        except Exception as exc:
            self.shown += "".join(traceback.format_exception(exc)) + repr(exc)
            error: BaseException | None = exc
            seen: set[int] = set()
            while error is not None and id(error) not in seen:
                seen.add(id(error))
                self.shown += f"{error!r} {error} {error.args!r} {vars(error)!r}"
                error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)

    def check(self) -> None:
        shown = self.shown + self._caplog.text + "".join(repr(vars(record)) for record in self._caplog.records)
        secrets = {form for secret in self.secrets for form in written_forms(secret) if len(secret) >= 8}
        assert secrets
        assert not [secret for secret in secrets if secret in shown]
        assert MARK not in shown


@pytest.fixture
def leaks(caplog: pytest.LogCaptureFixture) -> Leaks:
    caplog.set_level(logging.DEBUG)
    return Leaks(caplog)


def login(issuer: AuthServer, file: Path, **settings: Any) -> OAuth:
    async def authorize(url: str) -> str:
        return issuer.callback(url)

    return OAuth(authorize=authorize, store=CredentialStore(file), **settings)


async def connect(issuer: AuthServer, auth: Any) -> str:
    async with Client(issuer.resource, auth=auth) as client:
        return repr(client)


SLOW = {name for name, fault in FAULTS.items() if any(effect.delay for effect in fault.effects)}


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - SLOW))
async def test_no_failed_login_shows_a_secret(fault: str, leaks: Leaks, tmp_path: Path) -> None:
    async with AuthServer(faults=[fault]) as issuer:
        issuer.add_client("robot", CLIENT_SECRET)
        await leaks.watch(lambda: connect(issuer, login(issuer, tmp_path / "credentials.db")))
        await leaks.watch(lambda: connect(issuer, ClientCredentials("robot", secret=CLIENT_SECRET)))
        leaks.secrets |= issuer.secrets
    leaks.check()


def grants(issuer: AuthServer, tmp_path: Path) -> Iterator[Any]:
    """Every login, with secrets of its own."""
    key = ECKey.generate_key("P-256")
    issuer.add_client("keyed", keys={"keys": [key.as_dict(private=False)]})
    issuer.add_client("robot", CLIENT_SECRET)
    yield BEARER
    yield login(issuer, tmp_path / "a.db")
    yield login(issuer, tmp_path / "b.db", client_id="robot", client_secret=CLIENT_SECRET)
    yield ClientCredentials("robot", secret=CLIENT_SECRET)
    yield ClientCredentials("keyed", key=key.as_pem(private=True).decode())
    yield WorkloadIdentity("robot", issuer.id_token("robot", "robot"))
    yield EnterpriseManaged(
        "robot",
        secret=CLIENT_SECRET,
        idp_token_endpoint=f"{issuer.issuer}/token",
        idp_client_id="robot",
        idp_secret=CLIENT_SECRET,
        id_token=issuer.id_token("alice", "robot"),
    )


@pytest.mark.parametrize("endpoint", ["token", "registration", "challenge", "authorization", "metadata/oauth"])
@pytest.mark.parametrize("basic", [True, False], ids=["basic", "post"])
async def test_a_server_that_repeats_requests_reveals_no_secret(
    endpoint: str, basic: bool, leaks: Leaks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not basic:
        monkeypatch.setattr("accord.testing.auth_server.endpoints._CODE_METHODS", ["client_secret_post"])
    async with EchoingServer() as issuer:
        for auth in grants(issuer, tmp_path):
            issuer.echoing = (endpoint,)
            leaks.shown += "" if isinstance(auth, str) else repr(auth)
            await leaks.watch(lambda auth=auth: connect(issuer, auth))  # type: ignore[misc]
        leaks.secrets |= issuer.secrets
        if endpoint == "token":
            assert quote_plus(CLIENT_SECRET) in issuer.echoed or "Basic" in issuer.echoed
    leaks.check()


@pytest.mark.parametrize("endpoint", ["token", "device"])
async def test_a_device_login_that_is_repeated_reveals_no_secret(endpoint: str, leaks: Leaks, tmp_path: Path) -> None:
    pages: list[Any] = []
    async with EchoingServer() as issuer:
        issuer.echoing = (endpoint,)
        show = lambda page, code: pages.append(page)  # noqa: E731 - the user sees the code, which is meant for the page
        auth = OAuth(device=show, interactive=True, store=CredentialStore(tmp_path / "credentials.db"))
        await leaks.watch(lambda: connect(issuer, auth))
        assert issuer.echoed
        assert "device_code=" in issuer.echoed or endpoint == "device"
        leaks.secrets |= issuer.secrets
    leaks.check()


async def test_a_refresh_that_is_repeated_reveals_no_secret(leaks: Leaks, tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    async with EchoingServer() as issuer:
        auth = login(issuer, file)
        await leaks.watch(lambda: connect(issuer, auth))
        issuer.expire_access_tokens()
        issuer.echoing = ("token",)
        await leaks.watch(lambda: connect(issuer, auth))
        assert "refresh_token=" in issuer.echoed
        leaks.secrets |= issuer.secrets
    leaks.check()


async def test_a_proof_that_is_repeated_is_redacted(leaks: Leaks) -> None:
    key = DPoPKey()
    async with EchoingServer() as issuer:
        issuer.echoing = ("token",)
        metadata = AuthorizationServerMetadata(issuer.issuer, token_endpoint=f"{issuer.issuer}/token")
        client = ClientRegistration(issuer.issuer, "robot", "given", CLIENT_SECRET, "client_secret_basic")
        http = OAuthClient(issuer.resource)
        authentication = DPoPAuthentication(SecretAuthentication(client), key, lambda: 1.0)
        steps = request_tokens(metadata, authentication, {"grant_type": "client_credentials"}, step="test")
        leaks.shown += f"{key!r} {client!r} {authentication!r}"
        await leaks.watch(lambda: run_steps(steps, http.send))
        await http.close()
        proofs = [request.headers["dpop"] for request in issuer.requests]
        assert proofs
        leaks.secrets |= {key.pem, *proofs, *issuer.secrets}
    leaks.check()


# --- servers that verify tokens ---------------------------------------------------------------------------------------


class _Request:
    method = "POST"
    path = "/mcp"

    def __init__(self, token: str) -> None:
        self.headers = {b"authorization": f"Bearer {token}".encode()}


async def test_a_refused_token_is_not_shown(leaks: Leaks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.server.auth.token_verifier._LOG_SECONDS", 0.0)
    async with AuthServer() as issuer:
        issuer.add_client("server", CLIENT_SECRET)
        good = issuer.access_token()
        claims = [{"aud": "https://other.example"}, {"exp": 1}, {"iss": f"https://{MARK}.example"}, {"nonce": MARK}]
        tokens = [BEARER, good[:-3], good.replace(".", ".x"), *(issuer.access_token(**each) for each in claims)]
        verifiers: list[Any] = [
            JWT(issuer.issuer, issuer.resource),
            Introspection(issuer.issuer, audience=issuer.resource, client_id="server", client_secret=CLIENT_SECRET),
            APIKeys({BEARER.replace("bearer", "key"): "ann"}),
        ]
        for verifier in verifiers:
            leaks.shown += repr(verifier)
            for token in tokens:
                await leaks.watch(lambda verifier=verifier, token=token: identify(verifier, _Request(token)))  # type: ignore[misc]
        issuer.set_faults("introspection_500", "jwks_500")
        for verifier in verifiers:
            await leaks.watch(lambda verifier=verifier: identify(verifier, _Request(issuer.access_token())))  # type: ignore[misc]
        leaks.secrets |= {*tokens, *issuer.secrets} - {f"https://{MARK}.example"}
    shown = leaks.shown + leaks._caplog.text
    assert not [secret for secret in leaks.secrets for form in written_forms(secret) if form in shown]


async def test_the_error_of_an_authenticator_does_not_show_the_token(leaks: Leaks) -> None:
    class Failing:
        async def authenticate(self, request: Any) -> Any:
            raise RuntimeError(f"cannot verify {request.headers[b'authorization'].decode()}") from KeyError(BEARER)

    await leaks.watch(lambda: identify(cast("Any", Failing()), _Request(BEARER)))
    leaks.secrets = {BEARER}
    leaks.check()


# --- transcripts and reports ------------------------------------------------------------------------------------------


class _EchoingTool:
    """A server whose results do not repeat the headers, but whose errors do."""

    def __init__(self) -> None:
        self.server = Server("echo", auth=APIKeys({BEARER: "ann"}))

        @self.server.tool
        def fail(ctx: Context) -> str:
            """Repeat the headers in an error."""
            raise ToolError("refused")

        @self.server.tool
        def add(a: int, b: int) -> int:
            """Add."""
            return a + b


@each_secret
async def test_no_recording_shows_a_secret_of_a_message(secret: SecretOfOAuth, tmp_path: Path) -> None:
    server = Server("chatty", limits=Limits(logs_per_second=10_000))

    @server.tool
    def repeat(text: str, ctx: Context) -> str:
        """Repeat a text in the log and in the result."""
        ctx.log("info", text)
        return text

    @server.tool
    def fail(text: str) -> str:
        """Repeat a text in an error."""
        raise ToolError(text)

    recording = Recording()
    async with Client(server, record=recording, log_level="debug") as client:
        for text in secret.written:
            await client.call_tool("repeat", {"text": text})
            await client.call_tool("fail", {"text": text})
    recording.save(tmp_path / "transcript.txt")
    text = (tmp_path / "transcript.txt").read_text()
    assert REDACTED in text
    assert MARK not in text + repr(recording.transcript)


async def test_a_recording_has_no_secret(tmp_path: Path) -> None:
    recording = Recording()
    with served_over_http(_EchoingTool().server) as url:
        async with Client(url, auth=BEARER, record=recording) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
            await client.call_tool("fail")
    recording.save(tmp_path / "transcript.txt")
    text = (tmp_path / "transcript.txt").read_text()
    assert "tools/call" in text
    assert MARK not in text + repr(recording.transcript)


async def test_a_report_of_the_checker_has_no_secret() -> None:
    settings = CheckSettings(headers={"Authorization": f"Bearer {BEARER}"}, only=("lifecycle/*", "http/*"))
    with served_over_http(_EchoingTool().server) as url:
        report = await check_server(url, settings)
    text = as_json(report) + report_page(report) + markdown(report) + junit(report) + sarif(report)
    text += "".join(report_lines(report, verbose=True))
    assert report.outcomes
    assert MARK not in text + repr(report) + repr(settings)


LEAKY = """
import itertools, json, sys
texts = itertools.cycle(json.load(open(sys.argv[1])))
def leak():
    return next(texts)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": leak(), "message": leak(), "data": leak()}}
    if message.get("method") == "initialize":
        server = {"name": leak(), "version": leak()}
        capabilities = {"tools": {}, "prompts": {}, "logging": {}}
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities,
                             "serverInfo": server, "instructions": leak()}}
    elif message.get("method") == "tools/list":
        tool = {"name": leak(), "inputSchema": {"type": leak()}, "description": leak()}
        answer = {"result": {"tools": [tool], "extra": leak()}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
    print(leak(), file=sys.stderr, flush=True)
"""
"""A server of which nearly every message breaks a rule, and has secrets."""


async def test_no_report_shows_a_secret_that_the_server_sends(tmp_path: Path) -> None:
    program, texts = tmp_path / "leaky.py", tmp_path / "texts.json"
    program.write_text(LEAKY)
    texts.write_text(json.dumps([text for secret in SECRETS for text in secret.written]))
    settings = CheckSettings(
        revisions=("2025-11-25",), only=("lifecycle/*", "shapes/*", "tools/*", "errors/*", "ping/*")
    )
    report = await check_server(Command((sys.executable, str(program), str(texts))), settings)
    text = as_json(report) + report_page(report) + markdown(report) + junit(report) + sarif(report)
    text += "".join(report_lines(report, verbose=True)) + repr(report)
    assert len(report.findings) > 5
    assert text.count(REDACTED) > 20
    assert MARK not in text


@each_secret
def test_no_outcome_shows_a_secret_that_the_peer_sends(secret: SecretOfOAuth) -> None:
    rule = server_rules()[0]
    for text in secret.written:
        collector = OutcomeCollector("2025-11-25", "stdio", NullWatcher())
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": text}})
        fault = f"without a token: ping returned {preview_json({'message': text})}, expected a result"
        for quoted in (fault, f"tool {text!r} has no schema"):
            collector.add_exception(rule, rule.cases[0], Violation(quoted, symptom=quoted, evidence=[f"← {message}"]))
        assert collector.outcomes[0].text.startswith("without a token: ping returned ")
        assert MARK not in repr(collector.outcomes)


# --- the command line -------------------------------------------------------------------------------------------------


async def run(*arguments: str, **variables: str) -> str:
    """Run a command, and return all that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "ACCORD_TRACEBACK": "1", **variables},
    )
    output, _ = await asyncio.wait_for(process.communicate(), 100)
    assert output
    return output.decode()


@asynccontextmanager
async def issuer_of(*faults: str) -> AsyncIterator[AuthServer]:
    async with AuthServer(faults=faults) as issuer:
        issuer.add_client("robot", CLIENT_SECRET)
        yield issuer


@pytest.mark.parametrize("verbose", ["-v", "-vv"])
async def test_no_command_shows_a_secret(verbose: str, tmp_path: Path) -> None:
    variables = {"ACCORD_CREDENTIALS": str(tmp_path / "credentials.db"), "SECRET": CLIENT_SECRET, "TOKEN": BEARER}
    file = tmp_path / "mcp.json"
    async with issuer_of("token_echo") as issuer:
        robot = {"type": "client_credentials", "client_id": "robot", "client_secret": "${SECRET}"}
        entries = {
            "robot": {"url": issuer.resource, "auth": robot},
            "token": {"url": issuer.resource, "auth": "${TOKEN}"},
            "gone": {"url": f"http://ann:{BEARER}@127.0.0.1:9/mcp?token={BEARER}", "headers": {"X-Api-Key": BEARER}},
        }
        file.write_text(json.dumps({"mcpServers": entries}))
        with_password = issuer.resource.replace("//", f"//ann:{BEARER}@") + f"?api_key={BEARER}"
        shown = [await run("list", f"{file}#{name}", verbose, "--json", **variables) for name in entries] + [
            await run("list", issuer.resource, verbose, "--bearer", BEARER, **variables),
            await run("list", issuer.resource, verbose, "--header", f"X-Api-Key: {BEARER}", **variables),
            await run("list", with_password, verbose, **variables),
            await run("login", with_password, "--client-secret", CLIENT_SECRET, "--client-id", "robot", **variables),
            await run("auth", "explain", with_password, "--client-secret", CLIENT_SECRET, **variables),
            await run("auth", "explain", f"{file}#gone", "--json", **variables),
            await run("logout", with_password, **variables),
            await run("auth", "status", **variables),
            await run("check", issuer.resource, "--bearer", BEARER, "--only", "lifecycle/*", **variables),
        ]
    assert not [text for text in shown if MARK in text]


# --- representations --------------------------------------------------------------------------------------------------

SECRET_FIELDS = {
    *("access_token", "refresh_token", "id_token", "token", "bearer", "client_secret", "idp_client_secret", "secret"),
    *("dpop_key", "state", "verifier", "signed", "signature", "payload", "headers", "sent", "form", "env", "json"),
}
"""Fields that may hold a secret in a part of accord that handles credentials."""

PARTS = ("accord.auth", "accord.server.auth", "accord.cli", "accord.client.target", "accord.transport.http")


class _Anything(str):
    """A value of any other field."""

    def __getattr__(self, name: str) -> str:
        return "x"


def _secret_value(name: str) -> Any:
    if name in ("headers", "sent", "form", "env", "json"):
        return {"authorization": f"Bearer {BEARER}", "client_secret": CLIENT_SECRET}
    return BEARER.encode() if name in ("signed", "signature", "payload") else BEARER


_URL = "https://x.example/y"
EXAMPLES: dict[str, dict[str, Any]] = {
    "OAuth": {"client_id": "me", "client_secret": CLIENT_SECRET},
    "HTTPSettings": {"headers": {"authorization": BEARER}, "proxy": f"http://ann:{BEARER}@proxy.example:1"},
    "ProviderSettings": {
        "authorize": _URL,
        "token": _URL,
        "client_id": "me",
        "client_secret": CLIENT_SECRET,
        "verify": print,
        "issuer": None,
        "authorize_parameters": {},
        "auth_method": "client_secret_basic",
        "revoke": None,
        "scopes": (),
        "is_offline": False,
        "ssl": None,
        "proxy": None,
    },
}
"""The arguments of records that check theirs."""


def records() -> Iterator[type[Any]]:
    """Every Struct and dataclass of these parts with a field that may be secret."""
    for module in pkgutil.walk_packages(accord.__path__, "accord."):
        if not module.name.startswith(PARTS) or module.name.endswith("__main__"):
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and kind.__module__ == module.name and SECRET_FIELDS & set(_fields(kind)):
                yield kind


def _fields(kind: type[Any]) -> list[str]:
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


@pytest.mark.parametrize("kind", sorted(records(), key=str), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_no_record_shows_a_secret_in_its_representation(kind: type[Any]) -> None:
    if kind.__name__ in EXAMPLES:
        value: Any = kind(**EXAMPLES[kind.__name__])
    else:
        value = kind(
            **{
                name: _secret_value(name) if name in SECRET_FIELDS else _Anything("https://x.example/y")
                for name in _fields(kind)
            }
        )
    assert MARK not in repr(value)
    assert MARK not in str(value)
    assert MARK not in f"{[value]} {(value,)} { ({'a': value}) }"


def test_no_public_object_shows_a_secret() -> None:
    attempt = AuthorizationAttempt("me", ["read"], None, "http://127.0.0.1/callback")
    values: list[Any] = [
        OAuth(client_id="me", client_secret=CLIENT_SECRET),
        ClientCredentials("robot", secret=CLIENT_SECRET),
        ClientCredentials("robot", key=ECKey.generate_key("P-256").as_pem(private=True).decode()),
        WorkloadIdentity("robot", BEARER),
        EnterpriseManaged(
            "robot",
            secret=CLIENT_SECRET,
            idp_token_endpoint="https://idp.example/token",
            idp_client_id="me",
            idp_secret=CLIENT_SECRET,
            id_token=BEARER,
        ),
        JWT("https://login.example", "https://shop.example/mcp"),
        Introspection("https://login.example", client_id="me", client_secret=CLIENT_SECRET),
        APIKeys({BEARER: "ann"}),
        DPoPKey(),
        attempt,
    ]
    for value in values:
        assert MARK not in f"{value!r} {value}"
        assert "PRIVATE KEY" not in repr(value)
        credentials = getattr(value, "credentials", None)
        if credentials is not None:
            assert MARK not in repr(credentials("https://shop.example/mcp"))
