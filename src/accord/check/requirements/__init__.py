"""Every normative sentence of the specification, and what becomes of it: the map that a test holds complete.

The sources are the five revisions (their pages, and the comments of their `schema.ts` as one page more) and the
extensions. One file per page, one line per sentence, three columns with tabs between: an id, which is
`2025-11-25/server/tools#07`, `2025-11-25/schema#07` or `ext-tasks/overview#07`, a kind, and the rest.

| kind | the rest |
| --- | --- |
| `rule` | the rules that judge it |
| `inside` | why nobody outside can see it |
| `permission` | what is accepted because of it |
| `person` | what is for people, interfaces, models or operators |
| `heading` | it announces other sentences, or says what a word means |
| `third-party` | what only a login shows of an authorization server, or of an identity provider |
| `advice` | why it has no outward sign |
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias, get_args

import msgspec

Kind: TypeAlias = Literal["rule", "inside", "permission", "person", "heading", "third-party", "advice"]

KINDS: tuple[Kind, ...] = get_args(Kind)

_NAMED: dict[str, Kind] = {kind: kind for kind in KINDS}

EXTENSIONS: dict[str, str] = {"ext-tasks": "2026-07-28", "ext-auth": "2026-07-28"}
"""The sources that are no revision, and the revision in which their sentences are judged."""


class Sentence(msgspec.Struct, frozen=True):
    """One sentence. `rest` is why, or what; `rules` are the ids of those that judge it."""

    id: str
    kind: Kind
    rest: str

    @property
    def source(self) -> str:
        """The revision or extension that it is from."""
        return self.id.partition("/")[0]

    @property
    def revision(self) -> str:
        """The revision in which it is judged."""
        return EXTENSIONS.get(self.source, self.source)

    @property
    def page(self) -> str:
        """`server/tools`, whatever the revision; `ext-tasks/overview`."""
        place = self.id.partition("#")[0]
        return place if self.source in EXTENSIONS else place.partition("/")[2]

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(self.rest.split()) if self.kind == "rule" else ()


@cache
def sentences() -> tuple[Sentence, ...]:
    """All of them, page by page. Raises `ValueError` for a line that is wrong."""
    files = sorted(file.name for file in resources.files(__name__).iterdir() if file.name.endswith(".tsv"))
    return tuple(sentence for file in files for sentence in _read(file))


def _read(file: str) -> Iterator[Sentence]:
    text = resources.files(__name__).joinpath(file).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        id, _, rest = line.partition("\t")
        name, tab, why = rest.partition("\t")
        kind = _NAMED.get(name)
        if kind is None or not tab or not why.strip():
            raise ValueError(f"{file}, line {number}: write it as id, kind and rest, with tabs between: {line!r}")
        yield Sentence(id, kind, why.strip())
