"""The commands of the authorization debugger, as the page sends them; and what no answer of them has."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from accord import ClientCredentials, CredentialStore, OAuth, Server
from accord.client.target import Remote
from accord.inspector.app import Inspector
from accord.inspector.authorization.sentences import ACTIONS, GRANT_STEPS, STEPS
from accord.testing import AuthServer
from accord.testing.auth_server.faults import Effect
from accord.testing.auth_server.issuer import TokenIssuer
from accord.testing.auth_server.records import Reply

from tests.auth import place as place_of_tests
from tests.auth.place import Place, place
from tests.auth.secrets_of_oauth import MARK, SECRETS

HOST = "127.0.0.1:6274"


class Page:
    """A page of an inspector: it sends commands, and collects all answers."""

    def __init__(self, app: Inspector) -> None:
        self.app = app
        self.server = next(iter(app.workspace.servers))
        self.answers: dict[str, str] = {}

    async def send(self, command: str, **params: Any) -> Any:
        """Send a command about the server; return its answer, or its error."""
        status, body = await self._request(f"/api/authorization/{command}", {"server": self.server, **params})
        self.answers[f"{command} {len(self.answers)}"] = body.decode()
        found = json.loads(body)
        return found if status == 200 else (status, found)

    async def _request(self, path: str, params: dict[str, Any]) -> tuple[int, bytes]:
        sent: list[Any] = []
        headers = {
            "host": HOST,
            "origin": f"http://{HOST}",
            "sec-fetch-site": "same-origin",
            "content-type": "application/json",
            "accord-inspector-token": self.app.link("").partition("token=")[2],
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> Any:
            return {"type": "http.request", "body": msgspec.json.encode(params)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])

    async def log_in(self, at: Place) -> Any:
        """Run all steps; the user consents."""
        state = await self.send("run")
        assert state["isWaiting"], state
        await self.consent(at)
        return await self.send("state")

    async def consent(self, at: Place) -> None:
        """Visit the URL for the browser, and paste that of the callback."""
        url = (await self.send("url"))["url"]
        await self.send("callback", url=at.issuer.callback(url))
        await self.app.workspace.authorization.run(self.server).wait()


def inspector(at: Place, store: CredentialStore, **settings: Any) -> Inspector:
    return Inspector(Remote(at.url, auth=OAuth(store=store, **settings)))


async def test_a_login_by_commands(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        assert await page.send("state") == {}
        state = await page.send("start")
        assert [each["step"] for each in state["steps"]] == list(STEPS)
        assert state["nextStep"] == "challenge"
        state = await page.send("step")
        assert state["steps"][0]["state"] == "done"
        state = await page.log_in(at)
        assert [each["state"] for each in state["steps"]] == ["done"] * 8
        assert state["tokens"]["isRefreshable"]
        assert (await page.send("tokens"))["run"] == state["tokens"]
        assert app.workspace.topics._values["authorization"][page.server].state == "idle"
        assert (await page.send("evidence", step="token request"))["exchanges"][0]["status"] == 200
        assert (await page.send("save"))["isSaved"]
        assert (await page.send("logout", stored=True))["storedTokens"] is None


async def test_settings_are_those_of_the_run(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store, client_id="configured", client_secret="configured secret") as app:
        page = Page(app)
        state = await page.send("start")
        assert state["settings"]["clientId"] == "configured"
        assert state["hasSecret"]
        state = await page.send("settings", scopes=["read"], assumePkce=True, clientId="configured")
        assert (state["settings"]["scopes"], state["settings"]["assumePkce"]) == (["read"], True)
        assert state["hasSecret"], "the secret of before, for the same client"
        assert not (await page.send("settings", clientId="other"))["hasSecret"]
        assert (await page.send("settings", clientId="other", clientSecret="x"))["hasSecret"]
        assert not (await page.send("settings"))["hasSecret"]
        status, error = await page.send("settings", issuer="x" * 5_000)
        assert (status, "5000" not in error["error"]) == (400, True)


async def test_errors_have_a_cure(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        for command in ("step", "run", "url", "refresh", "tokens", "export"):
            status, found = await page.send(command)
            assert status == 409
            assert found["cure"] == "start one on the page Authorization"
        await page.send("start")
        for command, cure in {"url": "run the step first", "refresh": "run all steps first"}.items():
            assert (await page.send(command))[1]["cure"] == cure
        status, found = await page.send("repeat", step="callback")
        assert found["cure"] == "run that step first: challenge"


async def test_only_servers_at_a_url_without_a_token_are_debugged(store: CredentialStore) -> None:
    keyed = Remote("http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer x"})
    for target in (Server("desk"), keyed):
        async with Inspector(target) as app:
            status, found = await Page(app).send("start")
            assert status == 409
            assert found["cure"]


async def test_the_login_of_a_program_has_steps_of_its_own(store: CredentialStore) -> None:
    robot = Remote("http://127.0.0.1:9/mcp", auth=ClientCredentials("robot", secret="secret of robot"))
    async with Inspector(robot) as app:
        page = Page(app)
        state = await page.send("start")
        assert [each["step"] for each in state["steps"]] == [*GRANT_STEPS["program"]]
        assert (state["settings"]["clientId"], state["settings"]["grant"]) == ("robot", "program")
        assert "secret of robot" not in str(state)


async def test_a_new_start_and_the_end_of_the_inspector_end_the_run(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        await page.send("run")
        first = app.workspace.authorization.run(page.server)
        assert first.activity == "waiting"
        await page.send("start")
        assert first.activity == "idle"
        await page.send("run")
        second = app.workspace.authorization.run(page.server)
    assert second.activity == "idle"


async def test_two_starts_at_once_leave_one_run(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await asyncio.gather(*(page.send("start") for _ in range(5)))
        await page.send("run")
        assert app.workspace.authorization.run(page.server).activity == "waiting"


async def test_a_store_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "credentials.db"
    file.write_bytes(b"no database" * 1_000)
    async with place() as at, inspector(at, CredentialStore(file)) as app:
        status, found = await Page(app).send("start")
        assert status == 409
        assert "credentials.db" in found["error"]


async def test_a_removed_server_has_no_run(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        await page.send("run")
        run = app.workspace.authorization.run(page.server)
        await app.workspace.remove(page.server)
        assert run.activity == "idle"
        assert not app.workspace.authorization.has_run(page.server)
        assert (await page.send("state"))[0] == 404


@pytest.mark.parametrize("claims", ['{"a": NaN}', '{"aud": {"a": [1]}}', '{"aud": [[], {}], "iss": 7}', '{"a": 1e999}'])
async def test_claims_of_any_shape_are_evidence(
    claims: str, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (b'{"alg": "ES256"}', claims.encode())]
    number = iter(range(1_000_000))
    monkeypatch.setattr(TokenIssuer, "secret", lambda self: f"{'.'.join(parts)}.signature{next(number)}")
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        state = await page.log_in(at)
        assert [each["state"] for each in state["steps"]] == ["done"] * 8
        assert state["tokens"]["jwt"]["claimsJson"] == claims
        assert "signature" not in str(page.answers)


async def test_an_export_is_a_temporary_file(store: CredentialStore) -> None:
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        await page.send("step")
        before = set(app.workspace.folder.iterdir())
        exported = await page.send("export")
        assert [each["step"] for each in exported["evidence"]] == ["challenge"]
        assert set(app.workspace.folder.iterdir()) == before


class OddServer(AuthServer):
    """An authorization server with hidden characters, and bytes that are no UTF-8, wherever it can."""

    def answer(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[Reply, list[Effect]]:
        answer, effects = super().answer(method, path, query, headers, body)
        answer.headers["x-odd"] = "caf\xe9 \xff \x9b31m"
        if answer.body.startswith(b"{"):
            odd = rb'"odd": "\u202e \u001b[31m \u0000", "raw": "' + "\u202e\u200b".encode() + b'", '
            answer.body = b"{" + odd + answer.body[1:]
        return answer, effects


async def test_hidden_characters_are_made_visible(store: CredentialStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_of_tests, "AuthServer", OddServer)
    async with place() as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        state = await page.log_in(at)
        assert [each["state"] for each in state["steps"]] == ["done"] * 8
        at.issuer.set_faults("login_error_script")
        await page.send("repeat", step="authorization request")
        await page.send("run")
        await page.consent(at)
        for step in STEPS:
            assert (await page.send("evidence", step=step))["step"] == step
        await page.send("callback", url="http://127.0.0.1/callback?state=\x1b[31m")
        await page.send("export")
        shown = "".join(page.answers.values())
        assert not {"\u202e", "\u200b", "\x1b", "\x9b"} & set(shown)
        assert not {"\\u001b", "\\u0000"} & {shown[at : at + 6] for at in range(len(shown)) if shown[at - 1] != "\\"}
        await app.workspace.recording.written()
        assert app.workspace.recording.error == ""


# --- secrets ----------------------------------------------------------------------------------------------------------


class RevealingServer(AuthServer):
    """An authorization server whose responses all have the forty secrets, and whose own secrets have their mark."""

    def answer(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[Reply, list[Effect]]:
        answer, effects = super().answer(method, path, query, headers, body)
        texts = [text for secret in SECRETS for text in secret.written]
        if answer.body.startswith(b"{"):
            document = json.loads(answer.body)
            repeated = {f"note {number}": text for number, text in enumerate(texts)}
            sent = {"query": query, "headers": dict(headers), "body": body.decode()}
            if self.requests[-1].endpoint in ("registration", "token"):
                repeated |= {"sent": sent, "whatever": SECRETS[0].value}  # type: ignore[dict-item]
            answer.body = json.dumps({**document, **repeated}).encode()
        answer.headers["x-note"] = " ".join(texts[:10]).replace("\n", " ")
        answer.headers["set-cookie"] = f"sid={SECRETS[28].value}"
        return answer, effects


@pytest.fixture
def revealing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `place` have an authorization server that reveals all it can."""
    number = iter(range(1_000_000))
    monkeypatch.setattr(place_of_tests, "AuthServer", RevealingServer)
    monkeypatch.setattr(TokenIssuer, "secret", lambda self: f"{MARK}{next(number):06}plmWk83JdHs5")


