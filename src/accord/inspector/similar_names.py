"""Names that look alike: a model or a person may take one for the other.

Names with the same outline are found for any number of names: an outline has no case, no separators and no hidden
characters, and each character is replaced by the one that it looks like. Names that differ by one character are found
among the first thousands, with a bounded number of comparisons.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from accord.visible_text import is_hidden

MOST_GROUPS = 200
_MOST_NAMES = 2_000
"""Names of which those with a difference of one character are found."""
_LONGEST = 64
_SHORTEST = 4
_MOST_COMPARISONS = 20_000

_SEPARATORS = re.compile(r"[\s_./:-]+")
_PAIRS = (("rn", "m"), ("vv", "w"))
_LETTERS = {
    "a": "\u0410\u0430\u0391\u03b1",
    "b": "\u0412\u0432\u0392\u03b2",
    "c": "\u0421\u0441",
    "d": "\u0501",
    "e": "\u0415\u0435\u0395",
    "h": "\u041d\u04bb\u0397",
    "i": "\u0406\u0456\u0399\u03b9\u04c0\u04cf\u0131\u0196\u01c0",
    "j": "\u0408\u0458",
    "k": "\u041a\u043a\u039a\u03ba",
    "m": "\u041c\u043c\u039c",
    "n": "\u039d",
    "o": "\u041e\u043e\u039f\u03bf",
    "p": "\u0420\u0440\u03a1\u03c1",
    "q": "\u051b",
    "s": "\u0405\u0455",
    "t": "\u0422\u0442\u03a4\u03c4",
    "v": "\u0475\u03bd",
    "w": "\u051d",
    "x": "\u0425\u0445\u03a7\u03c7",
    "y": "\u0423\u0443\u03a5\u03c5",
    "z": "\u0396",
}
"""Cyrillic, Greek and phonetic letters that look like a Latin one in many fonts."""
_FOREIGN = str.maketrans({letter: latin for latin, letters in _LETTERS.items() for letter in letters})
_SAME = str.maketrans("01|i", "olll")


class SimilarNames(msgspec.Struct, frozen=True, rename="camel"):
    """Names that look alike, by number, and how they differ."""

    numbers: tuple[int, ...]
    reason: str


def similar_names(names: Sequence[str]) -> Iterator[SimilarNames]:
    """Yield the groups of names that look alike, at most `MOST_GROUPS`."""
    left = MOST_GROUPS
    for found in (*_same_outlines(names), *_near_names(names)):
        if not left:
            return
        left -= 1
        yield found


def outline(name: str) -> str:
    """Return the outline of a name, which is the same for names that look alike."""
    plain = unicodedata.normalize("NFKC", _without_hidden(name))
    text = _SEPARATORS.sub("", plain.translate(_FOREIGN).casefold()).translate(_SAME)
    for pair, letter in _PAIRS:
        text = text.replace(pair, letter)
    return text


def _without_hidden(name: str) -> str:
    if name.isascii() and name.isprintable():
        return name
    return "".join(each for each in name if not is_hidden(each))


def _same_outlines(names: Sequence[str]) -> Iterator[SimilarNames]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        groups[outline(name)].append(number)
    for numbers in groups.values():
        if len(numbers) > 1:
            yield SimilarNames(tuple(numbers), _reason({names[number] for number in numbers}))


def _reason(names: set[str]) -> str:
    """Return how names with one outline differ."""
    if len(names) == 1:
        return "the same name"
    if len({_without_hidden(name) for name in names}) == 1:
        return "they differ only in hidden characters"
    if len({_SEPARATORS.sub("", name).casefold() for name in names}) == 1:
        return "they differ only in case and separators"
    return "they differ only in characters that look alike"


def _near_names(names: Sequence[str]) -> Iterator[SimilarNames]:
    """Yield pairs that differ by one character, which is added, left out, replaced or swapped with the next one."""
    seen: set[tuple[int, int]] = set()
    buckets: dict[str, list[int]] = defaultdict(list)
    short = [(number, name.casefold()) for number, name in enumerate(names) if _SHORTEST <= len(name) <= _LONGEST]
    comparisons = 0
    for number, name in short[:_MOST_NAMES]:
        for variant in {name, *(name[:place] + name[place + 1 :] for place in range(len(name)))}:
            for other in buckets[variant]:
                comparisons += 1
                if comparisons > _MOST_COMPARISONS:
                    return
                if (other, number) not in seen and _is_near(names[other].casefold(), name):
                    seen.add((other, number))
                    yield SimilarNames((other, number), "they differ by one character")
            buckets[variant].append(number)


def _is_near(first: str, second: str) -> bool:
    """Return whether two names differ by one character, except for a digit in place of another one."""
    if outline(first) == outline(second):
        return False  # it was found as such
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    one, other = first[start:], second[start:]
    if len(one) == len(other):
        if one[:1].isdigit() and other[:1].isdigit():
            return False
        return one[1:] == other[1:] or (one[:2] == other[1::-1] and one[2:] == other[2:])
    return one[1:] == other or one == other[1:]
