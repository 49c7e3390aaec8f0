"""Results that are too much to read."""

from __future__ import annotations

import pytest
from msgspec import Raw

from accord.client.results import ResultReader
from accord.errors import InvalidResult
from accord.messages.bounds import RESULT_NODES
from accord.messages.tools import CallToolResult


def result(items: bytes, count: int) -> Raw:
    return Raw(b'{"content":[],"structuredContent":{"a":[' + b",".join([items] * count) + b"]}}")


@pytest.mark.parametrize(("item", "count"), [(b"{}", RESULT_NODES + 1), (b"0", 2 * RESULT_NODES + 1)])
def test_a_result_with_too_much_structure_is_refused_unread(item: bytes, count: int) -> None:
    reader = ResultReader("here", strict=False)
    with pytest.raises(InvalidResult, match="the answer to tools/call has more than 1,000,000") as caught:
        reader.read("tools/call", CallToolResult, result(item, count))
    assert len(caught.value.raw or b"") <= 200
    assert reader.read("tools/call", CallToolResult, result(item, count // 3)).structured_content


def test_a_long_text_is_no_structure() -> None:
    text = b'{"content":[{"type":"text","text":"' + b"[{,:" * RESULT_NODES + b'"}]}'
    assert ResultReader("here", strict=False).read("tools/call", CallToolResult, Raw(text)).content
