"""The published files of Flickr8k to ALBEF's format, one file a split.

    python tools/dataset_converters/flickr8k.py data/flickr8k

writes data/flickr8k/albef/{train,dev,test}.json. Pictures that a list names but the folder lacks
are left out and counted.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.engine.errors import run_or_explain
from xmodal.files import require_new

CAPTIONS = ('Flickr8k.token.txt', 'captions.token.txt')
IMAGES = ('Flicker8k_Dataset', 'Flickr8k_Dataset', 'Images', 'images')
SPLITS = ('Flickr_8k.{split}Images.txt', 'split_{split}.txt')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder', type=Path, help='with the captions, split lists and pictures')
    parser.add_argument('--root', type=Path, help="the config's data_root (default: its parent)")
    parser.add_argument('--out', type=Path, help='folder to write to (default: FOLDER/albef)')
    return parser.parse_args()


def find(folder: Path, names: tuple[str, ...]) -> Path:
    """The first of ``names`` that is in ``folder``."""
    for place in (folder, folder / 'Flickr8k_text'):
        for name in names:
            if (place / name).exists():
                return place / name
    raise FileNotFoundError(f'none of {", ".join(names)} in {folder}')


def read_captions(path: Path) -> dict[str, list[str]]:
    """Captions by picture, from lines ``NAME.jpg#0<TAB>caption``."""
    captions: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text('utf-8-sig').splitlines(), 1):
        key, tab, caption = line.partition('\t')
        if not tab:
            raise ValueError(f'{path}, line {number}: expected "NAME.jpg#0<TAB>caption": {line!r}')
        captions.setdefault(key.partition('#')[0], []).append(caption.strip())
    return captions


def records(
    names: list[str], captions: dict[str, list[str]], images: Path, root: Path
) -> Iterator[dict]:
    """A record for each picture that is there and has captions."""
    prefix = images.absolute().relative_to(root.absolute()).as_posix()
    for name in names:
        if name in captions and (images / name).exists():
            yield {'image': f'{prefix}/{name}', 'caption': captions[name]}


def main() -> None:
    """Converts every split whose list is there."""
    args = parse_args()
    captions = read_captions(find(args.folder, CAPTIONS))
    images, root = find(args.folder, IMAGES), args.root or args.folder.absolute().parent
    if not images.absolute().is_relative_to(root.absolute()):
        raise ValueError(f'--root={root} is not above {images}: paths are written relative to it')
    out, splits = args.out or args.folder / 'albef', {}
    for split in ('train', 'dev', 'test'):
        try:
            path = find(args.folder, tuple(name.format(split=split) for name in SPLITS))
        except FileNotFoundError as error:
            print(f'{split}: {error}; passed over')
            continue
        file, names = out / f'{split}.json', path.read_text('utf-8-sig').split()
        require_new('--out', file)
        found = list(records(names, captions, images, root))
        if not found:
            raise ValueError(f'{images} has none of the captioned pictures that {path} lists')
        splits[file] = found
        print(f'{split}: {len(found)} pictures, {len(names) - len(found)} without file or caption')
    if not splits:
        raise FileNotFoundError(f'{args.folder} has no list of the pictures of a split')
    for file, found in splits.items():
        write_albef_json(file, found)


if __name__ == '__main__':
    run_or_explain(main)
