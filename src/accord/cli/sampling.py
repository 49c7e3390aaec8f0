"""Sampling requests in a terminal: the user types the answer, or a command produces it (`--sample-with`).

The command runs without a shell. It receives the params of `sampling/createMessage` as JSON on stdin, and writes the
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
    """Print a sampling request, and return the answer that the user types. Raises `PromptRefused`."""
    screen.print_prompt("\n".join(request_lines(params)))
    text = await type_text(f"Answer for the model; an empty line or Ctrl-D ends it, {keyboard.DECLINE} declines:")
    return _text(text, model="a person", stop_reason="endTurn")


async def type_text(instruction: str) -> str:
    """Return the lines that the user types, at least one. Raises `PromptRefused`."""
    screen.print_prompt(f"\n  {click.style(instruction, bold=True)}")
    lines = [await _first_line()]
    while line := await keyboard.read_line("  > "):
        lines.append(line)
    return "\n".join(lines)


async def _first_line() -> str:
    while not (line := await keyboard.prompt("  > ")).strip():
        continue
    return line


def _text(text: str, model: str, stop_reason: str | None = None) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(text=text), model=model, stop_reason=stop_reason)


# --- output ----------------------------------------------------------------------------------------------------


def request_lines(params: CreateMessageParams) -> Iterator[str]:
    """Yield the lines of a sampling request."""
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
            text = "\n".join(map(_block, block.content))
            return f"the tool {'failed' if block.is_error else 'answered'}: {text}"
        case TextContent():
            return block.text
    return click.unstyle(content.block_text(block))


def _tool(tool: Tool) -> str:
    signature = f"{tool.name}({', '.join(parameters(tool.input_schema))})"
    return f"{signature}  {one_line(tool.description)}" if tool.description else signature


def _preferences(params: CreateMessageParams) -> str:
    """Return the preferences of a sampling request in one line."""
    hints = params.model_preferences.hints if params.model_preferences else None
    preferences = {
        "at most {} tokens": params.max_tokens,
        "model: {}": ", ".join(hint.name for hint in hints or () if hint.name),
        "temperature: {}": params.temperature,
        "stops at: {}": ", ".join(map(repr, params.stop_sequences or ())),
        "use of tools: {}": params.tool_choice.mode if params.tool_choice else None,
        "wants to see: {}": None if params.include_context == "none" else params.include_context,
    }
    return one_line(" · ".join(text.format(value) for text, value in preferences.items() if value not in (None, "")))


# --- answers of a command --------------------------------------------------------------------------------------


async def run_command(command: Sequence[str], params: CreateMessageParams) -> CreateMessageResult:
    """Return the answer of a command. Raises `InternalError` if it has none."""
    output = await _output(command, codec.encode(params))
    if _is_result(output):
        try:
            return codec.decoder(CreateMessageResult).decode(output)  # type: ignore[no-any-return]
        except msgspec.ValidationError as exc:
            raise InternalError(f"what {command[0]} wrote is no CreateMessageResult: {exc}") from exc
    text = output.decode(errors="replace").rstrip("\r\n")
    if not text:
        raise InternalError(f"{command[0]} wrote no answer")
    return _text(text, model=os.path.basename(command[0]))


def _is_result(output: bytes) -> bool:
    """Return whether the output is meant as a result; models often answer in JSON of their own."""
    try:
        decoded = msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(decoded, dict) and {"role", "content"} <= decoded.keys()


async def _output(command: Sequence[str], request: bytes) -> bytes:
    """Run a command and return its stdout; no process is left behind. Raises `InternalError` if it fails."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
    except OSError as exc:
        raise InternalError(f"{command[0]} cannot be started: {exc}") from exc
    try:
        output, _ = await process.communicate(request)
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()
    if process.returncode:
        raise InternalError(f"{command[0]} ended with exit code {process.returncode}")
    return output


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the command and its children, which share a session."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
