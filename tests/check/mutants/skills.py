"""Servers whose skills are wrong (extension Skills)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from accord import Server

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import refuse


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder with one skill, until the tests end."""
    made = tempfile.TemporaryDirectory(prefix="accord-skills-", ignore_cleanup_errors=True)
    skill = Path(made.name) / "refunds"
    (skill / "templates").mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(b"---\nname: refunds\ndescription: Refund an order.\n---\n# Refunds\n")
    (skill / "mail.md").write_bytes(b"Dear NAME")
    (skill / "templates" / "long.md").write_bytes(b"Dear Sir or Madam")
    return made


def with_skills() -> Server:
    """A right one with a skill."""
    server = Server("skilled", "1.0.0")
    server.add_skills(folder().name, watch=False)
    return server


def listed(change: Change, edit: Callable[[Any], Any]) -> None:
    """Change the entry of both methods."""

    @change.answers("skills/list")
    def _(request: Any, answer: Any) -> Any:
        for entry in answer["result"]["skills"]:
            edit(entry)
        return answer

    @change.answers("skills/get")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            edit(answer["result"]["skill"])
        return answer


@mutant("skills/listed", server=with_skills)
def an_extension_without_its_method(change: Change) -> None:
    refuse(change, "skills/list")


@mutant("skills/listed", server=with_skills)
def entries_without_files(change: Change) -> None:
    listed(change, lambda entry: entry.pop("resources"))


@mutant("skills/name", server=with_skills)
def a_name_that_is_a_title(change: Change) -> None:
    listed(change, lambda entry: entry["frontmatter"].update(name="Refunds!"))


@mutant("skills/name", server=with_skills)
def an_entry_without_a_description(change: Change) -> None:
    listed(change, lambda entry: entry["frontmatter"].pop("description"))


@mutant("skills/complete", server=with_skills)
def an_entry_without_its_main_file(change: Change) -> None:
    listed(change, lambda entry: entry["resources"].pop(0))


@mutant("skills/complete", server=with_skills)
def a_file_of_another_folder(change: Change) -> None:
    listed(change, lambda entry: entry["resources"][1].update(uri="skill://billing/mail.md"))


@mutant("skills/complete", server=with_skills)
def a_skill_beyond_the_limits(change: Change) -> None:
    listed(change, lambda entry: entry["resources"][1].update(size=17 << 20))


@mutant("skills/verified", server=with_skills)
def frontmatter_of_its_own(change: Change) -> None:
    listed(change, lambda entry: entry["frontmatter"].update(license="MIT"))


@mutant("skills/verified", server=with_skills)
def a_digest_of_other_bytes(change: Change) -> None:
    for_main(change, lambda file: file.update(digest="sha256:" + "0" * 64))


@mutant("skills/verified", server=with_skills)
def a_size_of_other_bytes(change: Change) -> None:
    for_main(change, lambda file: file.update(size=file["size"] + 1))


def for_main(change: Change, edit: Callable[[Any], Any]) -> None:
    listed(change, lambda entry: [edit(file) for file in entry["resources"] if file["uri"] == entry["uri"]])


@mutant("skills/files", server=with_skills)
def a_file_that_has_changed(change: Change) -> None:
    @change.answers("resources/read")
    def _(request: Any, answer: Any) -> Any:
        for contents in answer.get("result", {}).get("contents", ()):
            if contents["uri"].endswith("/mail.md"):
                contents["text"] = "Dear\r\nNAME"
        return answer


@mutant("skills/get", server=with_skills)
def another_entry_for_one(change: Change) -> None:
    @change.answers("skills/get")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            answer["result"]["skill"]["resources"] = "dynamic"
        return answer


@mutant("skills/unknown", server=with_skills)
def an_unknown_skill_is_an_internal_error(change: Change) -> None:
    @change.answers("skills/get")
    def _(request: Any, answer: Any) -> Any:
        if "error" in answer:
            answer["error"]["code"] = -32603
        return answer


@mutant("skills/directory", server=with_skills)
def a_folder_without_its_files(change: Change) -> None:
    @change.answers("resources/directory/read")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer:
            answer["result"]["resources"] = []
        return answer
