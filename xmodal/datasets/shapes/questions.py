"""The embedded world as VQA v2: questions about scenes, with the answers of ten people.

The words alone must not tell the answer. Yes/no questions have either answer with the same odds,
and differ between the two by what could have been true just as well: a kind that is not there made
of attributes that are, a direction turned round. In training nothing is asked of a composition that
is held out, nor of its reverse, since "never" would be an answer. What is left to a reader of the
questions alone is the prior of each question type (``tools/analysis/evaluate_vqa.py``).

People differ. Up to three of the ten answer otherwise, as people do (one more or less, the next
colour, the shape alone), so that the true answer always scores 100 % and theirs less.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from math import dist
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.grammar import WORDINGS, Description, Statement, plural
from xmodal.datasets.shapes.record import Splits, image_id, write_json_list
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    OPPOSITE,
    SHAPES,
    Scene,
    Thing,
    direction,
    is_held_out,
)
from xmodal.files import write_json

_COUNTS = tuple('0123456')
#: Words of questions and answers that captions do not have.
QUESTION_WORDS = (
    *('yes', 'no', 'what', 'how', 'many', 'colour', 'shape', 'thing', 'things'),
    *_COUNTS,
)

PEOPLE = 10
_DOUBTERS = (0.65, 0.2, 0.1, 0.05)  # how often none to three of the ten answer otherwise
_LOOKS_LIKE = {
    'disc': 'ring',
    'ring': 'disc',
    'square': 'diamond',
    'diamond': 'square',
    'triangle': 'star',
    'star': 'cross',
    'cross': 'star',
    'bar': 'square',
}

Item = TypeVar('Item')


class Question(NamedTuple):
    """A question with its answer.

    Attributes:
        text: the question.
        question_type: its first words.
        answer_type: 'yes/no', 'number' or 'other'.
        answer: the true one.
        mistakes: what people may say instead.
    """

    text: str
    question_type: str
    answer_type: str
    answer: str
    mistakes: tuple[str, ...]


class Interviewer:
    """Asks about one scene; a question that the scene does not allow is None."""

    def __init__(self, split: str, scene: Scene, rng: np.random.Generator) -> None:
        self.scene, self.in_test, self.rng = scene, split == 'test', rng
        kinds = [(thing.shape, thing.colour) for thing in scene.things]
        self.unique = [
            thing for thing, kind in zip(scene.things, kinds, strict=True) if kinds.count(kind) == 1
        ]

    def ask(self) -> list[Question]:
        """Up to five questions: two of yes or no, one of a number, two others."""
        asked = [
            self._is_there(),
            self._is_relation(),
            (self._odds(0.5) and self._how_many_beside()) or self._how_many(),
            self._what_attribute(),
            self._what_is(),
        ]
        return [question for question in asked if question]

    def _is_there(self) -> Question:
        """Whether there is a thing of some looks; if not, one attribute is another's."""
        thing = self._pick(self.scene.things)
        size = thing.size if self._odds(0.3) else None
        texture = thing.texture if self._odds(0.3) else None
        looks = Description(thing.shape, thing.colour, size, texture)
        if self._odds(0.5):
            looks = self._other_looks(looks)
        phrase = self._phrase(looks)
        article = 'an' if phrase[0] in 'aeiou' else 'a'
        truth = bool(looks.referents(self.scene))
        return _yes_or_no(f'is there {article} {phrase}', 'is there', truth)

    def _other_looks(self, looks: Description) -> Description:
        """Looks that no thing has, one attribute away; colour or shape of another if possible."""
        others = [
            *(replace(looks, colour=thing.colour) for thing in self.scene.things),
            *(replace(looks, shape=thing.shape) for thing in self.scene.things),
        ]
        absent = [other for other in others if not other.referents(self.scene)]
        while not absent:
            other = replace(looks, colour=self._pick(tuple(COLOURS)))
            absent = [] if other.referents(self.scene) else [other]
        return self._pick(absent)

    def _is_relation(self) -> Question | None:
        """Whether one thing is in a direction of another; if not, it is in the opposite one."""
        links = [
            (a, name, b)
            for a, b in permutations(self.unique, 2)
            if (name := direction(a, b)) and self._may_ask(a, name, b)
        ]
        if not links:
            return None
        held_out = [link for link in links if is_held_out(*link)]
        a, name, b = self._pick(held_out if held_out and self._odds(0.5) else links)
        if self._odds(0.5):
            name = OPPOSITE[name]
        mentions = (self._describe(a), self._describe(b))
        truth = Statement(mentions, ((name, (0, 1)),)).holds(self.scene)
        first, second = map(self._phrase, mentions)
        return _yes_or_no(f'is the {first} {self._say(name)} the {second}', 'is the', truth)

    def _may_ask(self, a: Thing, name: str, b: Thing) -> bool:
        """Whether neither this nor its reverse is a composition kept from training."""
        return self.in_test or not (is_held_out(a, name, b) or is_held_out(a, OPPOSITE[name], b))

    def _how_many(self) -> Question:
        """How many things there are, or how many of a shape, a colour or both; perhaps none."""
        things = self.scene.things
        shapes = {thing.shape for thing in things} | {self._pick(SHAPES)}
        colours = {thing.colour for thing in things} | {self._pick(tuple(COLOURS))}
        nouns = [
            'thing',
            *sorted(shapes),
            *(f'{colour} thing' for colour in sorted(colours)),
            *sorted({f'{thing.colour} {thing.shape}' for thing in things}),
        ]
        by_count: dict[int, list[str]] = {}
        for noun in nouns:
            looks = set(noun.split()) - {'thing'}
            count = sum(looks <= {thing.colour, thing.shape} for thing in things)
            by_count.setdefault(count, []).append(noun)
        # Most nouns fit one thing: drawing the number first makes the prior a poor answer.
        count = self._pick(sorted(by_count))
        noun = plural(self._pick(by_count[count]))
        return _number(f'how many {noun} are there', 'how many', count)

    def _how_many_beside(self) -> Question | None:
        """How many things are in a direction of one from which all others are clearly placed."""
        thing = self._anchor()
        if thing is None:
            return None
        others = [other for other in self.scene.things if other is not thing]
        names = [
            name
            for name in DIRECTIONS
            if all(self.in_test or not is_held_out(other, name, thing) for other in others)
        ]
        if not names:
            return None
        name = self._pick(names)
        count = sum(direction(other, thing) == name for other in others)
        phrase = self._phrase(self._describe(thing))
        text = f'how many things are {self._say(name)} the {phrase}'
        return _number(text, 'how many things are', count)

    def _what_attribute(self) -> Question | None:
        """The colour of a thing that its shape names, or the shape of one that its colour does."""
        asked, named = self._pick((('colour', 'shape'), ('shape', 'colour')))
        found = self._find(named)
        if found is None:
            return None
        thing, where = found
        noun = thing.shape if named == 'shape' else f'{thing.colour} thing'
        answer = getattr(thing, asked)
        mistakes = _colours_like(answer) if asked == 'colour' else (_LOOKS_LIKE[answer],)
        start = f'what {asked} is the'
        return Question(f'{start} {noun}{where}', start, 'other', answer, mistakes)

    def _find(self, attribute: str) -> tuple[Thing, str] | None:
        """A thing that an attribute, alone or with a place, tells from all others; the place."""
        alone, placed = [], []
        for thing in self.scene.things:
            value = getattr(thing, attribute)
            rivals = [
                other
                for other in self.scene.things
                if other is not thing and getattr(other, attribute) == value
            ]
            if not rivals:
                alone.append(thing)
            placed += [
                (thing, name, seen_from)
                for seen_from in self.unique
                if seen_from is not thing
                and seen_from not in rivals
                and (name := direction(thing, seen_from))
                and all(direction(rival, seen_from) not in (None, name) for rival in rivals)
            ]
        if placed and (not alone or self._odds(0.7)):
            thing, name, seen_from = self._pick(placed)
            phrase = self._phrase(self._describe(seen_from))
            return thing, f' {self._say(name)} the {phrase}'
        return (self._pick(alone), '') if alone else None

    def _what_is(self) -> Question | None:
        """What is the one thing in a direction of one from which all others are clearly placed."""
        seen_from = self._anchor()
        if seen_from is None:
            return None
        around: dict[str | None, list[Thing]] = {}
        for thing in self.scene.things:
            if thing is not seen_from:
                around.setdefault(direction(thing, seen_from), []).append(thing)
        single = [name for name, things in around.items() if len(things) == 1]
        if not single:
            return None
        name = self._pick(single)
        (thing,) = around[name]
        phrase = self._phrase(self._describe(seen_from))
        mistakes = (thing.shape, f'{_colours_like(thing.colour)[0]} {thing.shape}')
        return Question(
            f'what is {self._say(name)} the {phrase}',
            'what is',
            'other',
            f'{thing.colour} {thing.shape}',
            mistakes,
        )

    def _anchor(self) -> Thing | None:
        """A thing unlike all others, from which each of them lies in a clear direction."""
        anchors = [
            thing
            for thing in self.unique
            if all(direction(other, thing) for other in self.scene.things if other is not thing)
        ]
        return self._pick(anchors) if anchors else None

    def _describe(self, thing: Thing) -> Description:
        """Colour and shape always, size and texture now and then."""
        return Description(
            thing.shape,
            thing.colour,
            thing.size if self._odds(0.2) else None,
            thing.texture if self._odds(0.2) else None,
        )

    def _phrase(self, looks: Description) -> str:
        said = [self._say(name) for name in (looks.size, looks.texture) if name]
        return ' '.join([*said, looks.colour, looks.shape])

    def _say(self, name: str) -> str:
        return self._pick(WORDINGS[name])

    def _pick(self, options: Sequence[Item]) -> Item:
        return options[self.rng.integers(len(options))]

    def _odds(self, share: float) -> bool:
        return self.rng.random() < share


