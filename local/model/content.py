"""Finds in a text what a field is to hold, going by the field's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Final

from local.model.choose import SCALES, choose, evidence, listed_options
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
    _chosen: list[Any] = field(default_factory=list)  # values of enumerations: a reason explains them
    _turn: Iterator[int] = field(default_factory=count)  # fields without a known name get different sentences

    def choice(self, values: list[Any]) -> Any:
        chosen = choose(values, self.extract)
        self._chosen.append(chosen)
        return chosen

    def text(self, name: str) -> str:
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
