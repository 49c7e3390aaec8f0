"""What a question leaves with the client: nothing that was changed, or belongs elsewhere, is taken for it."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

from accord import Client, Context, Server
from accord.errors import AccordError, InvalidParams
from accord.limits import Limits
from accord.messages.tools import ToolAnnotations
from accord.server import run
from accord.server.core.peer import Peer
from accord.server.input.questions import Elicit
from accord.server.input.request_state import NOT_OURS, Keyring, RequestState, RequestStates

from tests.clock import Clock
from tests.limits import limits_of
from tests.server.input.caller import JSON, Caller, asks, caller, questions, retry, texts

SAFE = ToolAnnotations(read_only_hint=True)
OLD, NEW = bytes(range(32)), bytes(range(32, 64))
LETTERS = string.ascii_letters + string.digits + "-_"
ANY = LETTERS + "=+/ \n\0é\ud800"
THROUGH_A_SERVER = 3_000


def serving(
    *, name: str = "test", keys: list[bytes] | None = None, about: str = "", asked: str = "Name?", **limits: Any
) -> Server:
    """A server with a safe tool, one that is not, one with a declared question, and resources that ask."""
    server = Server(name, state_keys=keys, limits=limits_of(**limits))

    @server.tool(annotations=SAFE, description=about)
    async def safe(ctx: Context, what: dict[str, Any] | None = None) -> str:
        return f"{(await ctx.elicit(asked, str)).data}"

    @server.tool(description=about)
    async def unsafe(ctx: Context, what: dict[str, Any] | None = None) -> str:
        return f"{(await ctx.elicit(asked, str)).data}"

    @server.tool(description=about)
    async def declared(name: Annotated[str, Elicit(asked)], what: dict[str, Any] | None = None) -> str:
        return name

    @server.resource("test://{where}")
    async def resource(where: str, ctx: Context) -> str:
        return f"{(await ctx.elicit(asked, str)).data} {where}"

    return server


TOOLS = ["safe", "unsafe", "declared"]
REFUSED = -32602


# --- changes -----------------------------------------------------------------------------------------------------


def changed(rng: random.Random, text: str, other: str) -> str:
    """The text with one change, or several; `other` is a text of the same kind."""
    at, to = sorted((rng.randrange(len(text)), rng.randrange(len(text) + 1)))
    kinds: list[Callable[[], str]] = [
        lambda: text[:at] + rng.choice(LETTERS) + text[at + 1 :],
        lambda: text[:at] + rng.choice(ANY) + text[at + 1 :],
        lambda: text[:at] + rng.choice(ANY) + text[at:],
        lambda: text[:at] + text[at + 1 :],
        lambda: text[:at],
        lambda: text[at:],
        lambda: text[:at] + text[to:],
        lambda: text[:at] + text[at:to] * 2 + text[to:],
        lambda: text[:at] + text[at:to][::-1] + text[to:],
        lambda: text[:at] + text[at:to].swapcase() + text[to:],
        lambda: text[:at] + other[at:],
        lambda: other[:at] + text[at:],
        lambda: text[:at] + other[at:to] + text[to:],
        lambda: text + rng.choice(ANY) * rng.randrange(1, 5),
        lambda: "".join(rng.choices(LETTERS, k=len(text))),
    ]
    return rng.choice(kinds)()


def all_changed(rng: random.Random, text: str, other: str) -> Iterator[str]:
    while True:
        found = changed(rng, text, other)
        if found not in (text, other):
            yield found


def opens(kept: RequestStates, text: str, binding: bytes) -> bool:
    """Whether a state is taken for one of ours, be it for another request."""
    try:
        kept.open(text, binding)
    except InvalidParams as no:
        return no.message != NOT_OURS
    return True


def test_of_100_000_changed_states_none_is_accepted() -> None:
    rng = random.Random(0)
    kept = RequestStates(Keyring([OLD]), Limits())
    binding = b"b" * 16
    sealed = [
        kept.seal(
            RequestState(
                binding, 0, bytes([n]) * 16, outstanding={"ask-1": b"d" * 16}, answers={"ask-0": (b"d" * 16, b"5")}
            )
        )
        for n in range(2)
    ]
    assert all(opens(kept, text, binding) for text in sealed)
    changes = all_changed(rng, *sealed)
    assert not any(opens(kept, next(changes), binding) for _ in range(100_000))


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_server_accepts_no_changed_state(tool: str) -> None:
    rng = random.Random(1)
    async with caller(serving()) as client:
        said, other = await client.call(tool), await client.call(tool)
        more = retry(said)
        changes = all_changed(rng, more["requestState"], other["result"]["requestState"])
        for _ in range(THROUGH_A_SERVER // len(TOOLS)):
            state = next(changes).encode(errors="replace").decode()  # half a surrogate pair is no JSON
            refused = await client.call(tool, **{**more, "requestState": state})
            assert refused["error"]["code"] == REFUSED
        assert texts(await client.call(tool, **more)) == "answer to Name?"


# --- what a state is bound to ------------------------------------------------------------------------------------


async def sent_on(client: Caller, other: Caller, tool: str, first: JSON, second: JSON) -> JSON:
    """What `other` answers to a state that `client` got."""
    said = await client.call(tool, first)
    assert asks(said)
    return await other.call(tool, second, **retry(said))


SAME = [
    ('{"what": {"a": 1, "b": [2, {"c": 3, "d": 4}]}}', '{"what": {"b": [2, {"d": 4, "c": 3}], "a": 1}}'),
    ('{"what": {"a": 3.0, "b": 1e2}}', '{ "what": {"b": 100, "a": 3} }'),
    ('{"what": {"a": "\\u00e9"}}', '{"what": {"a": "é"}}'),
    ('{"what": {"a": 1267650600228229401496703205376}}', '{"what": {"a": 1267650600228229401496703205376}}'),
]
DIFFERENT = [
    ('{"what": {"a": 1}}', '{"what": {"a": 2}}'),
    ('{"what": {"a": 1}}', '{"what": {"a": "1"}}'),
    ('{"what": {"a": 1}}', '{"what": {"a": true}}'),
    ('{"what": {"a": 0}}', '{"what": {"a": null}}'),
    ('{"what": {"a": [1, 2]}}', '{"what": {"a": [2, 1]}}'),
    ('{"what": {"a": 3.5}}', '{"what": {"a": 3}}'),
    ('{"what": {"a": 9007199254740993}}', '{"what": {"a": 9007199254740992}}'),
    ('{"what": {"a": {}}}', '{"what": {"a": []}}'),
    ('{"what": {}}', '{"what": null}'),
    ('{"what": null}', "{}"),
    ('{"what": {"a": "e\\u0301"}}', '{"what": {"a": "\\u00e9"}}'),
]


async def ask_raw(client: Caller, tool: str, arguments: str, more: JSON) -> JSON:
    """A call whose arguments are sent to the letter."""
    params = json.dumps({"name": tool, "arguments": "HERE", **more})
    return await client.ask_raw("tools/call", params.replace('"HERE"', arguments))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(("first", "second"), SAME)
async def test_how_arguments_are_written_does_not_matter(tool: str, first: str, second: str) -> None:
    async with caller(serving()) as client:
        said = await ask_raw(client, tool, first, {})
        assert texts(await ask_raw(client, tool, second, retry(said))) == "answer to Name?"


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(("first", "second"), DIFFERENT)
async def test_what_arguments_say_matters(tool: str, first: str, second: str) -> None:
    async with caller(serving()) as client:
        said = await ask_raw(client, tool, first, {})
        refused = await ask_raw(client, tool, second, retry(said))
        assert refused["error"] == {"code": REFUSED, "message": "requestState belongs to another request"}
        assert texts(await ask_raw(client, tool, first, retry(said))) == "answer to Name?"


async def test_a_state_is_of_one_tool_and_one_resource() -> None:
    async with caller(serving()) as client:
        for one, other in [("safe", "unsafe"), ("unsafe", "safe"), ("declared", "unsafe"), ("unsafe", "declared")]:
            said = await client.call(one)
            assert (await client.call(other, **retry(said)))["error"]["code"] == REFUSED
        said = await client.ask("resources/read", {"uri": "test://here"})
        assert (await client.ask("resources/read", {"uri": "test://there", **retry(said)}))["error"]["code"] == REFUSED
        assert texts(await client.ask("resources/read", {"uri": "test://here", **retry(said)})).endswith(" here")


async def test_the_meta_of_a_retry_is_its_own() -> None:
    async with caller(serving()) as client:
        for tool in TOOLS:
            params = {"name": tool, "arguments": {}}
            said = await client.ask("tools/call", params, progressToken=1, traceparent="00-1-1-00")
            assert texts(await client.ask("tools/call", {**params, **retry(said)}, progressToken=2))


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_state_belongs_to_one_principal(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving()
    monkeypatch.setattr(run, "Peer", lambda line, _: Peer(line, "ann"))
    async with caller(server) as ann:
        said = await ann.call(tool)
        monkeypatch.setattr(run, "Peer", lambda line, _: Peer(line, "bob"))
        async with caller(server) as bob:
            assert (await bob.call(tool, **retry(said)))["error"]["code"] == REFUSED
        assert texts(await ann.call(tool, **retry(said))) == "answer to Name?"


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_state_is_of_one_server_and_one_definition(tool: str) -> None:
    here = serving(keys=[OLD], about="as it was")
    for there in (serving(keys=[OLD], about="as it is"), serving(keys=[OLD], about="as it was", name="other")):
        async with caller(here) as client, caller(there) as other:
            refused = await sent_on(client, other, tool, {}, {})
            assert refused["error"] == {"code": REFUSED, "message": "requestState belongs to another request"}


def with_versions(annotations: ToolAnnotations | None) -> Server:
    """A server with two versions of a tool that are defined alike."""
    server = Server("test")

    def declare(version: str) -> None:
        @server.tool(name="versioned", version=version, annotations=annotations)
        async def versioned(ctx: Context) -> str:
            return f"{(await ctx.elicit('Name?', str)).data} in {version}"

    declare("1")
    declare("2")
    return server


@pytest.mark.parametrize("annotations", [SAFE, None])
async def test_a_state_is_of_one_version(annotations: ToolAnnotations | None) -> None:
    """A client that may no longer see a version cannot go on with its call through another."""
    async with caller(with_versions(annotations)) as client:
        params, old = {"name": "versioned", "arguments": {}}, {"accord/version": "1"}
        said = await client.ask("tools/call", params, **old)
        for other in ({}, {"accord/version": "2"}):
            refused = await client.ask("tools/call", {**params, **retry(said)}, **other)
            assert refused["error"] == {"code": REFUSED, "message": "requestState belongs to another request"}
        assert texts(await client.ask("tools/call", {**params, **retry(said)}, **old)) == "answer to Name? in 1"


async def test_the_client_repeats_the_version_with_its_answers() -> None:
    async with Client(with_versions(None), elicitation=lambda question: "Ann", revisions=["2026-07-28"]) as client:
        assert (await client.call_tool("versioned", meta={"accord/version": "1"})).text == "Ann in 1"


async def test_an_answer_is_to_one_question() -> None:
    async with caller(serving(keys=[OLD])) as client, caller(serving(keys=[OLD], asked="City?")) as other:
        said = await sent_on(client, other, "safe", {}, {})
        assert [asked["params"]["message"] for asked in questions(said).values()] == ["City?"]
        assert texts(await other.call("safe", **retry(said))) == "answer to City?"


async def test_a_state_without_its_end_is_over_in_time(clock: Clock) -> None:
    async with caller(serving(answer_seconds=600)) as client:
        for tool in TOOLS:
            said = await client.call(tool)
            await clock.jump(601)
            over = await client.call(tool, **retry(said))
            assert over["result"]["isError"]
            assert "too late" in texts(over)
        said = await client.ask("resources/read", {"uri": "test://here"})
        await clock.jump(601)
        assert (
            "too late"
            in (await client.ask("resources/read", {"uri": "test://here", **retry(said)}))["error"]["message"]
        )


# --- several servers, several keys -------------------------------------------------------------------------------


async def test_what_may_run_again_goes_on_at_another_server_with_the_same_keys() -> None:
    async with caller(serving(keys=[OLD])) as client, caller(serving(keys=[OLD])) as other:
        assert texts(await sent_on(client, other, "safe", {}, {})) == "answer to Name?"


@pytest.mark.parametrize("tool", ["unsafe", "declared"])
async def test_what_may_not_run_again_says_that_its_server_has_ended(tool: str) -> None:
    async with caller(serving(keys=[OLD])) as client, caller(serving(keys=[OLD])) as other:
        refused = await sent_on(client, other, tool, {}, {})
        assert refused["result"]["isError"]
        assert "the server that was running this call is gone" in texts(refused)


@pytest.mark.parametrize("tool", TOOLS)
async def test_without_shared_keys_another_server_takes_no_state(tool: str) -> None:
    async with caller(serving()) as client, caller(serving()) as other:
        assert (await sent_on(client, other, tool, {}, {}))["error"]["code"] == REFUSED


async def test_keys_change_without_a_break() -> None:
    async with (
        caller(serving(keys=[OLD])) as before,
        caller(serving(keys=[NEW, OLD])) as during,
        caller(serving(keys=[NEW])) as after,
    ):
        for first, second in [(before, during), (during, after)]:
            assert texts(await sent_on(first, second, "safe", {}, {})) == "answer to Name?"
        for first, second in [(before, after), (after, before), (during, before)]:
            assert (await sent_on(first, second, "safe", {}, {}))["error"]["code"] == REFUSED


# --- states that are too large to travel -------------------------------------------------------------------------


def long_talk(**limits: Any) -> Server:
    """A server whose tool keeps a good deal from round to round."""
    server = Server("long", limits=limits_of(**limits), state_keys=[OLD])

    @server.tool(annotations=SAFE)
    async def talk(size: int, ctx: Context) -> str:
        await ctx.once("big", lambda: "x" * size)
        said = [str((await ctx.elicit(f"{number}?", str)).data) for number in range(3)]
        return f"{len(await ctx.once('big', lambda: 'again'))} {said}"

    return server


async def test_a_state_that_is_too_large_to_send_is_stored_here_and_returns() -> None:
    async with caller(long_talk(state_bytes=1_000)) as client:
        said = await client.call("talk", {"size": 5_000})
        assert len(said["result"]["requestState"]) < 200
        said = await client.through("tools/call", {"name": "talk", "arguments": {"size": 5_000}})
        assert texts(said) == "5000 ['answer to 0?', 'answer to 1?', 'answer to 2?']"
        said = await client.through("tools/call", {"name": "talk", "arguments": {"size": 10}})
        assert texts(said).startswith("10 ")


async def test_the_shelf_has_a_bound_and_drops_the_oldest() -> None:
    async with caller(long_talk(state_bytes=1_000, kept_bytes=20_000)) as client:
        said = [await client.call("talk", {"size": 5_000}) for _ in range(4)]
        dropped = await client.call("talk", {"size": 5_000}, **retry(said[0]))
        assert dropped["result"]["isError"]
        assert "answers have expired" in texts(dropped)
        assert asks(await client.call("talk", {"size": 5_000}, **retry(said[3])))
        too_large = await client.call("talk", {"size": 30_000})
        assert too_large["result"]["isError"]
        assert "20,000 bytes" in texts(too_large)


async def test_a_shelf_is_of_one_server() -> None:
    async with caller(long_talk(state_bytes=1_000)) as client, caller(long_talk(state_bytes=1_000)) as other:
        lost = await sent_on(client, other, "talk", {"size": 5_000}, {"size": 5_000})
        assert "call again from the start" in texts(lost)


# --- what is no state --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("state", [5, {}, [], True, "", "x", "é" * 500, "A" * 1_000_000])
async def test_what_is_no_state_is_refused(tool: str, state: object) -> None:
    async with caller(serving()) as client:
        assert (await client.call(tool, requestState=state))["error"]["code"] == REFUSED
        assert asks(await client.call(tool, requestState=None))


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00\xc1", b"\x00\x93\x01\x02\x03", b"\x01short", b"\x02zz"])
def test_what_the_same_keys_sealed_for_another_version_is_refused(payload: bytes) -> None:
    kept = RequestStates(Keyring([OLD]), Limits())
    with pytest.raises(AccordError):
        kept.open(Keyring([OLD]).seal(payload), b"b" * 16)