def _yes_or_no(text: str, question_type: str, truth: bool) -> Question:
    answer, other = ('yes', 'no') if truth else ('no', 'yes')
    return Question(text, question_type, 'yes/no', answer, (other,))


def _number(text: str, question_type: str, count: int) -> Question:
    near = tuple(number for number in _COUNTS if abs(int(number) - count) == 1)
    return Question(text, question_type, 'number', str(count), near)


def _colours_like(name: str) -> tuple[str, str]:
    """The two colours next to one."""
    first, second = sorted(
        (other for other in COLOURS if other != name),
        key=lambda other: dist(COLOURS[name], COLOURS[other]),
    )[:2]
    return first, second


def write_questions(split: str, scene: Scene) -> list[tuple[Question, list[str]]]:
    """Questions about a scene, each with the answers of ten people; the same for the same scene."""
    rng = np.random.default_rng(derive_seed('questions', split, scene))
    questions = Interviewer(split, scene, rng).ask()
    return [(question, _ask_people(question, rng)) for question in questions]


def _ask_people(question: Question, rng: np.random.Generator) -> list[str]:
    """Ten answers, seven or more of them the true one."""
    answers = [question.answer] * PEOPLE
    doubters = rng.choice(len(_DOUBTERS), p=_DOUBTERS)
    for place in rng.permutation(PEOPLE)[:doubters]:
        answers[place] = question.mistakes[rng.integers(len(question.mistakes))]
    return answers


