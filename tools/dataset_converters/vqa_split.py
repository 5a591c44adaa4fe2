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
from xmodal.files import FileError, explain_errors, read_json, reads, require_new, write_json


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
    splits = dict(read_json(file))
    for split in splits.values():
        if not isinstance(split, str) or Path(split).name != split:
            raise FileError(f'{file} has {split!r} where the name of a split is expected')
    return splits


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
        content = read_json(source)
        with explain_errors(source, f'{{"{name}": [{{"image_id", …}}, …], …}}'):
            for split, items in group_by_split(content[name], image_split).items():
                outputs[args.out / f'{name}_{split}.json'] = {**content, name: items}
    for file in outputs:
        require_new('--out', file)
    for file, content in outputs.items():
        write_json(file, content)
        print(file)


if __name__ == '__main__':
    run_or_explain(main)
