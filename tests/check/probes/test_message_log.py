"""The log of a session: its messages, and responses with their requests, are found once, as they are added."""

from __future__ import annotations

from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.wire.transcript import RECEIVED, SENT


def test_the_objects_of_all_messages_are_listed_with_their_entries() -> None:
    log = MessageLog("2025-03-26", "stdio")
    batch = log.add(SENT, b'[{"id":1,"method":"ping"},7,{"id":2,"method":"ping"}]')
    log.add(SENT, b"no JSON")
    log.add_remark("the end")
    answer = log.add(RECEIVED, b'{"id":1,"result":{}}')
    assert [(entry, message.get("id")) for entry, message in log.messages] == [(batch, 1), (batch, 2), (answer, 1)]
    assert [message["id"] for message in log.sent_messages()] == [1, 2]
    assert [message["id"] for message in log.received_messages()] == [1]


def test_a_response_belongs_to_the_last_request_with_its_id() -> None:
    log = MessageLog("2025-11-25", "stdio")
    log.add(RECEIVED, b'{"id":1,"result":"too early"}')
    log.add(SENT, b'{"id":1,"method":"ping"}')
    log.add(RECEIVED, b'{"id":"1","result":"a text is no number"}')
    log.add(RECEIVED, b'{"id":1,"method":"roots/list"}')
    log.add(RECEIVED, b'{"id":1,"result":"first"}')
    log.add(SENT, b'{"id":1,"method":"tools/list"}')
    log.add(RECEIVED, b'{"id":1,"error":{}}')
    log.add(SENT, b'{"id":2,"method":"ping"}', misbehaved=True)
    log.add(RECEIVED, b'{"id":2,"result":"of what was invalid on purpose"}')
    found = [(each.request["method"], each.result) for each in answered_requests([log])]
    assert found == [("ping", "first"), ("tools/list", None)]
    assert [each.request["method"] for each in answered_requests([log], "tools/list")] == ["tools/list"]


def test_readings_find_the_answers_once() -> None:
    log = MessageLog("2025-11-25", "stdio")
    log.add(SENT, b'{"id":1,"method":"ping"}')
    log.add(RECEIVED, b'{"id":1,"result":{}}')
    log.entries.clear()  # what is read once more would be missing
    assert len([*answered_requests([log])]) == len([*answered_requests([log])]) == 1
