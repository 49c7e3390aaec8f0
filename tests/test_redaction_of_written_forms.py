"""Forms in which programs write a secret beside its name, each found by an attack on the redaction of texts."""

from __future__ import annotations

import json

import pytest

from accord.redaction import REDACTED, may_have_secret, redact

from tests.measure import assert_linear

R = "Zq8vT3nLw5xYb7Kd2mPf"
WRITTEN = {
    "dpop alone": "sent DPoP $R",
    "prefix json name/value": 'it says {"name": "Authorization", "value": "$R"}',
    "prefix json value/name": 'it says {"value": "$R", "name": "Authorization"}',
    "prefix json secrets": 'it says {"secrets": ["$R"]}',
    "repr name/value": "{'name': 'Authorization', 'value': '$R'}",
    "repr secrets": "{'secrets': ['$R']}",
    "json escaped name prefix": 'it says {"\\u0070assword":"$R"}',
    "json escaped name trunc": '{"pass\\u0077ord":"$R","x":',
    "json 5 levels": json.dumps(json.dumps(json.dumps(json.dumps(json.dumps({"secret": "$R"}))))),
    "json slash escaped": '{"url":"https:\\/\\/u:$R@h\\/"}',
    "url slash escaped text": "x https:\\/\\/u:$R@h\\/",
    "yaml list": "passwords:\n  - $R\n",
    "yaml list0": "passwords:\n- $R\n",
    "yaml tag": "password: !!str $R",
    "yaml anchor": "password: &p $R",
    "yaml block comment": "password: | # c\n  $R\n",
    "yaml env list": "env:\n  - name: API_KEY\n    value: $R\n",
    "yaml env list q": 'env:\n- name: API_KEY\n  value: "$R"\n',
    "toml multi": 'password = """\n$R\n"""',
    "toml arr": 'api_keys = ["$R"]',
    "query enc": "/x?client%5Fsecret=$R",
    "query enc name all": "/x?%70%61%73%73%77%6f%72%64=$R",
    "multipart": 'Content-Disposition: form-data; name="password"\r\n\r\n$R\r\n--x',
    "shell --token nl": "x --token \\\n  $R",
    "shell --token 4 blanks": "x --token     $R",
    "pem plus": "key=-----BEGIN+PRIVATE+KEY-----%0A$R%0A-----END+PRIVATE+KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n$R\n-----END PGP PRIVATE KEY BLOCK-----",
    "jwe": "eyJhbGciOiJSU0EtT0FFUCJ9..$R$R.x.y",
    "jwe 5": "eyJhbGciOiJSU0EtT0FFUCJ9.kkkkkkkkkkkkkkkkkkkk.iviviviviv.$R.tagtag",
    "fullwidth": "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44=$R",
    "cyrillic a": "p\u0430ssword=$R",
    "fullwidth eq": "password\uff1d$R",
    "fullwidth colon": "password\uff1a$R",
    "long s": "pa\u017f\u017fword=$R",
    "kelvin": "api_\u212aey=$R",
    "dotless I": "AP\u0130_KEY=$R",
    "nbsp": "password:\xa0$R",
    "arrow": "password -> $R",
    "html ent": "password=&quot;$R&quot;",
    "html ent json": "{&quot;password&quot;:&quot;$R&quot;}",
    "html num": "&#34;password&#34;: &#34;$R&#34;",
    "xml cdata": "<password><![CDATA[$R]]></password>",
    "xml attrs elem": '<password type="x">$R</password>',
    "xml ns": "<ns:password>$R</ns:password>",
    "input html": '<input type="hidden" name="csrf_token" value="$R">',
    "sql": "ALTER USER x PASSWORD '$R'",
    "sql id": "IDENTIFIED BY '$R'",
    "two spaces": "password:    $R",
    "tabs": "password\t=\t\t\t\t\t$R",
    "is": "password is: $R",
    "json list pw prefix": 'x {"passwords": ["$R"]}',
    "json obj pw prefix": 'x {"password": {"old": "$R"}}',
    "backtick name": "`password`: `$R`",
    "md bold": "**password**: $R",
    "u esc eq": "password\\u003d$R",
    "u esc colon q": '{\\"password\\"\\u003a \\"$R\\"}',
    "json key/value": '{"key": "X-Api-Key", "value": "$R"}',
    "json header/value": '{"header": "X-Api-Key", "value": "$R"}',
    "json trunc": '{"secrets":["$R","x',
    "json trunc pair": '[["Authorization","Digest $R x',
    "text pair cut": 'x ["Authorization","Digest $R x',
    "ndjson": '{"a":1}\n{"secrets":["$R"]}',
    "sse": 'data: {"secrets":["$R"]}\n\n',
    "jsonp": 'cb({"name":"API_KEY","value":"$R"})',
    "json comment": '{"secrets":["$R"]} // x',
    "sas amp html": "?sv=1&amp;sig=$R",
    "redis-cli": "redis-cli -a $R",
    "shlex arr u": "['curl', '-u', 'admin:$R']",
    "argv single dash": "x -token $R",
    "argv single dash repr": "['x', '-token', '$R']",
    "repr value/name": "{'value': '$R', 'name': 'Authorization'}",
    "repr value/type/name": "sent {'value': '$R', 'type': 'x', 'name': 'API_KEY'} to x",
    "repr lines": "{'name':\n 'Authorization',\n 'value':\n '$R'}",
    "class value/name": "Header(value='$R', name='Authorization')",
    "html value/name": '<input value="$R" name="csrf_token">',
    "html value/id/name": '<input type="hidden" value="$R" id="t" name="csrf_token"/>',
    "html name/type/value": '<input name="csrf_token" type="hidden" value="$R">',
    "html meta": '<meta name="csrf-token" content="$R">',
    "yaml value/name": "env:\n  - value: $R\n    name: API_KEY\n",
    "yaml name/scope/value": "env:\n  - name: API_KEY\n    scope: run\n    value: $R\n",
    "json Name/Value": '{"Name": "DB_PASSWORD", "Value": "$R"}',
    "environ": "os.environ['API_KEY'] = '$R'",
    "rust": 'Config { password: Some("$R") }',
    "quoted after token": 'token "$R" expired',
    "quoted after bearer": 'bearer "$R"',
    "groq after an escape": "key\\u003dgsk_$R",
}
"""Each text has the secret at `$R`."""


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_secret_as_it_is_written_goes(written: str) -> None:
    text = written.replace("$R", R)
    for found in (
        redact(text),
        redact({"message": [text]}),
        redact(f"failed: {text}\nnext"),
        redact(json.dumps([text])),
    ):
        assert R not in str(found)
        assert REDACTED in str(found)
    assert redact(redact(text)) == redact(text)
    assert may_have_secret(text) or "\\u" in text


