"""Questions that captions answer: "two dogs run" tells how many dogs there are.

A caption is split into noun phrases at articles, prepositions and verbs. No parser is needed, and
nothing is downloaded. Some questions are clumsy and some answers wrong, but there are twenty of
them for each image that has five captions.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_NUMBERS = ('two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten')
_DIGITS = {word: str(value) for value, word in enumerate(_NUMBERS, start=2)}
_COLOURS = frozenset(
    'red blue green yellow black white brown orange pink purple gray silver gold tan blond blonde '
    'beige'.split()
)
_DETERMINERS = frozenset(
    'a an the his her their its this that these those some another one several many'.split()
).union(_NUMBERS)
_PREPOSITIONS = frozenset(
    'on in at with over under near through into by behind from onto against across along beside '
    'between around down up above inside outside of for'.split()
)
_BOUNDARIES = _PREPOSITIONS.union(
    'and or is are was were as while who which to being has have out off away together there next '
    'front it they them he she him . ,'.split()
)
_PLURALS = {'men', 'women', 'children', 'people', 'kids', 'boys', 'girls', 'dogs', 'cats'}
_SUBJECTS = _PLURALS.union(
    'man woman child person kid boy girl guy lady player baby toddler rider couple dog cat horse '
    'bird bear cow elephant surfer skier skateboarder snowboarder'.split()
)
_PLACES = frozenset(
    'beach street field park water snow ocean pool kitchen bathroom grass road forest mountain '
    'lake river room table bed sidewalk city woods court zoo yard sand rock hill stage'.split()
)
# What kind of thing a word names, and how one asks for it.
_KINDS = {
    'animal': ('what animal is this', 'what animal is in the picture'),
    'sport': ('what sport is this', 'what sport is being played', 'what game are they playing'),
    'room': ('what room is this',),
}
_NAMES = {
    'animal': 'dog cat horse cow sheep bird elephant zebra giraffe bear duck goat monkey puppy '
    'kitten lamb bull goose seagull pigeon parrot owl penguin'.split(),
    'sport': 'tennis baseball skateboarding surfing snowboarding skiing soccer football '
    'basketball frisbee volleyball hockey golf swimming'.split(),
    'room': 'kitchen bathroom bedroom office'.split(),
}
_KIND_OF = {name: (kind, name) for kind, names in _NAMES.items() for name in names}
_KIND_OF |= {f'{name}s': ('animal', name) for name in _NAMES['animal']}
_KIND_OF |= {
    word: ('sport', sport)
    for sport, words in {
        'skateboarding': ('skateboard', 'skateboarder'),
        'surfing': ('surf', 'surfer', 'surfboard'),
        'snowboarding': ('snowboard', 'snowboarder'),
        'skiing': ('ski', 'skis', 'skier', 'skiers'),
    }.items()
    for word in words
}
_NO_VERBS = frozenset(
    'building clothing painting wedding railing ceiling string ring king wing thing spring '
    'something evening morning swing during'.split()
)
_WORDS = re.compile(r"[a-z']+|[.,]")
_ENDS_IN_ONE_S = re.compile('[^s]s$')  # "cars", but not "dress"


class Question(NamedTuple):
    """A question, and the answer that one caption gives."""

    text: str
    answer: str


class NounPhrase(NamedTuple):
    """A determiner with what follows it: "two brown dogs".

    Attributes:
        start, end: its words in the caption, from the determiner on.
        determiner: its first word.
        modifiers: the words between the determiner and the noun.
        noun: its last word.
    """

    start: int
    end: int
    determiner: str
    modifiers: list[str]
    noun: str


class CaptionQuestions:
    """Asks what captions tell: how many, of which colour, doing what, where, and of which kind.

    Args:
        captions: of all images. A word is taken for a verb if they have its form with "-ing".
    """

    def __init__(self, captions: Iterable[str]) -> None:
        words = Counter(word for caption in captions for word in _split(caption))
        self.participles = {
            word for word in words if len(word) > 4 and word.endswith('ing')
        } - _NO_VERBS
        stems = {word[:-3] for word in self.participles}
        stems |= {stem[:-1] for stem in stems if stem[-2:-1] == stem[-1]}  # "running"
        self.stems = stems | {f'{stem}e' for stem in stems}  # "riding"
        forms = ('s', 'es', 'ed')
        self.verbs = self.participles.union(stem + form for stem in stems for form in forms)

    def ask(self, captions: Iterable[str]) -> dict[str, dict[str, float]]:
        """The questions about one image.

        Args:
            captions: of the image.

        Returns:
            Of each question the answers with their scores: 1 for the one that most captions give,
            and for the others their share of that.
        """
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for caption in captions:
            for question in dict.fromkeys(self._questions(_split(caption))):
                found[f'{question.text}?'][question.answer] += 1
        return {
            text: {answer: count / max(answers.values()) for answer, count in answers.items()}
            for text, answers in found.items()
        }

    def _questions(self, words: list[str]) -> Iterator[Question]:
        phrases = list(self._noun_phrases(words))
        for phrase in phrases:
            yield from _describe(phrase)
            if phrase.noun in _SUBJECTS:
                yield from self._act(phrase, phrases, words)
            before = words[phrase.start - 1] if phrase.start else ''
            if phrase.noun in _PLACES and before in _PREPOSITIONS:
                yield Question('where is this', phrase.noun)
                yield Question('where was this picture taken', phrase.noun)
        for kind, name in (_KIND_OF[word] for word in words if word in _KIND_OF):
            for text in _KINDS[kind]:
                yield Question(text, name)

    def _noun_phrases(self, words: list[str]) -> Iterator[NounPhrase]:
        start = 0
        while start < len(words):
            end = start + 1
            if words[start] in _DETERMINERS:
                while end < len(words) and self._goes_on(words, start, end):
                    end += 1
                *modifiers, noun = words[start + 1 : end] or ['']
                if noun.isalpha() and noun not in _COLOURS and len(modifiers) < 5:
                    yield NounPhrase(start, end, words[start], modifiers, noun)
            start = end

    def _goes_on(self, words: list[str], start: int, end: int) -> bool:
        """Whether a phrase that begins at ``start`` still has the word at ``end``."""
        before, word, after = (words[end - 1], words[end], ''.join(words[end + 1 : end + 2]))
        if word == 'and':
            return before in _COLOURS and after in _COLOURS  # "a black and white dog"
        if end > start + 1:  # but "a running dog", "two skateboards"
            is_plural = before in _PLURALS or before.endswith('s')
            if word in self.verbs or (is_plural and word in self.stems):
                return False
        return not (word in _BOUNDARIES or word in _DETERMINERS or word.endswith('ly'))

    def _act(
        self, subject: NounPhrase, phrases: list[NounPhrase], words: list[str]
    ) -> Iterator[Question]:
        """What a subject does, and to what: "a man is riding on a wave"."""
        near = range(subject.end, min(subject.end + 4, len(words)))
        verb = next((place for place in near if words[place] in self.participles), None)
        if verb is None:
            return
        asked = f'what {"are" if subject.noun in _PLURALS else "is"} the {subject.noun}'
        if words[verb] != 'wearing':
            yield Question(f'{asked} doing', words[verb])
        has_preposition = words[verb + 1 : verb + 2] and words[verb + 1] in _PREPOSITIONS
        object_start = verb + 2 if has_preposition else verb + 1
        for phrase in phrases:
            if phrase.start == object_start:
                yield Question(f'{asked} {" ".join(words[verb:object_start])}', phrase.noun)


def _describe(phrase: NounPhrase) -> Iterator[Question]:
    """How many, and of which colour."""
    if phrase.determiner in _DIGITS:
        number = _DIGITS[phrase.determiner]
        for place in ('are there', 'are in the picture', 'are visible'):
            yield Question(f'how many {phrase.noun} {place}', number)
    if colours := [word for word in phrase.modifiers if word in _COLOURS]:
        is_plural = phrase.noun in _PLURALS or _ENDS_IN_ONE_S.search(phrase.noun)
        verb = 'are' if is_plural else 'is'
        joined = ' and '.join(colours) if 'and' in phrase.modifiers else colours[-1]
        yield Question(f'what color {verb} the {phrase.noun}', joined)


def _split(caption: str) -> list[str]:
    """The words of a caption, full stops and commas; in lower case, "gray" for "grey"."""
    return _WORDS.findall(caption.lower().replace('-', ' ').replace('grey', 'gray'))


def caption_questions(
    captions: Mapping[str, list[str]],
) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Images with the questions that their captions answer; those without any are left out.

    Args:
        captions: of each image, by its id.
    """
    asking = CaptionQuestions(caption for texts in captions.values() for caption in texts)
    for image, texts in captions.items():
        if questions := asking.ask(texts):
            yield image, questions
