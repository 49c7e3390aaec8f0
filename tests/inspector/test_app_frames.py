"""Frames of apps: what they may connect to."""

from __future__ import annotations

from accord.inspector.app_frames import allowed_connections, content_policy


def test_an_app_connects_to_the_hosts_of_its_policy_only() -> None:
    declared = ["https://api.example", "wss://*.feed.example:*", "http://127.0.0.1:81", '"); *', "https://a.example/x"]
    policy, ignored = content_policy({"connectDomains": declared, "resourceDomains": ["https://api.example"]})
    assert ignored == ['"); *', "https://a.example/x"]
    assert allowed_connections(policy) == (
        '(response-origin "http://127.0.0.1:81/*" "https://127.0.0.1:81/*" "https://api.example/*"'
        ' "wss://*.feed.example:*/*")'
    )
    assert allowed_connections(content_policy({})[0]) == "(response-origin)"


def test_a_source_is_no_longer_than_a_name() -> None:
    """A header of megabytes was sent, five times the size of the resource."""
    longest = f"https://{'a' * 292}"
    policy, ignored = content_policy({"connectDomains": [longest, f"{longest}a"]})
    assert f"connect-src {longest}" in policy
    assert len(ignored) == 1
