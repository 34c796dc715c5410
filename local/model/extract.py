"""Reads a text as a person would skim it: who speaks, what matters, what is asked for, which names occur."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from local.model.words import FORM_LABELS, GRAVE, IMPERATIVES, NO_REQUEST, REQUEST, SHAPES, STOP, WEIGHTY

# "[02:07:52:58] CC: …", "LMP (EAGLE): …", "Jane Roe: …". Repetitions are bounded: the text is a stranger's.
_UTTERANCE: Final = re.compile(
    r"\s{0,8}(?P<time>[\[(]?-?\d[\d:.,-]{1,24}[\])]?\s{1,3})?"
    r"(?P<speaker>[A-Z][\w.'’-]{0,30}(?: [\w.'’()&-]{1,30}){0,3})\s?:\s{1,4}(?P<text>\S.*)"  # noqa: RUF001 - in names
)
_MARKUP: Final = re.compile(r"</?[A-Za-z][^<>]{0,80}>")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])(?<!\bMr\.)(?<!\bDr\.)(?<!\bMs\.)(?<!\bMrs\.)[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])"
)
_STOPPED: Final = ".!?…\u3002\uff01\uff1f"
_WORD: Final = re.compile(r"[\w.+-]{1,64}@[\w.-]+|[^\W\d_][\w'’-]*|\d[\d.,:]*")  # noqa: RUF001 - as typed
_NAME: Final = re.compile(r"\b[A-Z][a-z]{2,20}(?: [A-Z][a-z]{1,20}){1,3}\b|(?<=[a-z,;] )[A-Z][\w-]{2,20}\b")
_OPENING: Final = re.compile(r"^(?:(?:okay|and|so|now|then|well|right|\d{1,3}|[A-Z][a-z]{1,20})[,.]\s{1,4}){1,6}")
_LONGEST: Final = 400  # characters of one sentence; a text without full stops is cut into such pieces


@dataclass(frozen=True)
class Sentence:
    """One sentence with its place in the text; `content` are its words that carry meaning."""

    text: str
    speaker: str | None
    index: int
    size: int
    content: frozenset[str]

    @property
    def is_request(self) -> bool:
        if self.size < 4 or NO_REQUEST.search(self.text):
            return False
        first = _OPENING.sub("", self.text).partition(" ")[0].strip(",.!")
        named = len(first) > 2 and first.isupper()  # the label of a switch is no verb
        return (first.lower() in IMPERATIVES and not named) or bool(REQUEST.search(self.text))

    @property
    def attributed(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class Extract:
    """Everything is worked out when it is first asked for, once."""

    def __init__(self, text: str) -> None:
        self.text = _MARKUP.sub("", text)

    @cached_property
    def lines(self) -> list[tuple[str | None, str]]:
        """(speaker, what is said) per line; of a form the values, without a speaker."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        found = [_UTTERANCE.match(line) for line in lines]
        spoken = [match for match in found if match]
        labelled = any(match["speaker"].lower() in FORM_LABELS for match in spoken)
        if not labelled and (len(spoken) < 2 or len(spoken) * 2 < len(lines)):
            return [(None, line) for line in lines]
        return [
            (None if labelled else match["speaker"], match["text"]) if match else (None, line)
            for match, line in zip(found, lines, strict=True)
        ]

    @cached_property
    def sentences(self) -> list[Sentence]:
        parts = ((speaker, part) for speaker, line in self.lines for part in _split(line))
        return [_sentence(index, speaker, part) for index, (speaker, part) in enumerate(parts)]

    @cached_property
    def frequency(self) -> Counter[str]:
        return Counter(word for sentence in self.sentences for word in sentence.content)

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Words of every tenth sentence of a long text: how people address one another, not what they say."""
        if len(self.sentences) < 50:
            return frozenset()
        return frozenset(word for word, uses in self.frequency.items() if uses * 10 > len(self.sentences))

    @cached_property
    def ranked(self) -> list[Sentence]:
        """Most telling first: frequent words, warnings and decisions; not fragments, not questions."""
        return sorted(self.sentences, key=lambda sentence: (-self._weight(sentence), sentence.index))

    @cached_property
    def speakers(self) -> list[str]:
        return list(dict.fromkeys(speaker for speaker, _ in self.lines if speaker))

    @cached_property
    def requests(self) -> list[Sentence]:
        """What is asked of somebody, the most telling first."""
        return [sentence for sentence in self.ranked if sentence.is_request]

    @cached_property
    def names(self) -> list[str]:
        """Capitalised names, the most frequent first."""
        found = Counter(name for _, line in self.lines for name in _NAME.findall(line) if name.lower() not in STOP)
        return [name for name, _ in found.most_common()]

    @cached_property
    def figures(self) -> list[str]:
        """Dates and amounts, as they are written."""
        shapes = (SHAPES["date"], SHAPES["amount"])
        return list(dict.fromkeys(found for shape in shapes for found in shape.findall(self.text)))

    @cached_property
    def keywords(self) -> list[str]:
        return [word for word, _ in self.frequency.most_common(50) if len(word) > 3]

    def summary(self, count: int) -> list[Sentence]:
        """The most telling sentences that do not repeat one another, in the order of the text."""
        return sorted(_distinct(self.ranked, count), key=lambda sentence: sentence.index)

    def _weight(self, sentence: Sentence) -> float:
        telling = sentence.content - self.everywhere
        weight: float = sum(math.sqrt(self.frequency[word]) for word in telling) / (sentence.size**0.6 + 3)
        weight *= 1 + min(2, len(sentence.content & WEIGHTY)) + 2 * min(1, len(sentence.content & GRAVE))
        if sentence.size < 5 or "..." in sentence.text or sentence.text[0].islower():
            weight *= 0.3
        return weight * (0.7 if sentence.text.endswith("?") else 1.0)


def joined(sentences: Iterable[Sentence]) -> str:
    """Running text: what was said without a full stop gets one."""
    texts = [sentence.text for sentence in sentences]
    return " ".join(text if text.endswith(tuple(_STOPPED)) else f"{text}." for text in texts)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words where that is possible."""
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - 1)]
    return (head.rpartition(" ")[0] or head) + "…" if limit else ""


def _distinct(ranked: Iterable[Sentence], count: int) -> list[Sentence]:
    taken: list[Sentence] = []
    for sentence in ranked:
        if len(taken) == count:
            break
        if not any(_overlap(sentence, other) > 0.5 for other in taken):
            taken.append(sentence)
    return taken


def _overlap(one: Sentence, other: Sentence) -> float:
    if not one.content:
        return 1.0
    return len(one.content & other.content) / len(one.content)


def _split(line: str) -> list[str]:
    parts = [part.strip(" -–") for part in _SENTENCE_END.split(line)]  # noqa: RUF001 - dashes of broken speech
    return [piece for part in parts for piece in _bounded(part)]


def _bounded(part: str) -> list[str]:
    pieces = (part[start : start + _LONGEST] for start in range(0, len(part), _LONGEST))
    return [piece for piece in pieces if any(character.isalnum() for character in piece)]


def _sentence(index: int, speaker: str | None, text: str) -> Sentence:
    found = [word.lower().replace("’", "'") for word in _WORD.findall(text)]  # noqa: RUF001 - as typed
    content = frozenset(word for word in found if len(word) > 1 and word not in STOP and not word[0].isdigit())
    return Sentence(text, speaker, index, len(found), content)
