"""Builds the closed list of answers of VQA v2 from its annotations.

    python tools/dataset_converters/vqa_answers.py data/vqa/v2_mscoco_*_annotations.json \\
        --out data/vqa/answer_list.json

The list has the answers, in the form that VQA's evaluation compares, that most people gave to at
least nine questions: about 3,100 of train and val. The most frequent ones come first. An existing
list (ALBEF's answer_list.json has 3,128 answers) can be used as well.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.answers import normalize_answer
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.fields import read_object
from xmodal.files import FileError, reads, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('annotations', type=Path, nargs='+', help='files of annotations')
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument('--least', type=at_least(1), default=9, help='minimum number of questions')
    return parser.parse_args()


@reads('{"annotations": [{"multiple_choice_answer", …}, …], …}')
def read_answers(file: Path) -> list[str]:
    """The most common answer of each question, in the form that VQA compares."""
    annotations = read_object(file).objects('annotations')
    return [normalize_answer(item.text('multiple_choice_answer')) for item in annotations]


def count_answers(answers: Iterable[str], least: int) -> dict[str, int]:
    """Answers of at least ``least`` questions with their counts, the most frequent first."""
    counts = Counter(answers)
    return {answer: count for answer, count in counts.most_common() if answer and count >= least}


def main() -> None:
    """Writes the list."""
    args = parse_args()
    require_new('--out', args.out)
    answers = [answer for file in args.annotations for answer in read_answers(file)]
    if not answers:
        raise FileError(f'{", ".join(map(str, args.annotations))}: there is no annotation')
    counts = count_answers(answers, args.least)
    if not counts:
        raise ValueError(f'no answer has {args.least} questions: lower --least')
    write_json(args.out, list(counts))
    coverage = f'correct for {sum(counts.values())} of {len(answers)} questions'
    print(f'{args.out}: {len(counts)} answers, {coverage}')


if __name__ == '__main__':
    run_or_explain(main)
