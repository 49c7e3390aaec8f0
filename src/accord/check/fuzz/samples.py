"""One text for each format that JSON Schema knows, chosen so that nothing outside is meant by it.

Names and addresses are those set aside for documentation (RFC 2606, RFC 5737, RFC 3849).
"""

from __future__ import annotations

FORMATS: dict[str, tuple[str, ...]] = {
    "date-time": ("2026-01-31T12:00:00Z", "1999-12-31T23:59:59.999+05:30", "2024-02-29T00:00:00Z"),
    "date": ("2026-01-31", "2024-02-29", "1970-01-01"),
    "time": ("12:00:00Z", "23:59:59.999+05:30", "00:00:00Z"),
    "duration": ("PT1S", "P1D", "P1Y2M3DT4H5M6S"),
    "email": ("someone@example.com", "a.b+c@sub.example.org"),
    "idn-email": ("someone@example.com", "jemand@bücher.example"),
    "hostname": ("example.com", "a.example"),
    "idn-hostname": ("example.com", "bücher.example"),
    "ipv4": ("192.0.2.1", "127.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/", "urn:example:a", "https://example.com/a%20b?c=d#e"),
    "uri-reference": ("https://example.com/", "/a", "?b=c"),
    "iri": ("https://example.com/", "https://example.com/ü"),
    "iri-reference": ("https://example.com/", "/ü"),
    "url": ("https://example.com/",),
    "uri-template": ("https://example.com/{id}",),
    "uuid": ("00000000-0000-4000-8000-000000000000", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    "json-pointer": ("/a", "", "/a~1b/0"),
    "relative-json-pointer": ("0", "1/a"),
    "regex": ("^a+$", "."),
    "byte": ("YQ==", ""),
}
