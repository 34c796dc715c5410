"""Finds in a text what a field is to hold, going by the field's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import Any, Final

from local.model.choose import SCALES, are_degrees, attitude, choose, evidence, kind_of, listed_options, speaking
from local.model.extract import Extract, joined, shorten


def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_SUMMARY: Final = _named("summary|abstract|overview|synopsis|gist|description")
_REASON: Final = _named("reason|rationale|explanation|justification|why|evidence")
_TITLE: Final = _named("title|headline|subject")
_NAME: Final = _named("name|author|customer|speaker|owner|caller|person")
_LANGUAGE: Final = _named("language|locale")
_LISTED: Final = _named("categor|label|class|type|topic|department|intent|route")
_PEOPLE: Final = _named("participant|speaker|attendee|people|person|member")
_ACTIONS: Final = _named("action|to_?do|task|next_?step|follow_?up|request")
_NAMES: Final = _named("entit|name|organi|place|location|product")
_KEYWORDS: Final = _named("keyword|tag|topic|theme|label")
_QUESTIONS: Final = _named("question")
_SUBJECT: Final = _named("name|quote|passage|excerpt|snippet|text|title|value|term")
_QUOTE: Final = _named("quote|passage|excerpt|snippet")
_FEELING: Final = _named("sentiment|polarity|mood|tone|attitude|score")
_CERTAINTY: Final = _named("confidence|certainty|probability|likelihood")
_CERTAIN: Final = 0.75


@dataclass(frozen=True)
class Detail:
    """How much to say: sentences of a summary, items of a list, characters of one string."""

    sentences: int
    items: int
    characters: int


@dataclass
class Content:
    """One text, for the fields of one answer; `instructions` and `user` may list what a field can be."""

    extract: Extract
    instructions: str
    user: str
    detail: Detail
    subject: str = ""  # what one object in a list is about
    _chosen: list[Any] = field(default_factory=list)  # values of enumerations: a reason explains them
    _turn: Iterator[int] = field(default_factory=count)  # fields without a known name get different sentences

    def choice(self, values: list[Any]) -> Any:
        chosen = kind_of(self.subject, values) or choose(values, self.extract)
        self._chosen.append(chosen)
        return chosen

    def about(self, name: str, properties: Mapping[str, Any]) -> Iterator[Content]:
        """For a list of objects with such properties: the same for each of the things that they are about."""
        subjects = self._subjects(name, properties)
        for subject, told in islice(subjects, 2 * self.detail.items):
            yield replace(self, extract=Extract(told), subject=subject, _chosen=[], _turn=count())

    def _subjects(self, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Each with the sentences that it is in. Passages are those that speak for a value of the first enumeration."""
        enums = [one["enum"] for one in properties.values() if isinstance(one, Mapping) and one.get("enum")]
        kinds = next((values for values in enums if not are_degrees(values)), None)
        if kinds and any(_QUOTE.search(one) for one in properties):
            return ((one.text, one.text) for one in speaking(kinds, self.extract))
        if kinds and any(_NAME.search(one) for one in properties):
            return self._named()
        return ((text, text) for text in dict.fromkeys(self.texts(name)))

    def _named(self) -> Iterator[tuple[str, str]]:
        names = dict.fromkeys([*self.extract.names[: self.detail.items], *self.extract.speakers, *self.extract.figures])
        sentences = self.extract.sentences
        return ((one, next((told.text for told in sentences if one in told.attributed), one)) for one in names)

    def share(self, name: str) -> float | None:
        """How far up its scale a number of this name is, from 0 to 1; None for one that counts something."""
        if _CERTAINTY.search(name):
            return _CERTAIN
        return (1 + attitude(self.extract)) / 2 if _FEELING.search(name) else None

    def text(self, name: str) -> str:
        if self.subject and _SUBJECT.search(name):
            return self.subject
        options = (
            listed_options(name, self.instructions, self.user) if _LISTED.search(name) else SCALES.get(name.lower())
        )
        if options:
            return str(self.choice(options))
        if _SUMMARY.search(name):
            told = joined(self.extract.summary(self.detail.sentences))
            return shorten(told, self.detail.characters * self.detail.sentences)
        return shorten(self._phrase(name), self.detail.characters)

    def texts(self, name: str) -> Iterator[str]:
        """Everything that fits the name, the most telling first."""
        extract = self.extract
        if _PEOPLE.search(name):
            return iter(extract.speakers or extract.names)
        if _ACTIONS.search(name):
            return self._shortened(sentence.attributed for sentence in extract.requests)
        if _NAMES.search(name):
            return iter(extract.names or extract.speakers)
        if _KEYWORDS.search(name):
            return iter(extract.keywords)
        if _QUESTIONS.search(name):
            return self._shortened(one.text for one in extract.ranked if one.text.endswith("?"))
        return self._shortened(sentence.text for sentence in extract.summary(self.detail.items))

    def most(self, name: str) -> int:
        """How many items a list of this name has at most, if its schema does not say: names are short."""
        return self.detail.items * (2 if _PEOPLE.search(name) else 1)

    def number(self, name: str) -> int:
        """A count of what the name speaks of."""
        if _PEOPLE.search(name):
            return len(self.extract.speakers or self.extract.names)
        if _ACTIONS.search(name):
            return len(self.extract.requests)
        if "word" in name.lower():
            return sum(sentence.size for sentence in self.extract.sentences)
        return len(self.extract.sentences)

    def _phrase(self, name: str) -> str:
        extract = self.extract
        if _LANGUAGE.search(name):
            return "en"
        if _NAME.search(name):
            return next(chain(extract.speakers, extract.names), "")
        if not extract.ranked:
            return ""
        if _REASON.search(name):
            return (evidence(self._chosen, extract) or max(extract.ranked[:5], key=lambda one: one.size)).text
        if _TITLE.search(name):
            return shorten(extract.ranked[0].text, 80)
        return extract.ranked[next(self._turn) % len(extract.ranked)].text

    def _shortened(self, texts: Iterator[str]) -> Iterator[str]:
        return (shorten(text, self.detail.characters) for text in texts)
