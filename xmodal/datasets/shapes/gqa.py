"""The embedded world as GQA: questions with types, groups, full answers and entailed questions.

There are questions of each structural type of GQA: query (an attribute, or the object in some
direction), verify, choose, compare and logical. As in :mod:`xmodal.datasets.shapes.questions`,
whatever makes a binary question false could have been true as well. The answer to a query entails
the answers to one or two yes/no questions, which do not belong to the balanced set.
"""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.grammar import with_article
from xmodal.datasets.shapes.questions import (
    Question,
    QuestionGenerator,
    answer_list,
    short_name,
)
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, Scene, SceneObject
from xmodal.datasets.shapes.statements import Description
from xmodal.files import write_json

#: Words of the questions that neither captions nor VQA's questions have.
GQA_WORDS = ('or', 'same')
_OFFICIAL_SPLITS = {'train': 'train', 'val': 'val', 'test': 'testdev'}
_YES_NO = ('yes', 'no')
_ATTRIBUTES = {'colour': tuple(COLOURS), 'shape': SHAPES}
_KINDS = tuple(f'{colour} {shape}' for colour in COLOURS for shape in SHAPES)


class GqaItem(NamedTuple):
    """A question with the fields of GQA.

    Attributes:
        text: the question.
        answer: the answer.
        structural: 'query', 'verify', 'choose', 'compare' or 'logical'.
        semantic: 'obj', 'attr' or 'rel'.
        sentence: the answer as a sentence; '' for yes and no.
        valid: answers that the question allows.
        group: group of questions over which the distribution of answers is counted, or None.
        entails: questions whose answers follow from this one.
    """

    text: str
    answer: str
    structural: str
    semantic: str
    sentence: str = ''
    valid: tuple[str, ...] = _YES_NO
    group: str | None = None
    entails: tuple['GqaItem', ...] = ()


class _GqaGenerator(QuestionGenerator):
    """Generates GQA questions about one scene; one that the scene does not allow is None."""

    def generate(self) -> list[GqaItem]:
        """Up to six questions of the balanced set."""
        items = [
            _verify(self._ask_existence(), 'obj'),
            _verify(self._ask_relation(), 'rel'),
            self._query_attribute(),
            self._query_object(),
            self._choose(),
            self._compare() or self._logical(),
        ]
        return [item for item in items if item]

    def _query_attribute(self) -> GqaItem | None:
        """The colour or the shape of an object; entails that it has this one and no other."""
        question = self._ask_attribute()
        if question is None:
            return None
        _, attribute, _, _, *words = question.text.split()
        noun, values, answer = ' '.join(words), _ATTRIBUTES[attribute], question.answer
        other = self._pick([value for value in values if value != answer])
        entails = tuple(
            GqaItem(f'is the {attribute} of the {noun} {value}', yes_no, 'verify', 'attr')
            for value, yes_no in ((answer, 'yes'), (other, 'no'))
        )
        sentence = f'the {attribute} of the {noun} is {answer}'
        return GqaItem(question.text, answer, 'query', 'attr', sentence, values, attribute, entails)

    def _query_object(self) -> GqaItem | None:
        """What is in a direction; entails that there is such an object."""
        question = self._ask_object()
        if question is None:
            return None
        answer, location = question.answer, question.text.removeprefix('what is ')
        entailed = GqaItem(f'is there {with_article(answer)}', 'yes', 'verify', 'obj')
        sentence = f'the {answer} is {location}'
        return GqaItem(
            question.text, answer, 'query', 'rel', sentence, _KINDS, 'thing', (entailed,)
        )

    def _choose(self) -> GqaItem | None:
        """Which of two attributes an object has; the other one is that of another object."""
        attribute, named_by = self._pick((('colour', 'shape'), ('shape', 'colour')))
        target = self._find(named_by)
        if target is None:
            return None
        obj, location = target
        answer = getattr(obj, attribute)
        others = sorted({getattr(other, attribute) for other in self.scene.objects} - {answer})
        if not others:
            return None
        options = self.rng.permutation([answer, self._pick(others)]).tolist()
        say = str if attribute == 'colour' else with_article
        noun = short_name(obj, named_by) + location
        text = f'is the {noun} {say(options[0])} or {say(options[1])}'
        sentence = f'the {noun} is {say(answer)}'
        return GqaItem(text, answer, 'choose', 'attr', sentence, tuple(options))

    def _compare(self) -> GqaItem | None:
        """Whether two objects have the same colour or shape, in scenes where both answers occur."""
        attribute, named_by = self._pick((('colour', 'shape'), ('shape', 'colour')))
        objects = self.scene.objects
        names = [getattr(obj, named_by) for obj in objects]
        unique = [obj for obj in objects if names.count(getattr(obj, named_by)) == 1]
        by_answer: dict[str, list[tuple[SceneObject, SceneObject]]] = {'yes': [], 'no': []}
        for a, b in permutations(unique, 2):
            is_equal = getattr(a, attribute) == getattr(b, attribute)
            by_answer['yes' if is_equal else 'no'].append((a, b))
        if not all(by_answer.values()):
            return None
        answer = self._pick(_YES_NO)
        first, second = (short_name(obj, named_by) for obj in self._pick(by_answer[answer]))
        return GqaItem(
            f'are the {first} and the {second} the same {attribute}', answer, 'compare', 'attr'
        )

    def _logical(self) -> GqaItem:
        """Whether there is one object and another, or one object or another."""
        word, answer = self._pick(('and', 'or')), self._pick(_YES_NO)
        # "And" is false with one absent object, "or" is true with one object.
        num_absent = {('and', 'no'): 1, ('or', 'yes'): 1, ('or', 'no'): 2}.get((word, answer), 0)
        pair: list[Description] = []
        while len(set(pair)) < 2:
            pair = [self._describe(self._pick(self.scene.objects)) for _ in range(2)]
            pair[:num_absent] = [self._absent_variant(phrase) for phrase in pair[:num_absent]]
        order = self.rng.permutation(2)
        text = f' {word} '.join(with_article(self._phrase(pair[index])) for index in order)
        return GqaItem(f'is there {text}', answer, 'logical', 'obj')


