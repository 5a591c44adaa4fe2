"""The embedded world as GQA: questions with types, groups, full answers and entailed questions.

There are questions of each structural type of GQA: query (an attribute, or the object in some
direction), verify, choose, compare and logical. As in :mod:`xmodal.datasets.shapes.questions`,
whatever makes a binary question false could have been true as well. The answer to a query entails
the answers to one or two yes/no questions, which do not belong to the balanced set.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.grammar import with_article
from xmodal.datasets.shapes.phrasing import Mention
from xmodal.datasets.shapes.questions import Question, QuestionGenerator, short_name
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, Scene, SceneObject
from xmodal.datasets.shapes.statements import Description

#: Words of the questions that neither captions nor VQA's questions have.
GQA_WORDS = ('or', 'same')
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
        mentions: what the question names, in the order of the text.
        answer_mentions: the object that the answer names.
    """

    text: str
    answer: str
    structural: str
    semantic: str
    sentence: str = ''
    valid: tuple[str, ...] = _YES_NO
    group: str | None = None
    entails: tuple['GqaItem', ...] = ()
    mentions: tuple[Mention, ...] = ()
    answer_mentions: tuple[Mention, ...] = ()


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
        mentions = question.mentions
        entails = tuple(
            GqaItem(
                f'is the {attribute} of the {noun} {value}',
                yes_no,
                'verify',
                'attr',
                mentions=mentions,
            )
            for value, yes_no in ((answer, 'yes'), (other, 'no'))
        )
        sentence = f'the {attribute} of the {noun} is {answer}'
        return GqaItem(
            question.text, answer, 'query', 'attr', sentence, values, attribute, entails, mentions
        )

    def _query_object(self) -> GqaItem | None:
        """What is in a direction; entails that there is such an object."""
        question = self._ask_object()
        if question is None:
            return None
        answer, location = question.answer, question.text.removeprefix('what is ')
        named = question.answer_mentions
        text = f'is there {with_article(answer)}'
        entailed = GqaItem(text, 'yes', 'verify', 'obj', mentions=named)
        return GqaItem(
            question.text,
            answer,
            'query',
            'rel',
            f'the {answer} is {location}',
            _KINDS,
            'thing',
            (entailed,),
            question.mentions,
            named,
        )

    def _choose(self) -> GqaItem | None:
        """Which of two attributes an object has; the other one is that of another object."""
        attribute, named_by = self._pick((('colour', 'shape'), ('shape', 'colour')))
        target = self._find(named_by)
        if target is None:
            return None
        obj, answer = target.obj, getattr(target.obj, attribute)
        others = sorted({getattr(other, attribute) for other in self.scene.objects} - {answer})
        if not others:
            return None
        options = self.rng.permutation([answer, self._pick(others)]).tolist()
        say = str if attribute == 'colour' else with_article
        name = short_name(obj, named_by)
        noun = name + target.location
        text = f'is the {noun} {say(options[0])} or {say(options[1])}'
        sentence = f'the {noun} is {say(answer)}'
        mentions = (Mention(name, obj), *target.anchors)
        return GqaItem(text, answer, 'choose', 'attr', sentence, tuple(options), mentions=mentions)

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
        pair = self._pick(by_answer[answer])
        first, second = (Mention(short_name(obj, named_by), obj) for obj in pair)
        text = f'are the {first.phrase} and the {second.phrase} the same {attribute}'
        return GqaItem(text, answer, 'compare', 'attr', mentions=(first, second))

    def _logical(self) -> GqaItem:
        """Whether there is one object and another, or one object or another."""
        word, answer = self._pick(('and', 'or')), self._pick(_YES_NO)
        # "And" is false with one absent object, "or" is true with one object.
        num_absent = {('and', 'no'): 1, ('or', 'yes'): 1, ('or', 'no'): 2}.get((word, answer), 0)
        pair: list[Description] = []
        while len(set(pair)) < 2:
            pair = [self._describe(self._pick(self.scene.objects)) for _ in range(2)]
            pair[:num_absent] = [self._absent_variant(phrase) for phrase in pair[:num_absent]]
        descriptions = [pair[index] for index in self.rng.permutation(2)]
        phrases = [self._phrase(description) for description in descriptions]
        mentions = tuple(map(self._mention, phrases, descriptions))
        text = f' {word} '.join(map(with_article, phrases))
        return GqaItem(f'is there {text}', answer, 'logical', 'obj', mentions=mentions)


def _verify(question: Question | None, semantic: str) -> GqaItem | None:
    """A yes/no question of VQA as a GQA question."""
    return question and GqaItem(
        question.text, question.answer, 'verify', semantic, mentions=question.mentions
    )


def generate_gqa_items(split: str, scene: Scene) -> list[GqaItem]:
    """Questions about a scene; the same for the same scene."""
    rng = np.random.default_rng(derive_seed('gqa', split, scene))
    return _GqaGenerator(split, scene, rng).generate()
