"""Converts the published files of Flickr8k to ALBEF's format, one file per split.

    python tools/dataset_converters/flickr8k.py data/flickr8k

writes data/flickr8k/albef/{train,dev,test}.json. Images that a list names but the folder does not
have are dropped and counted.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.albef_writer import path_below, write_albef_json
from xmodal.engine.errors import run_or_explain
from xmodal.fields import shorten
from xmodal.files import FileError, read_text, reads, require_new

CAPTIONS = ('Flickr8k.token.txt', 'captions.token.txt')
IMAGES = ('Flicker8k_Dataset', 'Flickr8k_Dataset', 'Images', 'images')
SPLITS = ('Flickr_8k.{split}Images.txt', 'split_{split}.txt')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder', type=Path, help='folder with captions, split lists and images')
    parser.add_argument('--root', type=Path, help="the config's data_root (default: its parent)")
    parser.add_argument('--out', type=Path, help='folder to write to (default: FOLDER/albef)')
    return parser.parse_args()


def find(folder: Path, names: tuple[str, ...]) -> Path:
    """The first of ``names`` that exists in ``folder``."""
    for parent in (folder, folder / 'Flickr8k_text'):
        for name in names:
            if (parent / name).exists():
                return parent / name
    raise FileNotFoundError(f'none of {", ".join(names)} in {folder}')


@reads('lines NAME.jpg#0<TAB>caption, in UTF-8')
def read_captions(path: Path) -> dict[str, list[str]]:
    """Captions by image, from lines ``NAME.jpg#0<TAB>caption``."""
    captions: dict[str, list[str]] = {}
    for line_number, line in enumerate(read_text(path).splitlines(), 1):
        key, tab, caption = line.partition('\t')
        if not tab:
            raise FileError(
                f'{path}, line {line_number}: expected "NAME.jpg#0<TAB>caption": {shorten(line)}'
            )
        captions.setdefault(key.partition('#')[0], []).append(caption.strip())
    if not captions:
        raise ValueError('it has no caption')
    return captions


def records(
    names: list[str], captions: dict[str, list[str]], images: Path, prefix: Path
) -> Iterator[dict]:
    """A record for each image that exists and has captions."""
    for name in names:
        if name in captions and (images / name).exists():
            yield {'image': (prefix / name).as_posix(), 'caption': captions[name]}


def main() -> None:
    """Converts every split whose list exists."""
    args = parse_args()
    captions = read_captions(find(args.folder, CAPTIONS))
    images = find(args.folder, IMAGES)
    prefix = path_below(images, args.root or args.folder / '..')
    out, splits = args.out or args.folder / 'albef', {}
    for split in ('train', 'dev', 'test'):
        try:
            path = find(args.folder, tuple(name.format(split=split) for name in SPLITS))
        except FileNotFoundError as error:
            print(f'{split}: {error}; skipped')
            continue
        file, names = out / f'{split}.json', read_text(path).split()
        require_new('--out', file)
        converted = list(records(names, captions, images, prefix))
        if not converted:
            raise ValueError(f'{images} has none of the captioned images that {path} lists')
        splits[file] = converted
        num_dropped = len(names) - len(converted)
        print(f'{split}: {len(converted)} images, {num_dropped} without file or caption')
    if not splits:
        raise FileNotFoundError(f'{args.folder} has no list of the images of a split')
    for file, converted in splits.items():
        write_albef_json(file, converted)


if __name__ == '__main__':
    run_or_explain(main)
