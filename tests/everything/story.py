"""What a client does with the server program: every verb, with a person, a model and folders behind it.

It notes what its own handlers see, as the server does; where a revision has not a verb, it notes why not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import msgspec
from msgspec import UNSET

from accord import (
    Client,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    NotSupported,
    ProtocolError,
    TextContent,
    ToolUseContent,
)
from accord.messages.notifications import LoggingMessageParams

from tests.everything.program import TODAY

FOLDERS = ["/srv/a", "/srv/b"]
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Connect = Callable[..., AbstractAsyncContextManager[Client]]
"""Makes a client of the server program, with these options."""


class Host:
    """What a client's handlers saw, in order: the step, and a JSON value."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def note(self, step: str, value: Any = None) -> None:
        self.seen.append((step, msgspec.to_builtins(value)))

    # --- asked by the server -----------------------------------------------------------------------------------

    def person(self, params: ElicitParams) -> Any:
        """Fills in what is asked; says no to one question, and closes another."""
        self.note("person", [params.message, params.url or sorted((params.requested_schema or {})["properties"])])
        answers: dict[str, Any] = {
            "What will it be?": {"size": "large", "count": 3},
            "Anything else?": None,
            "Sure?": ElicitResult(action="cancel"),
            "Which days?": ["mon", "wed"],
        }
        return answers.get(params.message, True)

    async def model(self, params: CreateMessageParams) -> CreateMessageResult:
        """Says something about the last message, or wants the tool that it was given."""
        last = params.messages[-1].content
        block = last[0] if isinstance(last, list) else last
        self.note("model", [params.system_prompt, params.max_tokens, len(params.messages), len(params.tools or ())])
        wants = bool(params.tools) and isinstance(block, TextContent)
        use = ToolUseContent(id="use-1", name="add", input={"a": 1, "b": 2})
        text = TextContent(text=f"on {block.text}" if isinstance(block, TextContent) else "added")
        content: Any = [use] if wants else text
        return CreateMessageResult(
            role="assistant", content=content, model="m-1", stop_reason="toolUse" if wants else "endTurn"
        )

    # --- told by the server ------------------------------------------------------------------------------------

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.note("progress", [done, total, message])

    def log(self, params: LoggingMessageParams) -> None:
        self.note("log", [params.level, params.logger, params.data])

    # --- asking ------------------------------------------------------------------------------------------------

    async def outcome(
        self, step: str, verb: Awaitable[Any], value: Callable[[Any], Any] = lambda result: result
    ) -> None:
        """Note what came of a verb, or its error."""
        try:
            self.note(step, value(await verb))
        except ProtocolError as exc:
            self.note(step, [exc.code, exc.data])
        except NotSupported:
            self.note(step, "NotSupported")


async def play(connect: Connect) -> dict[str, list[Any]]:
    """The whole story: what was seen, by who saw it and the step."""
    host = Host()
    options = {
        "elicitation": host.person,
        "elicitation_modes": ("form", "url"),
        "sampling": host.model,
        "sampling_tools": True,
        "roots": FOLDERS,
        "on_log": host.log,
    }
    async with connect(**options) as client:
        client.on("notifications/elicitation/complete", lambda notice: host.note("visited", notice.params))
        for part in (_tools, _told, _asked, _resources, _prompts, _changes, _ended):
            await part(client, host)
        host.seen += [("server " + step, value) for step, value in json.loads((await client.call_tool("seen")).text)]
    seen: dict[str, list[Any]] = {}
    for step, value in host.seen:
        seen.setdefault(step, []).append(value)
    return seen


async def _tools(client: Client, host: Host) -> None:
    host.note("opened", [client.server_info and client.server_info.name, client.instructions])
    host.note("offered", client.server_capabilities)
    host.note("tools", len(await client.list_tools()))
    measured = await client.call_tool("measure", {"city": "Oslo"})
    host.note("measured", None if measured.structured_content is UNSET else measured.structured_content)
    host.note("data", [measured.data, (await client.call_tool("days", {"count": 2})).data])
    await client.call_tool("raw", {"x": [1, None]})
    for how in ("tool", "protocol", "crash"):
        await host.outcome("failed", client.call_tool("fail", {"how": how}), lambda result: result.text)
    await host.outcome("misfit", client.call_tool("measure", {"city": 5}), lambda result: result.is_error)
    await host.outcome("unknown", client.call_tool("nothing"))
    await client.call_tool("who", meta={"traceparent": TRACE, "com.example/x": {"y": 1}})
    await client.ping()


async def _told(client: Client, host: Host) -> None:
    await client.set_log_level("info")
    await client.call_tool("tell", on_progress=host.progress)
    await client.call_tool("tell")


async def _asked(client: Client, host: Host) -> None:
    for tool in ("order", "signed_in", "think", "folders", "together", "number", "greet"):
        await host.outcome(tool, client.call_tool(tool), lambda result: result.is_error)
    client.set_roots(FOLDERS[:1])
    await host.outcome("folders", client.call_tool("folders"), lambda result: result.is_error)
    for tool, arguments in (("delete", {"path": "a.txt"}), ("sign", {"name": "Åse"})):
        await host.outcome(tool, client.call_tool(tool, arguments), lambda result: [result.is_error, result.text])


async def _resources(client: Client, host: Host) -> None:
    host.note("resources", [each.uri for each in await client.list_resources()])
    host.note("templates", [each.uri_template for each in await client.list_resource_templates()])
    for uri in (TODAY, TODAY, "notes://monday", "vault://key", "nothing://here"):
        await host.outcome("read", client.read_resource(uri), lambda result: result.contents[0].text)


async def _prompts(client: Client, host: Host) -> None:
    host.note("prompts", [each.name for each in await client.list_prompts()])
    for name, arguments in (("plan", {"city": "Oslo"}), ("letter", {"to": "Åse"}), ("plan", {})):
        await host.outcome("prompt", client.get_prompt(name, arguments), lambda result: result.messages[0].content.text)
    context = {"country": "Norway"}
    for verb in (
        client.complete(prompt="plan", argument="city", value="mo", context=context),
        client.complete(template="notes://{day}", argument="day", value="mo", context=context),
    ):
        await host.outcome("completed", verb, lambda completion: list(completion.values))


async def _changes(client: Client, host: Host) -> None:
    """What is subscribed to comes, and nothing else."""
    async with client.subscribe(TODAY, tools=True, prompts=True, resources=True) as subscription:
        for tool, events in (("touch", 1), ("grow", 3), ("shrink", 3)):
            await client.call_tool(tool)
            async with asyncio.timeout(100):
                told = [await anext(subscription) for _ in range(events)]
            host.note(tool, sorted(str(event) for event in told))
    await host.outcome("read", client.read_resource(TODAY), lambda result: result.contents[0].text)


async def _ended(client: Client, host: Host) -> None:
    """A call that is cancelled ends its handler."""
    running = asyncio.Event()
    call = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda *_: running.set()))
    async with asyncio.timeout(100):
        await running.wait()
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
