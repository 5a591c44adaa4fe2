"""Scores a file of answers like VQA's official evaluation, and a question-only baseline.

    python tools/analysis/evaluate_vqa.py work_dirs/vqa_shapes/test.json \\
        data/shapes/vqa/annotations_test.json --prior data/shapes/vqa/annotations_train.json

The answers are what ``test_evaluator.save_predictions`` writes: [{"question_id", "answer"}, …].
"""

import argparse
from collections import Counter
from pathlib import Path

from rich.console import Console

from xmodal.benchmark import make_table
from xmodal.engine.errors import run_or_explain
from xmodal.evaluation.vqa import HumanAnswers, score_submission
from xmodal.fields import as_objects, read_object
from xmodal.files import explain_errors, read_json, reads


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('answers', type=Path, help='file of answers')
    parser.add_argument('annotations', type=Path, help='annotations with the human answers')
    parser.add_argument(
        '--prior',
        type=Path,
        help='annotations of the training set: compares with a baseline that gives every question '
        'the most common training answer of its type',
    )
    return parser.parse_args()


@reads('{"annotations": [{"question_id", "answers": [{"answer"}, …], …}, …], …}')
def read_annotations(file: Path) -> list[dict]:
    """The questions of a file of annotations."""
    content = read_object(file)
    for item in content.objects('annotations'):
        item.id('question_id')
        [answer.text('answer') for answer in item.objects('answers')]
        [item.text(key) for key in ('question_type', 'answer_type', 'multiple_choice_answer')]
    if not content.items('annotations'):
        raise content.error('annotations', 'a question')
    return content.items('annotations')


@reads('[{"question_id", "answer"}, …]')
def read_answers(file: Path) -> list[dict]:
    """The answers of a submission."""
    return [
        {'question_id': item.id('question_id'), 'answer': item.text('answer')}
        for item in as_objects(read_json(file))
    ]


def prior_answers(training: list[dict], questions: list[dict]) -> list[dict]:
    """The most common training answer to the question type; of all answers for an unknown type."""
    counts: dict[str, Counter] = {}
    for item in training:
        answers = counts.setdefault(item['question_type'], Counter())
        answers[item['multiple_choice_answer']] += 1
    most_common = {name: answers.most_common(1)[0][0] for name, answers in counts.items()}
    fallback = sum(counts.values(), Counter()).most_common(1)[0][0]
    return [
        {
            'question_id': item['question_id'],
            'answer': most_common.get(item['question_type'], fallback),
        }
        for item in questions
    ]


def score(answers: list[dict], questions: list[dict]) -> dict[str, float]:
    """Accuracies: overall, by answer type and by question type."""
    scores: dict[str, float] = {}
    for kind in ('answer_type', 'question_type'):
        references = {
            item['question_id']: HumanAnswers([a['answer'] for a in item['answers']], item[kind])
            for item in questions
        }
        scores |= score_submission(answers, references)
    return scores


def main() -> None:
    """Prints a table."""
    args = parse_args()
    questions = read_annotations(args.annotations)
    answers = read_answers(args.answers)
    with explain_errors(args.answers, f'an answer to each question of {args.annotations}'):
        columns = {'accuracy': score(answers, questions)}
    if args.prior:
        training = read_annotations(args.prior)
        columns['question-only'] = score(prior_answers(training, questions), questions)
    table = make_table(f'{len(questions)} questions of {args.annotations.name}, %', '', *columns)
    for name in columns['accuracy']:
        table.add_row(name, *(f'{scores[name]:.2f}' for scores in columns.values()))
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)
