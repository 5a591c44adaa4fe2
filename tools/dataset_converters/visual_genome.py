"""Converts Visual Genome's region descriptions to ALBEF's format.

    python tools/dataset_converters/visual_genome.py data/vg --root data/pretrain \\
        --out data/albef/vg.json --exclude-coco data/karpathy/dataset_coco.json

The folder contains region_descriptions.json and image_data.json; the images are in ROOT/vg/VG_100K
and ROOT/vg/VG_100K_2, as in the archives. ALBEF used 769 k of the 5.4 M descriptions: its authors
left out images of the tests of COCO and RefCOCO+, repeated sentences, and those of small regions
(github.com/salesforce/ALBEF, issue 2). Here each image keeps its longest descriptions. For ALBEF's
choice take the authors' own list (albef_paths.py).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.albef_writer import NoRecordError, write_albef_json
from xmodal.datasets.coco_images import read_coco_ids
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain
from xmodal.fields import as_objects, read_object
from xmodal.files import read_json, reads, require_new


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('folder', type=Path, help="folder with Visual Genome's two JSON files")
    parser.add_argument('--root', type=Path, required=True, help='folder that contains vg/VG_100K')
    parser.add_argument('--out', type=Path, required=True, help='file to write')
    parser.add_argument(
        '--longest', type=at_least(1), default=7, help='descriptions kept per image'
    )
    parser.add_argument(
        '--exclude-coco',
        type=Path,
        help="Karpathy's dataset_coco.json: drops the images of its val and test splits",
    )
    return parser.parse_args()


@reads('Karpathy\'s {"images": [{"cocoid", "split", …}, …]}')
def held_out(karpathy: Path) -> set[int]:
    """COCO ids of the images of val and test."""
    images = read_object(karpathy).objects('images')
    return {i.integer('cocoid') for i in images if i.text('split') in ('val', 'test')}


@reads('[{"id", "regions": [{"phrase", …}, …]}, …]')
def read_phrases(file: Path) -> list[tuple[int, set[str]]]:
    """The id and the different phrases of each image."""
    return [
        (
            image.integer('id'),
            {region.text('phrase').strip() for region in image.objects('regions')} - {''},
        )
        for image in as_objects(read_json(file))
    ]


def records(
    folder: Path, root: Path, longest: int, excluded: set[int], missing: list[str]
) -> Iterator[dict]:
    """A record for each image that exists; the others are added to ``missing``."""
    coco_ids = read_coco_ids(folder / 'image_data.json')
    for image_id, phrases in read_phrases(folder / 'region_descriptions.json'):
        if not phrases or coco_ids.get(image_id) in excluded:
            continue
        paths = [f'vg/{archive}/{image_id}.jpg' for archive in ('VG_100K', 'VG_100K_2')]
        path = next((path for path in paths if (root / path).exists()), None)
        if path is None:
            missing.append(paths[0])
            continue
        kept = sorted(phrases, key=lambda phrase: (-len(phrase.split()), phrase))[:longest]
        yield {'image': path, 'caption': kept}


def main() -> None:
    """Converts Visual Genome."""
    args = parse_args()
    require_new('--out', args.out)
    excluded = held_out(args.exclude_coco) if args.exclude_coco else set()
    missing: list[str] = []
    try:
        converted = records(args.folder, args.root, args.longest, excluded, missing)
        count = write_albef_json(args.out, converted)
    except NoRecordError as error:
        if not missing:
            raise
        raise ValueError(
            f'none of {len(missing)} images exists, for instance {args.root / missing[0]}: check '
            '--root, which contains vg/VG_100K and vg/VG_100K_2'
        ) from error
    print(f'{args.out}: {count} images; {len(missing)} do not exist in {args.root}/vg')


if __name__ == '__main__':
    run_or_explain(main)
