"""Several versions of one tool or prompt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import (
    APIKeys,
    Client,
    DeclarationError,
    InvalidParams,
    Principal,
    PromptReference,
    RequireScopes,
    Server,
    ToolChange,
)
from accord.messages.revision import REVISIONS
from accord.server.compose.versions import version_key

from tests.server.compose.reaching import client_of, over_http, tools_of

META = [revision for revision in REVISIONS if revision >= "2025-06-18"]

ORDERS = [
    ["1", "1.2", "1.9", "1.10", "2.0", "10"],
    ["2.0-alpha", "2.0-alpha.1", "2.0-alpha.beta", "2.0-beta.2", "2.0-beta.11", "2.0-rc.1", "2.0", "2.0.1"],
    ["2.0a1", "2.0b1", "2.0b10", "2.0rc1", "2.0", "2.0.post1", "2.1.dev1", "2.1"],
    ["v1.9", "v1.10-rc1", "v1.10"],
    ["2.0", "2.0+build.1", "2.0+build.2", "2.0.1-rc+build.9", "2.0.1"],
    ["2025-12-31", "2026-07-28", "2026-11-02"],
    ["beta", "0.1"],
    ["1.99", "2", "2.0.1"],
]


@pytest.mark.parametrize("order", ORDERS)
def test_versions_are_ordered_as_people_mean_them(order: list[str]) -> None:
    assert all(version_key(older) < version_key(newer) for older, newer in pairwise(order))


@given(st.lists(st.text("0123v.-+abcrp "), max_size=6))
def test_any_texts_have_one_order(versions: list[str]) -> None:
    backwards = versions[::-1]
    assert sorted(versions, key=version_key) == sorted(backwards, key=version_key)


def server(*versions: str) -> Server:
    made = Server("versions")
    for version in versions:

        def tell(says: str = version) -> str:
            return says

        made.tool("tell", version=version)(tell)
        made.prompt("ask", version=version)(lambda says=version: says)
    return made


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("versions", [("1.9", "2.0rc1", "1.10"), ("2.0rc1", "1.10", "1.9"), ("1.10", "1.9", "2.0rc1")])
async def test_the_newest_is_called_unless_a_request_names_another(revision: str, versions: tuple[str, ...]) -> None:
    async with Client(server(*versions), revisions=[revision]) as client:
        assert (await client.call_tool("tell")).text == "2.0rc1"
        for version in versions:
            meta = {"accord/version": version}
            assert (await client.call_tool("tell", meta=meta)).text == version
            got = await client.get_prompt("ask", meta=meta)
            assert got.messages[0].content.text == version  # type: ignore[union-attr]
        for wrong in ("3", "", 2, ["1.9"]):
            with pytest.raises(InvalidParams, match=r"it has 1\.9, 1\.10, 2\.0rc1"):
                await client.call_tool("tell", meta={"accord/version": wrong})


@pytest.mark.parametrize("revision", META)
async def test_the_list_has_the_newest_and_says_which_others_there_are(revision: str) -> None:
    made = server("2.0", "1.9", "1.10")
    made.tool("plain")(lambda: "")
    outer = Server("outer")
    outer.mount(made, "acme")
    for each, prefix in ((made, ""), (outer, "acme_")):
        async with Client(each, revisions=[revision]) as client:
            tools = {tool.name: tool.meta for tool in await client.list_tools()}
            about = {"accord/version": "2.0", "accord/versions": ["1.9", "1.10", "2.0"]}
            assert tools == {f"{prefix}tell": about, f"{prefix}plain": None}
            [prompt] = await client.list_prompts()
            assert prompt.meta == about
            assert (await client.call_tool(f"{prefix}tell", meta={"accord/version": "1.9"})).text == "1.9"


async def test_one_version_alone_says_so_and_is_no_other() -> None:
    async with Client(server("1.0")) as client:
        [tool] = await client.list_tools()
        assert tool.meta == {"accord/version": "1.0", "accord/versions": ["1.0"]}
        with pytest.raises(InvalidParams, match=r"no version '2\.0'; it has 1\.0"):
            await client.call_tool("tell", meta={"accord/version": "2.0"})


async def test_a_change_is_made_to_all_versions() -> None:
    made = server("1", "2")
    made.change_tool("tell", ToolChange(name="say"))
    async with Client(made) as client:
        assert await tools_of(client) == ["say"]
        assert (await client.call_tool("say", meta={"accord/version": "1"})).text == "1"


async def test_a_hidden_version_does_not_exist() -> None:
    keys = APIKeys({"a": Principal("ann", frozenset({"old", "new"})), "b": Principal("bob")})
    made = Server("scopes", auth=keys)
    for version, scopes in (("1", {"old"}), ("2", set[str]()), ("3", {"new"})):
        made.tool("tell", version=version, scopes=scopes)(lambda says=version: says)
    async with over_http(made) as url, client_of(url, "a") as ann, client_of(url, "b") as bob:
        assert (await ann.call_tool("tell")).text == "3"
        assert (await bob.call_tool("tell")).text == "2"
        assert (await ann.call_tool("tell", meta={"accord/version": "1"})).text == "1"
        with pytest.raises(InvalidParams, match=r"it has 2 \("):
            await bob.call_tool("tell", meta={"accord/version": "1"})
        [for_ann], [for_bob] = await ann.list_tools(), await bob.list_tools()
        assert for_ann.meta == {"accord/version": "3", "accord/versions": ["1", "2", "3"]}
        assert for_bob.meta == {"accord/version": "2", "accord/versions": ["2"]}


def proposing(value: str) -> Callable[[str], list[str]]:
    return lambda typed: [value]


async def test_the_version_that_is_got_is_completed() -> None:
    keys = APIKeys({"a": Principal("ann", frozenset({"new"})), "b": Principal("bob")})
    made = Server("scopes", auth=keys)
    for version, scopes in (("1", set[str]()), ("2", {"new"})):
        prompt = made.prompt("tell", version=version, scopes=scopes)(lambda city: city)
        prompt.complete("city")(proposing(f"city of {version}"))
    ref = PromptReference(name="tell")
    async with over_http(made) as url, client_of(url, "a") as ann, client_of(url, "b") as bob:
        assert (await ann.complete(ref, argument="city")).values == ["city of 2"]
        assert (await bob.complete(ref, argument="city")).values == ["city of 1"]
        older = await ann.complete(ref, argument="city", meta={"accord/version": "1"})
        assert older.values == ["city of 1"]
        with pytest.raises(InvalidParams, match="no version"):
            await bob.complete(ref, argument="city", meta={"accord/version": "2"})


@pytest.mark.parametrize("revision", META)
@pytest.mark.parametrize(("gone", "left"), [("1", ["2", "3"]), ("2", ["1", "3"]), ("3", ["1", "2"])])
async def test_a_version_that_a_tag_hides_does_not_exist(gone: str, left: list[str], revision: str) -> None:
    inner, made = Server("inner"), Server("versions")
    for version in ("1", "2", "3"):
        tags = {"old"} if version == gone else ()
        inner.tool("tell", version=version, tags=tags)(lambda version=version: version)
        inner.prompt("ask", version=version, tags=tags)(lambda version=version: version)
    made.mount(inner)
    made.disable(tags={"old"})
    async with Client(made, revisions=[revision]) as client:
        [tool] = await client.list_tools()
        assert tool.meta == {"accord/version": left[-1], "accord/versions": left}
        assert (await client.call_tool("tell")).text == left[-1]
        for version in left:
            assert (await client.call_tool("tell", meta={"accord/version": version})).text == version
        with pytest.raises(InvalidParams):
            await client.call_tool("tell", meta={"accord/version": gone})
        with pytest.raises(InvalidParams):
            await client.get_prompt("ask", meta={"accord/version": gone})
    made.enable(tags={"old"})
    async with Client(made, revisions=[revision]) as client:
        assert (await client.call_tool("tell", meta={"accord/version": gone})).text == gone


@pytest.mark.parametrize("changes", [False, True])
async def test_what_is_around_a_mounted_server_is_not_around_its_own_calls(changes: bool) -> None:
    around: list[str] = []

    def noting(name: str) -> Any:
        async def note(request: Any, call_next: Any) -> Any:
            around.extend([name] if request.name else [])
            return await call_next(request)

        return note

    inner = Server("inner", middleware=[noting("inner")])
    for version in ("1", "2"):
        inner.tool("tell", version=version)(lambda: "")
    made = Server("outer", middleware=[noting("outer")])
    made.mount(inner, "in")
    if changes:
        made.change_tool("in_tell", ToolChange(name="say"))
    async with Client(inner) as alone, Client(made) as outside:
        for version in ("1", "2"):
            around.clear()
            await outside.call_tool("say" if changes else "in_tell", meta={"accord/version": version})
            assert around == ["outer", "inner"]
            await alone.call_tool("tell", meta={"accord/version": version})
            assert around == ["outer", "inner", "inner"]


async def test_a_rule_for_one_mount_of_a_server_is_none_for_another() -> None:
    inner, made = Server("inner"), Server("outer", middleware=[RequireScopes({"one_tell": {"admin"}})])
    for version in ("1", "2"):
        inner.tool("tell", version=version)(lambda: "")
    made.mount(inner, "one")
    made.mount(inner, "two")
    async with Client(made, principal=Principal("ann")) as client:
        assert await tools_of(client) == ["two_tell"]
        inner.tool("other")(lambda: "")
        assert sorted(await tools_of(client)) == ["one_other", "two_other", "two_tell"]


def test_a_name_is_declared_twice_only_with_another_version() -> None:
    made = server("1")
    for options, why in (({}, "declared twice"), ({"version": "1"}, "version 1 of tool 'tell' is declared twice")):
        with pytest.raises(DeclarationError, match=why):
            made.tool("tell", **options)(lambda: "")  # type: ignore[call-overload]
    plain = Server("plain")
    plain.tool("tell")(lambda: "")
    with pytest.raises(DeclarationError, match="declared twice"):
        plain.tool("tell", version="1")(lambda: "")


async def test_all_versions_are_removed_together() -> None:
    made = server("1", "2")
    async with Client(made) as client:
        made.remove_tool("tell")
        assert await tools_of(client) == []
        made.tool("tell", version="0.5")(lambda: "again")
        assert (await client.call_tool("tell")).text == "again"
