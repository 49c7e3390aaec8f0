"""The SDK of a server, by the wording of its errors, and the findings that are known faults of that SDK.

The table is `sdks.json`: data that anyone can add to. A fault was seen in a server of the SDK that does nothing of its
own there; `seen` is a pattern that the finding or its evidence must fit, so that a fault of the server's own is not
taken for one of the SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.check.engine.report import Finding, Report
from accord.check.probes.message_log import MessageLog
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

SIGNATURE_RULES: frozenset[str] = frozenset(
    (
        "errors/method-not-found",
        "tools/malformed-call",
        "tools/unknown-name-code",
        "resources/missing",
        "resources/missing-code",
        "prompts/unknown-name",
        "prompts/required-arguments",
    )
)
"""The rules whose messages get the errors by which SDKs are recognised: also sent if none of them is selected, but a
selected rule fails."""


class ErrorSignature(msgspec.Struct, frozen=True):
    """An error that only one SDK gives: its code (any, if None), a pattern of its message, and what `data` is."""

    message: str
    code: int | None = None
    data: Literal["any", "empty", "method"] = "any"

    def matches(self, error: JSONObject, method: Any) -> bool:
        """Return whether this error, which answers a request of that method, has the wording."""
        wanted = {"any": error.get("data"), "empty": "", "method": method}[self.data]
        is_coded = self.code in (None, error.get("code"))
        return (
            is_coded and error.get("data") == wanted and re.search(self.message, str(error.get("message"))) is not None
        )


class SdkFault(msgspec.Struct, frozen=True):
    """A rule that every server of the SDK breaks; in all revisions and over all transports where none is named."""

    rule: str
    revisions: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    seen: str = ""

    def explains(self, finding: Finding) -> bool:
        """Return whether the finding is this fault, wherever it was seen."""
        text = "\n".join((finding.text, *finding.evidence))
        return (
            self.rule in (finding.rule, *finding.also)
            and all(
                (not self.revisions or place.revision in self.revisions)
                and (not self.transports or place.transport in self.transports)
                for place in finding.places
            )
            and re.search(self.seen, text) is not None
        )


class Sdk(msgspec.Struct, frozen=True):
    """An SDK: how it is recognised, and its faults. `versions` are those in which they were seen."""

    name: str
    versions: tuple[str, ...]
    wordings: tuple[ErrorSignature, ...]
    faults: tuple[SdkFault, ...]
    built_on: str = ""
    """Another SDK, whose faults it has as well."""


class _SdkTable(msgspec.Struct, frozen=True):
    sdks: tuple[Sdk, ...]


@cache
def known_sdks() -> tuple[Sdk, ...]:
    """Return the table: an SDK comes before those whose wording it may have as well."""
    return msgspec.json.decode((files("accord.check") / "sdks.json").read_bytes(), type=_SdkTable).sdks


def detect_sdk(logs: Iterable[MessageLog]) -> Sdk | None:
    """The SDK whose wording these conversations have; None where nobody knows it."""
    errors = [each for log in logs for each in _errors(log)]
    return next((sdk for sdk in known_sdks() if _matches_signature(sdk, errors)), None)


def _matches_signature(sdk: Sdk, errors: Sequence[tuple[JSONObject, Any]]) -> bool:
    return any(wording.matches(error, method) for wording in sdk.wordings for error, method in errors)


def _errors(log: MessageLog) -> Iterable[tuple[JSONObject, Any]]:
    """Each error that the server gave, with the method of the request that it answers."""
    methods: dict[str, Any] = {}
    for entry, message in log.messages:
        if entry.direction == SENT and "method" in message:
            methods[repr(message.get("id"))] = message["method"]
        elif entry.direction == RECEIVED and isinstance(message.get("error"), dict):
            yield message["error"], methods.get(repr(message.get("id")))


def attribute_to_sdk(report: Report, sdk: Sdk | None) -> Report:
    """The report with the SDK's name at each finding that is a known fault of it."""
    if sdk is None:
        return report
    version = report.name.rpartition(" ")[2]  # servers without a version of their own have the one of the SDK
    label = f"{sdk.name.partition(' ')[0]} {version}" if version in sdk.versions else sdk.name
    faults = _faults(sdk)
    findings = tuple(
        replace(each, sdk=label) if any(fault.explains(each) for fault in faults) else each for each in report.findings
    )
    return replace(report, findings=findings, sdk=label)


def _faults(sdk: Sdk) -> tuple[SdkFault, ...]:
    below = next((each for each in known_sdks() if each.name == sdk.built_on), None)
    return sdk.faults + (_faults(below) if below is not None else ())
