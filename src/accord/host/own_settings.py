"""accord's own settings in a configuration file: no name may occur twice, and where the policy is.

A parser takes the last of two members with one name. In a policy, the last could replace a stricter one in silence.
"""

from __future__ import annotations

from pathlib import Path

from accord.errors import TargetError
from accord.host import jsonc
from accord.host.documents import MAX_BYTES, decode_text, read_bytes

OWN_KEY = "accord"
"""The key of accord's own settings in a configuration file."""


def policy_place(path: Path) -> str:
    """Return file and line of the policy in a file of JSON. Raises `TargetError` for a name that occurs twice."""
    text = decode_text(read_bytes(path, MAX_BYTES["json"]), path)
    root = _parse(text, path)
    own = [member for member in (root.members or () if root is not None else ()) if member.name == OWN_KEY]
    for member in own[1:]:
        raise TargetError(f'{path}:{_line(text, member.start)}: "{OWN_KEY}" occurs twice; remove one')
    nodes = [member.value for member in own]
    while nodes:
        node = nodes.pop()
        if (name := node.duplicate) is not None:
            raise TargetError(f"{path}:{_line(text, node.start)}: {name!r} occurs twice in this object; remove one")
        nodes += [*(member.value for member in node.members or ()), *(node.items or ())]
    policy = own[0].value.member("policy") if own else None
    return str(path) if policy is None else f"{path}:{_line(text, policy.start)}"


def _parse(text: str, path: Path) -> jsonc.JSONNode | None:
    try:
        return jsonc.parse(text)
    except jsonc.JSONCError as exc:
        raise TargetError(f"{path}:{exc.line}:{exc.column}: {exc.reason}") from None


def _line(text: str, offset: int) -> int:
    return jsonc.position(text, offset)[0]
