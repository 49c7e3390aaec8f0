"""Which of many tools fit a few words best: BM25 over the words of names, descriptions and arguments.

    Ranking({"get_weather": ["get", "weather", ...], ...}).best("weatherForecast")     "get_weather", ...

(Robertson and Zaragoza, 2009: The Probabilistic Relevance Framework.) A name of which the query has every word counts
twice, one of which it has half of the words one and a half times: `issues_create` goes before
`issues_create_type_for_organization` for "create an issue". All that depends on the tools alone is worked out
beforehand, so that a search adds up a few numbers for each tool that has one of the words.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

_K1, _B = 1.2, 0.75
"""How soon more of the same word says no more, and how much long texts are held back: the usual values."""

_MOST_WORDS = 8
"""Words of a query that are looked at: those that the fewest tools have."""
_MOST_ENDINGS = 20
"""Words that a word of a query may be the beginning of."""
_STEM = 4
"""Letters that a word must have to stand for one that begins with it."""
_QUERY = 1_000
"""Characters of a query that are looked at."""

_STOP_WORDS = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "my", "of", "on", "or", "the", "to", "with")
)
"""Words of a query that say nothing of a tool."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def words(text: str) -> Iterator[str]:
    """The words of a text, in small letters and the singular: getWeatherDays, get_weather_days → get, weather, day."""
    for found in _WORDS.finditer(text):
        word = found[0].lower()
        yield word[:-1] if len(word) > 3 and word.endswith("s") else word


class Ranking:
    """An index of names, each with its words; a word that is there more often counts more. `names` has the words of the
    names alone, where these are to count as said above.
    """

    def __init__(self, texts: Mapping[str, Iterable[str]], names: Mapping[str, Iterable[str]] | None = None) -> None:
        counts = {name: Counter(text) for name, text in texts.items()}
        self._names = list(counts)
        self._name_words = [frozenset((names or {}).get(name, ())) for name in self._names]
        self._weights = _weights([*counts.values()])
        self._vocabulary = sorted(self._weights)

    def best(self, query: str) -> list[str]:
        """The names that have a word of the query, the best first; as they stand where they are alike."""
        scores: defaultdict[int, float] = defaultdict(float)
        asked = dict.fromkeys(words(query[:_QUERY]))
        found = {word: self._expand(word) for word in [each for each in asked if each not in _STOP_WORDS] or asked}
        rarest = sorted(found.values(), key=lambda known: sum(len(self._weights[each]) for each in known))
        for known in [each for each in rarest if each][:_MOST_WORDS]:
            for word in known:
                for place, weight in self._weights[word]:
                    scores[place] += weight
        meant = frozenset(word for known in found.values() for word in known)
        for place in scores:
            said = self._name_words[place]
            scores[place] *= 1 + len(said & meant) / (len(said) or 1)
        places = sorted(scores)
        places.sort(key=scores.__getitem__, reverse=True)  # which leaves in order what is alike
        return [self._names[place] for place in places]

    def _expand(self, word: str) -> list[str]:
        """The word; else those that begin with it (`temp`), else the longest that it begins with (`forecasting`)."""
        if word in self._weights:
            return [word]
        start = bisect_left(self._vocabulary, word)
        near = self._vocabulary[start : start + _MOST_ENDINGS] if len(word) > 1 else []
        if longer := [each for each in near if each.startswith(word)]:
            return longer
        stems = (word[:length] for length in range(len(word) - 1, _STEM - 1, -1))
        return [stem for stem in stems if stem in self._weights][:1]


def _weights(counts: list[Counter[str]]) -> dict[str, list[tuple[int, float]]]:
    """For each word the places that have it, and how much it says of each."""
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, count in enumerate(counts):
        for word, times in count.items():
            places[word].append((place, times))
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / (len(lengths) or 1) or 1
    held_back = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
    return {
        word: [
            (place, _rarity(len(counts), len(found)) * times * (_K1 + 1) / (times + held_back[place]))
            for place, times in found
        ]
        for word, found in places.items()
    }


def _rarity(all_of_them: int, have_it: int) -> float:
    return math.log(1 + (all_of_them - have_it + 0.5) / (have_it + 0.5))
