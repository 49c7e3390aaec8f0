"""Content of newer kinds, said in what an older revision has."""

from __future__ import annotations

import pytest

from accord.messages.adapt import adapt_content
from accord.messages.content import Annotations, AudioContent, ResourceLink, TextContent
from accord.messages.revision import REVISIONS

SOUND = AudioContent(data="AAAA", mime_type="audio/wav", annotations=Annotations(priority=1))
LINK = ResourceLink(uri="file:///a.txt", name="a", title="The letter", description="from A to Z")


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_revision_has_stays_as_it_is(revision: str) -> None:
    text = TextContent(text="x")
    assert adapt_content([text], revision)[0] is text
    assert (adapt_content([SOUND], revision)[0] is SOUND) == (revision != "2024-11-05")
    assert (adapt_content([LINK], revision)[0] is LINK) == (revision not in ("2024-11-05", "2025-03-26"))


def test_sound_becomes_an_embedded_resource_with_the_same_bytes() -> None:
    (block,) = adapt_content([SOUND], "2024-11-05")
    assert (block.resource.blob, block.resource.mime_type) == ("AAAA", "audio/wav")
    assert block.annotations == SOUND.annotations


def test_a_link_becomes_text_that_names_it() -> None:
    assert adapt_content([LINK], "2025-03-26") == [TextContent(text="[The letter](file:///a.txt): from A to Z")]
    plain = ResourceLink(uri="file:///a.txt", name="a")
    assert adapt_content([plain], "2025-03-26") == [TextContent(text="[a](file:///a.txt)")]
