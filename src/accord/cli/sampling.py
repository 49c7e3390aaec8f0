"""What a server asks a model, shown in a terminal; the answer is typed, or made by a command (`--sample-with`).

The command is started without a shell. It gets the params of `sampling/createMessage` as JSON on stdin, and writes the
answer to stdout: text, or a `CreateMessageResult` as JSON.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from accord.cli import content, keyboard
from accord.cli.columns import one_line
from accord.cli.schema_text import parameters
from accord.cli.screen import quoted, screen
from accord.errors import InternalError
from accord.messages import codec
from accord.messages.content import TextContent, ToolResultContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage, blocks_of
from accord.messages.tools import Tool


async def type_answer(params: CreateMessageParams) -> CreateMessageResult:
    """Show what is asked, and take what the person types in the place of a model. Raises `PromptRefused`."""
    screen.print_prompt("\n".join(request_lines(params)))
    how = f"Answer for the model; an empty line or Ctrl-D ends it, {keyboard.DECLINE} declines:"
    screen.print_prompt(f"\n  {click.style(how, bold=True)}")
    lines = [await _first_line()]
    while line := await keyboard.read_line("  > "):
        lines.append(line)
    return _text("\n".join(lines), model="a person", stop_reason="endTurn")


async def _first_line() -> str:
    while not (line := await keyboard.prompt("  > ")).strip():
        continue
    return line


def _text(text: str, model: str, stop_reason: str | None = None) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(text=text), model=model, stop_reason=stop_reason)


# --- shown -----------------------------------------------------------------------------------------------------


def request_lines(params: CreateMessageParams) -> Iterator[str]:
    """What a server wants to be asked, for people."""
    if params.system_prompt:
        yield "  system:"
        yield quoted(params.system_prompt)
    for message in params.messages:
        yield from _message_lines(message)
    if params.tools:
        yield "  tools:"
        yield from (quoted(_tool(tool)) for tool in params.tools)
    yield click.style(f"  {_preferences(params)}", dim=True)


def _message_lines(message: SamplingMessage) -> Iterator[str]:
    yield f"  {message.role}:"
    yield from (quoted(_block(block)) for block in blocks_of(message))


def _block(block: Any) -> str:
    match block:
        case ToolUseContent():
            return f"uses the tool {block.name}: {msgspec.json.encode(block.input).decode()}"
        case ToolResultContent():
            told = "\n".join(map(_block, block.content))
            return f"the tool {'failed' if block.is_error else 'answered'}: {told}"
        case TextContent():
            return block.text
    return click.unstyle(content.block_text(block))


def _tool(tool: Tool) -> str:
    words = f"{tool.name}({', '.join(parameters(tool.input_schema))})"
    return f"{words}  {one_line(tool.description)}" if tool.description else words


def _preferences(params: CreateMessageParams) -> str:
    """How the answer should be made."""
    hints = params.model_preferences.hints if params.model_preferences else None
    wishes = {
        "at most {} tokens": params.max_tokens,
        "model: {}": ", ".join(hint.name for hint in hints or () if hint.name),
        "temperature: {}": params.temperature,
        "stops at: {}": ", ".join(map(repr, params.stop_sequences or ())),
        "use of tools: {}": params.tool_choice.mode if params.tool_choice else None,
        "wants to see: {}": None if params.include_context == "none" else params.include_context,
    }
    return one_line(" · ".join(text.format(wish) for text, wish in wishes.items() if wish not in (None, "")))


# --- made by a command -----------------------------------------------------------------------------------------


async def run_command(words: Sequence[str], params: CreateMessageParams) -> CreateMessageResult:
    """What a command makes of the request. Raises `InternalError` where it makes nothing of it."""
    said = await _output(words, codec.encode(params))
    if _is_result(said):
        try:
            return codec.decoder(CreateMessageResult).decode(said)  # type: ignore[no-any-return]
        except msgspec.ValidationError as exc:
            raise InternalError(f"what {words[0]} wrote is no CreateMessageResult: {exc}") from exc
    text = said.decode(errors="replace").rstrip("\r\n")
    if not text:
        raise InternalError(f"{words[0]} wrote no answer")
    return _text(text, model=os.path.basename(words[0]))


def _is_result(said: bytes) -> bool:
    """Whether it means to be more than a text; models often answer in JSON of their own."""
    try:
        found = msgspec.json.decode(said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and {"role", "content"} <= found.keys()


async def _output(words: Sequence[str], request: bytes) -> bytes:
    """What a command writes to stdout; nothing of it is left behind. Raises `InternalError` where it fails."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, start_new_session=True)
    except OSError as exc:
        raise InternalError(f"{words[0]} cannot be started: {exc}") from exc
    try:
        said, _ = await process.communicate(request)
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()
    if process.returncode:
        raise InternalError(f"{words[0]} ended with exit code {process.returncode}")
    return said


def _kill(process: asyncio.subprocess.Process) -> None:
    """The command and what it started: they have a session of their own."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
