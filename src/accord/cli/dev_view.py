"""`accord dev --attach`: the calls of a program, in a terminal."""

from __future__ import annotations

import curses
import select
import sys
import unicodedata
from contextlib import suppress

import click

from accord.cli.columns import one_line, wrapped
from accord.dev.attach_client import Attachment
from accord.dev.viewed_calls import Call, ViewedCalls
from accord.visible_text import readable, visible

_KEYS = "up/down select   Enter open   / filter   p pause   r reload   q quit"
_OPEN_KEYS = "up/down scroll   Enter close   q quit"
_FILTER_KEYS = "type words   Enter keep   Esc clear"
_REFRESH_SECONDS = 0.5
_ESCAPE, _REDRAW, _RETURN, _RUBOUT = "\x1b", "\x0c", ("\n", "\r"), ("\x7f", "\b")
_MOST_LINES = 10_000


def show(attachment: Attachment) -> None:
    """Show the calls until the user quits or `accord dev` ends."""
    with suppress(KeyboardInterrupt):
        curses.wrapper(lambda screen: _CallScreen(screen, attachment).run())
    if attachment.is_closed:
        click.echo(f"accord dev {attachment.hello.target} has ended", err=True)


class _CallScreen:
    """The screen: the list, or one call that is open."""

    def __init__(self, screen: curses.window, attachment: Attachment) -> None:
        self._screen = screen
        self._attachment = attachment
        self._calls = ViewedCalls()
        self._selected: int | None = None  # the number of a call; None follows the newest
        self._open: list[str] | None = None
        self._top = 0  # the first line that is shown of an open call
        self._is_filtering = False

    def run(self) -> None:
        """Show what happens, and do what the user types."""
        with suppress(curses.error):  # a terminal that cannot hide its cursor
            curses.curs_set(0)
        curses.set_escdelay(25)
        self._screen.keypad(True)
        self._screen.nodelay(True)
        while not self._attachment.is_closed:
            self._draw()
            ready, _, _ = select.select([sys.stdin, self._attachment], [], [], _REFRESH_SECONDS)
            if self._attachment in ready:
                self._calls.apply(self._attachment.receive())
            while (key := self._key()) is not None:
                if not self._press(key):
                    return

    def _key(self) -> str | int | None:
        try:
            return self._screen.get_wch()
        except curses.error:
            return None

    # --- keys -----------------------------------------------------------------------------------------------------

    def _press(self, key: str | int) -> bool:
        """Do what a key means. Return whether the view stays."""
        if self._is_filtering:
            self._edit_filter(key)
        elif key == "q":
            return False
        elif key in (curses.KEY_UP, curses.KEY_DOWN, curses.KEY_PPAGE, curses.KEY_NPAGE, "j", "k"):
            self._move(key)
        elif key in _RETURN or key == curses.KEY_ENTER or (key == _ESCAPE and self._open is not None):
            self._toggle_open()
        elif key == "/":
            self._is_filtering, self._open = True, None
        elif key == "p":
            self._calls.toggle_pause()
        elif key == _REDRAW:
            self._screen.clearok(True)
        elif key == "r":
            self._attachment.reload()
        return True

    def _edit_filter(self, key: str | int) -> None:
        if key in _RETURN or key == curses.KEY_ENTER:
            self._is_filtering = False
        elif key == _ESCAPE:
            self._is_filtering, self._calls.filter = False, ""
        elif key in _RUBOUT or key == curses.KEY_BACKSPACE:
            self._calls.filter = self._calls.filter[:-1]
        elif isinstance(key, str) and key.isprintable():
            self._calls.filter += key

    def _move(self, key: str | int) -> None:
        page = self._screen.getmaxyx()[0] - 3
        steps = {curses.KEY_UP: -1, "k": -1, curses.KEY_PPAGE: -page, curses.KEY_NPAGE: page}.get(key, 1)
        if self._open is not None:
            self._top = max(0, min(self._top + steps, len(self._open) - page))
            return
        if numbers := [call.number for call in self._calls.matching()]:
            index = max(0, min(self._index(numbers) + steps, len(numbers) - 1))
            self._selected = None if index == len(numbers) - 1 else numbers[index]

    def _index(self, numbers: list[int]) -> int:
        return numbers.index(self._selected) if self._selected in numbers else len(numbers) - 1

    def _toggle_open(self) -> None:
        if self._open is not None:
            self._open = None
        elif calls := self._calls.matching():
            self._top = 0
            self._open = _call_lines(calls[self._index([each.number for each in calls])], self._screen.getmaxyx()[1])

    # --- the screen -----------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        self._screen.erase()
        height, _ = self._screen.getmaxyx()
        self._put(0, self._heading(), curses.A_REVERSE)
        if self._open is not None:
            for row, line in enumerate(self._open[self._top : self._top + height - 3]):
                self._put(row + 1, line)
        else:
            self._draw_calls(height - 3)
        self._put(height - 2, one_line(self._calls.last_line))
        keys = _FILTER_KEYS if self._is_filtering else _KEYS if self._open is None else _OPEN_KEYS
        self._put(height - 1, keys, curses.A_DIM)
        self._screen.refresh()

    def _draw_calls(self, room: int) -> None:
        calls = self._calls.matching()
        index = self._index([each.number for each in calls])
        top = max(0, min(index - room // 2, len(calls) - room))
        for row, call in enumerate(calls[top : top + room]):
            at, duration, what = call.columns()
            style = curses.A_BOLD if call.is_failure else curses.A_NORMAL
            self._put(row + 1, f"{at} {duration:>11}  {one_line(what)}", style | self._mark(top + row == index))

    @staticmethod
    def _mark(is_selected: bool) -> int:
        return curses.A_REVERSE if is_selected else curses.A_NORMAL

    def _heading(self) -> str:
        calls, hello = self._calls, self._attachment.hello
        parts = [f"{one_line(hello.target)} (process {hello.pid})", f"{len(calls.matching())} calls"]
        if calls.filter or self._is_filtering:
            parts.append(f"filter: {calls.filter}")
        if calls.is_paused:
            parts.append(f"paused, {calls.waiting} new")
        if calls.dropped:
            parts.append(f"{calls.dropped} messages dropped, as this view was too slow")
        return "   ".join(parts)

    def _put(self, row: int, text: str, style: int = curses.A_NORMAL) -> None:
        with suppress(curses.error):  # a window of a few characters
            self._screen.insstr(row, 0, _fitting(text, self._screen.getmaxyx()[1]), style)


def _fitting(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into so many columns; a wide character takes two of them."""
    if text.isascii():
        return text[:columns]
    for end, each in enumerate(text):
        columns -= 2 if unicodedata.east_asian_width(each) in "WF" else 1
        if columns < 0:
            return text[:end]
    return text


def _call_lines(call: Call, columns: int) -> list[str]:
    """Return an open call: what is known of it, and both messages."""
    at, duration, what = call.columns()
    text = [f"{at} {duration}  {what}", "", "Request", readable(call.request.encode()), "", "Response"]
    text.append(readable(call.response.encode()) if call.response else "none")
    lines = visible("\n".join(text)).expandtabs().split("\n")[:_MOST_LINES]
    return [part for line in lines for part in _parts(line, columns)]


def _parts(line: str, columns: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    return [" " * indent + part for part in wrapped(line[indent:], max(columns - indent, 20))]
