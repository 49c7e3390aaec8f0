"""JSON texts, good and bad, as the argument inside a `tools/call`: those that RFC 8259 accepts, refuses or leaves free.

Free is what the RFC leaves to a receiver (section 9: size, depth, range and precision of numbers, characters of
strings) or only recommends (section 4: unique names). Each text is answered with one result or one error, never with
silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from accord import Server

from tests.server.raw import raw_peer

ACCEPTED, REFUSED, FREE = "accepted", "refused", "free"


class Case(NamedTuple):
    """A value, and what stands before and after the message that holds it."""

    name: str
    text: bytes
    verdict: str
    before: bytes = b""
    after: bytes = b""

    def message(self, meta: bytes = b"") -> bytes:
        """Return the `tools/call` with this value as its argument, and other members of `params`."""
        call = b'{"jsonrpc":"2.0","id":"it","method":"tools/call","params":{"name":"take","arguments":{"value":%b}%b}}'
        return self.before + call % (self.text, meta) + self.after


BOM = b"\xef\xbb\xbf"

NUMBERS = {
    ACCEPTED: {
        "zero": b"0",
        "minus zero": b"-0",
        "one digit": b"7",
        "many digits": b"9007199254740991",
        "negative": b"-42",
        "fraction": b"12.5",
        "fraction of zero": b"0.25",
        "zero fraction": b"3.0",
        "negative fraction": b"-0.125",
        "zeros at the end of a fraction": b"1.5000",
        "exponent": b"2e3",
        "capital exponent": b"2E3",
        "exponent with plus": b"2e+3",
        "capital exponent with plus": b"2E+3",
        "negative exponent": b"2e-3",
        "capital negative exponent": b"2E-3",
        "exponent of zero": b"0e5",
        "zero exponent": b"5e0",
        "exponent with leading zero": b"5e007",
        "fraction and exponent": b"6.25e-2",
        "negative with everything": b"-1.5E+10",
        "smallest 64-bit integer": b"-9223372036854775808",
        "largest 64-bit integer": b"9223372036854775807",
        "largest unsigned 64-bit integer": b"18446744073709551615",
        "17 digits of a fraction": b"0.30000000000000004",
        "close to zero": b"0.000000000000000000000000000001",
    },
    REFUSED: {
        "plus": b"+1",
        "two minuses": b"--1",
        "plus and minus": b"+-1",
        "minus alone": b"-",
        "minus and blank": b"- 1",
        "minus and letter": b"-x",
        "leading zero": b"01",
        "leading zeros": b"000",
        "negative with leading zero": b"-012",
        "leading zero before a fraction": b"00.5",
        "fraction alone": b".5",
        "negative fraction alone": b"-.5",
        "no digits after the point": b"1.",
        "negative, no digits after the point": b"-1.",
        "no digits between point and exponent": b"1.e2",
        "two points": b"1.2.3",
        "two points in a row": b"1..2",
        "comma for a point": b"1,5",
        "exponent without digits": b"1e",
        "capital exponent without digits": b"1E",
        "exponent with plus, without digits": b"1e+",
        "exponent with minus, without digits": b"1e-",
        "two exponents": b"1e2e3",
        "two letters": b"1ee2",
        "signs in the exponent": b"1e+-2",
        "fraction in the exponent": b"1e2.5",
        "exponent alone": b"e5",
        "hexadecimal": b"0x1F",
        "octal": b"0o17",
        "binary": b"0b101",
        "underscore": b"1_000",
        "blank within": b"1 000",
        "letter at the end": b"12a",
        "type at the end": b"12L",
        "minus at the end": b"12-",
        "sum": b"1+1",
        "not a number": b"NaN",
        "negative not a number": b"-NaN",
        "infinity": b"Infinity",
        "negative infinity": b"-Infinity",
        "short infinity": b"inf",
        "full-width digit": "\uff11".encode(),
        "Arabic digit": "\u0661".encode(),
        "byte that is no UTF-8 after digits": b"12\xff",
        "byte that is no UTF-8 in the exponent": b"1e\xff",
    },
    FREE: {
        "integer beyond 64 bits": b"18446744073709551616",
        "negative integer beyond 64 bits": b"-9223372036854775809",
        "integer of 400 digits": b"1" + b"0" * 399,
        "integer of 10,000 digits": b"9" * 10_000,
        "beyond a double": b"1e400",
        "negative beyond a double": b"-1e400",
        "too small for a double": b"1e-400",
        "exponent beyond 64 bits": b"1e99999999999999999999",
        "negative exponent beyond 64 bits": b"1e-99999999999999999999",
        "fraction of 1,000 digits": b"0." + b"3" * 1_000,
    },
}

STRINGS = {
    ACCEPTED: {
        "empty": b'""',
        "one letter": b'"a"',
        "blanks": b'"  a  "',
        "each short escape": rb'"\" \\ \/ \b \f \n \r \t"',
        "escaped quote at the end": rb'"\""',
        "escaped backslash at the end": rb'"\\"',
        "slash as it is": b'"a/b"',
        "escape of a letter": rb'"\u0041"',
        "hexadecimal digits in both cases": rb'"\u00eF"',
        "escaped null": rb'"\u0000"',
        "escaped control characters": rb'"\u0001\u001f"',
        "escaped delete": rb'"\u007f"',
        "delete as it is": b'"\x7f"',
        "escaped backslash before u": rb'"\\u0041"',
        "escaped quote": rb'"\u0022"',
        "escaped backslash": rb'"\u005c"',
        "pair of surrogates": rb'"\ud83d\ude00"',
        "pair of surrogates in capitals": rb'"\uD83D\uDE00"',
        "first pair": rb'"\ud800\udc00"',
        "last pair": rb'"\udbff\udfff"',
        "two pairs": rb'"\ud83d\ude00\ud83d\ude01"',
        "pair between letters": rb'"a\ud83d\ude00b"',
        "escaped noncharacter": rb'"\uffff"',
        "two bytes of UTF-8": '"\u00e9"'.encode(),
        "three bytes of UTF-8": '"\u20ac"'.encode(),
        "four bytes of UTF-8": '"\U0001f600"'.encode(),
        "first of two bytes": '"\u0080"'.encode(),
        "last of two bytes": '"\u07ff"'.encode(),
        "first of three bytes": '"\u0800"'.encode(),
        "last before the surrogates": '"\ud7ff"'.encode(),
        "first after the surrogates": '"\ue000"'.encode(),
        "last of three bytes": '"\uffff"'.encode(),
        "first of four bytes": '"\U00010000"'.encode(),
        "last character": '"\U0010ffff"'.encode(),
        "byte order mark within": '"a\ufeffb"'.encode(),
        "line separator": '"\u2028"'.encode(),
        "paragraph separator": '"\u2029"'.encode(),
        "combining character": '"e\u0301"'.encode(),
        "right to left": '"\u05d0\u202eb"'.encode(),
        "what looks like structure": b'"[1, {2: 3}], null"',
        "what looks like a comment": b'"a /* b */ // c"',
        "10,000 letters": b'"%b"' % (b"a" * 10_000),
    },
    REFUSED: {
        "not ended": b'"a',
        "only begun": b'"',
        "ended by an escape": rb'"\"',
        "single quotes": b"'a'",
        "no quotes": b"a",
        "backquotes": b"`a`",
        "typographic quotes": "\u201ca\u201d".encode(),
        "quote within": b'"a"b"',
        "two in a row": b'"a" "b"',
        "letter before": b'r"a"',
        "null as it is": b'"a\x00b"',
        "control character as it is": b'"a\x1fb"',
        "tab as it is": b'"a\tb"',
        "line feed as it is": b'"a\nb"',
        "carriage return as it is": b'"a\rb"',
        "escape of another letter": rb'"\a"',
        "escape of a digit": rb'"\0"',
        "hexadecimal escape": rb'"\x41"',
        "escape of a single quote": rb'"\'"',
        "escape of a line feed": b'"\\\n"',
        "escape of a null": b'"\\\x00"',
        "escape of a letter beyond ASCII": '"\\\u00e9"'.encode(),
        "escape of a byte that is no UTF-8": b'"\\\xff"',
        "capital U": rb'"\U0041"',
        "escape without digits": rb'"\u"',
        "escape with one digit": rb'"\u1"',
        "escape with three digits": rb'"\u004"',
        "escape with a digit that is none": rb'"\u004g"',
        "escape with a sign": rb'"\u+041"',
        "escape with a blank": rb'"\u 041"',
        "escape with a byte that is no UTF-8": b'"\\u00\xff1"',
        "escape in braces": rb'"\u{41}"',
        "escape outside": rb"\u0041",
        "escaped line feed outside": rb'\n"a"',
        "second surrogate with three digits": rb'"\ud83d\ude0"',
        "second surrogate without digits": rb'"\ud83d\u"',
        "second surrogate without u": rb'"\ud83d\"',
    },
    FREE: {
        "first surrogate alone": rb'"\ud83d"',
        "second surrogate alone": rb'"\ude00"',
        "first surrogate and a letter": rb'"\ud83da"',
        "first surrogate and a short escape": rb'"\ud83d\n"',
        "first surrogate and another character": rb'"\ud83d\u0041"',
        "two first surrogates": rb'"\ud83d\ud83d"',
        "surrogates in the wrong order": rb'"\ude00\ud83d"',
        "surrogate in UTF-8": b'"\xed\xa0\x80"',
        "pair of surrogates in UTF-8": b'"\xed\xa0\xbd\xed\xb8\x80"',
        "continuation alone": b'"\x80"',
        "ISO Latin 1": b'"caf\xe9"',
        "first byte of two alone": b'"\xc3"',
        "first two bytes of three": b'"\xe2\x82"',
        "first three bytes of four": b'"\xf0\x9f\x98"',
        "slash in two bytes": b'"\xc0\xaf"',
        "null in two bytes": b'"\xc0\x80"',
        "slash in three bytes": b'"\xe0\x80\xaf"',
        "beyond the last character": b'"\xf4\x90\x80\x80"',
        "five bytes": b'"\xf8\x88\x80\x80\x80"',
        "six bytes": b'"\xfc\x84\x80\x80\x80\x80"',
        "bytes that never occur": b'"\xfe\xff"',
    },
}

STRUCTURE = {
    ACCEPTED: {
        "true": b"true",
        "false": b"false",
        "null": b"null",
        "empty array": b"[]",
        "empty object": b"{}",
        "array of one": b"[1]",
        "array of everything": b'[null, true, false, 1, "a", [], {}]',
        "array of nulls": b"[null,null,null]",
        "array in array": b"[[],[[]]]",
        "object of one": b'{"a":1}',
        "object of several": b'{"a":1,"b":[2],"c":{"d":3}}',
        "empty name": b'{"":1}',
        "name with an escape": rb'{"a\u0000\n":1}',
        "name beyond ASCII": '{"\u00e9\U0001f600":1}'.encode(),
        "names that differ in case": b'{"a":1,"A":2}',
        "names that every object has": b'{"__proto__":1,"__class__":2}',
        "blanks everywhere": b' { "a" : [ 1 , 2 ] , "b" : { } } ',
        "tabs everywhere": b"\t[\t1\t,\t2\t]\t",
        "line feeds everywhere": b"\n[\n1\n,\n2\n]\n",
        "lines of Windows": b"\r\n[\r\n1\r\n]\r\n",
        "carriage returns": b"\r[\r1\r]\r",
        "1,000 blanks": b" " * 1_000 + b"1",
        "array of 1,000": b"[%b]" % b",".join([b"0"] * 1_000),
        "20 arrays deep": b"[" * 20 + b"]" * 20,
        "20 objects deep": b'{"a":' * 20 + b"1" + b"}" * 20,
    },
    REFUSED: {
        "nothing": b"",
        "blanks alone": b"   ",
        "capital true": b"True",
        "true in capitals": b"TRUE",
        "part of true": b"tru",
        "part of false": b"fals",
        "part of null": b"nul",
        "more than null": b"nulls",
        "undefined": b"undefined",
        "None": b"None",
        "name of a variable": b"value",
        "name beyond ASCII, not quoted": "\u00e9".encode(),
        "two values": b"1 2",
        "star": b"*",
        "comma before": b",1",
        "comma after": b"1,",
        "two commas after": b"1,,",
        "colon": b":1",
        "angle bracket": b"<1>",
        "parentheses": b"(1)",
        "function": b"f(1)",
        "array not ended": b"[1",
        "array not begun": b"1]",
        "array ended twice": b"[1]]",
        "array begun twice": b"[[1]",
        "array ended by a brace": b"[1}",
        "array with a comma at the end": b"[1,]",
        "array with a comma at the start": b"[,1]",
        "array of a comma": b"[,]",
        "array with two commas": b"[1,,2]",
        "array without a comma": b"[1 2]",
        "array of arrays without a comma": b"[[1][2]]",
        "array with a semicolon": b"[1;2]",
        "array with a colon": b"[1:2]",
        "array with a name": b'["a":1]',
        "array with a part of a value": b"[tru]",
        "array with a minus": b"[-]",
        "array with a string that does not end": b'["a]',
        "array and a comma": b"[1],",
        "two arrays": b"[][]",
        "object not ended": b'{"a":1',
        "object not begun": b'"a":1}',
        "object ended twice": b'{"a":1}}',
        "object ended by a bracket": b'{"a":1]',
        "object with a comma at the end": b'{"a":1,}',
        "object with a comma at the start": b'{,"a":1}',
        "object with two commas": b'{"a":1,,"b":2}',
        "object without a comma": b'{"a":1 "b":2}',
        "object with a semicolon": b'{"a":1;"b":2}',
        "object without a colon": b'{"a" 1}',
        "object with two colons": b'{"a"::1}',
        "object with an equals sign": b'{"a"=1}',
        "object with a comma for a colon": b'{"a",1}',
        "object without a value": b'{"a":}',
        "object with a name alone": b'{"a"}',
        "object without a name": b"{:1}",
        "object of a value": b"{1}",
        "name without quotes": b"{a:1}",
        "name in single quotes": b"{'a':1}",
        "number as a name": b"{1:1}",
        "null as a name": b"{null:1}",
        "array as a name": b"{[]:1}",
        "byte that is no UTF-8 as a name": b"{\x80:1}",
        "three dots": b'{"a":1,...}',
        "comment": b"1 // one",
        "comment in stars": b"/* one */ 1",
        "comment in an array": b"[1 /* one */]",
        "comment not ended": b"1 /* one",
        "comment with a hash": b"1 # one",
        "vertical tab": b"[\x0b1]",
        "form feed": b"[\x0c1]",
        "null as a blank": b"[\x001]",
        "no-break space": "[\u00a01]".encode(),
        "word joiner": "[\u20601]".encode(),
        "line separator as a blank": "[\u20281]".encode(),
        "escaped blank": rb"[\u00201]",
        "byte order mark as a blank": b"[" + BOM + b"1]",
        "byte order mark alone": BOM,
        "part of a byte order mark": b"\xef\xbb1",
        "byte that is no UTF-8": b"\xff",
        "two bytes for a letter": '"a"'.encode("utf-16-le"),
        "four bytes for a letter": '"a"'.encode("utf-32-le"),
        "100,000 arrays that do not end": b"[" * 100_000,
        "50,000 objects that do not end": b'{"a":' * 50_000,
        "50,000 arrays and objects that do not end": b'[{"a":' * 50_000,
        "100,000 ends of arrays": b"]" * 100_000,
    },
    FREE: {
        "byte order mark before the value": BOM + b"1",
        "name that stands twice": b'{"a":1,"a":2}',
        "name that stands twice with one value": b'{"a":1,"a":1}',
        "name that stands twice, once escaped": rb'{"a":1,"\u0061":2}',
        "name that stands twice, further in": b'[{"b":{"a":1,"a":2}}]',
        "first surrogate as a name": rb'{"\ud83d":1}',
        "200 arrays deep": b"[" * 200 + b"]" * 200,
        "500 arrays deep": b"[" * 500 + b"]" * 500,
        "10,000 arrays deep": b"[" * 10_000 + b"]" * 10_000,
        "10,000 objects deep": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    },
}

MESSAGES = [
    Case("blanks before the message", b"1", ACCEPTED, before=b" \t"),
    Case("blanks after the message", b"1", ACCEPTED, after=b" \t"),
    Case("byte order mark before the message", b"1", FREE, before=BOM),
    Case("byte order mark after the message", b"1", REFUSED, after=BOM),
    Case("no-break space before the message", b"1", REFUSED, before="\u00a0".encode()),
    Case("comma after the message", b"1", REFUSED, after=b","),
    Case("brace after the message", b"1", REFUSED, after=b"}"),
    Case("value after the message", b"1", REFUSED, after=b" 1"),
    Case("null after the message", b"1", REFUSED, after=b"\x00"),
]
"""Cases of the whole text."""

VALUES = [
    Case(f"{subject}: {name}", text, verdict)
    for subject, table in {"number": NUMBERS, "string": STRINGS, "structure": STRUCTURE}.items()
    for verdict, texts in table.items()
    for name, text in texts.items()
]


def judge(case: Case, answers: Sequence[Any]) -> None:
    """Fail unless there is exactly one answer, of the kind that the case wants."""
    assert len(answers) == 1, (case.name, answers)
    (answer,) = answers
    refused = "error" in answer or answer["result"].get("isError") is True
    if case.verdict == ACCEPTED:
        assert answer.get("id") == "it", (case.name, answer)
    assert case.verdict in (FREE, REFUSED if refused else ACCEPTED), (case.name, answer)


async def accepted_or_one_error(cases: Iterable[Case]) -> None:
    """Send each case to a server in memory: the answer is right, and so is the value that the tool received."""
    server = Server("test", "1")
    taken: list[Any] = []

    @server.tool
    async def take(value: Any) -> str:
        taken.append(value)
        return "taken"

    async with raw_peer(server) as peer:
        for case in cases:
            peer.say(case.message())
            answers = [await peer.hear()]
            peer.say({"jsonrpc": "2.0", "id": "after", "method": "ping"})
            while (answer := await peer.hear()).get("id") != "after":
                answers.append(answer)
            judge(case, answers)
            if case.verdict == ACCEPTED:
                assert taken.pop() == json.loads(case.text), case.name
