"""`RequireScopes`: who sees what, and that the others are told nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from accord import APIKeys, Caching, DeclarationError, Principal, RequireScopes, Server, Tool, ToolAnnotations
from accord.server.compose.provider import Provided, Provider

from tests.server.compose.test_uri_spelling import MANY_READINGS
from tests.server.http.http_clients import Modern, Stateful, site
from tests.server.middleware.transports import SOME, called, names, reached, text

KEYS = {
    "k-ann": Principal("ann", frozenset({"admin", "finance"})),
    "k-bob": Principal("bob", frozenset({"admin"})),
    "k-eve": Principal("eve"),
}
RULES = RequireScopes(
    {
        "delete_*": {"admin"},
        "data://secret": {"admin"},
        "rows://{+table}": {"admin"},
        "plan": {"admin"},
        "find://items?q=secret": {"admin"},
    },
    tags={"billing": {"finance"}},
)


def guarded(**options: Any) -> Server:
    server = Server("test", middleware=[RULES], **options)
    for name, tags in (("look", ()), ("delete_row", ()), ("pay", ["billing"]), ("delete_bill", ["billing"])):
        server.tool(name=name, tags=tags)(lambda name=name: "done")
    server.prompt(name="plan")(lambda city="": "plan").complete("city")(lambda typed: ["Oslo"])
    server.prompt(name="tell")(lambda: "tell")
    server.resource("data://secret", name="secret")(lambda: "secret")
    server.resource("data://open", name="open")(lambda: "open")
    server.resource("rows://{+table}", name="rows")(lambda table: table).complete("table")(lambda typed: ["a"])
    return server


SEEN = {
    "k-ann": ["look", "delete_row", "pay", "delete_bill"],
    "k-bob": ["look", "delete_row"],
    "k-eve": ["look"],
}


def client_of(form: str, raw: Any, key: str) -> Any:
    return (Modern if form == "modern" else Stateful)(raw, authorization=f"Bearer {key}")


@pytest.mark.parametrize("key", SEEN)
async def test_a_middleware_that_passes_a_request_on_to_the_rules_guards_as_they_do(key: str) -> None:
    server = guarded(auth=APIKeys(KEYS))
    server.registry.middleware = ()
    server.resource("find://items{?q}", name="items")(lambda q="": q)
    server.resource("docs://{+path}", name="docs")(lambda path: path)

    @server.middleware
    async def passing(request: Any, call_next: Any) -> Any:
        return await RULES(request, call_next)

    async with site(server) as here:
        client = client_of("modern", here.raw, key)
        assert names(await (await client.ask("tools/list")).result()) == SEEN[key]
        for name in SEEN["k-ann"]:
            said = await (await client.call(name)).result()
            assert ("error" not in said) == (name in SEEN[key]), name
        for uri in ("data://secret", "data://%73ecret", "rows://a", "find://items?x=1&q=secret"):
            said = await (await client.ask("resources/read", {"uri": uri})).result()
            assert ("error" not in said) == (key != "k-eve"), uri
        assert "result" in await (await client.ask("resources/read", {"uri": "docs://x"})).result()
        assert "error" in await (await client.ask("resources/read", {"uri": MANY_READINGS})).result()
        said = await (await client.ask("prompts/get", {"name": "plan"})).result()
        assert ("error" not in said) == (key != "k-eve")
        if key == "k-eve":
            assert said["error"] == {"code": -32602, "message": "no prompt 'plan'"}


@pytest.mark.parametrize("form", ["modern", "stateful"])
@pytest.mark.parametrize("key", SEEN)
async def test_each_sees_and_calls_what_its_scopes_allow(form: str, key: str) -> None:
    async with site(guarded(auth=APIKeys(KEYS))) as here:
        client = client_of(form, here.raw, key)
        if form == "stateful":
            await client.open()
        listed = await (await client.ask("tools/list")).result()
        assert names(listed) == SEEN[key]
        for name in SEEN["k-ann"]:
            said = await (await client.call(name)).result()
            assert ("error" not in said) == (name in SEEN[key]), name
        if form == "modern":
            assert listed["result"]["cacheScope"] == "private"


ASKED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tools/call", {"name": "delete_row"}, {"name": "delete_ro"}),
    ("prompts/get", {"name": "plan"}, {"name": "plam"}),
    ("resources/read", {"uri": "data://secret"}, {"uri": "data://secres"}),
    ("resources/read", {"uri": "rows://a/b"}, {"uri": "rowz://a/b"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "city", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "plam"}, "argument": {"name": "city", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "rows://{+table}"}, "argument": {"name": "table", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "rowz://{+table}"}, "argument": {"name": "table", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "none", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "plam"}, "argument": {"name": "none", "value": ""}},
    ),
    ("resources/subscribe", {"uri": "data://secret"}, {"uri": "data://secres"}),
]


@pytest.mark.parametrize(("method", "hidden", "unknown"), ASKED)
async def test_what_is_hidden_is_answered_like_what_was_never_there(
    method: str, hidden: dict[str, Any], unknown: dict[str, Any]
) -> None:
    async with site(guarded(auth=APIKeys(KEYS))) as here:
        eve = await Stateful(here.raw, authorization="Bearer k-eve").open()
        errors = [(await (await eve.ask(method, params)).result())["error"] for params in (hidden, unknown)]
        ann = await Stateful(here.raw, authorization="Bearer k-ann").open()
        found = await (await ann.ask(method, hidden)).result()
        assert "result" in found or "no argument" in text(found)
    same = [str(error).replace("plam", "plan").replace("rowz", "rows").replace("secres", "secret") for error in errors]
    assert same[0] == same[1].replace("delete_ro'", "delete_row'")


async def test_a_value_that_a_hidden_template_refuses_does_not_reveal_it() -> None:
    async with site(guarded(auth=APIKeys(KEYS))) as here:
        eve = await Stateful(here.raw, authorization="Bearer k-eve").open()
        said = [
            text(await (await eve.ask("resources/read", {"uri": f"{uri}/../b"})).result())
            for uri in ("rows://a", "rowz://a")
        ]
    assert said[0].replace("rows", "rowz") == said[1]


async def test_an_anonymous_client_has_no_scopes() -> None:
    async with site(guarded()) as here:
        client = Modern(here.raw)
        assert names(await (await client.ask("tools/list")).result()) == ["look"]
        assert "no tool 'pay'" in text(await (await client.call("pay")).result())


@pytest.mark.parametrize("way", SOME)
async def test_a_client_that_started_the_server_needs_no_scopes(way: str) -> None:
    async with reached(guarded(), way) as ask:
        assert names(await ask("tools/list")) == SEEN["k-ann"]
        assert text(await ask(*called("delete_bill"))) == "done"


async def test_all_lists_are_filtered() -> None:
    async with site(guarded(auth=APIKeys(KEYS))) as here:
        eve = Modern(here.raw, authorization="Bearer k-eve")
        assert names(await (await eve.ask("prompts/list")).result()) == ["tell"]
        assert names(await (await eve.ask("resources/list")).result()) == ["open"]
        assert names(await (await eve.ask("resources/templates/list")).result()) == []


async def test_rules_of_a_mounted_server_hold_by_the_names_inside_also_in_lists() -> None:
    outer = Server("outer", auth=APIKeys(KEYS))
    outer.mount(guarded(), "acme")
    async with site(outer) as here:
        eve, ann = (Modern(here.raw, authorization=f"Bearer {key}") for key in ("k-eve", "k-ann"))
        assert names(await (await eve.ask("tools/list")).result()) == ["acme_look"]
        assert len(names(await (await ann.ask("tools/list")).result())) == 4
        assert "no tool 'acme_delete_row'" in text(await (await eve.call("acme_delete_row")).result())
        assert "no tool 'acme_pay'" in text(await (await eve.call("acme_pay")).result())
        assert text(await (await ann.call("acme_pay")).result()) == "done"


async def test_a_search_finds_no_more_than_the_list_shows() -> None:
    server = guarded(auth=APIKeys(KEYS))
    server.search_tools(budget=1)
    async with site(server) as here:
        for key, seen in SEEN.items():
            client = Modern(here.raw, authorization=f"Bearer {key}")
            said = await (await client.call("search_tools", {"query": "", "limit": 10})).result()
            found = said["result"]["structuredContent"]
            assert found["tools"]
            assert {tool["name"] for tool in found["tools"]} <= set(seen)
            assert len(found["tools"]) + found["left_out"] == len(seen)


@pytest.mark.parametrize("caching_first", [False, True])
async def test_its_place_does_not_matter_not_even_inside_a_cache(caching_first: bool) -> None:
    server = Server("test", middleware=[Caching(), RULES] if caching_first else [RULES, Caching()], auth=APIKeys(KEYS))
    server.tool(name="delete_it", annotations=ToolAnnotations(read_only_hint=True))(lambda: "done")
    async with site(server) as here:
        for key, said in (("k-ann", "done"), ("k-eve", "no tool 'delete_it'"), ("k-bob", "done")):
            client = Modern(here.raw, authorization=f"Bearer {key}")
            assert text(await (await client.call("delete_it")).result()) == said


async def test_what_a_provider_has_is_guarded_too() -> None:
    class Rows(Provider):
        async def tools(self) -> list[Provided]:
            tools = [Tool(name=name, input_schema={"type": "object"}) for name in ("look", "delete_all")]
            return [Provided(tool, lambda arguments: "done") for tool in tools]

    server = Server("test", middleware=[RULES], auth=APIKeys(KEYS))
    server.add_provider(Rows())
    async with site(server) as here:
        eve, ann = (Modern(here.raw, authorization=f"Bearer {key}") for key in ("k-eve", "k-ann"))
        assert names(await (await eve.ask("tools/list")).result()) == ["look"]
        assert text(await (await eve.call("delete_all")).result()) == "no tool 'delete_all'"
        assert text(await (await ann.call("delete_all")).result()) == "done"


@pytest.mark.parametrize("wrong", [({},), ({"delete_*": "admin"},), (None,)])
def test_rules_that_say_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        RequireScopes(*wrong)
