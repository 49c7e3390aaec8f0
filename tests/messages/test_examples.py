"""The official examples of 2026-07-28: each decodes with its type and encodes to the same JSON value.

Their structure is kept in `tests/data/examples.json`. Each is read twice, with the one type and with the strict view,
which takes nothing that the revision does not have.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from accord import types as messages
from accord.messages.base import ARMS
from accord.messages.methods import table
from accord.messages.revision import LATEST
from accord.messages.views import arm_view, view

from tests import data

EXAMPLES = data.examples()

ROWS = {**table(LATEST, "client"), **table(LATEST, "server")}
MERGED = {arm.name: type_ for type_, arms in ARMS.items() for arm in arms}

NAMED: dict[str, Any] = {
    "InputRequests": dict[str, messages.InputRequest],
    "SubscriptionsListenResult": messages.ListenResult,
}

ERROR_DATA: dict[str, Any] = {
    "MissingRequiredClientCapabilityError": messages.MissingClientCapabilityData,
    "UnsupportedProtocolVersionError": messages.UnsupportedVersionData,
}


AT_FAULT = {"ReadResourceResultResponse/read-resource-result-response"}
"""Examples that their own schema refuses: this one lacks the required `ttlMs` and `cacheScope`."""


def parts(name: str, value: Any) -> list[tuple[Any, Any]]:
    """What of an example is for our types to read: the value itself, or what its envelope holds."""
    if name.endswith("ResultResponse"):
        return parts(name.removesuffix("Response"), value["result"])
    if name.endswith("Error"):
        error = value.get("error", value)
        return [(ERROR_DATA[name], error["data"])] if name in ERROR_DATA else []
    if value.get("method") in ROWS:
        return [(ROWS[value["method"]].params, value.get("params", {}))]
    if "method" in value:  # asked inside a result; one example has an id nevertheless
        return [(messages.InputRequest, {key: value[key] for key in value if key != "id"})]
    if name == "InputResponses":
        types = {"github_login": messages.ElicitResult, "capital_of_france": messages.CreateMessageResult}
        return [(types[key], answer) for key, answer in value.items()]
    short = name.replace("RequestParams", "Params").replace("NotificationParams", "Params")
    return [(NAMED.get(name) or MERGED.get(name) or getattr(messages, short), value)]


def typed(example: str) -> list[tuple[Any, Any]]:
    """Return the types and values of an example, which is named by its definition and a title."""
    return parts(example.partition("/")[0], EXAMPLES[example])


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_survives_the_round_trip(example: str) -> None:
    for type_, value in typed(example):
        assert json.loads(msgspec.json.encode(msgspec.json.decode(json.dumps(value), type=type_))) == value


def test_example_at_fault_is_refused() -> None:
    for example in AT_FAULT:
        ((type_, value),) = typed(example)
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            msgspec.json.decode(json.dumps(value), type=view(type_, LATEST, strict=True))


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each not in AT_FAULT])
def test_example_fits_the_strict_view(example: str) -> None:
    name = example.partition("/")[0]
    for type_, value in typed(example):
        msgspec.json.decode(json.dumps(value), type=view(type_, LATEST, strict=True))
        if name in MERGED:
            msgspec.json.decode(json.dumps(value), type=arm_view(type_, name, LATEST))


def test_all_examples_are_found() -> None:
    assert len({example.partition("/")[0] for example in EXAMPLES}) == 88
