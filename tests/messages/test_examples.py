"""The official examples of 2026-07-28: each decodes with its type and encodes to the same JSON value.

The examples lie beside the schema: see `tests/test_schema_parity.py` for where. Each is read twice, with the
one type and with the strict view, which takes nothing that the revision does not have.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import messages
from accord.messages.base import ARMS
from accord.messages.methods import table
from accord.messages.revision import LATEST
from accord.messages.views import arm_view, view

EXAMPLES = (
    Path(os.environ.get("ACCORD_SPEC_SCHEMA") or Path(__file__).parents[3] / "shared" / "spec" / "schema")
    / LATEST
    / "examples"
)

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

ABSENT = f"no examples at {EXAMPLES}: set ACCORD_SPEC_SCHEMA to the folder of the revisions"


def paths() -> list[Any]:
    found = sorted(EXAMPLES.glob("*/*.json"))
    examples = [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in found]
    return examples or [pytest.param(EXAMPLES, id="absent", marks=pytest.mark.skip(ABSENT))]


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


@pytest.mark.parametrize("path", paths())
def test_example_survives_the_round_trip(path: Path) -> None:
    for type_, value in parts(path.parent.name, json.loads(path.read_text(encoding="utf-8"))):
        decoded = msgspec.json.decode(json.dumps(value), type=type_)
        assert json.loads(msgspec.json.encode(decoded)) == value


def test_example_at_fault_is_refused() -> None:
    if not EXAMPLES.exists():
        pytest.skip(ABSENT)
    for name in AT_FAULT:
        path = EXAMPLES / f"{name}.json"
        ((type_, value),) = parts(path.parent.name, json.loads(path.read_text(encoding="utf-8")))
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            msgspec.json.decode(json.dumps(value), type=view(type_, LATEST, strict=True))


@pytest.mark.parametrize("path", [path for path in paths() if path.id not in AT_FAULT])
def test_example_fits_the_strict_view(path: Path) -> None:
    name = path.parent.name
    for type_, value in parts(name, json.loads(path.read_text(encoding="utf-8"))):
        msgspec.json.decode(json.dumps(value), type=view(type_, LATEST, strict=True))
        if name in MERGED:
            msgspec.json.decode(json.dumps(value), type=arm_view(type_, name, LATEST))


def test_all_examples_are_found() -> None:
    if not EXAMPLES.exists():
        pytest.skip(ABSENT)
    assert len({path.parent for path in EXAMPLES.glob("*/*.json")}) == 88
