"""Splits questions and annotations of VQA v2 by image.

    python tools/dataset_converters/vqa_split.py questions.json annotations.json image_split.json \\
        --out data/vqa_mini

image_split.json has the split of each image, {"25": "train", "73": "test", …}. The output is
{questions,annotations}_{train,test}.json.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.fields import read_object
from xmodal.files import explain_errors, reads, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('questions', type=Path, help='file of questions')
    parser.add_argument('annotations', type=Path, help='file of their annotations')
    parser.add_argument('image_split', type=Path, help='{"image_id": "split", …}')
    parser.add_argument('--out', type=Path, required=True, help='folder to write to')
    return parser.parse_args()


@reads('{"image_id": "split", …}')
def read_splits(file: Path) -> dict[str, str]:
    """The split of each image."""
    splits = read_object(file)
    for image in splits:
        if Path(splits.name(image)).name != splits.name(image):
            raise splits.error(image, 'the name of a split')
    return {image: splits.name(image) for image in splits}


@reads('{"questions" or "annotations": [{"image_id", …}, …], …}')
def read_items(file: Path, name: str) -> tuple[dict, list[dict]]:
    """The content of a file, and its questions or annotations."""
    content = read_object(file)
    for item in content.objects(name):
        item.id('image_id')
    return {key: content.get(key) for key in content}, content.items(name)


def group_by_split(items: Iterable[dict], image_split: dict[str, str]) -> dict[str, list[dict]]:
    """Items by the split of their image.

    Raises:
        ValueError: when an image has no split.
    """
    by_split: dict[str, list[dict]] = defaultdict(list)
    for item in items:
        image = str(item['image_id'])
        if image not in image_split:
            raise ValueError(f'the file of splits does not name image {image}')
        by_split[image_split[image]].append(item)
    return by_split


def main() -> None:
    """Writes both files of every split."""
    args = parse_args()
    image_split, outputs = read_splits(args.image_split), {}
    for name in ('questions', 'annotations'):
        source = getattr(args, name)
        content, every = read_items(source, name)
        with explain_errors(source, 'images that the file of splits names'):
            for split, items in group_by_split(every, image_split).items():
                outputs[args.out / f'{name}_{split}.json'] = {**content, name: items}
    for file in outputs:
        require_new('--out', file)
    for file, content in outputs.items():
        write_json(file, content)
        print(file)


if __name__ == '__main__':
    run_or_explain(main)
