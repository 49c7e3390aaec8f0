"""Ranking of tools for a query: BM25 over the words of names, descriptions and arguments.

    Ranking({"get_weather": ["get", "weather", ...], ...}).best("weatherForecast")     "get_weather", ...

(Robertson and Zaragoza, 2009: The Probabilistic Relevance Framework.) If the query contains all words of a name, the
score is doubled; for half of them, it is multiplied by 1.5: `issues_create` ranks above
`issues_create_type_for_organization` for "create an issue". Weights are computed once, so a search adds a few numbers
for each tool that has one of the words.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

_K1, _B = 1.2, 0.75
"""Saturation of repeated words, and normalization by length: the usual values."""

_MOST_WORDS = 8
"""The most words of a query that are searched: the rarest."""
_MOST_ENDINGS = 20
"""The most completions of a word of a query."""
_STEM = 4
"""The fewest letters of an indexed word that matches a longer word of the query."""
_QUERY = 1_000
"""The most characters of a query."""

_STOP_WORDS = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "my", "of", "on", "or", "the", "to", "with")
)
"""Words of a query that are ignored."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def words(text: str) -> Iterator[str]:
    """Yield the words of a text, in lower case and singular: getWeatherDays, get_weather_days → get, weather, day."""
    for match in _WORDS.finditer(text):
        word = match[0].lower()
        yield word[:-1] if len(word) > 3 and word.endswith("s") else word


class Ranking:
    """An index of names by their words; repeated words count more. `names` has the words of the names alone, for the
    bonus above.
    """

    def __init__(self, texts: Mapping[str, Iterable[str]], names: Mapping[str, Iterable[str]] | None = None) -> None:
        counts = {name: Counter(text) for name, text in texts.items()}
        self._names = list(counts)
        self._name_words = [frozenset((names or {}).get(name, ())) for name in self._names]
        self._weights = _weights([*counts.values()])
        self._vocabulary = sorted(self._weights)

    def best(self, query: str) -> list[str]:
        """Return the names that have a word of the query, the best first; names with equal scores keep their order."""
        scores: defaultdict[int, float] = defaultdict(float)
        query_words = dict.fromkeys(words(query[:_QUERY]))
        expansions = {
            word: self._expand(word)
            for word in [each for each in query_words if each not in _STOP_WORDS] or query_words
        }
        rarest = sorted(expansions.values(), key=lambda expansion: sum(len(self._weights[each]) for each in expansion))
        for expansion in [each for each in rarest if each][:_MOST_WORDS]:
            for word in expansion:
                for index, weight in self._weights[word]:
                    scores[index] += weight
        matched = frozenset(word for expansion in expansions.values() for word in expansion)
        for index in scores:
            name_words = self._name_words[index]
            scores[index] *= 1 + len(name_words & matched) / (len(name_words) or 1)
        indexes = sorted(scores)
        indexes.sort(key=scores.__getitem__, reverse=True)  # a stable sort
        return [self._names[index] for index in indexes]

    def _expand(self, word: str) -> list[str]:
        """Return the indexed words for a query's word: itself; else longer words (`temp`); else its longest prefix
        (`forecasting`).
        """
        if word in self._weights:
            return [word]
        start = bisect_left(self._vocabulary, word)
        near = self._vocabulary[start : start + _MOST_ENDINGS] if len(word) > 1 else []
        if longer := [each for each in near if each.startswith(word)]:
            return longer
        stems = (word[:length] for length in range(len(word) - 1, _STEM - 1, -1))
        return [stem for stem in stems if stem in self._weights][:1]


def _weights(counts: list[Counter[str]]) -> dict[str, list[tuple[int, float]]]:
    """Return for each word the indexes of the texts that contain it, with their weights."""
    postings_of: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings_of[word].append((place, times))
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / (len(lengths) or 1) or 1
    length_factor = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
    return {
        word: [
            (place, _rarity(len(counts), len(postings)) * times * (_K1 + 1) / (times + length_factor[place]))
            for place, times in postings
        ]
        for word, postings in postings_of.items()
    }


def _rarity(total: int, matching: int) -> float:
    return math.log(1 + (total - matching + 0.5) / (matching + 0.5))
