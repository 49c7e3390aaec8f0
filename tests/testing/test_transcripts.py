"""A conversation is recorded, held again with the server, and again with a client, in every revision."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from accord import Client, ProtocolError, ResourceUpdated, Server
from accord.client.subscription import SubscriptionEvent
from accord.messages.revision import REVISIONS
from accord.testing import RecordedServer, Recording, recorded_server, replay
from accord.testing.recording import TranscriptMessage, read_messages
from accord.testing.replayer import TranscriptPlayer

from tests.testing.shops import shop

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from tests.testing.shops import shop
shop(**{options!r}).run()
"""
ROOT = str(Path(__file__).parents[2])
ASKS = REVISIONS[2:]
"""Revisions in which a server may ask the person: elicitation came with the third."""


def answer(params: Any) -> Any:
    return 3 if "many" in params.message else "breads"


async def talk(target: Any, revision: str, **options: Any) -> list[str]:
    """What the client of each test says, and what it hears."""
    can_ask = revision in ASKS
    heard: list[str] = []
    handlers = {"elicitation": answer} if can_ask else {}
    async with Client(
        target, revisions=[revision], on_log=lambda log: heard.append(log.data), **handlers, **options
    ) as client:
        heard.append((await client.call_tool("price", {"item": "bread"})).text)
        progress: list[float] = []
        baked = await client.call_tool("bake", {"breads": 2}, on_progress=lambda done, *_: progress.append(done))
        heard += [baked.text, str(progress[-1])]
        heard.append(str((await client.read_resource("shop://sign")).contents[0].text))
        heard.append(str(len(await client.list_tools())))
        with pytest.raises(ProtocolError):
            await client.call_tool("nothing")
        if can_ask:
            heard.append((await client.call_tool("order")).text)
    return heard


async def recorded(folder: Path, revision: str, form: str = "transcript") -> Path:
    """A transcript, or a session file, of a talk with the shop."""
    recording = Recording()
    await talk(shop(), revision, record=recording)
    file = folder / "talks" / f"shop.{form}"
    recording.save(file)
    return file


each_form = pytest.mark.parametrize("form", ["transcript", "jsonl"])


@each_form
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_that_has_not_changed_says_the_same(revision: str, form: str, tmp_path: Path) -> None:
    file = await recorded(tmp_path, revision, form)
    before = file.read_text()
    for _ in range(2):
        replay(file, shop())
    assert file.read_text() == before


@each_form
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_receives_the_same_from_a_recorded_server(revision: str, form: str, tmp_path: Path) -> None:
    file = await recorded(tmp_path, revision, form)
    told = await talk(shop(), revision)
    for _ in range(2):
        assert sorted(await talk(RecordedServer(file), revision)) == sorted(told)


async def follow(target: Any, revision: str, **options: Any) -> SubscriptionEvent:
    """The event that comes when a resource is changed by a call."""
    async with Client(target, revisions=[revision], **options) as client, asyncio.timeout(100):
        async with client.subscribe("shop://sign") as subscription:
            await client.call_tool("turn")
            event = await anext(subscription)
        await client.ping()
        return event


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_subscription_is_held_again(revision: str, tmp_path: Path) -> None:
    recording, file = Recording(), tmp_path / "subscription"
    event = await follow(shop(), revision, record=recording)
    recording.save(file)
    replay(file, shop())
    assert await follow(RecordedServer(file), revision) == event == ResourceUpdated("shop://sign")


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-1]])
async def test_a_server_may_be_a_program(revision: str, tmp_path: Path) -> None:
    file = await recorded(tmp_path, revision)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=ROOT, options={}))
    replay(file, [sys.executable, str(program)])


@pytest.mark.parametrize("revision", [REVISIONS[1], REVISIONS[-1]])
async def test_a_server_may_be_behind_a_url(revision: str, tmp_path: Path) -> None:
    """What happens in a session has its id in a header there, which the transport has: it is in no transcript."""
    file = await recorded(tmp_path, revision)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=ROOT, options={}).replace("run()", "run(http='127.0.0.1:0')"))
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        try:
            assert process.stderr is not None
            url = re.search(r"http://\S+/mcp", process.stderr.readline())
            assert url is not None
            replay(file, url[0])
        finally:
            process.terminate()


