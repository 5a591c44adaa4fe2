"""LXMERT's joint table of answers, or a list of its answers in another form.

    python tools/dataset_converters/lxmert_answers.py data/lxmert/all_ans.json \\
        --out data/lxmert/answer_list.json
    python tools/dataset_converters/lxmert_answers.py data/lxmert/mscoco_*.json \\
        data/lxmert/vgnococo.json --most 9500 --out data/lxmert/answer_list.json

What is written is a JSON list of answers; a model's answer number is the place in it. Given is the
published table, [{"ans", "dsets"}, …], of 9,500 answers in the order of the published weights, or
the pre-training files, from which a table of the same kind is made: answers as LXMERT writes them
(lower case, no article, number words as digits, "gray"), by the number of questions that name them,
the commonest first. Published weights need the published table.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.lxmert import normalize_label
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults
from xmodal.files import require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('files', type=Path, nargs='+', help='all_ans.json, or pre-training files')
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument('--least', type=int, default=1, help='questions that name an answer')
    parser.add_argument('--most', type=int, help='size of the list, of the commonest')
    return parser.parse_args()


def count_answers(images: Iterable[dict]) -> Counter[str]:
    """By answer, in how many questions of pre-training files it scores."""
    counts: Counter[str] = Counter()
    for image in images:
        for label in chain.from_iterable(image.get('labelf', {}).values()):
            counts.update(normalize_label(label).keys())
    return counts


def select(counts: Counter[str], least: int, most: int | None) -> list[str]:
    """The commonest answers, equally common ones by the alphabet."""
    kept = sorted(
        (answer for answer, count in counts.items() if count >= least),
        key=lambda answer: (-counts[answer], answer),
    )
    return kept[:most]


def main() -> None:
    """Makes the list."""
    args = parse_args()
    require_new('--out', args.out)
    if 'ans' in next(stream_json_list(args.files[0]), {}):
        answers = [item['ans'] for file in args.files for item in stream_json_list(file)]
        if len(set(answers)) < len(answers):
            raise ValueError(f'{args.files[0]} has an answer twice')
        found = 'in the order of the published table'
    else:
        counts = count_answers(chain.from_iterable(map(stream_json_list, args.files)))
        answers = select(counts, args.least, args.most)
        share = sum(counts[answer] for answer in answers) / max(counts.total(), 1)
        found = f'{share:.2%} of those that {len(args.files)} files give'
    if not answers:
        raise ValueError(f'{", ".join(map(str, args.files))}: no answer in "labelf"')
    write_json(args.out, answers)
    print(f'{args.out}: {len(answers)} answers, {found}')


if __name__ == '__main__':
    run_or_explain(main)
