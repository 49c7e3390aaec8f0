"""What a peer may write to break out of a report, or to hide in it."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'\" onmouseover=alert(1) x='",
    "javascript:alert(1)",
    "]]>",
    "<!--",
    "--><!DOCTYPE x [<!ENTITY a '1'>]>&a;",
    "</pre></details></table>",
    "\n\n# heading\n\n| a | b |\n",
    "```\n",
    "[here](https://evil.example) ![x](https://evil.example/x.png)",
    "{0} {{1}}",
    "\x1b]8;;https://evil.example\x07here\x1b]8;;\x07 \x1b[2J\r",
    "\u202egpj.exe \u2066 \u200b \u3164 \ufe0f \U000e0041",
    "\x00\x08\x0b\x85\u2028\ufffe\ufeff",
    "\ud800 \udc80",
    "e" + "\u0301" * 40,
)

TEXTS: st.SearchStrategy[str] = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=()), max_size=12), max_size=6
).map("".join)
"""Any text, surrogates and controls among it, mixed with those."""
