"""A FAKE provider of models: no model is behind it. It speaks three APIs over real sockets, and fails as it is told.

The shapes of messages and events are taken from the providers' API references, not guessed:

- Messages API of Anthropic: "Create a Message", "Streaming messages", "Errors" (platform.claude.com).
- Chat Completions and Responses APIs of OpenAI: "Create chat completion", "The chat completion chunk object",
  "Create a model response", "Streaming events", "Error codes" (platform.openai.com).

Each test gives the provider its responses, byte by byte if it wants. Every response says that it is a fake.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

FAKE = "this is a fake provider for tests"
MODEL = "fake-model-1"


@dataclass
class FakeResponse:
    """One response: `chunks` are written one after the other, and then the response ends in the given way."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    content_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    end: Literal["complete", "broken", "silent", "endless"] = "complete"
    head: bytes | None = None
    """Bytes in place of the status line and the headers."""


@dataclass
class FakeRequest:
    """One request that the provider received."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeProvider:
    """A fake provider on 127.0.0.1 that sends `responses`, one for each request; `url` is its address."""

    def __init__(self, *responses: FakeResponse, tls: ssl.SSLContext | None = None) -> None:
        self.responses = list(responses)
        self.requests: list[FakeRequest] = []
        self.connections = 0
        self.url = ""
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeProvider:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                while await self._serve_one(reader, writer):
                    pass
            finally:
                writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(FakeRequest(method, path, headers, json.loads(body or b"null")))
        place = len(self.requests) - 1
        if place >= len(self.responses):
            response = FakeResponse([b'"the fake has no further response"'], 500, headers={"x-should-retry": "false"})
        else:
            response = self.responses[place]
        return await self._send(response, reader, writer)

    async def _send(self, response: FakeResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        fields = {"x-fake": FAKE, **response.headers}
        if response.content_type is not None:
            fields["content-type"] = response.content_type
        fields["transfer-encoding"] = "chunked"
        head = f"HTTP/1.1 {response.status} Fake\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields.items()) + "\r\n"
        writer.write(head.encode("latin-1") if response.head is None else response.head)
        for chunk in response.chunks:
            await self._write(writer, chunk)
        while response.end == "endless":
            await self._write(writer, response.chunks[-1])
        if response.end == "silent":
            await reader.read()  # until the client closes the connection
        if response.end == "complete":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return response.end == "complete"

    async def _write(self, writer: asyncio.StreamWriter, chunk: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
        await asyncio.sleep(0)


# --- answers in the three APIs -------------------------------------------------------------------------------------

Part: TypeAlias = tuple[str, ...]
"""`("text", text)`, or `("tool", id, name, arguments as JSON)`."""
Stop: TypeAlias = Literal["end", "limit", "tools"]


@dataclass
class Answer:
    """What the fake model says, in no API's own form."""

    parts: Sequence[Part]
    stop: Stop = "end"
    input_tokens: int = 11
    output_tokens: int = 7
    piece: int = 3
    """Characters of text, and of arguments, in one event of a stream."""

    def pieces(self, text: str) -> list[str]:
        return [text[place : place + self.piece] for place in range(0, len(text), self.piece)]


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def named(data: dict[str, Any]) -> bytes:
    return event(data, data["type"])


