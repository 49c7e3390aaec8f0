"""The steps of HTTP."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from accord import Server
from accord.http import APIKeys
from accord.testing import AuthServer, served_over_http

from tests.host.doctor.conftest import Diagnose, failure, states, step, text
from tests.transport.http.site import Visit, modern, quiet, site

PAGE = b"<!DOCTYPE html><html><title>Welcome\xe2\x80\xae</title></html>"


@pytest.fixture(autouse=True)
def no_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_CREDENTIALS", str(tmp_path / "credentials.db"))
    monkeypatch.setenv("ACCORD_KEYRING", "0")


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (404, "correct it; usual paths are /mcp and /sse"),
        (405, "does not take POST"),
        (429, "wait"),
        (500, "look at its log"),
        (502, "does not reach it"),
        (418, "is it the URL of an MCP server?"),
        (599, "look at its log"),
    ],
)
async def test_a_status_fails_with_what_the_server_says(doctor: Diagnose, status: int, remedy: str) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(status, b"no \x1b[2Jluck", Server="nginx", Retry_After="7")

    async with site(play) as server:
        failed = failure(await doctor(server.url), "HTTP")
        assert failed.evidence[0].startswith(f"HTTP {status}")
        assert "server: nginx" in failed.evidence
        assert "retry-after: 7" in failed.evidence
        assert "it says: no \\x1b[2Jluck" in failed.evidence
        assert remedy in failed.remedy


async def test_a_page_for_people_fails(doctor: Diagnose) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(200, PAGE, "text/html")

    async with site(play) as server:
        failed = failure(await doctor(server.url), "HTTP")
        assert "content-type: text/html" in failed.evidence
        assert "Welcome\\u202e" in text(failed)
        assert "no MCP server" in failed.remedy


async def test_a_redirect_to_another_origin_fails_with_its_target(doctor: Diagnose) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(307, Location="https://elsewhere.example/mcp")

    async with site(play) as server:
        failed = failure(await doctor(server.url), "HTTP")
        assert "location: https://elsewhere.example/mcp" in failed.evidence


async def test_a_server_that_answers_without_end_fails_in_bounded_time(doctor: Diagnose) -> None:
    async def play(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        await visit.gone.wait()

    async with site(play) as server:
        failed = failure(await doctor(server.url, seconds=1), "protocol revision")
        assert "look at its log" in failed.remedy
        assert "stdio" not in failed.remedy


async def test_discovery_without_an_answer_fails_in_bounded_time(doctor: Diagnose) -> None:
    async def play(visit: Visit) -> None:
        if visit.method == "GET":
            await visit.gone.wait()
        await visit.respond(401, WWW_Authenticate=f'Bearer resource_metadata="{server.url}/metadata"')

    async with site(play) as server:
        failed = failure(await doctor(server.url, seconds=1), "authentication")
        assert "discovery did not end within 2 s" in failed.evidence
        assert failed.remedy == f"accord auth explain {server.url}"


@pytest.mark.parametrize(("status", "body"), [(421, b"Misdirected"), (403, b"Invalid Host header")])
async def test_a_refused_host_header_is_recognized(doctor: Diagnose, status: int, body: bytes) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(status, body)

    async with site(play) as server:
        diagnosis = await doctor(server.url)
        failed = failure(diagnosis, "Host header")
        assert f"HTTP {status}" in text(failed)
        assert states(diagnosis)["HTTP"] == "passed"


async def test_accord_refuses_a_host_that_it_does_not_know(doctor: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def look_up(host: str, *arguments: object, **options: object) -> object:
        return real("127.0.0.1" if "example" in str(host) else host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with served_over_http(Server("small")) as url:
        failed = failure(await doctor(url.replace("127.0.0.1", "box.example.com")), "Host header")
        assert "allowed hosts" in failed.remedy


async def test_a_login_is_explained_with_the_metadata(doctor: Diagnose) -> None:
    async with AuthServer() as issuer:
        failed = failure(await doctor(issuer.resource), "authentication")
        assert "HTTP 401 Unauthorized" in failed.evidence
        assert any(line.startswith("ok: resource metadata: HTTP 200") for line in failed.evidence)
        assert any(line.startswith("ok: issuer") for line in failed.evidence)
        (challenge,) = [line for line in failed.evidence if "Bearer" in line]
        assert challenge.startswith("www-authenticate: Bearer ")
        assert f'resource_metadata="{issuer.issuer}' in challenge
        assert failed.remedy == f"accord login {issuer.resource}"
        assert issuer.counts["registration"] == 0


async def test_a_refusal_without_metadata_names_what_was_not_found(doctor: Diagnose) -> None:
    with served_over_http(Server("keys", auth=APIKeys({"a-key-of-ann-0123456789": "ann"}))) as url:
        failed = failure(await doctor(url), "authentication")
        assert "HTTP 401 Unauthorized" in failed.evidence
        assert any(line.startswith("not found: ") for line in failed.evidence)
        assert failed.remedy


async def test_a_wrong_token_of_the_configuration_is_not_shown(doctor: Diagnose, tmp_path: Path) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(401, f"you sent {visit.headers['authorization']}".encode())

    async with site(play) as server:
        entry = {"url": server.url, "headers": {"Authorization": "Bearer wrong-token-0815"}}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"a": entry}}), encoding="utf-8")
        diagnosis = await doctor(f"{file}#a")
        failed = failure(diagnosis, "authentication")
        assert "renew it" in failed.remedy
        assert "wrong-token" not in repr(diagnosis)


async def test_headers_that_are_accepted_are_evidence(doctor: Diagnose, tmp_path: Path) -> None:
    with served_over_http(Server("keys", auth=APIKeys({"a-key-of-ann-0123456789": "ann"}))) as url:
        entry = {"url": url, "headers": {"Authorization": "Bearer a-key-of-ann-0123456789"}}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"a": entry}}), encoding="utf-8")
        diagnosis = await doctor(f"{file}#a")
        assert diagnosis.failed is None
        assert step(diagnosis, "authentication").evidence == ["accepted with authorization"]


async def test_a_server_that_is_fine_passes(doctor: Diagnose) -> None:
    async with site(modern(quiet)) as server:
        diagnosis = await doctor(server.url)
        assert step(diagnosis, "HTTP").evidence == ["HTTP 200 OK"]
        assert states(diagnosis)["authentication"] == "passed"
