"""No secret remains in an entry, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.redaction import REDACTED, json_splice
from accord.wire.session_file import (
    ClosedEntry,
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LostEntry,
    MessageEntry,
    RemarkEntry,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
    encode_line,
    is_json_line,
    message_entry,
)
from accord.wire.session_redaction import SessionRedaction

from tests.auth.secrets_of_oauth import MARK, SECRETS, SecretOfOAuth
from tests.test_redaction import FORMS, IN_TEXTS, LEAKS, SECRET_NAMES
from tests.wire.test_session_file import data, json_texts

each_secret = pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)


def redacted(entry: Entry, *secrets: str) -> Any:
    redaction = SessionRedaction()
    redaction.add_secrets(secrets)
    return redaction.entry(entry)


@each_secret
def test_no_entry_shows_a_secret(secret: SecretOfOAuth) -> None:
    for text in secret.written:
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "params": {"text": text, "list": [{text: 1}]}}).encode()
        entries: list[Entry] = [
            message_entry(message, "sent"),
            message_entry(text.encode(), "received"),
            message_entry(b"\xff" + text.encode(), "received"),
            StderrEntry(text=text),
            RemarkEntry(text=text),
            LostEntry(reason=text),
            ConnectedEntry(name=text),
            UnansweredEntry(request=1, reason=text),
            SkippedEntry(direction="sent", reason=text),
        ]
        for entry in entries:
            written = redacted(entry)
            assert MARK not in encode_line(written).decode()
            assert MARK.encode() not in (written.data if isinstance(written, MessageEntry) else b"")
        line = redacted(message_entry(message, "sent"))
        assert is_json_line(line.data)


@given(data | json_texts)
def test_without_a_secret_all_bytes_stay(message: bytes) -> None:
    entry = message_entry(message, "sent")
    written = redacted(entry)
    if REDACTED not in repr(written.data):
        assert written.data == message
    if is_json_line(message):
        assert is_json_line(written.data)


@given(json_texts, st.integers(0, 40), st.integers(8, 12))
def test_a_text_of_the_message_may_be_a_secret(message: bytes, start: int, length: int) -> None:
    secret = message.decode(errors="replace")[start : start + length]
    written = redacted(message_entry(message, "sent"), secret).data
    if is_json_line(message):
        assert is_json_line(written)


def test_only_the_secret_changes() -> None:
    message = b'{ "id":1.0, "id": 2,"token" : "abc", "x":{"password":12, "n":1e2}, "note":"sent abc-def-ghi \\u00e9"}'
    written = redacted(message_entry(message, "sent"), "abc-def-ghi").data
    expected = b'{ "id":1.0, "id": 2,"token" : "[redacted]", "x":{"password":"[redacted]", "n":1e2}, '
    assert written == expected + '"note":"sent [redacted] é"}'.encode()


def test_a_secret_is_found_behind_escapes() -> None:
    message = rb'{"text":"\u0061bc-def-ghi", "path":"a\/b-c-d-e-f"}'
    assert redacted(message_entry(message, "sent"), "abc-def-ghi", "a/b-c-d-e-f").data == (
        b'{"text":"[redacted]", "path":"[redacted]"}'
    )


def test_a_secret_in_a_repeated_key_is_found() -> None:
    message = b'{"token":"one-secret","token":"another","token":null}'
    assert redacted(message_entry(message, "sent")).data == b'{"token":"[redacted]","token":"[redacted]","token":null}'


def test_the_schema_of_a_secret_parameter_stays_a_schema() -> None:
    schema = {"type": "string", "description": "of the account", "minLength": 8}
    tool = {"name": "login", "inputSchema": {"properties": {"password": schema, "name": {"type": "string"}}}}
    message = json.dumps({"result": {"tools": [tool]}}).encode()
    assert redacted(message_entry(message, "received")).data == message
    schema["default"] = "hunter2"
    written = redacted(message_entry(json.dumps(tool).encode(), "received")).data
    assert json.loads(written)["inputSchema"]["properties"]["password"] == {**schema, "default": REDACTED}


def test_what_only_looks_like_a_schema_is_a_secret() -> None:
    message = json.dumps({"properties": {"password": {"value": "hunter2"}, "token": "hunter2"}}).encode()
    assert b"hunter2" not in redacted(message_entry(message, "received")).data


HEADERS = {
    "authorization": "Bearer of-ann-1234",
    "x-api-key": "key-of-ann-1234",
    "cookie": "a=first-cookie; b=second-cookie",
    "mcp-session-id": "session-of-ann",
    "mcp-protocol-version": "2025-11-25",
    "accept": "text/event-stream",
}


def test_credentials_of_a_request_are_replaced_from_then_on() -> None:
    redaction = SessionRedaction()
    sent = HTTPEntry(
        direction="sent", exchange=1, method="POST", url="http://ann:pw@a/mcp?key=of-the-query", headers=HEADERS
    )
    written = redaction.entry(sent)
    assert isinstance(written, HTTPEntry)
    assert written.url == "http://a/mcp?key=[redacted]"
    assert written.headers == {
        "authorization": REDACTED,
        "x-api-key": REDACTED,
        "cookie": REDACTED,
        "mcp-session-id": "[session 1]",
        "mcp-protocol-version": "2025-11-25",
        "accept": "text/event-stream",
    }
    texts = ["of-ann-1234", "key-of-ann-1234", "second-cookie", "session-of-ann", "of-the-query"]
    assert redaction.text(" ".join(texts)) == f"{REDACTED} {REDACTED} {REDACTED} [session 1] {REDACTED}"


def test_a_session_id_of_a_response_has_a_stable_placeholder() -> None:
    redaction = SessionRedaction()

    def response(id: str) -> Entry:
        return redaction.entry(HTTPEntry(direction="received", exchange=1, status=200, headers={"mcp-session-id": id}))

    first, second = response("first-session"), response("second-session")
    assert isinstance(first, HTTPEntry)
    assert isinstance(second, HTTPEntry)
    assert first.headers == {"mcp-session-id": "[session 1]"}
    assert second.headers == {"mcp-session-id": "[session 2]"}
    assert response("first-session") == first


def test_a_password_of_basic_authentication_is_known() -> None:
    redaction = SessionRedaction()
    redaction.entry(HTTPEntry(direction="sent", exchange=1, headers={"authorization": "Basic YW5uOmEtbG9uZy1wYXNz"}))
    assert redaction.text("you sent a-long-pass") == f"you sent {REDACTED}"


def test_other_headers_of_a_response_stay() -> None:
    headers = {"x-server": "shop", "content-type": "text/plain", "set-cookie": "id=of-the-session"}
    written = redacted(HTTPEntry(direction="received", exchange=1, status=200, headers=headers))
    assert written.headers == {**headers, "set-cookie": REDACTED}


def test_short_values_and_other_entries_stay() -> None:
    assert redacted(StderrEntry(text="a short text"), "short").text == "a short text"
    assert redacted(ClosedEntry(at=1.0)) == ClosedEntry(at=1.0)


def test_the_number_of_secrets_is_limited() -> None:
    redaction = SessionRedaction()
    redaction.add_secrets(["from-the-environment"])
    for number in range(101):
        for token in (f"number-{number:03}-of-ann", "the-same-each-time"):
            redaction.entry(HTTPEntry(direction="sent", exchange=1, headers={"authorization": f"Bearer {token}"}))
    for known in ("number-100-of-ann", "the-same-each-time", "from-the-environment"):
        assert redaction.text(known) == REDACTED
    assert redaction.text("number-000-of-ann") == "number-000-of-ann"


@pytest.mark.parametrize("value", ["redacted", "[redacted]", "session ", "[session 1"])
def test_a_placeholder_is_never_replaced(value: str) -> None:
    redaction = SessionRedaction()
    redaction.add_secrets([value, "a-true-secret"])
    redaction.entry(HTTPEntry(direction="sent", exchange=1, headers={"mcp-session-id": value, "x-key": value}))
    redaction.entry(HTTPEntry(direction="sent", exchange=2, headers={"mcp-session-id": "session-of-ann"}))
    assert redaction.text("a-true-secret session-of-ann") == f"{REDACTED} [session 1]"


def test_the_attributes_of_a_cookie_are_no_secrets() -> None:
    redaction = SessionRedaction()
    cookies = "a=first-cookie; Path=/a-long-path; Expires=Wed 21 Oct 2026, b=second-cookie; HttpOnly"
    redaction.entry(HTTPEntry(direction="received", exchange=1, status=200, headers={"set-cookie": cookies}))
    assert redaction.text("first-cookie second-cookie /a-long-path 21 Oct 2026") == (
        f"{REDACTED} {REDACTED} /a-long-path 21 Oct 2026"
    )


def test_the_query_of_a_redirect_is_replaced() -> None:
    headers = {"location": "https://ann:pw@a.example/x?key=of-ann"}
    written = redacted(HTTPEntry(direction="received", exchange=1, status=307, headers=headers))
    assert written.headers == {"location": "https://a.example/x?key=[redacted]"}


def all_secret_messages() -> Iterator[bytes]:
    """Messages in which a secret is written in each way that redaction knows, as JSON and as text."""
    texts = [text for text, _ in [*LEAKS.values(), *IN_TEXTS]]
    for text in [*texts, *FORMS.values()]:
        for around in ("{}", "before {} after", "({})", "\n{}", "\t{}\\n{}", '"{}"', "/{}/"):
            value = around.replace("{}", text)
            for message in (
                {"a": value},
                [value],
                {value: 1},
                {"a": json.dumps({"b": value})},
                {"x": [{"y": [value]}]},
            ):
                for ascii in (True, False):
                    yield json.dumps(message, ensure_ascii=ascii).encode()
            yield value.encode()
    for name in SECRET_NAMES:
        for spelled in (name, name.upper(), name.title(), name.replace("_", " "), name.replace("_", "-")):
            yield json.dumps({"a": [{spelled: "hunter2hunter2"}]}).encode()


def test_the_quick_look_at_a_message_misses_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [SessionRedaction().data(message) for message in all_secret_messages()]
    monkeypatch.setattr(SessionRedaction, "_is_free", lambda self, data, text: False)
    thorough = [SessionRedaction().data(message) for message in all_secret_messages()]
    assert quick == thorough
    assert sum(before != after for before, after in zip(all_secret_messages(), quick, strict=True)) > 3_000


PARTS = st.sampled_from(
    [
        *FORMS.values(),
        *(text for text, _ in IN_TEXTS),
        "password",
        "p%61ssword%3D",
        "%253A",
        "sk-",
        "eyJ",
        "://",
        "a:b@",
        " -p",
        "\\",
        "\n",
        '"',
        "/",
        " ",
    ]
)
SECRET_TEXTS = st.lists(PARTS | st.text(max_size=3), max_size=5).map("".join)


@given(st.recursive(SECRET_TEXTS | st.integers(), lambda inner: st.dictionaries(SECRET_TEXTS, inner) | st.lists(inner)))
def test_the_quick_look_and_the_thorough_one_agree(value: object) -> None:
    for ascii in (True, False):
        data = json.dumps(value, ensure_ascii=ascii).encode("utf-8", "replace")
        thorough = SessionRedaction()
        thorough._is_free = lambda data, text: False  # type: ignore[method-assign]
        assert SessionRedaction().data(data) == thorough.data(data)


def test_most_messages_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_splice, "decode", None)
    text = 'a list of words:\n- bread, "cake" and C:\\\\temp\n'
    message = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}] * 1_000}}
    data = json.dumps(message).encode()
    assert SessionRedaction().data(data) is data
