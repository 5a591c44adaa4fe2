"""Writes questions that captions answer, in the format of LXMERT's pre-training files.

    python tools/dataset_converters/caption_questions.py data/flickr8k/albef/train.json \\
        --out data/flickr8k/caption_questions.json

"two dogs run on a beach" answers "how many dogs are there?" and "where is this?". Captions are
lists of {"image", "caption"}. An image is known by the stem of its file name, which is its id in a
store of regions.
"""

import argparse
from pathlib import Path

from xmodal.datasets.albef_captions import read_captions
from xmodal.datasets.caption_questions import caption_questions
from xmodal.engine.errors import run_or_explain
from xmodal.files import FileError, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('captions', type=Path, nargs='+', help='lists of {image, caption}')
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    return parser.parse_args()


def main() -> None:
    """Writes the file."""
    args = parse_args()
    require_new('--out', args.out)
    asked = dict(caption_questions(read_captions(args.captions)))
    if not asked:
        raise FileError(f'no caption of {", ".join(map(str, args.captions))} answers a question')
    items = [
        {
            'img_id': image,
            'sentf': {'caption_questions': list(questions)},
            'labelf': {'caption_questions': list(questions.values())},
        }
        for image, questions in asked.items()
    ]
    write_json(args.out, items)
    print(f'{args.out}: {sum(map(len, asked.values()))} questions about {len(items)} images')


if __name__ == '__main__':
    run_or_explain(main)
