"""Answers to elicitation (client, Elicitation): from a handler's return value to an `ElicitResult` that fits the
request.

A handler declines with `None`, or accepts with the content of the form: a mapping, a record (dataclass, Struct,
model), or a plain value for a form of one field. For a URL, and for a form without fields, it returns `True` or
`False`. It may also return an `ElicitResult`, for example with the action "cancel", or a `msgspec.Raw` with the JSON of
one, which is sent as it is: a tool for developers can so send content that violates the form.
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
from msgspec import Raw

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
"""URLs that a user may be sent to, which excludes `javascript:` and `file:`."""

_MAX_URL_LENGTH = 8 << 10
"""The maximum length of a URL that a user is sent to."""

_MAX_HOST_LENGTH = 1_000
"""The maximum length of a host with its port: names have 253 characters at most, and `urlsplit` takes quadratic time.
"""

_METADATA_HOSTS = frozenset(
    ("metadata.google.internal", "metadata", "instance-data", "fd00:ec2::254", "100.100.100.200", "192.0.0.192")
)
"""Hosts where cloud machines read their credentials, and which a user never needs."""

_FORM_VALUES = 20_000
"""The maximum number of values in the schema of a form, mostly choices."""

_MAX_OPEN_PAGES = 1_024
"""The maximum number of URL elicitations that may still be completed; beyond it, the oldest is dropped."""


class ElicitationHandler:
    """A handler of `elicitation/create` that calls a user's function. `modes` are the supported modes; `on_complete`
    is called with the id of each completed URL elicitation (2025-11-25).
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
        """Return the capability to declare."""
        return ElicitationCapability(**{mode: {} for mode in self._modes})

    def read(self, raw: Any, rules: Rules) -> ElicitParams:
        """Return the validated params. Raises `InvalidParams`, and `NotSupported` for a mode that is not declared."""
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

    async def answer(self, params: ElicitParams, context: ClientContext) -> ElicitResult | Raw:
        """Return the user's answer. Raises the handler's errors, and `Mismatch` for content that violates the form."""
        self.expect_page(params.elicitation_id)  # the user may finish before the handler returns
        value = await self._handler(params, context)
        if isinstance(value, Raw):
            return value
        result = _result(params, value)
        if result.action != "accept":
            self._pages.pop(params.elicitation_id or "", None)
            return msgspec.structs.replace(result, content=None)
        if params.mode == "url":  # "For URL mode: The `content` field is omitted"
            return msgspec.structs.replace(result, content=None)
        content = _without_nulls(result.content or {})
        check(content, params.requested_schema or {})
        return msgspec.structs.replace(result, content=content)

    def expect_page(self, elicitation_id: Any) -> None:
        """Remember a URL elicitation whose completion the server may report (2025-11-25)."""
        if isinstance(elicitation_id, str) and len(elicitation_id) <= NAME_LENGTH:
            self._pages[elicitation_id] = None
        if len(self._pages) > _MAX_OPEN_PAGES:
            self._pages.popitem(last=False)

    def complete_page(self, params: ElicitationCompleteParams) -> Any:
        """Call `on_complete` once per elicitation: "Clients MUST ignore notifications referencing unknown or
        already-completed IDs".
        """
        is_new = self._pages.pop(params.elicitation_id, self) is None
        return self._on_complete(params.elicitation_id) if is_new and self._on_complete is not None else None


def check_url(url: Any) -> None:
    """Raise `InvalidParams` for an invalid URL, or one that a user must not be sent to."""
    if not isinstance(url, str):
        raise InvalidParams("elicitation/create: `url` must be a string")
    if len(url) > _MAX_URL_LENGTH:
        raise InvalidParams(f"elicitation/create: `url` is longer than {_MAX_URL_LENGTH} characters")
    if not _URL.fullmatch(url):
        raise InvalidParams(f"elicitation/create: `url` must be an http or https URL: {url[:200]!r}")
    if problem := _why_misleading(url):
        raise InvalidParams(f"elicitation/create: `url` {problem}: {url[:200]!a}")


def _why_misleading(url: str) -> str:
    """Return why a URL misleads a user or must not be opened, or an empty string."""
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
    """Return whether a host is link-local (169.254.0.0/16, fe80::/10) or in `_METADATA_HOSTS`, in any notation."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(host))  # 0xa9fea9fe, 2852039166, 169.16689662
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_link_local) or str(mapped) in _METADATA_HOSTS


def _result(params: ElicitParams, value: Any) -> ElicitResult:
    """Return a handler's return value as an `ElicitResult`."""
    if isinstance(value, ElicitResult):
        return value
    if value is None:
        return ElicitResult(action="decline")
    names = _field_names(params.requested_schema)
    if isinstance(value, bool) and not names:
        return ElicitResult(action="accept" if value else "decline")
    content = msgspec.json.decode(to_json(dict(value) if isinstance(value, Mapping) else value))
    if not isinstance(content, dict):
        if len(names) != 1:
            raise Mismatch(f"a handler must return a mapping or a record for this form, not {type(value).__name__}")
        content = {names[0]: content}
    return ElicitResult(action="accept", content=content)


def _field_names(schema: Mapping[str, Any] | None) -> list[str]:
    properties = (schema or {}).get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _without_nulls(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content as JSON, without null values: a form has no null."""
    decoded = msgspec.json.decode(to_json(dict(content)))
    return {name: value for name, value in decoded.items() if value is not None}
