"""Questions about a scene with their true answers, and the list of all answers.

The words of a question must not reveal its answer. Yes/no questions have both answers with the same
probability. The false ones differ from the true ones in something that could have been true as
well: an absent combination of attributes that the scene has, or a reversed direction. In training
no question is about a held-out composition or its reverse, since the answer would always be "no".
A model that reads only the questions is left with the prior of each question type
(``tools/analysis/evaluate_vqa.py``). "How many" is an exception: a noun like "red discs" is counted
only where the scene has some, which is worth 7 points of this type (docs/evidence.md).
"""

from itertools import permutations
from math import dist
from typing import NamedTuple

from xmodal.datasets.shapes.grammar import plural, with_article
from xmodal.datasets.shapes.phrasing import Mention, ScenePhraser
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    OPPOSITE,
    SHAPES,
    SceneObject,
    direction,
    is_held_out,
    may_be_said,
)
from xmodal.datasets.shapes.statements import Description, Statement

_COUNTS = tuple('0123456')
#: Words of questions and answers that captions do not have.
QUESTION_WORDS = (
    *('yes', 'no', 'what', 'how', 'many', 'colour', 'shape', 'thing', 'things'),
    *_COUNTS,
)
_SIMILAR_SHAPES = {
    'disc': 'ring',
    'ring': 'disc',
    'square': 'diamond',
    'diamond': 'square',
    'triangle': 'star',
    'star': 'cross',
    'cross': 'star',
    'bar': 'square',
}


class Question(NamedTuple):
    """A question with its answer.

    Attributes:
        text: the question.
        question_type: its first words.
        answer_type: 'yes/no', 'number' or 'other'.
        answer: the true answer.
        mistakes: answers that people may give instead.
        mentions: what it names, in the order of the text; not known of questions with a number.
        answer_mentions: the object that the answer names.
    """

    text: str
    question_type: str
    answer_type: str
    answer: str
    mistakes: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    answer_mentions: tuple[Mention, ...] = ()


