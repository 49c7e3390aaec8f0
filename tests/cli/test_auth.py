"""`accord auth explain` and `accord auth metadata`, against `AuthServer` and servers of accord."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from accord import CredentialStore, OAuth, Server
from accord.auth.registration import ClientRegistration
from accord.cli.commands import accord
from accord.cli.login_options import LoginOptions
from accord.client.target import Remote
from accord.host.login_explanation import Explanation, explain
from accord.http import APIKeys
from accord.testing import AuthServer, served_over_http
from accord.testing.auth_server.faults import FAULTS, Effect
from accord.testing.auth_server.records import Reply

DISCOVERY = ("challenge", "resource", "metadata")
SLOW = {"metadata_slow"}
BEYOND = {"authorization_endpoint_command", "token_endpoint_link_local"}
"""What is refused, or harmless, only when the browser is opened, or the token requested."""


async def invoke(*arguments: str) -> Result:
    """Run a command in a thread, while this loop serves."""
    return await asyncio.to_thread(CliRunner().invoke, accord, list(arguments))


async def explained(url: str, tmp_path: Path, **settings: Any) -> Explanation:
    store = settings.pop("store", CredentialStore(tmp_path / "credentials.db"))
    return await explain(Remote(url), OAuth(store=store, **settings))


def outcomes(found: Explanation) -> list[tuple[str, str]]:
    return [(step.step, step.outcome) for step in found.steps]


async def test_each_step_of_a_login_is_explained(tmp_path: Path) -> None:
    async with AuthServer() as issuer:
        found = await explained(issuer.resource, tmp_path)
        assert found.login == "possible"
        assert outcomes(found) == [
            ("request to the server", "ok"),
            ("resource metadata", "ok"),
            ("resource", "ok"),
            ("authorization server metadata", "ok"),
            ("issuer", "ok"),
            ("S256", "ok"),
            ("authorization endpoint", "ok"),
            ("client registration", "ok"),
            ("scopes", "ok"),
            ("programs without a user", "note"),
            ("login on another device", "note"),
        ]
        assert "HTTP 401" in found.steps[0].text
        assert "resource_metadata=" in found.steps[0].text
        assert found.next == f"accord login {issuer.resource}"


async def test_an_explanation_registers_and_stores_nothing(tmp_path: Path) -> None:
    async with AuthServer() as issuer:
        await explained(issuer.resource, tmp_path)
        assert {issuer.counts[each] for each in ("registration", "authorization", "token", "device")} == {0}
    assert not (tmp_path / "credentials.db").exists()


async def test_a_stored_token_is_not_sent(tmp_path: Path) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with AuthServer() as issuer:
        await store.open()
        await store.save_registration("accord", ClientRegistration(issuer.issuer, "client-7", "registered"))
        await store.close()
        found = await explained(issuer.resource, tmp_path, store=store)
        assert "client-7, registered before" in [step.text for step in found.steps]
        assert not [request for request in issuer.requests if "authorization" in request.headers]


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, fault in FAULTS.items()
        if {effect.endpoint.partition("/")[0] for effect in fault.effects} <= set(DISCOVERY)
        and name not in SLOW | BEYOND
    ),
)
async def test_a_login_is_possible_unless_discovery_has_to_refuse(name: str, tmp_path: Path) -> None:
    async with AuthServer(faults=[name], path="/tenant") as issuer:
        found = await explained(issuer.resource, tmp_path)
        failed = [step for step in found.steps if step.outcome == "failed"]
        assert (found.login, bool(failed)) == (("impossible", True) if FAULTS[name].refused else ("possible", False))
        assert found.next
        shown = json.dumps([(step.text, step.cure, step.url) for step in found.steps])
        assert "\\u001b" not in shown
        assert "\\n" not in shown


async def test_each_url_that_was_tried_is_shown(tmp_path: Path) -> None:
    async with AuthServer(path="/tenant", faults=["metadata_missing"]) as issuer:
        found = await explained(issuer.resource, tmp_path)
        tried = [step.url for step in found.steps if step.outcome == "not found"]
        origin = issuer.issuer.removesuffix("/tenant")
        assert tried == [
            f"{origin}/.well-known/oauth-authorization-server/tenant",
            f"{origin}/.well-known/openid-configuration/tenant",
            f"{origin}/tenant/.well-known/openid-configuration",
        ]
        assert found.steps[-1].outcome == "failed"
        assert "--issuer" in found.next


async def test_a_mismatch_names_what_was_found_and_expected(tmp_path: Path) -> None:
    async with AuthServer(faults=["issuer_mismatch"]) as issuer:
        found = await explained(issuer.resource, tmp_path)
        (failed,) = [step for step in found.steps if step.outcome == "failed"]
        assert failed.text == f"found issuer 'https://other.example', expected {issuer.issuer!r}"
        assert failed.cure.startswith("name the issuer exactly as its metadata does; ")


class DeceivingServer(AuthServer):
    """An authorization server whose metadata has control characters and lines."""

    def answer(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[Reply, list[Effect]]:
        answer, effects = super().answer(method, path, query, headers, body)
        if "oauth-authorization-server" in path:
            issuer = "https://x.example/\x1b]0;title\x07\n  ok         issuer: all is well\u202e"
            answer.body = json.dumps({"issuer": issuer}).encode()
        return answer, effects


async def test_texts_of_a_peer_cannot_forge_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_CREDENTIALS", str(tmp_path / "credentials.db"))
    async with DeceivingServer() as issuer:
        shown = await invoke("auth", "explain", issuer.resource)
    assert shown.exit_code == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.output)
    assert "\n  ok         issuer" not in shown.output


async def test_a_server_without_tools_needs_no_login(tmp_path: Path) -> None:
    with served_over_http(Server("empty")) as url:
        assert (await explained(url, tmp_path)).login == "not needed"


IDENTITIES: list[tuple[dict[str, Any], str, str]] = [
    ({"client_id": "given-1"}, "possible", "given-1 (given)"),
    ({"client_metadata_url": "https://me.example/client.json"}, "possible", "https://me.example/client.json (metadata"),
    ({}, "possible", "would be registered at http://"),
]


@pytest.mark.parametrize(("settings", "login", "text"), IDENTITIES)
async def test_the_identity_of_the_client_is_explained(
    settings: dict[str, Any], login: str, text: str, tmp_path: Path
) -> None:
    async with AuthServer() as issuer:
        issuer.add_document("https://me.example/client.json", {})
        found = await explained(issuer.resource, tmp_path, **settings)
        (step,) = [step for step in found.steps if step.step == "client registration"]
        assert found.login == login
        assert step.text.startswith(text)


async def test_without_registration_the_cure_names_the_redirect_uri(tmp_path: Path) -> None:
    async with AuthServer(faults=["registration_missing"]) as issuer:
        found = await explained(issuer.resource, tmp_path, port=8111)
        assert found.login == "impossible"
        assert found.next == "register http://127.0.0.1:8111/callback there, then give the client ID: --client-id"


async def test_a_server_that_needs_no_login_is_not_searched_for_one(tmp_path: Path) -> None:
    server = Server("open")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with served_over_http(server) as url:
        found = await explained(url, tmp_path)
        assert (found.login, found.next) == ("not needed", "nothing: the server needs no login")
        assert found.steps[0].text == "the server answers without a login"


async def test_a_server_with_keys_has_no_authorization_server(tmp_path: Path) -> None:
    with served_over_http(Server("keys", auth=APIKeys({"k-7Qf1mVb2": "ann"}))) as url:
        found = await explained(url, tmp_path)
        assert found.steps[0].text.startswith("HTTP 401 to POST")


async def test_a_server_that_cannot_be_reached_fails_the_first_step(tmp_path: Path) -> None:
    found = await explained("http://127.0.0.1:9/mcp", tmp_path)
    assert found.login == "impossible"
    assert outcomes(found) == [("request to the server", "failed")]
    assert found.next == "start the server, or correct its URL"


async def test_the_command_prints_steps_and_its_exit_code_shows_whether_a_login_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCORD_CREDENTIALS", str(tmp_path / "credentials.db"))
    async with AuthServer() as issuer:
        shown = await invoke("auth", "explain", issuer.resource, "--scope", "read", "--client-id", "me")
        assert shown.exit_code == 0
        assert "  ok         S256: stated\n" in shown.stdout
        assert f"next: accord login {issuer.resource} --client-id me --scope read\n" in shown.stdout
        issuer.set_faults("s256_missing")
        shown = await invoke("auth", "explain", issuer.resource)
        assert shown.exit_code == 1
        assert "cure: if its documentation says that it supports S256: --assume-pkce" in shown.stdout
        shown = await invoke("auth", "explain", issuer.resource, "--json")
        assert shown.exit_code == 1
        document = json.loads(shown.stdout)
        assert document["login"] == "impossible"
        assert [step["step"] for step in document["steps"] if step["outcome"] == "failed"] == ["authorization"]


async def test_the_secret_of_the_client_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_CREDENTIALS", str(tmp_path / "credentials.db"))
    async with AuthServer() as issuer:
        options = ("--client-id", "me", "--client-secret", "Xq7-secret-of-the-client")
        for form in ((), ("--json",)):
            shown = await invoke("auth", "explain", issuer.resource, *options, *form)
            assert "Xq7-secret" not in shown.output
    assert "Xq7-secret" not in repr(LoginOptions(client_secret="Xq7-secret"))


def test_the_metadata_document_of_a_client_is_written() -> None:
    url = "https://me.example/client.json"
    shown = CliRunner().invoke(accord, ["auth", "metadata", url, "--client-uri", "https://me.example/", "--name", "Me"])
    assert json.loads(shown.stdout) == {
        "client_id": url,
        "client_name": "Me",
        "client_uri": "https://me.example/",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }


def test_the_metadata_document_has_the_redirect_uris_that_were_given() -> None:
    uris = ["http://127.0.0.1:8111/callback", "https://me.example/callback"]
    options = [part for uri in uris for part in ("--redirect-uri", uri)]
    shown = CliRunner().invoke(accord, ["auth", "metadata", "https://me.example/c", *options])
    assert json.loads(shown.stdout)["redirect_uris"] == uris


def test_a_url_that_cannot_be_a_client_id_is_refused() -> None:
    shown = CliRunner().invoke(accord, ["auth", "metadata", "http://me.example/c"])
    assert shown.exit_code == 2
    assert "must be an https URL with a path" in shown.output


async def test_an_error_of_authorization_has_its_own_exit_code(tmp_path: Path) -> None:
    async with AuthServer() as issuer:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "accord", "list", issuer.resource, "--json"),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "ACCORD_CREDENTIALS": str(tmp_path / "credentials.db")},
        )
        output, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 3
        error = json.loads(output)["error"]
        assert (error["type"], error["cure"]) == ("LoginNeeded", f"run: accord login {issuer.resource}")
