from __future__ import annotations

from pathlib import Path

import pytest

from accord.errors import TargetError
from accord.host.documents import parse_document

FILE = Path("config.toml")
MANY = ["a"] * 101


@pytest.mark.parametrize(
    "text",
    [
        ".".join(MANY) + " = 1",
        " . ".join(MANY) + " = 1",
        f"[{'.'.join(MANY)}]",
        f"x = {{ {'.'.join(MANY)} = 1 }}",
        ".".join(f'"{name}"' for name in MANY) + " = 1",
        ".".join(f"'{name}'" for name in MANY) + " = 1",
        ".".join(["a"] * 100_000) + " = 1",
    ],
    ids=lambda text: text[:12],
)
def test_a_toml_key_of_very_many_names_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(TargetError, match=r"config.toml:2:\d+: invalid TOML: a key has more than 100 names"):
        parse_document(f"first = 1\n{text}\n", "toml", FILE)


@pytest.mark.parametrize(
    "value",
    [
        '"' + "a.b." * 200 + '"',
        "'" + "a.b." * 200 + "'",
        '"""\n' + 'a."b".\\"\n' * 200 + '"""',
        "'''" + "a.b.\n" * 200 + "'''",
        "[" + "1.5, " * 200 + "]",
        "1 # " + "a." * 200,
        "{" + ".".join(MANY[:99]) + " = 1}",
    ],
    ids=lambda text: text[:12],
)
def test_many_dots_elsewhere_in_toml_are_accepted(value: str) -> None:
    assert parse_document(f"x = {value}\nlast = 1", "toml", FILE).value["last"] == 1
