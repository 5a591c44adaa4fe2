"""The embedded world as GQA: questions with types, groups, full answers and what follows from them.

Of each structural type of GQA there is one: query (an attribute, or what lies somewhere), verify,
choose, compare and logical. As in :mod:`xmodal.datasets.shapes.questions`, what would make a binary
question false could have been true just as well. The answer to a query entails those to two
questions of yes or no, which are not of the balanced set.
"""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.grammar import Description
from xmodal.datasets.shapes.questions import Interviewer, Question, answer_list
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, Scene, Thing
from xmodal.files import write_json

#: What the questions need besides the words of captions and of VQA's questions.
GQA_WORDS = ('or', 'same')
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'val', 'test': 'testdev'}
_YES_NO = ('yes', 'no')
_ATTRIBUTES = {'colour': tuple(COLOURS), 'shape': SHAPES}
_KINDS = tuple(f'{colour} {shape}' for colour in COLOURS for shape in SHAPES)


class GqaItem(NamedTuple):
    """A question in the terms of GQA.

    Attributes:
        text: the question.
        answer: the answer.
        structural: 'query', 'verify', 'choose', 'compare' or 'logical'.
        semantic: 'obj', 'attr' or 'rel'.
        sentence: the answer as a sentence; '' where it is yes or no.
        valid: answers that the question allows.
        group: what its answers are counted with, or None.
        entails: questions whose answers follow.
    """

    text: str
    answer: str
    structural: str
    semantic: str
    sentence: str = ''
    valid: tuple[str, ...] = _YES_NO
    group: str | None = None
    entails: tuple['GqaItem', ...] = ()


class _Examiner(Interviewer):
    """Asks about one scene in the terms of GQA; what the scene does not allow is None."""

    def examine(self) -> list[GqaItem]:
        """Up to six questions of the balanced set."""
        asked = [
            _verify(self._is_there(), 'obj'),
            _verify(self._is_relation(), 'rel'),
            self._query_attribute(),
            self._query_thing(),
            self._choose(),
            self._compare() or self._logical(),
        ]
        return [item for item in asked if item]

    def _query_attribute(self) -> GqaItem | None:
        """The colour or the shape of a thing; that it is this, and not another, follows."""
        question = self._what_attribute()
        if question is None:
            return None
        _, asked, _, _, *words = question.text.split()
        noun, values, answer = ' '.join(words), _ATTRIBUTES[asked], question.answer
        other = self._pick([value for value in values if value != answer])
        entails = tuple(
            GqaItem(f'is the {asked} of the {noun} {value}', yes_no, 'verify', 'attr')
            for value, yes_no in ((answer, 'yes'), (other, 'no'))
        )
        sentence = f'the {asked} of the {noun} is {answer}'
        return GqaItem(question.text, answer, 'query', 'attr', sentence, values, asked, entails)

    def _query_thing(self) -> GqaItem | None:
        """What lies in a direction; that there is such a thing follows."""
        question = self._what_is()
        if question is None:
            return None
        answer, where = question.answer, question.text.removeprefix('what is ')
        entailed = GqaItem(f'is there {_with_article(answer)}', 'yes', 'verify', 'obj')
        sentence = f'the {answer} is {where}'
        return GqaItem(
            question.text, answer, 'query', 'rel', sentence, _KINDS, 'thing', (entailed,)
        )

    def _choose(self) -> GqaItem | None:
        """Which of two attributes a thing has; the other one is another thing's."""
        asked, named = self._pick((('colour', 'shape'), ('shape', 'colour')))
        found = self._find(named)
        if found is None:
            return None
        thing, where = found
        answer = getattr(thing, asked)
        others = sorted({getattr(other, asked) for other in self.scene.things} - {answer})
        if not others:
            return None
        options = self.rng.permutation([answer, self._pick(others)]).tolist()
        say = str if asked == 'colour' else _with_article
        noun = _name(thing, named) + where
        text = f'is the {noun} {say(options[0])} or {say(options[1])}'
        sentence = f'the {noun} is {say(answer)}'
        return GqaItem(text, answer, 'choose', 'attr', sentence, tuple(options))

    def _compare(self) -> GqaItem | None:
        """Whether two things have the same colour, or shape; in scenes where two do and two not."""
        asked, named = self._pick((('colour', 'shape'), ('shape', 'colour')))
        values = [getattr(thing, named) for thing in self.scene.things]
        alone = [thing for thing in self.scene.things if values.count(getattr(thing, named)) == 1]
        by_answer: dict[str, list[tuple[Thing, Thing]]] = {'yes': [], 'no': []}
        for a, b in permutations(alone, 2):
            same = getattr(a, asked) == getattr(b, asked)
            by_answer['yes' if same else 'no'].append((a, b))
        if not all(by_answer.values()):
            return None
        answer = self._pick(_YES_NO)
        first, second = (_name(thing, named) for thing in self._pick(by_answer[answer]))
        return GqaItem(
            f'are the {first} and the {second} the same {asked}', answer, 'compare', 'attr'
        )

    def _logical(self) -> GqaItem:
        """Whether there is one thing and another, or one thing or another."""
        word, answer = self._pick(('and', 'or')), self._pick(_YES_NO)
        # "And" fails by one that is not there, "or" holds by one that is.
        absent = {('and', 'no'): 1, ('or', 'yes'): 1, ('or', 'no'): 2}.get((word, answer), 0)
        looks: list[Description] = []
        while len(set(looks)) < 2:
            looks = [self._describe(self._pick(self.scene.things)) for _ in range(2)]
            looks[:absent] = [self._other_looks(own) for own in looks[:absent]]
        order = self.rng.permutation(2)
        said = f' {word} '.join(_with_article(self._phrase(looks[place])) for place in order)
        return GqaItem(f'is there {said}', answer, 'logical', 'obj')