class QuestionGenerator(ScenePhraser):
    """Generates questions about one scene; a question that the scene does not allow is None."""

    def generate(self) -> list[Question]:
        """Up to five questions: two with yes or no, one with a number, two others."""
        questions = [
            self._ask_existence(),
            self._ask_relation(),
            (self._chance(0.5) and self._ask_count_in_direction()) or self._ask_count(),
            self._ask_attribute(),
            self._ask_object(),
        ]
        return [question for question in questions if question]

    def _ask_existence(self) -> Question:
        """Whether an object fits a description; for "no" one attribute is changed."""
        obj = self._pick(self.scene.objects)
        size = obj.size if self._chance(0.3) else None
        texture = obj.texture if self._chance(0.3) else None
        description = Description(obj.shape, obj.colour, size, texture)
        if self._chance(0.5):
            description = self._absent_variant(description)
        mention = self._mention(self._phrase(description), description)
        text = f'is there {with_article(mention.phrase)}'
        return _yes_no_question(text, 'is there', mention.obj is not None, (mention,))

    def _ask_relation(self) -> Question | None:
        """Whether an object is in a direction of another; a false question has the opposite one."""
        links = [
            (a, name, b)
            for a, b in permutations(self.unique, 2)
            if (name := direction(a, b)) and (self.in_test or may_be_said(a, name, b))
        ]
        if not links:
            return None
        held_out = [link for link in links if is_held_out(*link)]
        a, name, b = self._pick(held_out if held_out and self._chance(0.5) else links)
        if self._chance(0.5):
            name = OPPOSITE[name]
        descriptions = (self._describe(a), self._describe(b))
        is_true = Statement(descriptions, ((name, (0, 1)),)).holds(self.scene)
        first, second = map(self._phrase, descriptions)
        text = f'is the {first} {self._say(name)} the {second}'
        return _yes_no_question(text, 'is the', is_true, (Mention(first, a), Mention(second, b)))

    def _ask_count(self) -> Question:
        """How many objects there are, in all or of a shape, a colour or both; zero is possible."""
        objects = self.scene.objects
        shapes = {obj.shape for obj in objects} | {self._pick(SHAPES)}
        colours = {obj.colour for obj in objects} | {self._pick(tuple(COLOURS))}
        nouns = [
            'thing',
            *sorted(shapes),
            *(f'{colour} thing' for colour in sorted(colours)),
            *sorted({f'{obj.colour} {obj.shape}' for obj in objects}),
        ]
        by_count: dict[int, list[str]] = {}
        for noun in nouns:
            attributes = set(noun.split()) - {'thing'}
            count = sum(attributes <= {obj.colour, obj.shape} for obj in objects)
            by_count.setdefault(count, []).append(noun)
        # Most nouns fit one object. Choosing the number first makes the prior a poor answer.
        count = self._pick(sorted(by_count))
        noun = plural(self._pick(by_count[count]))
        return _number_question(f'how many {noun} are there', 'how many', count)

    def _ask_count_in_direction(self) -> Question | None:
        """How many objects are in a direction of an anchor."""
        anchor = self._find_anchor()
        if anchor is None:
            return None
        others = [other for other in self.scene.objects if other is not anchor]
        names = [
            name
            for name in DIRECTIONS
            if all(self.in_test or not is_held_out(other, name, anchor) for other in others)
        ]
        if not names:
            return None
        name = self._pick(names)
        count = sum(direction(other, anchor) == name for other in others)
        phrase = self._phrase(self._describe(anchor))
        text = f'how many things are {self._say(name)} the {phrase}'
        return _number_question(text, 'how many things are', count)

    def _ask_attribute(self) -> Question | None:
        """The colour of an object named by its shape, or the shape of one named by its colour."""
        attribute, named_by = self._pick((('colour', 'shape'), ('shape', 'colour')))
        target = self._find(named_by)
        if target is None:
            return None
        answer, noun = getattr(target.obj, attribute), short_name(target.obj, named_by)
        mistakes = _nearest_colours(answer) if attribute == 'colour' else (_SIMILAR_SHAPES[answer],)
        start = f'what {attribute} is the'
        text = f'{start} {noun}{target.location}'
        mentions = (Mention(noun, target.obj), *target.anchors)
        return Question(text, start, 'other', answer, mistakes, mentions)

    def _ask_object(self) -> Question | None:
        """What the only object in a direction of an anchor is."""
        anchor = self._find_anchor()
        if anchor is None:
            return None
        by_direction: dict[str | None, list[SceneObject]] = {}
        for obj in self.scene.objects:
            if obj is not anchor:
                by_direction.setdefault(direction(obj, anchor), []).append(obj)
        single = [name for name, objects in by_direction.items() if len(objects) == 1]
        if not single:
            return None
        name = self._pick(single)
        (obj,) = by_direction[name]
        phrase = self._phrase(self._describe(anchor))
        answer = f'{obj.colour} {obj.shape}'
        mistakes = (obj.shape, f'{_nearest_colours(obj.colour)[0]} {obj.shape}')
        return Question(
            f'what is {self._say(name)} the {phrase}',
            'what is',
            'other',
            answer,
            mistakes,
            (Mention(phrase, anchor),),
            (Mention(answer, obj),),
        )


def short_name(obj: SceneObject, named_by: str) -> str:
    """An object named by its 'shape' or by its 'colour'."""
    return obj.shape if named_by == 'shape' else f'{obj.colour} thing'


def _yes_no_question(
    text: str, question_type: str, is_true: bool, mentions: tuple[Mention, ...]
) -> Question:
    answer, mistake = ('yes', 'no') if is_true else ('no', 'yes')
    return Question(text, question_type, 'yes/no', answer, (mistake,), mentions)


def _number_question(text: str, question_type: str, count: int) -> Question:
    near = tuple(other for other in _COUNTS if abs(int(other) - count) == 1)
    return Question(text, question_type, 'number', str(count), near)


def _nearest_colours(name: str) -> tuple[str, str]:
    """The two colours nearest to a colour."""
    first, second = sorted(
        (other for other in COLOURS if other != name),
        key=lambda other: dist(COLOURS[name], COLOURS[other]),
    )[:2]
    return first, second


def answer_list() -> list[str]:
    """All possible answers: the closed list that a model chooses from."""
    kinds = [f'{colour} {shape}' for colour in COLOURS for shape in SHAPES]
    return ['yes', 'no', *_COUNTS, *COLOURS, *SHAPES, *kinds]
