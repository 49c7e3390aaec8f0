"""The official examples of 2026-07-28: each decodes with its type and encodes to the same JSON value.

The examples lie beside the schema: see `tests/test_schema_parity.py` for where. Each is read twice, with the one
type and with the strict view, which takes nothing that the revision does not have.
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


def paths() -> list[Any]:
    found = sorted(EXAMPLES.glob("*/*.json"))
    ids = [f"{path.parent.name}/{path.stem}" for path in found]
    return [pytest.param(path, id=id_) for path, id_ in zip(found, ids, strict=True)] or [
        pytest.param(
            EXAMPLES,
            marks=pytest.mark.skip(f"no examples at {EXAMPLES}: set ACCORD_SPEC_SCHEMA to the schemas"),
        )
    ]


def parts(name: str, value: Any) -> list[tuple[Any, Any]]:
    """What of an example is for our types to read: the value itself, or what its envelope holds."""
    if name.endswith("ResultResponse"):
        return [
            (getattr(messages, name.removesuffix("Response"), None) or messages.ListenResult, value["result"])
        ]
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


@pytest.mark.parametrize("path", paths())
def test_example_fits_the_strict_view(path: Path) -> None:
    name = path.parent.name
    for type_, value in parts(name, json.loads(path.read_text(encoding="utf-8"))):
        strict = view(type_, LATEST, strict=True)
        decoded = msgspec.json.decode(json.dumps(value), type=strict)
        assert json.loads(msgspec.json.encode(decoded)) == value
        if name in MERGED:
            msgspec.json.decode(json.dumps(value), type=arm_view(type_, name, LATEST))


def test_all_examples_are_found() -> None:
    if not EXAMPLES.exists():
        pytest.skip(f"no examples at {EXAMPLES}: set ACCORD_SPEC_SCHEMA to the schemas")
    assert len({path.parent for path in EXAMPLES.glob("*/*.json")}) == 88