async def test_another_answer_is_shown_with_its_request(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2026-07-28")
    with pytest.raises(AssertionError, match="message 4, the response to tools/call price, differs:") as caught:
        replay(file, shop(changed=True))
    assert 'result.content.0.text: "2.0" → "5.0"' in str(caught.value)
    assert "message 2, the response to server/discover, differs:" in str(caught.value)


async def test_what_is_ignored_may_differ(tmp_path: Path) -> None:
    recording = Recording()
    async with Client(shop(), record=recording) as client:
        await client.call_tool("price", {"item": "bread"})
    recording.save(tmp_path / "price")
    opening = ["result.instructions", "result.capabilities.prompts"]
    tools = ["result.tools.*.inputSchema"]
    replay(
        tmp_path / "price",
        shop(changed=True),
        ignore=[*opening, *tools, "result.content.*", "result.structuredContent"],
    )


async def test_an_update_writes_the_current_text(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-06-18")
    replay(file, shop(changed=True, chatty=True), update=True)
    replay(file, shop(changed=True, chatty=True))
    with pytest.raises(AssertionError, match="the response to tools/call price, differs"):
        replay(file, shop(), timeout=3)


async def test_other_output_is_reported(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-06-18")
    with pytest.raises(AssertionError, match=r"unexpected message of the server: .*really"):
        replay(file, shop(chatty=True))


async def test_removed_text_is_reported(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-06-18")
    replay(file, shop(chatty=True), update=True)
    with pytest.raises(AssertionError, match=r"not received within 3 s: message .* notifications/message, .*really"):
        replay(file, shop(), timeout=3)


async def test_a_server_that_ends_is_reported(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2025-06-18")
    with pytest.raises(AssertionError, match=r"exited with code 3.*not received: message 2, the response to"):
        replay(file, [sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(3)"])


HOSTILE = "\x1b]0;pwned\x07\x9b2J\u202e"
"""Texts that set the title of a terminal, clear it, and turn the direction of what follows."""

TELLS = {
    "a key": "print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': {text: 1}}))",
    "a message": "print(json.dumps({'jsonrpc': '2.0', 'method': 'x' + text}, ensure_ascii=False))",
    "stderr": "sys.stderr.write(text)",
}


@pytest.mark.parametrize("how", TELLS)
def test_no_text_of_a_server_controls_the_terminal(how: str, tmp_path: Path) -> None:
    file = tmp_path / "talk"
    messages = [{"id": 1, "method": "ping"}, {"id": 1, "result": {}}]
    lines = [json.dumps({"jsonrpc": "2.0", **each}) for each in messages]
    file.write_text(f"→ {lines[0]}\n← {lines[1]}\n", encoding="utf-8")
    program = tmp_path / "program.py"
    read = "import json, sys\nfor stream in (sys.stdout, sys.stderr): stream.reconfigure(encoding='utf-8')\n"
    ok = """\nprint('{"jsonrpc":"2.0","id":1,"result":{}}')""" if how == "a message" else ""
    program.write_text(f"{read}sys.stdin.readline()\ntext = {HOSTILE!r}\n{TELLS[how]}{ok}\n", encoding="utf-8")
    with pytest.raises(AssertionError) as caught:
        replay(file, [sys.executable, str(program)])
    assert str(caught.value).replace("\n", "").isprintable()
    assert "x9b2J" in str(caught.value)


async def test_a_request_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    file = await recorded(tmp_path, "2026-07-28")
    async with Client(RecordedServer(file)) as client:
        with pytest.raises(ProtocolError, match=r"has no such request: tools/call price; it has .*tools/call bake"):
            await client.call_tool("price", {"item": "cake"})
        with pytest.raises(ProtocolError, match="has no such request: prompts/get praise"):
            await client.get_prompt("praise", {"item": "cake"})


async def test_a_client_of_all_revisions_finds_the_recorded_one(tmp_path: Path) -> None:
    for revision in REVISIONS:
        file = await recorded(tmp_path, revision)
        async with Client(RecordedServer(file)) as client:
            assert client.revision == revision


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"does not exist.*--accord-update"):
        replay(tmp_path / "none", shop())
    with pytest.raises(AssertionError, match="does not exist"):
        RecordedServer(tmp_path / "none")


def test_a_file_that_is_no_transcript_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("→ {}\nwhat?\n")
    with pytest.raises(ValueError, match="wrong: line 2 begins with neither"):
        replay(tmp_path / "wrong", shop())


WRONG = [
    ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', "an id"),
    ('{"jsonrpc":"2.0","id":{},"result":{}}', "an id"),
    ('{"jsonrpc":"2.0","id":1,"method":{}}', "a method"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', "params"),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[1]}}', "params"),
]


@pytest.mark.parametrize(("message", "what"), WRONG)
def test_a_message_that_cannot_be_replayed_is_an_error(message: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong"
    file.write_text(f'→ {{"jsonrpc":"2.0","id":1,"method":"ping"}}\n← {message}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=f"wrong: message 2 has {what}"):
        RecordedServer(file)


def test_a_message_that_is_nested_too_deep_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "deep"
    file.write_text(f"→ {'[' * 100_000}\n", encoding="utf-8")
    RecordedServer(file)


def test_nothing_recorded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing was recorded"):
        Recording().save(tmp_path / "none")
    assert not (tmp_path / "none").exists()


# --- session files -----------------------------------------------------------------------------------------------


async def test_an_update_preserves_the_form_of_the_file(tmp_path: Path) -> None:
    for form, start in (("transcript", "→ "), ("jsonl", '{"kind":"session"')):
        file = await recorded(tmp_path, "2025-06-18", form)
        replay(file, shop(changed=True), update=True)
        text = file.read_text()
        assert text.startswith(start)
        assert "Be quick." in text
        replay(file, shop(changed=True))


async def test_each_recorded_connection_is_held_again(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    client = Client(shop(), record=file)
    for item in ("bread", "cake"):
        await client.connect()
        await client.call_tool("price", {"item": item})
        await client.close()
    replay(file, shop())
    with pytest.raises(AssertionError) as caught:
        replay(file, shop(changed=True))
    assert str(caught.value).count("the response to tools/call price, differs") == 2
    async with Client(RecordedServer(file)) as client:
        for item in ("cake", "bread"):
            assert (await client.call_tool("price", {"item": item})).text == "2.0"


async def test_a_server_that_ended_at_the_probe_is_replayed(tmp_path: Path) -> None:
    program = tmp_path / "older.py"
    text = PROGRAM.format(root=ROOT, options={})
    end_at_the_probe = "import sys\nif 'discover' in (first := sys.stdin.readline()): sys.exit(1)\n"
    older = f"{end_at_the_probe}import io, os\nread, write = os.pipe()\nos.write(write, first.encode())\n"
    older += "import threading, shutil\nreal = os.dup(0)\nos.dup2(read, 0)\n"
    older += "def pump():\n    while data := os.read(real, 65536): os.write(write, data)\n    os._exit(0)\n"
    older += "threading.Thread(target=pump, daemon=True).start()\n"
    program.write_text(older + text)
    file = tmp_path / "older.jsonl"
    async with Client([sys.executable, "-u", str(program)], record=file) as client:
        assert client.revision == "2025-11-25"
        await client.call_tool("price", {"item": "bread"})
    async with Client(RecordedServer(file)) as client:
        assert client.revision == "2025-11-25"
        assert (await client.call_tool("price", {"item": "bread"})).text == "2.0"


def test_a_recording_of_nothing_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing was recorded"):
        Recording().save(tmp_path / "nothing.jsonl")


async def test_a_recording_that_is_too_long_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.testing.recording.SESSION_FILE_BYTES", 1_000)
    recording = Recording()
    await talk(shop(), REVISIONS[-1], record=recording)
    with pytest.raises(ValueError, match="too long to replay: more than 1,000 bytes were recorded"):
        recording.save(tmp_path / "long.jsonl")


async def test_a_saved_session_file_has_no_secrets_unless_wanted(tmp_path: Path) -> None:
    recording = Recording()
    async with Client(shop(), record=recording) as client:
        await client.call_tool("price", {"item": "token=abcdefgh12345"})
    recording.save(tmp_path / "redacted.jsonl")
    recording.save(tmp_path / "unredacted.jsonl", unredacted=True)
    assert "abcdefgh12345" not in (tmp_path / "redacted.jsonl").read_text()
    assert "abcdefgh12345" in (tmp_path / "unredacted.jsonl").read_text()


async def test_a_redacted_value_is_equal_to_any(tmp_path: Path) -> None:
    server = Server("keys")
    keys = {"token": "abcdefgh12345", "note": "send token=abcdefgh12345 soon", "list": [{"password": 12}], "n": 1}

    @server.tool
    def key() -> dict[str, Any]:
        """A key."""
        return keys

    recording, file = Recording(), tmp_path / "keys.jsonl"
    async with Client(server, record=recording, revisions=["2026-07-28"]) as client:
        await client.call_tool("key")
    recording.save(file)
    assert "abcdefgh12345" not in file.read_text()
    ignore = ["result.content.*"]
    replay(file, server, ignore=ignore)
    keys["token"] = "another"
    keys["note"] = "send token=other soon"
    replay(file, server, ignore=ignore)
    keys["note"] = "send it later"
    with pytest.raises(AssertionError, match=r'structuredContent\.note: .* → "send it later"'):
        replay(file, server, ignore=ignore)


def many_calls(file: Path, count: int) -> list[dict[str, Any]]:
    """Write a session file with equal calls, and return its requests."""
    calls = [
        {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": {"name": "price", "arguments": {"at": at}}}
        for at in range(count)
    ]
    messages = [*(("sent", each) for each in calls), *(("received", answer_to(each)) for each in calls)]
    header = {"kind": "session", "version": 1, "at": "2026-11-23T15:40:02.000Z"}
    entries = [{"kind": "message", "connection": 1, "direction": sent, "message": each} for sent, each in messages]
    file.write_text("".join(json.dumps(each) + "\n" for each in [header, *entries]), encoding="utf-8")
    return calls


def answer_to(request: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}


class ReversedAnswers:
    """A transport whose peer answers at once, the last request first."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: bytes) -> None:
        self.sent.append(json.loads(message))

    def flush(self) -> None:
        pass

    def lost(self) -> str:
        return "lost"

    async def receive(self) -> list[bytes]:
        sent, self.sent = self.sent, []
        return [json.dumps(answer_to(each)).encode() for each in reversed(sent)]


def test_each_request_is_found_without_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = many_calls(tmp_path / "calls.jsonl", 50)
    session = RecordedServer(tmp_path / "calls.jsonl").session()
    read: list[Any] = []
    monkeypatch.setattr(recorded_server, "_params", lambda request: read.append(request) or request["params"])
    found = [session.find({**each, "id": "other"}) for each in calls]
    assert [each.request.message for each in found] == calls
    assert len(read) == len(calls)


async def test_a_long_replay_leaves_time_for_others_and_searches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = many_calls(tmp_path / "calls.jsonl", 50)
    kinds: list[Any] = []
    kind = TranscriptMessage.kind.fget
    monkeypatch.setattr(TranscriptMessage, "kind", property(lambda each: kinds.append(each) or kind(each)))
    player = TranscriptPlayer(ReversedAnswers(), [])
    playing = asyncio.ensure_future(player.play(read_messages(tmp_path / "calls.jsonl")))
    turns = 0
    while not playing.done():
        turns += 1
        await asyncio.sleep(0)
    assert player.mismatches == []
    assert turns >= len(calls)
    assert len(kinds) <= 2 * len(calls)


@pytest.mark.parametrize("value", [1, 1.0])
def test_an_integer_that_is_written_as_a_float_is_the_same(tmp_path: Path, value: float) -> None:
    calls = many_calls(tmp_path / "calls.jsonl", 2)
    session = RecordedServer(tmp_path / "calls.jsonl").session()
    found = session.find({**calls[1], "params": {"name": "price", "arguments": {"at": value}}})
    assert found.request.message == calls[1]


def test_a_request_that_is_too_deep_is_not_recorded(tmp_path: Path) -> None:
    calls = many_calls(tmp_path / "calls.jsonl", 2)
    session = RecordedServer(tmp_path / "calls.jsonl").session()
    value: Any = 0
    for _ in range(600):
        value = [value]
    found = session.find({**calls[1], "params": {"name": "price", "arguments": {"at": value}}})
    assert "has no such request" in found.responses[0].message["error"]["message"]


def test_the_error_for_an_unknown_request_names_some_of_very_many(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    lines = many_calls(file, 500) and file.read_text(encoding="utf-8").replace('"name": "price"', '"name": "%s"')
    file.write_text(
        "".join(line.replace("%s", f"price{at}") for at, line in enumerate(lines.splitlines(True))), "utf-8"
    )
    found = RecordedServer(file).session().find({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    assert len(found.responses[0].message["error"]["message"]) < 3_000


@pytest.mark.parametrize("fields", [{"method": []}, {"method": "tools/call", "params": [1]}])
def test_a_request_that_is_invalid_gets_the_error_too(tmp_path: Path, fields: Any) -> None:
    many_calls(tmp_path / "calls.jsonl", 2)
    session = RecordedServer(tmp_path / "calls.jsonl").session()
    found = session.find({"jsonrpc": "2.0", "id": 1, **fields})
    assert "has no such request" in found.responses[0].message["error"]["message"]


@pytest.mark.parametrize("params", [[1], "all", {"_meta": [1]}, {"_meta": "x"}])
async def test_progress_for_a_request_with_invalid_params_has_the_recorded_token(tmp_path: Path, params: Any) -> None:
    """It ended the recorded server."""
    file = tmp_path / "recorded.transcript"
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answered = {"jsonrpc": "2.0", "id": 1, "result": {}}
    lines = [("sent", request), ("received", progress), ("received", answered)]
    head = {"kind": "session", "version": 1, "at": "2026-11-23T15:40:02.000Z"}
    entries = [{"kind": "message", "connection": 1, "direction": way, "message": each} for way, each in lines]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in [head, *entries]), "utf-8")
    session, sink = RecordedServer(file).session(), Mock()
    asked = {**request, "params": params}
    await session.answer(session.find(asked), asked, sink)
    assert [json.loads(call.args[0]) for call in sink.send.call_args_list] == [progress, answered]
