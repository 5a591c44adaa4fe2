"""Writes the boxes of NLVR's objects, in all six orders of an image, as COCO's instances.

    python tools/dataset_converters/nlvr_boxes.py data/nlvr1/hidden.json data/nlvr1/dev.json \\
        --out data/nlvr1/instances.json

An image has its three grey boxes (category 1) and their items (category 2). What an item looks like
is not written: only its pixels show its colour and shape.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.nlvr_scene import BOX_SIZE, IMAGE_SIZE, ORDERS, STRIDE, Scene, read_scenes
from xmodal.engine.errors import run_or_explain
from xmodal.files import require_new, write_json

CATEGORIES = {'box': 1, 'item': 2}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', type=Path, nargs='+', help="NLVR's files, named after their split")
    parser.add_argument('--out', type=Path, required=True, help='file to write; must not exist')
    return parser.parse_args()


def boxes_of(scene: Scene, order: tuple[int, ...]) -> Iterator[tuple[str, list[int]]]:
    """The category and the box (x, y, width, height) of each object of an image, in pixels."""
    for place, box in enumerate(order):
        start = place * STRIDE
        yield 'box', [start, 0, BOX_SIZE, BOX_SIZE]
        for item in scene.boxes[box]:
            yield 'item', [start + item.left, item.top, item.size, item.size]


def main() -> None:
    """Writes the file."""
    args = parse_args()
    require_new('--out', args.out)
    images, annotations = [], []
    for file in args.files:
        for scene in read_scenes(file):
            for number, order in enumerate(ORDERS):
                image = {'id': len(images), 'width': IMAGE_SIZE[0], 'height': IMAGE_SIZE[1]}
                name = f'{file.stem}-{scene.identifier}-{number}.png'
                images.append({**image, 'file_name': name})
                for category, box in boxes_of(scene, order):
                    annotations.append(
                        {
                            'id': len(annotations),
                            'image_id': image['id'],
                            'category_id': CATEGORIES[category],
                            'bbox': box,
                        }
                    )
    categories = [{'id': number, 'name': name} for name, number in CATEGORIES.items()]
    write_json(args.out, {'images': images, 'annotations': annotations, 'categories': categories})
    print(f'{args.out}: {len(images)} images, {len(annotations)} boxes')


if __name__ == '__main__':
    run_or_explain(main)
