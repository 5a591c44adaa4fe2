"""Writes LXMERT's pre-training file from captions, and questions in VQA v2's format.

    python tools/dataset_converters/lxmert_pretrain.py data/flickr8k/albef/train.json \\
        --questions data/vqa_mini/questions_train.json --image-name '{:012d}' \\
        --annotations data/vqa_mini/annotations_train.json --out data/lxmert.json

Captions are lists of {"image", "caption"}. An image is known by the stem of its file name, which is
its id in a store of regions.
"""

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from xmodal.datasets.albef_captions import read_captions
from xmodal.datasets.answers import answer_scores
from xmodal.datasets.vqa import read_annotations
from xmodal.engine.errors import run_or_explain
from xmodal.fields import read_object
from xmodal.files import FileError, reads, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('captions', type=Path, nargs='+', help='lists of {image, caption}')
    parser.add_argument('--questions', type=Path, help='file of questions')
    parser.add_argument('--annotations', type=Path, help='file of their annotations')
    parser.add_argument(
        '--image-name',
        default='COCO_train2014_{:012d}',
        help='stem of the file name of an image, from its number (default: %(default)s)',
    )
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    args = parser.parse_args()
    if (args.questions is None) != (args.annotations is None):
        parser.error('--questions and --annotations belong together')
    try:
        is_name = args.image_name.format(1) != args.image_name.format(2)
    except (ValueError, LookupError):
        is_name = False
    if not is_name:
        parser.error(f"--image-name {args.image_name}: expected one {{}} for the image's number")
    return args


@reads('{"questions": [{"question_id", "image_id", "question"}, …]}')
def read_questions(file: Path) -> dict[int | str, tuple[int, str]]:
    """The number of its image, and the text, of each question."""
    return {
        item.id('question_id'): (item.integer('image_id'), item.text('question'))
        for item in read_object(file).objects('questions')
    }


def main() -> None:
    """Writes the file."""
    args = parse_args()
    require_new('--out', args.out)
    images: dict[str, dict] = defaultdict(lambda: {'sentf': {}, 'labelf': {}})
    for image, captions in read_captions(args.captions).items():
        images[image]['sentf']['captions'] = captions
    if args.questions:
        annotations = read_annotations(args.annotations)
        for question_id, (number, text) in read_questions(args.questions).items():
            if question_id not in annotations:
                raise FileError(f'{args.annotations} has no annotation of question {question_id}')
            image = images[args.image_name.format(number)]
            image['sentf'].setdefault('vqa', []).append(text)
            label = answer_scores(annotations[question_id].answers)
            image['labelf'].setdefault('vqa', []).append(label)
    write_json(args.out, [{'img_id': image, **fields} for image, fields in images.items()])
    sentences = Counter(
        source for of in images.values() for source, texts in of['sentf'].items() for _ in texts
    )
    print(f'{args.out}: {len(images)} images, sentences: {dict(sentences)}')


if __name__ == '__main__':
    run_or_explain(main)
