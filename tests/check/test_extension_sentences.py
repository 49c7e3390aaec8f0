"""The sentences of an extension's pages are found, numbered and digested."""

from __future__ import annotations

from tests.check.extension_sentences import rows
from tests.data.derive import digest

PAGE = """---
title: An extension, which MUST NOT count
---

Nothing here.

## 4.1 What a [client](https://example.com) does

A client **MUST** write
over [two lines](https://example.com).
- It **MAY** stop.
- It stops.

| Parameter | Required/Optional | Meaning |
| --------- | ----------------- | ------- |
| `scope`   | OPTIONAL          | A scope |

```
this MUST NOT count
```
"""


def test_paragraphs_items_and_rows_of_tables_are_sentences() -> None:
    found = list(rows("ext-auth", "page", PAGE))
    section = "4-1-what-a-client-does"
    assert found == [
        f"ext-auth/page#01\tMUST\t{section}\t{digest('A client MUST write over two lines.')}",
        f"ext-auth/page#02\tMAY\t{section}\t{digest('It MAY stop.')}",
        f"ext-auth/page#03\tOPTIONAL\t{section}\t{digest('`scope` | OPTIONAL | A scope')}",
    ]
