"""Builds the embedded world: images and annotations in the formats of the benchmarks.

Usage::

    python tools/make_shapes.py --out data/shapes
    python tools/make_shapes.py --out data/shapes_large --preset large
"""

import argparse
import json
import os
from dataclasses import fields
from pathlib import Path
from textwrap import wrap

import cv2
import numpy as np

from xmodal.datasets.image_file import read_image, write_image
from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.datasets.shapes.statistics import measure
from xmodal.engine.command_line import ShowDefaults, at_least, refuse_folder
from xmodal.engine.errors import run_or_explain

PRESETS = {'small': {}, 'large': {'train': 200_000, 'val': 2_000, 'test': 2_000}}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('--out', type=Path, required=True, help='output folder')
    parser.add_argument('--preset', choices=PRESETS, default='small', help='size of the world')
    for field in fields(WorldSpec):
        help_text = f'overrides the preset ({field.default} in small)'
        parser.add_argument(f'--{field.name}', type=at_least(0), help=help_text)
    parser.add_argument(
        '--workers', type=at_least(1), default=os.cpu_count(), help='processes that render'
    )
    parser.add_argument(
        '--statistics',
        action='store_true',
        help='also measure how well the test captions distinguish scenes',
    )
    parser.add_argument(
        '--contact-sheet',
        type=Path,
        help='also write an image of test scenes, in the place of an older one',
    )
    args = parser.parse_args()
    refuse_folder(parser, '--contact-sheet', args.contact_sheet)
    if args.contact_sheet and args.contact_sheet.suffix not in ('.png', '.jpg'):
        parser.error(f'--contact-sheet {args.contact_sheet}: expected a name.png or name.jpg')
    return args


def contact_sheet(folder: Path) -> np.ndarray:
    """Twelve test scenes with one caption each, RGB."""
    rows, columns = 3, 4
    records = json.loads((folder / 'albef' / 'test.json').read_text())[: rows * columns]
    side, text_height = 288, 84
    shape = (rows * (side + text_height) + 16, columns * (side + 16) + 16, 3)
    sheet = np.full(shape, 255, np.uint8)
    for index, record in enumerate(records):
        y = 16 + index // columns * (side + text_height)
        x = 16 + index % columns * (side + 16)
        image = read_image(folder / record['image'])
        image = cv2.resize(image, (side, side), interpolation=cv2.INTER_CUBIC)
        sheet[y : y + side, x : x + side] = image
        for line, text in enumerate(wrap(record['caption'][0], 40)):
            cv2.putText(
                sheet,
                text,
                (x, y + side + 20 + 18 * line),
                cv2.FONT_HERSHEY_DUPLEX,
                0.42,
                (60, 60, 60),
                1,
                cv2.LINE_AA,
            )
    return sheet


def main() -> None:
    """Builds what the command line asks for."""
    args = parse_args()
    options = {f.name: getattr(args, f.name) for f in fields(WorldSpec)}
    overrides = {name: value for name, value in options.items() if value is not None}
    spec = WorldSpec(**PRESETS[args.preset] | overrides)
    is_new = build_world(args.out, spec, args.workers)
    counts = f'{spec.train} training, {spec.val} validation and {spec.test} test scenes'
    print(f'{args.out}: {counts}' if is_new else f'{args.out}: already built, nothing to do')
    if args.statistics:
        for name, value in measure(spec.seed, 'test', spec.test).items():
            print(f'{name:<52}{value:8.3f}')
    if args.contact_sheet:
        args.contact_sheet.parent.mkdir(parents=True, exist_ok=True)
        write_image(args.contact_sheet, contact_sheet(args.out))


if __name__ == '__main__':
    run_or_explain(main)