def test_a_key_that_is_cut_before_its_type_goes() -> None:
    assert redact('{"d":"Zq8vT3nL","x":{"a":1},"y":') == '{"d":"[redacted]","x":{"a":1}'


PLAIN = [
    "the token -> the server, `token`: ",
    "tokens: [1, 2] and [3]",
    "<tokens count='2'>many</tokens>",
    '{"name": "city", "value": "Oslo"}',
    'it says {"required": ["password", "email"], "value": 5, "name": "city"}',
    '{"a": "cut',
    '["Authorization", "Content-Type", "Acce',
    "- name: CITY\n  value: Oslo",
    "caf\u00e9 \u2192 \u201cquoted\u201d \uff21",
    "passwords:\n  - first\n  - second",
    "count%5Fof=5",
    "-v -x value",
    "{'value': 'Oslo', 'name': 'city'}",
    '<input value="Oslo" name="city"><meta name="author" content="me">',
    "- value: 12\n  name: TOKEN_LIMIT",
    "- value: Oslo\n  name: CITY\n- name: API_KEY",
    "Header(name='Accept', value='*/*')",
    "Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON",
    "npm_config_user_agent and hf_hub_download_progress_bars",
    "request call_0123456789abcdefABCDEF12 of 123e4567-e89b-12d3-a456-426614174000",
    '{"d": "a", "q": "search", "x": {"a": 1}}',
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_only_resembles_a_secret_stays(text: str) -> None:
    assert redact(text) is text


HARD = [
    "`token`: ",
    "token->",
    "token=&quot;",
    'token:["',
    "token: ['a',",
    'token="""',
    "<token a>",
    "<token ",
    ":token a",
]
HARD += [
    '"token","value":',
    "token\n value: ",
    'token"\n\n',
    "tokens:\n - a1b2c3\n",
    "%5Ftoken=a&",
    "\\/\\/a:",
    "redis-cli ",
]
HARD += [
    "'-u', 'a",
    "PASSWORD 'a",
    "token: !a ",
    "token: | # ",
    "\uff1dtoken",
    '{"a":',
    '["a" ',
    'x {"token":1} ',
    '{"value":"a",',
]
HARD += [
    "-token ",
    "token\\u003d",
    '["token","a',
    "token \\\n",
    "dpop ",
    "[{",
    '{"token',
    "name",
    "}",
    '"}',
    "token is: ",
    "token 'a1",
    "=token value: ",
    "name=token\nvalue",
    "{'value': 'a', 'name': 'token'",
    "api key ",
    "token=a(",
    "value: |\n =token ",
    "value='=token' ",
    'value=\\"=token ',
]


@pytest.mark.parametrize("start", ["", 'x ["token', '{"value":"token'])
@pytest.mark.parametrize("unit", HARD)
def test_the_time_grows_with_the_length_and_no_faster(start: str, unit: str) -> None:
    assert_linear(lambda size: redact((start + unit * (size // len(unit) + 1))[:size]), 20_000)
