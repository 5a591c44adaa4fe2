"""Converts or builds LXMERT's joint table of answers.

    python tools/dataset_converters/lxmert_answers.py data/lxmert/all_ans.json \\
        --out data/lxmert/answer_list.json
    python tools/dataset_converters/lxmert_answers.py data/lxmert/mscoco_*.json \\
        data/lxmert/vgnococo.json --most 9500 --out data/lxmert/answer_list.json

The output is a JSON list of answers; the index of an answer in it is its label. The input is either
the published table, [{"ans", "dsets"}, …], of 9,500 answers in the order of the published weights,
or the pre-training files, from which such a table is built: answers in LXMERT's form (lower case,
no article, number words as digits, "gray"), sorted by the number of questions with this answer,
most frequent first. Published weights need the published table.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.lxmert import normalize_label
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.fields import Fields
from xmodal.files import reads, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('files', type=Path, nargs='+', help='all_ans.json, or pre-training files')
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    parser.add_argument(
        '--least', type=at_least(1), default=1, help='minimum number of questions with an answer'
    )
    parser.add_argument(
        '--most', type=at_least(1), help='maximum size of the list; keeps the most frequent answers'
    )
    return parser.parse_args()


@reads('a list of {"ans": answer, …}, or a pre-training file with "labelf"')
def read_answers(file: Path) -> Iterator[str]:
    """The answers of a published table, or those that score in a pre-training file."""
    for index, item in enumerate(stream_json_list(file)):
        fields = Fields(item, f'item {index}')
        if 'ans' in fields:
            yield fields.text('ans')
            continue
        labels = fields.object('labelf', {})
        for source in labels:
            for label in labels.objects(source):
                yield from normalize_label(label.scores())


@reads('a list of objects')
def is_table(file: Path) -> bool:
    """Whether a file is the published table of answers."""
    return 'ans' in Fields(next(stream_json_list(file), {}), 'item 0')


def select(counts: Counter[str], least: int, most: int | None) -> list[str]:
    """The most frequent answers; equally frequent ones are sorted alphabetically."""
    kept = sorted(
        (answer for answer, count in counts.items() if count >= least),
        key=lambda answer: (-counts[answer], answer),
    )
    return kept[:most]


def main() -> None:
    """Writes the list."""
    args = parse_args()
    require_new('--out', args.out)
    found = chain.from_iterable(map(read_answers, args.files))
    tables = [file for file in args.files if is_table(file)]
    if tables:
        if args.files != tables[:1] or args.most or args.least > 1:
            raise ValueError(
                f'{tables[0]} is the published table, which is taken whole: give it alone, without '
                '--least and --most'
            )
        answers = list(found)
        if len(set(answers)) < len(answers):
            raise ValueError(f'{args.files[0]} has a repeated answer')
        summary = 'in the order of the published table'
    else:
        counts = Counter(found)
        answers = select(counts, args.least, args.most)
        share = sum(counts[answer] for answer in answers) / max(counts.total(), 1)
        summary = f'{share:.2%} of the answers in {len(args.files)} files'
    if not answers:
        raise ValueError(f'{", ".join(map(str, args.files))}: no answer in "labelf"')
    write_json(args.out, answers)
    print(f'{args.out}: {len(answers)} answers, {summary}')


if __name__ == '__main__':
    run_or_explain(main)
