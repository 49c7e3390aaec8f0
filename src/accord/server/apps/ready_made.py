"""Ready-made pages: a chart, a table, and a form. They show any result as text only, and load nothing."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.schema.form_fields import FormField
from accord.schema.forms import form
from accord.server.apps.page import static


class Chart:
    """A page with a chart of the rows that a tool returns, and with their table: `Chart("month", ["sales", "costs"])`.

    `x` names the field of the labels, `y` the fields of the numbers. `kind` is "bar" or "line". `title` is the heading,
    `titles` are displayed names of fields. `rows` names the field of the result that has the rows; by default, the
    first list. `refresh` names a tool that a button calls, with the arguments of the first call, for new rows. At most
    500 rows are shown. Raises `DeclarationError`.
    """

    def __init__(
        self,
        x: str,
        y: str | Sequence[str],
        *,
        kind: Literal["bar", "line"] = "bar",
        title: str = "Chart",
        titles: Mapping[str, str] | None = None,
        rows: str | None = None,
        refresh: str | None = None,
    ) -> None:
        names = [y] if isinstance(y, str) else list(y)
        if not names:
            raise DeclarationError("y= names at least one field with numbers: Chart('month', ['sales'])")
        if kind not in ("bar", "line"):
            raise DeclarationError(f"kind= is 'bar' or 'line', not {kind!r:.100}")
        self._title = title
        self._options: JSONObject = {"x": x, "y": names, "kind": kind, "titles": dict(titles or {})}
        self._options |= {"rows": rows, "refresh": refresh}

    @property
    def html(self) -> str:
        """The text of the page."""
        return _document("chart.js", self._title, self._options)


class Table:
    """A page with a table of the rows that a tool returns, which the user sorts and filters.

    `columns` names the fields to show, in order; by default all. The other options are as for `Chart`.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        title: str = "Table",
        titles: Mapping[str, str] | None = None,
        rows: str | None = None,
        refresh: str | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise DeclarationError(f"columns= is a list: write columns=[{columns!r}]")
        self._title = title
        self._options: JSONObject = {"columns": None if columns is None else list(columns)}
        self._options |= {"titles": dict(titles or {}), "rows": rows, "refresh": refresh}

    @property
    def html(self) -> str:
        """The text of the page."""
        return _document("table.js", self._title, self._options)


class Form:
    """A page with a form, whose values are the arguments of a tool: `Form(Order, "save_order")`.

    `model` is a flat class, as for an elicitation: each attribute is a field. `tool` names the tool that receives the
    values; it validates them. The result of the call that opens the page fills the form in. `title` is the heading,
    `submit` the text of the button. Raises `DeclarationError` for a class that is not flat.
    """

    def __init__(self, model: Any, tool: str, *, title: str | None = None, submit: str = "Send") -> None:
        read = form(model)
        if read.wraps or not read.fields:
            raise DeclarationError(f"Form() takes a class with attributes, not {model!r:.200}")
        self._title: str = title or str(getattr(model, "__name__", "Form"))
        self._options: JSONObject = {
            "tool": tool,
            "submit": submit,
            "fields": [_field(each) for each in read.fields],
        }

    @property
    def html(self) -> str:
        """The text of the page."""
        return _document("form.js", self._title, self._options)


def _field(field: FormField) -> JSONObject:
    """Return a field as the page reads it."""
    written: JSONObject = {
        "name": field.name,
        "kind": field.kind,
        "title": field.title or field.name,
        "description": field.description,
        "required": field.required,
        "default": field.default,
        "choices": [list(choice) for choice in field.choices],
        "minimum": field.minimum,
        "maximum": field.maximum,
        "minLength": field.min_length,
        "maxLength": field.max_length,
    }
    return {name: value for name, value in written.items() if value is not None}


def _document(script: str, title: str, options: JSONObject) -> str:
    # "<" would end the element, or begin a comment in it
    data = msgspec.json.encode(options).decode().replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<script data-accord></script>
<style>
{static("page.css")}
</style>
</head>
<body>
<main></main>
<script type="application/json" id="options">{data}</script>
<script>
{static("page.js")}
{static(script)}
</script>
</body>
</html>
"""