def answer_list() -> list[str]:
    """Every answer there is: the closed list that a model chooses from."""
    kinds = [f'{colour} {shape}' for colour in COLOURS for shape in SHAPES]
    return ['yes', 'no', *_COUNTS, *COLOURS, *SHAPES, *kinds]


def write_vqa(folder: Path, splits: Splits) -> None:
    """``vqa/{questions,annotations}_SPLIT.json`` as VQA v2 has them, and ``vqa/answer_list.json``.

    Images are named in ``coco/captions_SPLIT.json``.
    """
    write_json(folder / 'vqa' / 'answer_list.json', answer_list())
    for split, records in splits.items():
        head = {
            'info': {'description': 'xmodal shapes', 'version': '2.0'},
            'task_type': 'Open-Ended',
            'data_type': 'shapes',
            'data_subtype': split,
        }
        asked = [
            (image_id(split, record), number, question, answers)
            for record in records
            for number, (question, answers) in enumerate(write_questions(split, record.scene))
        ]
        questions = (
            {
                'image_id': image,
                'question': f'{question.text}?',
                'question_id': _question_id(image, number),
            }
            for image, number, question, _ in asked
        )
        write_json_list(folder / 'vqa' / f'questions_{split}.json', head, 'questions', questions)
        write_json_list(
            folder / 'vqa' / f'annotations_{split}.json',
            head,
            'annotations',
            (_annotation(*each) for each in asked),
        )


def _question_id(image: int, number: int) -> int:
    """As in VQA, whose questions of an image are numbered below a thousand."""
    return 1000 * image + number


def _annotation(image: int, number: int, question: Question, answers: list[str]) -> dict:
    return {
        'question_type': question.question_type,
        'multiple_choice_answer': question.answer,
        'answers': [
            {
                'answer': answer,
                'answer_confidence': 'yes' if answer == question.answer else 'maybe',
                'answer_id': person,
            }
            for person, answer in enumerate(answers, start=1)
        ],
        'image_id': image,
        'answer_type': question.answer_type,
        'question_id': _question_id(image, number),
    }
