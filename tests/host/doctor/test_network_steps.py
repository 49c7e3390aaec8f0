"""The steps of the network, with real sockets and certificates."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.host.doctor.certificates import Authority
from tests.host.doctor.conftest import Diagnose, failure, states, step, text
from tests.transport.http.site import modern, quiet, site


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that this machine trusts."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.path))
    return made


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_name_without_an_address_fails_at_dns(doctor: Diagnose) -> None:
    failed = failure(await doctor("https://no-such-host.invalid/mcp"), "DNS")
    assert "there is no address for no-such-host.invalid" in text(failed)


async def test_a_port_where_nobody_listens_fails_at_tcp(doctor: Diagnose) -> None:
    port = unused_port()
    failed = failure(await doctor(f"http://127.0.0.1:{port}/mcp"), "TCP")
    assert f"127.0.0.1:{port}: Connection refused" in text(failed)
    assert "start the server" in failed.remedy


async def test_one_address_of_this_machine_is_enough(doctor: Diagnose) -> None:
    async with site(modern(quiet)) as server:
        diagnosis = await doctor(server.url.replace("127.0.0.1", "localhost"))
        assert states(diagnosis)["TCP"] == "passed"


async def test_a_certificate_of_a_trusted_authority_passes(doctor: Diagnose, authority: Authority) -> None:
    async with site(modern(quiet), tls=authority.context()) as server:
        found = step(await doctor(server.url), "TLS")
        assert found.state == "passed"
        assert "the certificate is valid for 127.0.0.1" in text(found)


async def test_an_expired_certificate_fails_with_its_dates(doctor: Diagnose, authority: Authority) -> None:
    async with site(modern(quiet), tls=authority.context(days=-2)) as server:
        failed = failure(await doctor(server.url), "TLS")
        assert failed.evidence[0] == "the certificate of 127.0.0.1 has expired"
        assert "issued by CN=Test Authority" in text(failed)
        assert "valid from" in text(failed)


async def test_a_certificate_for_another_name_fails_with_that_name(doctor: Diagnose, authority: Authority) -> None:
    async with site(modern(quiet), tls=authority.context(address="127.0.0.9")) as server:
        failed = failure(await doctor(server.url), "TLS")
        assert failed.evidence[0] == "the certificate is not for the name 127.0.0.1"
        assert "issued for 127.0.0.9" in text(failed)


async def test_a_self_signed_certificate_fails(doctor: Diagnose, authority: Authority) -> None:
    async with site(modern(quiet), tls=authority.context(self_signed=True)) as server:
        assert "is self-signed" in text(failure(await doctor(server.url), "TLS"))


async def test_a_certificate_of_an_unknown_authority_fails(doctor: Diagnose, tmp_path: Path) -> None:
    async with site(modern(quiet), tls=Authority(tmp_path).context()) as server:
        failed = failure(await doctor(server.url), "TLS")
        assert "an authority that is not known here" in text(failed)
        assert "SSL_CERT_FILE" in failed.remedy


async def test_https_to_a_server_of_http_fails_at_tls(doctor: Diagnose) -> None:
    async with site(modern(quiet)) as server:
        failed = failure(await doctor(server.url.replace("http:", "https:")), "TLS")
        assert "is it http:// there?" in failed.remedy


async def test_http_to_another_machine_is_a_warning(doctor: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(modern(quiet)) as server:
        monkeypatch.setattr(socket, "getaddrinfo", _to_this_machine(socket.getaddrinfo))
        diagnosis = await doctor(server.url.replace("127.0.0.1", "mcp.example.com"))
        assert states(diagnosis)["TLS"] == "warning"


def _to_this_machine(real: object) -> object:
    def look_up(host: str, *arguments: object, **options: object) -> object:
        return real("127.0.0.1" if "example" in str(host) else host, *arguments, **options)  # type: ignore[operator]

    return look_up


async def test_a_proxy_is_the_first_hop(doctor: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    port = unused_port()
    monkeypatch.setenv("https_proxy", f"http://user:secret-word@127.0.0.1:{port}")
    failed = failure(await doctor("https://example.com/mcp"), "TCP")
    assert f"127.0.0.1:{port}" in text(failed)


async def test_a_server_that_accepts_and_never_answers_fails_in_bounded_time(doctor: Diagnose) -> None:
    async with silent() as port:
        failed = failure(await doctor(f"http://127.0.0.1:{port}/mcp", seconds=1), "HTTP")
        assert "does not answer within 1 s" in failed.remedy


async def test_a_server_of_another_protocol_fails_at_http(doctor: Diagnose) -> None:
    async with silent(b"SSH-2.0-OpenSSH_9.6\r\n") as port:
        failed = failure(await doctor(f"http://127.0.0.1:{port}/mcp", seconds=10), "HTTP")
        assert "does not speak HTTP" in failed.remedy


@contextlib.asynccontextmanager
async def silent(greeting: bytes = b"") -> AsyncIterator[int]:
    """A server that sends a greeting, and nothing more."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(greeting)
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])
