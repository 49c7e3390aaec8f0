"""The steps of the network: DNS, TCP, TLS. Each one uses sockets of its own, and each wait has a limit."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

from accord.auth.lookups import Lookups
from accord.client.target import Remote
from accord.errors import AccordError
from accord.host.doctor.certificates import describe_certificate, describe_problem
from accord.host.doctor.diagnosis import Step, StepResult
from accord.host.doctor.known_facts import KnownFacts
from accord.host.doctor.process_steps import NOT_STARTED, may_start
from accord.transport.http.fetcher import proxy_for
from accord.transport.http.redaction import without_credentials
from accord.wire.hosts import is_loopback

_MAX_ADDRESSES = 8
_ADDRESS_SECONDS = 5.0
"""Time limit of one address."""


# --- DNS -------------------------------------------------------------------------------------------------------------


async def check_dns(facts: KnownFacts) -> StepResult:
    """Look up the addresses of the server, or of the proxy before it."""
    if not await may_start(facts):
        return StepResult("DNS", "not-checked", [NOT_STARTED])
    try:
        host, facts.port, through = _first_hop(facts)
    except (AccordError, ValueError) as exc:  # an invalid proxy
        return StepResult("DNS", "failed", [str(exc)], "correct HTTPS_PROXY and HTTP_PROXY, or the URL")
    try:
        found = await asyncio.wait_for(
            Lookups().getaddrinfo(host, facts.port, type=socket.SOCK_STREAM), facts.subject.seconds
        )
    except TimeoutError:
        text = f"no answer about {host} within {facts.subject.seconds:g} s"
        return StepResult("DNS", "failed", [*through, text], "check the network, and its name server")
    except (OSError, UnicodeError) as exc:
        text = f"there is no address for {host}: {getattr(exc, 'strerror', None) or exc}"
        return StepResult("DNS", "failed", [*through, text], "correct the name in the URL, or check the network or VPN")
    facts.addresses = list(dict.fromkeys(str(each[4][0]) for each in found))[:_MAX_ADDRESSES]
    return StepResult("DNS", "passed", [*through, f"{host}: {', '.join(facts.addresses)}"])


def _first_hop(facts: KnownFacts) -> tuple[str, int, list[str]]:
    """Return the name and the port of the server, or of its proxy, which is evidence. Raises `TargetError`."""
    from yarl import URL

    assert isinstance(facts.target, Remote), "the step is for a URL"
    url = facts.target.url
    proxy = proxy_for(URL(url), None).url
    if proxy is not None:
        facts.through_proxy = True
        url = proxy
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme.lower() == "https" else 80)
    return parts.hostname or "", port, [f"through the proxy {without_credentials(url)}"] if proxy is not None else []


# --- TCP -------------------------------------------------------------------------------------------------------------


async def check_tcp(facts: KnownFacts) -> StepResult:
    """Connect to each address."""
    outcomes = await asyncio.gather(*(_connect_error(each, facts.port) for each in facts.addresses))
    evidence = [
        f"{_place(address, facts.port)}: {error or 'connected'}"
        for address, error in zip(facts.addresses, outcomes, strict=True)
    ]
    facts.addresses = [each for each, error in zip(facts.addresses, outcomes, strict=True) if not error]
    if not facts.addresses:
        return StepResult("TCP", "failed", evidence, _tcp_remedy(outcomes))
    if any(outcomes):
        remedy = "clients that try another address first are slow or fail: have the server listen on all of them"
        is_local = all(map(is_loopback, facts.addresses))  # a server on 127.0.0.1 and not on ::1 is usual
        return StepResult("TCP", "passed" if is_local else "warning", evidence, "" if is_local else remedy)
    return StepResult("TCP", "passed", evidence)


async def _connect_error(address: str, port: int) -> str:
    """Return why there is no connection; empty if there is one."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), _ADDRESS_SECONDS)
    except TimeoutError:
        return f"no answer within {_ADDRESS_SECONDS:g} s"
    except OSError as exc:
        return os.strerror(exc.errno) if exc.errno else str(exc)
    await _close(writer)
    return ""


def _tcp_remedy(errors: list[str]) -> str:
    if any("refused" in error for error in errors):
        return "start the server, or correct the port in the URL"
    return "check the network, the VPN and firewalls between here and the server"


def _place(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 1)


# --- TLS -------------------------------------------------------------------------------------------------------------


async def check_tls(facts: KnownFacts) -> StepResult:
    """Do a TLS handshake, and verify the certificate."""
    assert isinstance(facts.target, Remote), "the step is for a URL"
    parts = urlsplit(facts.target.url)
    host = parts.hostname or ""
    if parts.scheme.lower() == "http":
        if is_loopback(host):
            return StepResult("TLS", "passed", ["not used: http:// on this machine"])
        return StepResult("TLS", "warning", ["not used: http://"], "messages and tokens can be read: use https://")
    if facts.through_proxy:
        return StepResult("TLS", "passed", ["through a proxy: it is part of the next step"])
    return await _handshake(facts.addresses[0], facts.port, host)


async def _handshake(address: str, port: int, host: str) -> StepResult:
    context = ssl.create_default_context()
    try:
        _, writer = await asyncio.wait_for(
            asyncio.open_connection(address, port, ssl=context, server_hostname=host), 2 * _ADDRESS_SECONDS
        )
    except ssl.SSLCertVerificationError as exc:
        problem, remedy = describe_problem(exc, host)
        about = await describe_certificate(address, port, host)
        return StepResult("TLS", "failed", [problem, *about], remedy)
    except ssl.SSLError as exc:
        text = f"no TLS handshake: {exc.reason or exc}"
        return StepResult("TLS", "failed", [text], "is it http:// there? Otherwise update the TLS of the server")
    except (TimeoutError, OSError) as exc:
        text = f"no TLS handshake: {exc or f'no answer within {2 * _ADDRESS_SECONDS:g} s'}"
        return StepResult("TLS", "failed", [text], "is it http:// there? Otherwise look at the log of the server")
    version = writer.get_extra_info("ssl_object").version()
    await _close(writer)
    return StepResult("TLS", "passed", [f"{version}; the certificate is valid for {host}"])


NETWORK_STEPS = (Step("DNS", check_dns), Step("TCP", check_tcp), Step("TLS", check_tls))