def _verify(question: Question | None, semantic: str) -> GqaItem | None:
    """A question of yes or no, as VQA's."""
    return question and GqaItem(question.text, question.answer, 'verify', semantic)


def _name(thing: Thing, named: str) -> str:
    """A thing by its shape or its colour."""
    return thing.shape if named == 'shape' else f'{thing.colour} thing'


def _with_article(noun: str) -> str:
    return f'{"an" if noun[0] in "aeiou" else "a"} {noun}'


def write_gqa_items(split: str, scene: Scene) -> list[GqaItem]:
    """Questions about a scene; the same for the same scene."""
    rng = np.random.default_rng(derive_seed('gqa', split, scene))
    return _Examiner(split, scene, rng).examine()


def write_gqa(folder: Path, splits: Splits) -> None:
    """``gqa/{train,val,testdev}_balanced_questions.json``, of ``val`` and ``testdev`` ``all`` too.

    ``{val,testdev}_choices.json`` have the answers that each question allows, ``answer_list.json``
    those of VQA, of which GQA's are some.
    """
    write_json(folder / 'gqa' / 'answer_list.json', answer_list())
    for split, records in splits.items():
        official, questions, choices = _OFFICIAL_SPLITS[split], {}, {}
        for record in records:
            for number, item, fields in _questions(split, record):
                questions[number] = fields
                choices[number] = {'valid': item.valid, 'plausible': item.valid}
        balanced = {number: fields for number, fields in questions.items() if fields['isBalanced']}
        write_json(folder / 'gqa' / f'{official}_balanced_questions.json', balanced)
        if split != 'train':
            write_json(folder / 'gqa' / f'{official}_all_questions.json', questions)
            write_json(folder / 'gqa' / f'{official}_choices.json', choices)


def _questions(split: str, record: Record) -> Iterator[tuple[str, GqaItem, dict]]:
    """The questions of a scene with their ids, and in GQA's fields."""
    number = 100 * image_id(split, record)
    for item in write_gqa_items(split, record.scene):
        entailed = [str(number + place) for place in range(1, len(item.entails) + 1)]
        yield str(number), item, _fields(record, item, True, entailed)
        for own, entailed_item in zip(entailed, item.entails, strict=True):
            yield own, entailed_item, _fields(record, entailed_item, False, [])
        number += 1 + len(entailed)


def _fields(record: Record, item: GqaItem, balanced: bool, entailed: list[str]) -> dict:
    return {
        'question': f'{item.text}?',
        'imageId': Path(record.image).stem,
        'answer': item.answer,
        'fullAnswer': f'{item.sentence or item.answer}.',
        'isBalanced': balanced,
        'types': {
            'structural': item.structural,
            'semantic': item.semantic,
            'detailed': f'{item.structural}{item.semantic.capitalize()}',
        },
        'groups': {'global': item.group, 'local': None},
        'entailed': entailed,
        'equivalent': [],
    }
