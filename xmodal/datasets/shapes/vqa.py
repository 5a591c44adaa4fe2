"""The embedded world as VQA v2: questions about scenes, each with the answers of ten people.

People disagree. Up to three of the ten give a wrong answer, as real people do (one more or one
less, a similar colour, only the shape). So the true answer always scores 100 %, and theirs less.
"""

from pathlib import Path

import numpy as np

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.questions import Question, QuestionGenerator, answer_list
from xmodal.datasets.shapes.record import Splits, image_id, write_json_list
from xmodal.datasets.shapes.scene import Scene
from xmodal.files import write_json

PEOPLE = 10
_NUM_WRONG = (0.65, 0.2, 0.1, 0.05)  # probabilities that zero to three of the ten are wrong


def generate_questions(split: str, scene: Scene) -> list[tuple[Question, list[str]]]:
    """Questions about a scene with the answers of ten people; the same for the same scene."""
    rng = np.random.default_rng(derive_seed('questions', split, scene))
    questions = QuestionGenerator(split, scene, rng).generate()
    return [(question, _sample_answers(question, rng)) for question in questions]


def _sample_answers(question: Question, rng: np.random.Generator) -> list[str]:
    """Ten answers, of which at least seven are true."""
    answers = [question.answer] * PEOPLE
    num_wrong = rng.choice(len(_NUM_WRONG), p=_NUM_WRONG)
    for person in rng.permutation(PEOPLE)[:num_wrong]:
        answers[person] = question.mistakes[rng.integers(len(question.mistakes))]
    return answers


def write_vqa(folder: Path, splits: Splits) -> None:
    """``vqa/{questions,annotations}_SPLIT.json`` in VQA v2's format, and ``vqa/answer_list.json``.

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
        items = [
            (image_id(split, record), index, question, answers)
            for record in records
            for index, (question, answers) in enumerate(generate_questions(split, record.scene))
        ]
        questions = (
            {
                'image_id': image,
                'question': f'{question.text}?',
                'question_id': _question_id(image, index),
            }
            for image, index, question, _ in items
        )
        write_json_list(folder / 'vqa' / f'questions_{split}.json', head, 'questions', questions)
        write_json_list(
            folder / 'vqa' / f'annotations_{split}.json',
            head,
            'annotations',
            (_annotation(*item) for item in items),
        )


def _question_id(image: int, index: int) -> int:
    """As in VQA, which numbers the questions of an image below a thousand."""
    return 1000 * image + index


def _annotation(image: int, index: int, question: Question, answers: list[str]) -> dict:
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
        'question_id': _question_id(image, index),
    }
