"""Of a text whose length a peer decides, only the beginning is redacted and shown; no cut leaves a part of a secret."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import msgspec
import pytest

from accord.redaction import REDACTED, describe_redacted, redact, redact_beginning, redact_record
from accord.redaction.beginnings import MOST_CHARACTERS
from accord.server.notify.logs import encode_data

from tests.measure import costs_at_most

R = "Zq8vT3nLw5xYb7Kd2mPf"
CUT = {
    "form": f"used ghp_{R}{R}",
    "jwt": f"used eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{R}.{R}",
    "url": f"at https://me:{R}{R}@host/",
    "url with a slash": f"at ftp://me:{R}/{R}@host/",
    "token as user": f"at https://{R}{R}@host/",
    "name": f"token={R}{R} x",
    "header": f"Authorization: Digest {R} {R}\nx",
    "quoted": f'"password": "{R} {R}"',
    "list": f'x ["Authorization","Digest {R} {R}"]',
    "bytes": f"(b'cookie', b'a={R} {R}')",
    "option": f"run --token {R}{R}",
    "yaml": f"secret: |\n  {R}\n  {R}\nx: 1",
    "encoded": f"to=%2Fx%3Ftoken%3D{R}%26page%3D{R}",
    "sentence": f"the password is {R}{R}",
    "login": f"mysql -u root -p{R}{R} shop",
    "curl": f"curl -u admin:{R}{R} x",
    "pem": f"-----BEGIN PRIVATE KEY-----\n{R}{R}\n{R}\n-----END PRIVATE KEY-----",
    "xml": f"<password>{R} {R}</password>",
    "json": json.dumps({"password": f"{R} {R}"}),
    "json list": json.dumps({"secrets": [R, R, "x y"]}),
    "json object": json.dumps({"secret": {"old": f"{R} {R}", "new": R}}),
    "json name": json.dumps({"name": "Authorization", "value": f"{R} {R}"}),
    "json name after": json.dumps({"value": f"{R} {R}", "description": "x y", "name": "Authorization"}),
    "json name after an object": json.dumps(
        [{"value": R, "x": {"a": "b", "c": [{"d": "e"}]}, "y": "} z", "name": "API_KEY"}]
    ),
    "json name after an object, in json": json.dumps([json.dumps({"value": R, "x": {"a": "b c"}, "name": "API_KEY"})]),
    "json header": json.dumps([["host", "x y"], ["Authorization", f"Digest {R} {R}"]]),
    "json arguments": json.dumps(["x", "--token", f"{R} {R}"]),
    "json escape": json.dumps({"secrets": [f'"{R}" "{R}"']}),
    "json in json": json.dumps({"body": json.dumps({"secrets": [R, f"{R} {R}"]})}),
    "json name after in json": json.dumps({"body": json.dumps({"value": f"{R} {R}", "name": "Authorization"})}),
    "jwk, kty after an object": json.dumps({"d": f"{R}{R}", "x": {"a": "b", "c": ["d"]}, "n": "x y", "kty": "RSA"}),
    "jwk": json.dumps({"d": f"{R}{R}", "n": "x y", "kty": "RSA"}),
}


def parts_of(secret: str) -> set[str]:
    return {secret[start : start + 6] for start in range(len(secret) - 5)}


@pytest.mark.parametrize("text", CUT.values(), ids=CUT.keys())
def test_no_cut_leaves_a_part_of_a_secret(text: str) -> None:
    leaks = parts_of(R)
    long = f"{text}{'' if text[:1] in '[{' else ' '}{'z ' * 50}"
    for most in range(1, len(text) + 1):
        shown = redact_beginning(long, most)
        assert not [leak for leak in leaks if leak in shown], f"{long[:most]!r}: {shown!r}"


@pytest.mark.parametrize("form", ["ghp_{}{}", "://me:{}{}@h/", "eyJ{}.{}", "token={}{}", "%2Ftoken%3D{}{}"])
def test_no_cut_of_a_long_word_leaves_a_part_of_a_secret(form: str) -> None:
    text = "y" * 300 + "." + form.format(R, R * 20) + "y" * 300
    for most in range(300, len(text), 7):
        shown = redact_beginning(text, most)
        assert not [leak for leak in parts_of(R) if leak in shown], f"{text[:most]!r}: {shown!r}"


def test_a_short_text_is_redacted_as_a_whole() -> None:
    text = "x " * 50 + f"token={R}"
    assert redact_beginning(text, len(text)) == redact(text)


def test_a_long_text_ends_between_words_and_says_how_long_it_was() -> None:
    assert redact_beginning("one two three four", 10) == "one two … (18 characters)"
    assert redact_beginning("token=ab " * 5_000, 20) == f"token={REDACTED} token={REDACTED} … (45,000 characters)"
    assert redact_beginning("x" * 100, 10) == "… (100 characters)"
    assert redact_beginning("a " + "x" * 1_000, 500) == "a " + "x" * 370 + "… (1,002 characters)"


def test_the_text_of_an_unexpected_exception_is_its_beginning() -> None:
    text = describe_redacted(ValueError(f"no /home/me/x: token={R} " + "x " * 50_000))
    assert text.startswith(f"ValueError: no [path]: token={REDACTED} x x")
    assert text.endswith("x … (100,042 characters)")
    assert len(text) < MOST_CHARACTERS + 100


def test_a_log_record_is_its_beginning() -> None:
    try:
        raise ValueError("secret: " + "x " * 50_000)
    except ValueError:
        record = logging.LogRecord("accord", 30, "x", 1, "failed: %s", ("a b " * 50_000,), sys.exc_info())
    assert redact_record(record)
    assert record.getMessage().startswith("failed: a b a b")
    assert len(record.getMessage()) < MOST_CHARACTERS + 100
    assert record.exc_text is not None
    assert record.exc_text.startswith("Traceback (most recent call last):\n")
    assert len(record.exc_text) < 20_000


class Textless(Exception):
    def __str__(self) -> str:
        raise RuntimeError(f"token={R}")


@pytest.mark.parametrize("args", [("x",), (1, 2), (Textless(),)])
def test_a_log_record_that_cannot_be_formatted_says_so(args: tuple[Any, ...]) -> None:
    record = logging.LogRecord("accord", 30, "x", 1, "failed: %d", args, None)
    assert redact_record(record)
    assert record.getMessage().startswith("a log message cannot be formatted: 'failed: %d': ")
    assert R not in record.getMessage()


def test_long_data_of_a_log_message_is_the_beginning_of_its_text() -> None:
    data = {"secrets": [R], "rows": [{"number": number, "token": R} for number in range(10_000)]}
    text = msgspec.json.decode(encode_data(data))
    assert text.startswith('{"secrets":"[redacted]","rows":[{"number":0,"token":"[redacted]"}')
    assert "characters)" in text[-25:]
    assert R not in text
    assert msgspec.json.decode(encode_data({"rows": [1] * 1_000})) == {"rows": [1] * 1_000}


HOSTILE: dict[str, Any] = {
    "names": '{"token":"a"},',
    "pairs": '["token","a1"],',
    "options": '"--token","x",',
    "encoded": '"a%20b token",',
    "encoded three times": "%252525token%3Da ",
    "encoded and short": "%2525 token ",
    "urls": "ftp://a: ",
    "blocks": "token: |\n  a\n",
    "commands": "mysql -p ",
    "escapes": '\\" token ',
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_long_text_of_a_peer_holds_the_event_loop_for_a_moment(unit: str) -> None:
    error = ValueError(f"[{unit * 200_000}")
    with costs_at_most(5):
        describe_redacted(error)
        encode_data(unit * 200_000)
