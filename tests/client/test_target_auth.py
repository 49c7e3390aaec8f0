"""The login in an entry of a configuration: `auth` of accord and Cursor, `oauth` of other hosts."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accord import Client, ClientCredentials, EnterpriseManaged, OAuth, Server, TargetError, WorkloadIdentity
from accord.client.target import Remote, parse
from accord.http import APIKeys
from accord.testing import AuthServer, served_over_http

URL = "https://mcp.example/mcp"
SECRET = "s3cret-Xq7Tz90plm"


def remote(**entry: Any) -> Remote:
    target = parse({"url": URL, **entry})
    assert isinstance(target, Remote)
    return target


def login(**entry: Any) -> Any:
    return remote(**entry).auth


@pytest.mark.parametrize("auth", ["${TOKEN}", {"type": "bearer", "token": "${TOKEN}"}])
def test_a_bearer_token_is_sent_as_a_header(auth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    target = remote(auth=auth)
    assert target.headers == {"authorization": f"Bearer {SECRET}"}
    assert target.auth is None


SAME = OAuth(client_id="me", client_secret=SECRET, scopes=["read", "write"], port=8111)

HOSTS: dict[str, dict[str, Any]] = {
    "accord": {
        "auth": {
            "type": "oauth",
            "client_id": "me",
            "client_secret": "${SECRET}",
            "scopes": ["read", "write"],
            "port": 8111,
        }
    },
    "accord, without a type": {
        "auth": {"client_id": "me", "client_secret": "${SECRET}", "scopes": "read write", "port": "8111"}
    },
    "Cursor": {
        "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:SECRET}", "scopes": ["read", "write"], "port": 8111}
    },
    "Claude Code": {
        "oauth": {"clientId": "me", "clientSecret": "${SECRET}", "callbackPort": 8111, "scopes": "read write"}
    },
    "Gemini CLI": {
        "oauth": {
            "enabled": True,
            "clientId": "me",
            "clientSecret": "${SECRET}",
            "redirectUri": "http://localhost:8111/callback",
            "scopes": ["read", "write"],
        }
    },
    "opencode": {
        "oauth": {
            "clientId": "me",
            "clientSecret": "${SECRET}",
            "scope": "read write",
            "redirectUri": "http://127.0.0.1:8111/callback",
        }
    },
}


@pytest.mark.parametrize("host", HOSTS)
def test_the_forms_of_hosts_mean_the_same_login(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    assert login(**HOSTS[host]) == SAME


@pytest.mark.parametrize("entry", [{"auth": "oauth"}, {"auth": {"type": "oauth"}}, {"oauth": {}}, {"oauth": True}])
def test_a_login_needs_no_settings(entry: Any) -> None:
    assert login(**entry) == OAuth()


@pytest.mark.parametrize("oauth", [False, {"enabled": False, "clientId": "me"}])
def test_a_login_can_be_off(oauth: Any) -> None:
    assert login(oauth=oauth) is None


def test_a_login_may_be_on_another_device() -> None:
    assert login(auth={"device": True}) == OAuth(device=True)


def test_vs_code_has_a_client_id(monkeypatch: pytest.MonkeyPatch) -> None:
    assert login(type="http", oauth={"clientId": "me"}) == OAuth(client_id="me")


ISSUERS = [
    ("https://login.example/.well-known/openid-configuration", "https://login.example"),
    ("https://login.example/tenant/.well-known/openid-configuration", "https://login.example/tenant"),
    ("https://login.example/.well-known/oauth-authorization-server", "https://login.example"),
    ("https://login.example/.well-known/oauth-authorization-server/tenant", "https://login.example/tenant"),
]


@pytest.mark.parametrize(("url", "issuer"), ISSUERS)
def test_the_url_of_metadata_chooses_its_issuer(url: str, issuer: str) -> None:
    assert login(oauth={"authServerMetadataUrl": url}) == OAuth(issuer=issuer)


def test_programs_have_logins_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c\n")
    robot = {"type": "client_credentials", "client_id": "robot", "client_secret": SECRET}
    assert isinstance(login(auth=robot), ClientCredentials)
    workload = {"type": "workload_identity", "client_id": "robot", "token_file": str(tmp_path / "token")}
    assert isinstance(login(auth=workload), WorkloadIdentity)
    managed = {
        "type": "enterprise_managed",
        "client_id": "robot",
        "idp_token_endpoint": "https://idp.example/token",
        "idp_client_id": "here",
        "id_token": "a.b.c",
    }
    assert isinstance(login(auth=managed), EnterpriseManaged)
    for entry in (robot, workload, managed):
        assert login(auth=entry).issuer is None
        assert login(auth={**entry, "issuer": "https://login.example"}).issuer == "https://login.example"


ERRORS: list[tuple[Mapping[str, Any], str]] = [
    ({"auth": {"type": "oauth", "clientid": SECRET}}, "auth: Object contains unknown field `clientid`; its keys are"),
    ({"oauth": {"client": SECRET}}, "oauth: Object contains unknown field `client`; its keys are client_id"),
    ({"auth": {"type": SECRET}}, "auth.type is none of bearer, oauth, client_credentials"),
    ({"auth": {"type": 7}}, "auth.type is none of bearer"),
    ({"auth": 7}, 'auth must be a bearer token, "oauth", or an object'),
    ({"auth": [SECRET]}, 'auth must be a bearer token, "oauth", or an object'),
    ({"oauth": SECRET}, "oauth must be an object"),
    ({"auth": f"Bearer {SECRET}"}, 'auth must be a token of visible ASCII characters, without "Bearer"'),
    ({"auth": {"type": "bearer", "token": f"{SECRET}\n"}}, "auth must be a token of visible ASCII"),
    ({"auth": {"type": "bearer"}}, "auth: Object missing required field `token`"),
    ({"auth": "", "oauth": {}}, '"auth" and "oauth" are both in the entry'),
    ({"auth": {"client_id": "a", "CLIENT_ID": "b"}}, "client_id is there twice, under two names"),
    ({"auth": {"port": SECRET}}, "auth: Expected `int`, got `str` - at `$.port`"),
    ({"auth": {"scopes": 7}}, "auth: Expected `str | array | null`, got `int` - at `$.scopes`"),
    ({"auth": {"client_metadata_url": f"http://{SECRET}"}}, "client_metadata_url must be an https URL with a path"),
    (
        {"auth": {"type": "client_credentials", "client_id": "a"}},
        "one of client_secret and key (or key_file) is needed",
    ),
    (
        {"auth": {"type": "client_credentials", "client_id": "a", "key": SECRET, "client_secret": SECRET}},
        "one of client_secret and key",
    ),
    ({"auth": {"type": "workload_identity", "client_id": "a"}}, "one of token and token_file is needed"),
    ({"auth": {"type": "client_credentials", "client_id": "a", "key_file": "/none.pem"}}, "/none.pem cannot be read"),
    (
        {"oauth": {"redirectUri": f"https://x.example/{SECRET}"}},
        "the callback of accord is http://127.0.0.1:PORT/callback",
    ),
    ({"oauth": {"authServerMetadataUrl": f"https://x.example/{SECRET}"}}, "it is no well-known URI; name the issuer"),
    ({"auth": "x", "headers": {"Authorization": SECRET}}, "a login and the header Authorization; leave one out"),
    ({"oauth": {"type": "client_credentials"}}, "oauth: unknown key type"),
    ({"auth": {"token_endpoint_auth_method": SECRET}}, "unknown field `token_endpoint_auth_method`"),
]


@pytest.mark.parametrize(("entry", "text"), ERRORS)
def test_what_cannot_be_used_is_an_error_without_its_values(
    entry: Mapping[str, Any], text: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": {"url": URL, **entry}}}))
    with pytest.raises(TargetError) as caught:
        parse(f"{file}#shop")
    assert text in str(caught.value)
    assert f"{file}#shop: " in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_command_has_no_login() -> None:
    with pytest.raises(TargetError, match='"auth" and "oauth" are for a server at a URL'):
        parse({"command": "x", "auth": SECRET})


UNUSED = ["authorizationUrl", "tokenUrl", "registrationUrl", "tokenParamName", "audiences", "xaa"]


@pytest.mark.parametrize("key", UNUSED)
def test_a_setting_of_another_host_without_effect_is_a_warning(key: str, caplog: pytest.LogCaptureFixture) -> None:
    assert login(oauth={"clientId": "me", key: SECRET}) == OAuth(client_id="me")
    (record,) = caplog.records
    assert f"oauth.{key} is not used" in record.getMessage()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("key", ["headersHelper", "authProviderType", "bearer_token_env_var", "Oauth"])
def test_an_unknown_key_of_an_entry_is_a_warning(key: str, caplog: pytest.LogCaptureFixture) -> None:
    remote(**{key: SECRET})
    (record,) = caplog.records
    assert f"the key '{key}' of a configuration entry has no effect" in record.getMessage()
    assert SECRET not in caplog.text


def test_what_hosts_keep_about_themselves_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    remote(disabled=False, autoApprove=["x"], timeout=30, type="http")
    assert not caplog.records


def test_a_target_with_a_login_shows_no_secret() -> None:
    target = remote(auth={"client_id": "me", "client_secret": SECRET})
    assert SECRET not in f"{target!r} {target}"


async def test_a_client_uses_the_token_of_its_entry() -> None:
    server = Server("keys", auth=APIKeys({SECRET: "ann"}))

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with served_over_http(server) as url:
        async with Client({"url": url, "auth": SECRET}) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3


async def test_a_client_uses_the_login_of_its_entry() -> None:
    async with AuthServer() as issuer:
        issuer.add_client("robot", SECRET)
        entry = {"url": issuer.resource, "auth": {"type": "client_credentials", "client_id": "robot"}}
        entry["auth"] |= {"client_secret": SECRET}  # type: ignore[operator]
        with pytest.raises(Exception):  # noqa: B017, PT011 - the resource of AuthServer is no MCP server
            await Client(entry).connect()
        assert issuer.counts["token"] == 1


async def accord(*arguments: str, **variables: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **variables},
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode()


async def test_commands_use_the_login_of_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    credentials = str(tmp_path / "credentials.db")
    async with AuthServer() as issuer:
        issuer.add_client("robot", SECRET)
        robot = {"type": "client_credentials", "client_id": "robot", "client_secret": "${ROBOT}"}
        entries = {
            "robot": {"url": issuer.resource, "auth": robot},
            "user": {"url": issuer.resource, "oauth": {"clientId": "me", "scopes": "read"}, "headersHelper": "x"},
        }
        file.write_text(json.dumps({"mcpServers": entries}))
        environment = {"ROBOT": SECRET, "ACCORD_CREDENTIALS": credentials}
        _, shown = await accord("list", f"{file}#robot", "-vv", **environment)
        assert issuer.counts["token"] == 1
        assert SECRET not in shown
        code, shown = await accord("auth", "explain", f"{file}#user", **environment)
        assert (code, "me (given)" in shown) == (0, True)
        assert f"next: accord login '{file}#user'" in shown
        assert "warning: " in shown
        assert "the key 'headersHelper' of a configuration entry has no effect" in shown
        code, shown = await accord("login", f"{file}#robot", **environment)
        assert (code, "has the login of a program" in shown) == (2, True)
        code, shown = await accord("check", f"{file}#user", **environment)
        assert (code, "the checker does not log in" in shown) == (2, True)


def test_a_file_of_a_login_is_read_up_to_a_limit(tmp_path: Path) -> None:
    """A file may be named by a stranger's configuration, and `/dev/zero` has no end."""
    file = tmp_path / "key.pem"
    file.write_text("x" * ((1 << 20) + 1), encoding="utf-8")
    auth = {"type": "client_credentials", "client_id": "a", "key_file": str(file)}
    with pytest.raises(TargetError, match="is larger than 1 MiB"):
        parse({"url": "https://example.com/mcp", "auth": auth})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_file_of_a_login_may_not_be_a_pipe(tmp_path: Path) -> None:
    """To open one would block until something writes to it."""
    pipe = tmp_path / "key.pem"
    os.mkfifo(pipe)
    auth = {"type": "client_credentials", "client_id": "a", "key_file": str(pipe)}
    with pytest.raises(TargetError, match="is not a regular file"):
        parse({"url": "https://example.com/mcp", "auth": auth})
