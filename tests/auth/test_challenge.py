"""`WWW-Authenticate`: what the specification shows, what servers send, and what nobody should."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accord.auth.challenge import (
    CHALLENGE_BYTES,
    Challenge,
    format_challenge,
    parse_challenges,
    parse_scopes,
    select_challenge,
)

from tests.measure import assert_linear

METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer", [Challenge("bearer")]),
        ('Bearer realm="a"', [Challenge("bearer", {"realm": "a"})]),
        (
            f'Bearer resource_metadata="{METADATA}",       scope="files:read files:write"',
            [Challenge("bearer", {"resource_metadata": METADATA, "scope": "files:read files:write"})],
        ),
        ("Basic realm=x, Bearer error=invalid_token", [
            Challenge("basic", {"realm": "x"}), Challenge("bearer", {"error": "invalid_token"})
        ]),
        ("Negotiate YWJjZA==, Bearer scope=a", [Challenge("negotiate"), Challenge("bearer", {"scope": "a"})]),
        ('DPoP algs="ES256 RS256" , Bearer', [Challenge("dpop", {"algs": "ES256 RS256"}), Challenge("bearer")]),
        (r'Bearer error_description="a \"quoted\", \\ text"', [
            Challenge("bearer", {"error_description": 'a "quoted", \\ text'})
        ]),
        ("bearer ERROR = x", [Challenge("bearer", {"error": "x"})]),
        ('Bearer scope="a", scope="b"', [Challenge("bearer", {"scope": "a"})]),
        ('Bearer scope="never closed', [Challenge("bearer")]),
        ("", []),
        (",,, ", []),
        ('="x"', []),
    ],
)  # fmt: skip
def test_headers_are_parsed_as_rfc_9110_says(header: str, expected: list[Challenge]) -> None:
    assert parse_challenges([header]) == expected


def test_several_headers_are_one_list() -> None:
    assert [each.scheme for each in parse_challenges(["Basic realm=a", "Bearer scope=b"])] == ["basic", "bearer"]


names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


@given(st.sampled_from(["Bearer", "DPoP"]), st.dictionaries(names, values, max_size=8))
def test_what_is_formatted_is_parsed_to_the_same(scheme: str, parameters: dict[str, str]) -> None:
    assert parse_challenges([format_challenge(scheme, parameters)]) == [Challenge(scheme.lower(), parameters)]


@given(st.text(max_size=200))
def test_any_text_is_parsed_without_an_error(header: str) -> None:
    for challenge in parse_challenges([header]):
        assert challenge.scheme == challenge.scheme.lower()


@pytest.mark.parametrize(
    "part", ["a ", "a=b,", 'a="', "a" * 9 + "=", "\\", " ", ",", "a a=", 'a="\\"\\', "x=\t", "token68="]
)
def test_the_time_of_a_hostile_header_is_that_of_its_length(part: str) -> None:
    whole = part * (CHALLENGE_BYTES // len(part))
    assert_linear(lambda size: [parse_challenges([whole[:size]]) for _ in range(5)], CHALLENGE_BYTES // 8, 8)


def test_bearer_with_resource_metadata_is_selected() -> None:
    challenges = parse_challenges([f'Basic realm=a, Bearer realm=b, Bearer resource_metadata="{METADATA}"'])
    selected = select_challenge(challenges)
    assert selected is not None
    assert selected.parameters == {"resource_metadata": METADATA}
    assert select_challenge(parse_challenges(["Basic realm=a"])) is None


def test_scopes_are_unique_and_have_only_allowed_characters() -> None:
    assert parse_scopes('a  b a "c" d\\ é') == ["a", "b"]
    assert Challenge("bearer", {}).scopes is None
    assert Challenge("bearer", {"scope": ""}).scopes == []
    assert Challenge("bearer", {"error": "invalid_token"}).error == "invalid_token"
