"""Lines that a person types or pastes at a terminal: what of them is an answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from accord.cli import forms, keyboard
from accord.cli.keyboard import PromptRefused


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Let stdin be a terminal; return the descriptor of its user."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    monkeypatch.setattr(keyboard, "_QUIET_SECONDS", 1.0)
    with open(theirs, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


async def paste(user: int, text: bytes) -> None:
    """Write all of a text, as soon as the terminal has room for it."""
    loop, room = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(user, room.set)
    try:
        while text:
            await room.wait()
            room.clear()
            with suppress(BlockingIOError):
                text = text[os.write(user, text) :]
                os.read(user, 65536)  # the echo
    finally:
        loop.remove_writer(user)


async def test_the_rest_of_a_long_paste_approves_nothing(user: int) -> None:
    pasting = asyncio.create_task(paste(user, b"yes\n" * 10_000))
    choosing = asyncio.create_task(forms.choose("Approve?", ("yes", "no"), "no"))
    await pasting
    await asyncio.sleep(0)
    assert not choosing.done()
    while not choosing.done():  # until the question is open, what is typed is discarded
        os.write(user, b"no\n")
        await asyncio.wait([choosing], timeout=3)
    with pytest.raises(PromptRefused):
        await choosing


async def test_what_was_pasted_with_an_invalid_answer_approves_nothing(
    user: int, capsys: pytest.CaptureFixture[str]
) -> None:
    choosing = asyncio.create_task(forms.choose("Approve?", ("yes", "no"), "no"))
    while "Approve?" not in capsys.readouterr().err:
        await asyncio.sleep(0.01)
    os.write(user, b"nonsense\nyes\n")
    while "Approve?" not in capsys.readouterr().err:
        await asyncio.sleep(0.01)
    os.write(user, b"no\n")
    with pytest.raises(PromptRefused):
        await choosing


async def test_the_rest_of_a_paste_over_a_slow_connection_approves_nothing(
    user: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keyboard, "_QUIET_SECONDS", 0.01)
    monkeypatch.setattr(keyboard, "_PASTE_QUIET_SECONDS", 4.0)
    os.write(user, b"The log:\n")
    choosing = asyncio.create_task(forms.choose("Approve?", ("yes", "no"), "no"))
    for _ in range(3):
        await asyncio.sleep(0.2)
        os.write(user, b"yes\n")
    while "Approve?" not in capsys.readouterr().err:
        await asyncio.sleep(0.01)
    assert not choosing.done()
    os.write(user, b"no\n")
    with pytest.raises(PromptRefused):
        await choosing


async def test_input_that_never_ends_declines(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyboard, "_MAX_DISCARD_SECONDS", 0.0)
    os.write(user, b"yes\n")
    endless = asyncio.create_task(paste(user, b"yes\n" * 1_000_000))
    with pytest.raises(PromptRefused):
        await forms.choose("Approve?", ("yes", "no"))
    endless.cancel()


async def test_a_line_that_the_terminal_cut_off_is_no_answer(user: int, capsys: pytest.CaptureFixture[str]) -> None:
    reading = asyncio.create_task(keyboard.read_line("name: "))
    await paste(user, b"x" * 10_000 + b"\n")
    while "cut off" not in capsys.readouterr().err:
        assert not reading.done()
        await asyncio.sleep(0.01)
    await paste(user, b"short\n")
    assert await reading == "short"


async def test_a_terminal_that_is_gone_ends_the_question(user: int) -> None:
    os.write(user, b"yes\n")
    os.dup2(os.open(os.devnull, os.O_RDWR), user)
    with pytest.raises(PromptRefused):
        await forms.choose("Approve?", ("yes", "no"))
