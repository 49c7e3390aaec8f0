"""The answer of a model while it arrives: blocks of text, and uses of tools whose arguments come in pieces.

The parts of an answer have keys, as the providers number them; they keep the order in which they began. Adjacent texts
become one block.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar, cast
from uuid import uuid4

import msgspec

from accord.host.models.failures import ProviderFailure
from accord.host.models.limits import ModelLimits
from accord.host.models.model import ModelResult
from accord.host.models.tool_names import ToolNames
from accord.locked_cache import safe_convert
from accord.messages.base import JSONObject
from accord.messages.bounds import has_more_nodes
from accord.messages.content import SamplingMessageContentBlock, TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageResult

_MOST_TEXTS = 10_000
"""Texts of one answer; providers send a few."""
_MOST_NODES = 100_000
"""In one event of a stream, in an answer that is not streamed, or in the arguments of one use of a tool."""
_MOST_TOKENS = (1 << 53) - 1

OTHER_API = "check base_url: another API may answer there"
"""Advice for an answer in another form."""

_T = TypeVar("_T")

_json = msgspec.json.Decoder()


def decode(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """Return a part of an answer. Raises `ProviderFailure` if it is not JSON, or has another shape."""
    _check_size(data)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as exc:
        reason = f"its answer does not have the shape of this API: {exc}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        reason = f"its answer is not valid JSON: {exc}"
    raise ProviderFailure(reason, retry=True, advice=OTHER_API)


def convert(value: Any, type_: type[_T]) -> _T:
    """Return a decoded part of an answer as a type. Raises `ProviderFailure` if it has another shape."""
    try:
        return cast(_T, safe_convert(value, type_))
    except msgspec.ValidationError as exc:
        reason = f"its answer does not have the shape of this API: {exc}"
    raise ProviderFailure(reason, retry=True)


def _check_size(data: bytes) -> None:
    """Raise `ProviderFailure` for JSON that takes long to decode."""
    if has_more_nodes(data, _MOST_NODES):
        raise ProviderFailure(f"a part of its answer has more than {_MOST_NODES:,} arrays, objects and members")


class PartialToolUse:
    """A use of a tool whose arguments arrive in pieces of JSON; `given` are arguments that came whole."""

    def __init__(self, number: int, id: str, name: str, given: JSONObject | None = None) -> None:
        self.number = number
        """The number of uses of tools before this one."""
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self._given = given

    def arguments(self) -> JSONObject:
        """Return the arguments. Raises `ProviderFailure` if they are no JSON object."""
        text = "".join(self.pieces)
        if not text.strip():
            return self._given or {}
        _check_size(text.encode(errors="replace"))
        try:
            found = _json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ProviderFailure(f"the arguments for the tool {self.name!r:.100} are no JSON object", retry=True)
        return found


class AnswerBuilder:
    """The parts of one answer, and what the provider says about it. Methods raise `ProviderFailure` beyond a limit."""

    def __init__(self, model: str, limits: ModelLimits, names: ToolNames) -> None:
        self.model: str = model
        self.stop_reason: str | None = None
        """The reason as in the specification, or the provider's own."""
        self.input_tokens: int = 0
        self.output_tokens: int = 0
        self.hidden: dict[int, list[JSONObject]] = {}
        """See `HiddenContent`."""
        self.uses: int = 0
        """The number of uses of tools so far."""
        self._limits = limits
        self._names = names
        self._parts: dict[Hashable, list[str] | PartialToolUse] = {}

    def add_text(self, key: Hashable, text: str) -> str:
        """Add a piece of text, and return it."""
        part = self._parts.setdefault(key, [])
        if not isinstance(part, list):
            raise ProviderFailure("it mixed text and a use of a tool in one part of its answer", retry=True)
        if len(self._parts) - self.uses > _MOST_TEXTS:
            raise ProviderFailure(f"its answer has more than {_MOST_TEXTS:,} blocks of text")
        part.append(text)
        return text

    def begin_tool_use(self, key: Hashable, id: str, name: str, given: JSONObject | None = None) -> PartialToolUse:
        """Add a use of a tool, whose arguments follow unless they are `given`."""
        self.uses += 1
        if self.uses > self._limits.tool_calls:
            raise ProviderFailure(
                f"its answer uses tools more than {self._limits.tool_calls} times (ModelLimits.tool_calls)"
            )
        part = self._parts[key] = PartialToolUse(self.uses - 1, id, name, given)
        return part

    def tool_use(self, key: Hashable) -> PartialToolUse | None:
        """Return the use of a tool with this key."""
        part = self._parts.get(key)
        return part if isinstance(part, PartialToolUse) else None

    def hide(self, part: JSONObject, place: int) -> None:
        """Add a hidden part that comes after so many uses of tools."""
        self.hidden.setdefault(place, []).append(part)

    def set_usage(self, input_tokens: Any, output_tokens: Any) -> None:
        """Set the counts of tokens; values that are no counts are ignored."""
        self.input_tokens = _count(input_tokens, self.input_tokens)
        self.output_tokens = _count(output_tokens, self.output_tokens)

    def result(self) -> ModelResult:
        """Return the complete answer."""
        blocks = self._blocks()
        uses_tools = any(isinstance(block, ToolUseContent) for block in blocks)
        reason = self.stop_reason or "endTurn"
        if uses_tools and reason == "endTurn":
            reason = "toolUse"  # some servers say "stop"
        message = CreateMessageResult(
            role="assistant",
            content=blocks[0] if len(blocks) == 1 else blocks or TextContent(text=""),
            model=self.model[:256],
            stop_reason=reason,
        )
        return ModelResult(result=message, input_tokens=self.input_tokens, output_tokens=self.output_tokens)

    def _blocks(self) -> list[SamplingMessageContentBlock]:
        blocks: list[SamplingMessageContentBlock] = []
        texts: list[str] = []
        ids: set[str] = set()
        for part in self._parts.values():
            if isinstance(part, list):
                texts += part
            elif (block := self._tool_use_block(part, ids)) is not None:
                blocks += _text_blocks(texts)
                texts = []
                blocks.append(block)
        return [*blocks, *_text_blocks(texts)]

    def _tool_use_block(self, part: PartialToolUse, ids: set[str]) -> ToolUseContent | None:
        """Return a use of a tool; None for one that the limit of tokens cut off."""
        try:
            arguments = part.arguments()
        except ProviderFailure:
            if self.stop_reason == "maxTokens":
                return None
            raise
        if not part.name:
            raise ProviderFailure("its answer uses a tool without a name", retry=True)
        if not part.id or part.id in ids:
            part.id = f"call_{uuid4().hex}"  # some servers send none, or the same for all
        ids.add(part.id)
        return ToolUseContent(id=part.id, name=self._names.decode(part.name), input=arguments)


def _text_blocks(texts: list[str]) -> list[TextContent]:
    text = "".join(texts)
    return [TextContent(text=text)] if text else []


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else otherwise
