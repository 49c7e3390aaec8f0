"""A person's answers (client, Elicitation): from what a handler gives to an `ElicitResult` that fits what was asked.

A handler says no with `None`, or yes with what the person filled in: a mapping, a record (dataclass, Struct, model),
or a plain value for a form of one field. For a page to visit, and for a form without fields, yes is `True` and no
`False`. An `ElicitResult` is the long form of any of these, and can say "cancel".
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
from accord.errors import DeclarationError, InvalidParams, Mismatch, NotSupported, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec
from accord.messages.bounds import INVISIBLE, NAME_LENGTH, normalize
from accord.messages.capabilities import ElicitationCapability
from accord.messages.elicitation import ElicitationCompleteParams, ElicitParams, ElicitResult
from accord.messages.revision import Rules
from accord.schema.form_schemas import count_expanded
from accord.schema.forms import check
from accord.schema.json_values import to_json

Mode: TypeAlias = Literal["form", "url"]

_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f/?#][^\s\x00-\x1f\x7f]*", re.IGNORECASE)
"""What a person may be sent to; `javascript:` and `file:` are no pages to visit."""

_MAX_URL_LENGTH = 8 << 10
"""The longest address that a person is sent to."""

_MAX_HOST_LENGTH = 1_000
"""The longest host, with its port: names have 253 characters at most, and `urlsplit` takes the square of what it gets.
"""

_METADATA_HOSTS = frozenset(
    ("metadata.google.internal", "metadata", "instance-data", "fd00:ec2::254", "100.100.100.200", "192.0.0.192")
)
"""Where machines in a cloud find their credentials: no person has anything to do there."""

_FORM_VALUES = 20_000
"""Values in the schema of a form: choices, mostly."""

_MAX_OPEN_PAGES = 1_024
"""Pages whose completion may still be told; beyond that the oldest is forgotten."""


class ElicitationHandler:
    """Answers `elicitation/create` with a user's function. `modes` are the ways of asking that it can handle;
    `on_complete` is told the id of each page that the person is done with (2025-11-25).
    """

    method: ClassVar[str] = "elicitation/create"

    def __init__(
        self,
        function: Callable[..., Any],
        modes: Sequence[Mode],
        on_complete: Callable[[str], Any] | None = None,
        *,
        threads: HandlerThreads,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._modes: set[str] = {modes} if isinstance(modes, str) else set(modes)
        if not self._modes or not self._modes <= set(get_args(Mode)):
            raise DeclarationError(f'elicitation_modes={modes!r}: name "form", "url" or both')
        if on_complete is not None and "url" not in self._modes:
            raise DeclarationError('on_elicitation_complete needs URL elicitation: add "url" to elicitation_modes')
        self._handler = UserHandler("elicitation", function, 2, threads)
        self._most_fields = limits.client.form_fields
        self._depth = limits.depth
        self._on_complete = on_complete
        self._pages: OrderedDict[str, None] = OrderedDict()

    @property
    def capability(self) -> ElicitationCapability:
        """What is declared."""
        return ElicitationCapability(**{mode: {} for mode in self._modes})

    def read(self, raw: Any, rules: Rules) -> ElicitParams:
        """The params of a question. Raises `InvalidParams`, and `NotSupported` for a mode that is not offered."""
        params = codec.decode_params(ElicitParams, raw)
        mode = params.mode or "form"  # "Clients MUST treat requests without a `mode` field as form mode"
        if mode not in self._modes or (mode == "url" and not rules.elicitation_urls):
            raise NotSupported(f"this client does not support elicitation by {mode}, and has not declared it")
        if mode == "url":
            check_url(params.url or "")
        if mode == "form":
            self._check_form(params.requested_schema)
        return params

    def _check_form(self, schema: Mapping[str, Any] | None) -> None:
        if schema is None:
            raise InvalidParams("elicitation/create: a form needs `requestedSchema`")
        try:
            count_expanded(schema, self._depth, _FORM_VALUES)
        except SchemaError as exc:
            raise InvalidParams(f"elicitation/create: `requestedSchema`: {exc}") from exc
        if len(_field_names(schema)) > self._most_fields:
            raise InvalidParams(
                f"elicitation/create: the form has more than {self._most_fields} fields (ClientLimits.form_fields)"
            )

    async def answer(self, params: ElicitParams, context: ClientContext) -> ElicitResult:
        """What the person says. Raises what the handler raises, `Mismatch` for content that does not fit the form."""
        self.expect_page(params.elicitation_id)  # the person may be done before the handler is
        result = _result(params, await self._handler(params, context))
        if result.action != "accept":
            self._pages.pop(params.elicitation_id or "", None)
            return msgspec.structs.replace(result, content=None)
        if params.mode == "url":  # "For URL mode: The `content` field is omitted"
            return msgspec.structs.replace(result, content=None)
        content = _without_nulls(result.content or {})
        check(content, params.requested_schema or {})
        return msgspec.structs.replace(result, content=content)

    def expect_page(self, elicitation_id: Any) -> None:
        """A page has been named whose completion the server may tell (2025-11-25)."""
        if isinstance(elicitation_id, str) and len(elicitation_id) <= NAME_LENGTH:
            self._pages[elicitation_id] = None
        if len(self._pages) > _MAX_OPEN_PAGES:
            self._pages.popitem(last=False)

    def complete_page(self, told: ElicitationCompleteParams) -> Any:
        """Tell whoever wants to know, once: "Clients MUST ignore notifications referencing unknown or already-completed
        IDs".
        """
        is_news = self._pages.pop(told.elicitation_id, self) is None
        return self._on_complete(told.elicitation_id) if is_news and self._on_complete is not None else None


def check_url(url: Any) -> None:
    """Raise `InvalidParams` for what is no URL of a page, or one that a person must not be sent to."""
    if not isinstance(url, str):
        raise InvalidParams("elicitation/create: `url` must be a string")
    if len(url) > _MAX_URL_LENGTH:
        raise InvalidParams(f"elicitation/create: `url` is longer than {_MAX_URL_LENGTH} characters")
    if not _URL.fullmatch(url):
        raise InvalidParams(f"elicitation/create: `url` must be an http or https URL: {url[:200]!r}")
    if why := _why_misleading(url):
        raise InvalidParams(f"elicitation/create: `url` {why}: {url[:200]!a}")


def _why_misleading(url: str) -> str:
    """Why a person would not see where a URL leads, or must not be sent there; nothing for any other."""
    if "\\" in url or not url.isprintable() or INVISIBLE.search(url):
        return "has a backslash or characters that cannot be seen"
    if len(re.split("[/?#]", url, maxsplit=3)[2]) > _MAX_HOST_LENGTH:
        return f"has a host of more than {_MAX_HOST_LENGTH:,} characters"
    try:
        split = urlsplit(url)
        host = normalize("NFKC", split.hostname or "").replace("\u3002", ".").rstrip(".")  # as browsers read it
    except ValueError:
        return "has no host"
    if "@" in split.netloc:
        return "has a name or a password before its host"
    if "%" in host and ":" not in host:
        return "has a host in encoded characters"
    return "leads to the metadata of a cloud machine" if host in _METADATA_HOSTS or _is_internal(host) else ""


def _is_internal(host: str) -> bool:
    """Whether it is link-local (169.254.0.0/16, fe80::/10) or one of `_METADATA_HOSTS`, in any form that a browser
    reads."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(host))  # 0xa9fea9fe, 2852039166, 169.16689662
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_link_local) or str(mapped) in _METADATA_HOSTS


def _result(params: ElicitParams, given: Any) -> ElicitResult:
    """What a handler gave, in the long form."""
    if isinstance(given, ElicitResult):
        return given
    if given is None:
        return ElicitResult(action="decline")
    names = _field_names(params.requested_schema)
    if isinstance(given, bool) and not names:
        return ElicitResult(action="accept" if given else "decline")
    content = msgspec.json.decode(to_json(dict(given) if isinstance(given, Mapping) else given))
    if not isinstance(content, dict):
        if len(names) != 1:
            raise Mismatch(f"a handler must return a mapping or a record for this form, not {type(given).__name__}")
        content = {names[0]: content}
    return ElicitResult(action="accept", content=content)


def _field_names(schema: Mapping[str, Any] | None) -> list[str]:
    properties = (schema or {}).get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _without_nulls(content: Mapping[str, Any]) -> dict[str, Any]:
    """Content as JSON, without what was left open: a form has no null."""
    decoded = msgspec.json.decode(to_json(dict(content)))
    return {name: value for name, value in decoded.items() if value is not None}