@pytest.mark.usefixtures("revealing")
@pytest.mark.parametrize("dpop", [None, "required"])
@pytest.mark.parametrize("client", ["registered", "basic", "post"])
async def test_of_all_secrets_none_is_in_an_answer_a_topic_the_session_file_or_an_export(
    dpop: Any, client: str, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    if client == "post":
        monkeypatch.setattr("accord.testing.auth_server.endpoints._CODE_METHODS", ["client_secret_post"])
    options = {} if dpop is None else {"dpop": dpop}
    async with place(**options) as at, inspector(at, store) as app:
        secret = f"{MARK}/client+secret=of robot&co"
        at.issuer.add_client("robot", secret)
        page = Page(app)
        await page.send("start")
        if client != "registered":
            await page.send("settings", clientId="robot", clientSecret=secret)
        state = await page.log_in(at)
        assert [each["state"] for each in state["steps"]] == ["done"] * 8, state
        await page.send("refresh")
        await page.send("expire")
        await page.send("run")
        await page.send("step-up", scopes=["write"])
        await page.consent(at)
        await page.send("save")
        for step in (*STEPS, *ACTIONS):
            await page.send("evidence", step=step)
        await page.send("repeat", step="token request")
        await page.send("evidence", step="token request")
        await page.send("export")
        await page.send("logout")
        await page.send("tokens")
        await page.send("logout", stored=True)
        await page.send("evidence", step="token revocation")
        await app.workspace.recording.written()
        page.answers["session file"] = app.workspace.recording.file.read_text()
        page.answers["topics"] = msgspec.json.encode(app.workspace.topics._values).decode()
        urls = [json.loads(page.answers.pop(name))["url"] for name in list(page.answers) if name.startswith("url")]
        states = {parse_qs(urlsplit(url).query)["state"][0] for url in urls}
        secrets = {MARK, *states, *at.issuer.secrets, secret}
        secrets = {each for each in secrets if len(each) > 4}
        for name, answer in page.answers.items():
            assert not [each for each in secrets if each in answer], name
        assert "/token" in page.answers["session file"]
        assert "code_challenge_method=S256" in page.answers["session file"] + str(page.answers)
        assert not [url for url in urls if any(each in url for each in secrets - states)]


@pytest.mark.usefixtures("revealing")
@pytest.mark.parametrize("fault", ["token_echo", "code_refused", "token_html", "login_error_and_code", "token_500"])
async def test_a_failed_step_reveals_no_secret(fault: str, store: CredentialStore) -> None:
    async with place(faults=[fault]) as at, inspector(at, store) as app:
        page = Page(app)
        await page.send("start")
        await page.log_in(at)
        await page.send("export")
        await app.workspace.recording.written()
        page.answers["session file"] = app.workspace.recording.file.read_text()
        assert '"failed"' in str(page.answers)
        for name, answer in page.answers.items():
            assert name.startswith("url") or MARK not in answer, name
