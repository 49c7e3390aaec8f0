"""A column of texts in which each different text is stored once."""

from __future__ import annotations

from array import array


class TextColumn:
    """The texts of rows; a row has the number of its text."""

    def __init__(self) -> None:
        self.numbers: array[int] = array("I")
        """For each row, the number of its text."""
        self._texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}

    def append(self, text: str) -> None:
        """Add the text of a row."""
        number = self._numbers.get(text)
        if number is None:
            number = self._number(text)
        self.numbers.append(number)

    def set_last(self, text: str) -> None:
        """Replace the text of the last row."""
        self.numbers[-1] = self._number(text)

    def _number(self, text: str) -> int:
        if text not in self._numbers:
            self._texts.append(text)
            self._numbers[text] = len(self._texts) - 1
        return self._numbers[text]

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self._texts[self.numbers[row]]

    def find(self, matches: object) -> set[int]:
        """Return the numbers of the texts for which a function returns true."""
        assert callable(matches)
        return {number for number, text in enumerate(list(self._texts)) if matches(text)}