class MessagesAPI:
    """Answers of the Messages API of Anthropic."""

    path = "/v1/messages"
    error_event = named({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    _stops: ClassVar = {"end": "end_turn", "limit": "max_tokens", "tools": "tool_use"}

    @classmethod
    def whole(cls, answer: Answer) -> dict[str, Any]:
        content = [
            {"type": "text", "text": part[1]}
            if part[0] == "text"
            else {"type": "tool_use", "id": part[1], "name": part[2], "input": json.loads(part[3])}
            for part in answer.parts
        ]
        return cls._message(answer, content)

    @classmethod
    def _message(cls, answer: Answer, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": cls._stops[answer.stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": answer.input_tokens - 3,
                "cache_creation_input_tokens": 2,
                "cache_read_input_tokens": 1,
                "output_tokens": answer.output_tokens,
            },
        }

    @classmethod
    def stream(cls, answer: Answer) -> list[bytes]:
        whole = cls._message(answer, [])
        start = {**whole, "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        events = [named({"type": "message_start", "message": start}), named({"type": "ping"})]
        for index, part in enumerate(answer.parts):
            if part[0] == "text":
                block: dict[str, Any] = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces(part[1])]
            else:
                block = {"type": "tool_use", "id": part[1], "name": part[2], "input": {}}
                pieces = ["", *answer.pieces(part[3])]
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            events.append(named({"type": "content_block_start", "index": index, "content_block": block}))
            events += [named({"type": "content_block_delta", "index": index, "delta": each}) for each in deltas]
            events.append(named({"type": "content_block_stop", "index": index}))
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": answer.output_tokens}
        events.append(named({"type": "message_delta", "delta": delta, "usage": usage}))
        return [*events, named({"type": "message_stop"})]


class ChatCompletionsAPI:
    """Answers of the Chat Completions API."""

    path = "/chat/completions"
    error_event = event({"error": {"type": "server_error", "code": None, "message": "Overloaded", "param": None}})
    _stops: ClassVar = {"end": "stop", "limit": "length", "tools": "tool_calls"}

    @classmethod
    def _envelope(cls, kind: str, **more: Any) -> dict[str, Any]:
        return {"id": "chatcmpl-fake", "object": kind, "created": 1, "model": MODEL, **more}

    @classmethod
    def _usage(cls, answer: Answer) -> dict[str, int]:
        total = answer.input_tokens + answer.output_tokens
        tokens = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
        return {**tokens, "total_tokens": total}

    @classmethod
    def whole(cls, answer: Answer) -> dict[str, Any]:
        text = "".join(part[1] for part in answer.parts if part[0] == "text")
        calls = [
            {"id": part[1], "type": "function", "function": {"name": part[2], "arguments": part[3]}}
            for part in answer.parts
            if part[0] == "tool"
        ]
        message = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": cls._stops[answer.stop]}
        return cls._envelope("chat.completion", choices=[choice], usage=cls._usage(answer))

    @classmethod
    def chunk(cls, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event(cls._envelope("chat.completion.chunk", choices=[choice], usage=None))

    @classmethod
    def stream(cls, answer: Answer) -> list[bytes]:
        events = [cls.chunk({"role": "assistant", "content": "", "refusal": None})]
        calls = 0
        for part in answer.parts:
            if part[0] == "text":
                events += [cls.chunk({"content": piece}) for piece in answer.pieces(part[1])]
                continue
            first = {"index": calls, "id": part[1], "type": "function", "function": {"name": part[2], "arguments": ""}}
            events.append(cls.chunk({"tool_calls": [first]}))
            for piece in answer.pieces(part[3]):
                events.append(cls.chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}))
            calls += 1
        events.append(cls.chunk({}, cls._stops[answer.stop]))
        events.append(event(cls._envelope("chat.completion.chunk", choices=[], usage=cls._usage(answer))))
        return [*events, event("[DONE]")]


class ResponsesAPI:
    """Answers of the Responses API."""

    path = "/responses"
    error_event = named({"type": "error", "code": "server_error", "message": "Overloaded", "param": None})

    @classmethod
    def item(cls, index: int, part: Part, *, whole: bool) -> dict[str, Any]:
        status = "completed" if whole else "in_progress"
        if part[0] == "text":
            content = [{"type": "output_text", "text": part[1], "annotations": []}] if whole else []
            return {
                "type": "message",
                "id": f"msg_{index}",
                "role": "assistant",
                "status": status,
                "content": content,
            }
        arguments = part[3] if whole else ""
        call = {"type": "function_call", "id": f"fc_{index}", "call_id": part[1], "name": part[2], "status": status}
        return {**call, "arguments": arguments}

    @classmethod
    def whole(cls, answer: Answer) -> dict[str, Any]:
        limit = answer.stop == "limit"
        usage = {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
        return {
            "id": "resp_fake",
            "object": "response",
            "status": "incomplete" if limit else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if limit else None,
            "model": MODEL,
            "output": [cls.item(index, part, whole=True) for index, part in enumerate(answer.parts)],
            "usage": usage,
        }

    @classmethod
    def stream(cls, answer: Answer) -> list[bytes]:
        final = cls.whole(answer)
        start = {**final, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        events = [{"type": "response.created", "response": start}, {"type": "response.in_progress", "response": start}]
        for index, part in enumerate(answer.parts):
            place = {"item_id": f"item_{index}", "output_index": index}
            item = cls.item(index, part, whole=False)
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            kind = "output_text" if part[0] == "text" else "function_call_arguments"
            for piece in answer.pieces(part[1] if part[0] == "text" else part[3]):
                events.append({"type": f"response.{kind}.delta", **place, "content_index": 0, "delta": piece})
            if part[0] == "text":
                events.append({"type": "response.output_text.done", **place, "content_index": 0, "text": part[1]})
            else:
                events.append({"type": "response.function_call_arguments.done", **place, "arguments": part[3]})
            done = cls.item(index, part, whole=True)
            events.append({"type": "response.output_item.done", "output_index": index, "item": done})
        events.append({"type": f"response.{final['status']}", "response": final})
        return [named({**each, "sequence_number": number}) for number, each in enumerate(events)]


def streamed(events: Sequence[bytes], **more: Any) -> FakeResponse:
    return FakeResponse(list(events), content_type="text/event-stream; charset=utf-8", **more)


def as_json(value: Any, status: int = 200, **more: Any) -> FakeResponse:
    return FakeResponse([json.dumps(value).encode()], status, **more)
