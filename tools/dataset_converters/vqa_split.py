"""Questions and annotations of VQA v2 cut into parts by image.

    python tools/dataset_converters/vqa_split.py questions.json annotations.json image_split.json \\
        --out data/vqa_mini

image_split.json names the part of each image, {"25": "train", "73": "test", …}; what is written is
{questions,annotations}_{train,test}.json.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from xmodal.engine.errors import run_or_explain
from xmodal.files import explain_errors, read_json, require_new, write_json


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('questions', type=Path, help='file of questions')
    parser.add_argument('annotations', type=Path, help='file of their annotations')
    parser.add_argument('parts', type=Path, help='the part of each image, {"image_id": "part", …}')
    parser.add_argument('--out', type=Path, required=True, help='folder to write to')
    return parser.parse_args()


def by_part(items: Iterable[dict], parts: dict[str, str]) -> dict[str, list[dict]]:
    """Items by the part that their image belongs to.

    Raises:
        ValueError: when an image belongs to none.
    """
    found: dict[str, list[dict]] = defaultdict(list)
    for item in items:
        image = str(item['image_id'])
        if image not in parts:
            raise ValueError(f'the list of parts does not name image {image}')
        found[parts[image]].append(item)
    return found


def main() -> None:
    """Writes both files of every part."""
    args = parse_args()
    parts, outputs = read_json(args.parts), {}
    for name in ('questions', 'annotations'):
        source = getattr(args, name)
        content = read_json(source)
        with explain_errors(source, f'{{"{name}": [{{"image_id", …}}, …], …}}'):
            for part, items in by_part(content[name], parts).items():
                outputs[args.out / f'{name}_{part}.json'] = {**content, name: items}
    for file in outputs:
        require_new('--out', file)
    for file, content in outputs.items():
        write_json(file, content)
        print(file)


if __name__ == '__main__':
    run_or_explain(main)