def _verify(question: Question | None, semantic: str) -> GqaItem | None:
    """A yes/no question of VQA as a GQA question."""
    return question and GqaItem(question.text, question.answer, 'verify', semantic)


def generate_gqa_items(split: str, scene: Scene) -> list[GqaItem]:
    """Questions about a scene; the same for the same scene."""
    rng = np.random.default_rng(derive_seed('gqa', split, scene))
    return _GqaGenerator(split, scene, rng).generate()


def write_gqa(folder: Path, splits: Splits) -> None:
    """``gqa/{train,val,testdev}_balanced_questions.json``, and ``all`` of ``val`` and ``testdev``.

    ``{val,testdev}_choices.json`` have the answers that each question allows. ``answer_list.json``
    has the answers of VQA, which include those of GQA.
    """
    write_json(folder / 'gqa' / 'answer_list.json', answer_list())
    for split, records in splits.items():
        official, questions, choices = _OFFICIAL_SPLITS[split], {}, {}
        for record in records:
            for question_id, item, fields in _questions(split, record):
                questions[question_id] = fields
                choices[question_id] = {'valid': item.valid, 'plausible': item.valid}
        balanced = {key: fields for key, fields in questions.items() if fields['isBalanced']}
        write_json(folder / 'gqa' / f'{official}_balanced_questions.json', balanced)
        if split != 'train':
            write_json(folder / 'gqa' / f'{official}_all_questions.json', questions)
            write_json(folder / 'gqa' / f'{official}_choices.json', choices)


def _questions(split: str, record: Record) -> Iterator[tuple[str, GqaItem, dict]]:
    """The questions of a scene with their ids and GQA's fields."""
    question_id = 100 * image_id(split, record)
    for item in generate_gqa_items(split, record.scene):
        entailed_ids = [str(question_id + i) for i in range(1, len(item.entails) + 1)]
        yield str(question_id), item, _fields(record, item, True, entailed_ids)
        for entailed_id, entailed in zip(entailed_ids, item.entails, strict=True):
            yield entailed_id, entailed, _fields(record, entailed, False, [])
        question_id += 1 + len(entailed_ids)


def _fields(record: Record, item: GqaItem, is_balanced: bool, entailed_ids: list[str]) -> dict:
    return {
        'question': f'{item.text}?',
        'imageId': Path(record.image).stem,
        'answer': item.answer,
        'fullAnswer': f'{item.sentence or item.answer}.',
        'isBalanced': is_balanced,
        'types': {
            'structural': item.structural,
            'semantic': item.semantic,
            'detailed': f'{item.structural}{item.semantic.capitalize()}',
        },
        'groups': {'global': item.group, 'local': None},
        'entailed': entailed_ids,
        'equivalent': [],
    }
