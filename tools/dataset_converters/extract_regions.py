"""Computes region features of photographs, by the extractor that a config names.

    python tools/dataset_converters/extract_regions.py configs/temde/dual_flickr8k.py \\
        data/flickr8k/images

writes the store of the config's ``LoadRegions``: training reads features in place of pixels. After
the command was killed, the same command continues. With several GPUs or machines each process takes
a share, and leaves it where it is finished:
``torchrun --nproc_per_node=8 tools/dataset_converters/extract_regions.py …``.
Images that can't be decoded are skipped, and listed at the end.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.image_file import IMAGE_SUFFIXES, BrokenImageError
from xmodal.datasets.region_writer import DTYPES, RegionStoreWriter, is_finished
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.transforms import AlbefAugment, build_pipeline
from xmodal.datasets.transforms.regions import view_id
from xmodal.engine.allocator import keep_freed_memory
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.components import find_load_regions
from xmodal.engine.device import device_of_process
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.registry import MODELS, register_all
from xmodal.structures import ObjectLabels


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', type=Path, help='a config with LoadRegions(store, extractor)')
    parser.add_argument('images', type=Path, nargs='+', help='image files, or folders of them')
    parser.add_argument('--out', type=Path, help="the store (default: the config's)")
    parser.add_argument('--dtype', choices=DTYPES, default='float16', help='of the features')
    parser.add_argument(
        '--views', type=at_least(1), default=1, help='the image, and random crops of it'
    )
    parser.add_argument('--batch-size', type=at_least(1), default=32, help='images at once')
    parser.add_argument(
        '--workers', type=at_least(0), default=1, help='processes that decode images'
    )
    parser.add_argument('--device', help='cuda, cpu, … (default: a GPU if there is one)')
    return parser.parse_args()


class Images(Dataset):
    """Decoded images with their paths and sizes, or the reason why one is broken.

    Args:
        paths: of images and views: 0 is the image, the others are random crops of it, the same in
            every run, with 20 % of its area or more.
        image_size: height and width; None for those of each image, which has no crops then.
    """

    def __init__(self, paths: list[tuple[Path, int]], image_size: int | None) -> None:
        self.paths, self.image_size = paths, image_size
        self.load = build_pipeline([dict(type='LoadImage')])
        steps = [] if image_size is None else [dict(type='ResizeImage', size=image_size)]
        self.resize = build_pipeline(steps)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> dict:
        path, view = self.paths[index]
        try:
            results = self.load({'img_path': str(path)})
        except BrokenImageError as error:
            return {'error': str(error)}
        height, width = results['img'].shape[1:]
        image_id = view_id(path.stem, view)
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(derive_seed(image_id))
            image = self._crop(results) if view else self.resize(results)
        return {'image_id': image_id, 'size': (width, height), 'img': image['img']}

    def _crop(self, results: dict) -> dict:
        return AlbefAugment(self.image_size, num_ops=0)(results)


def find_images(paths: list[Path]) -> list[Path]:
    """Image files in a fixed order; the stem of a name is the id of an image.

    Raises:
        FileNotFoundError: when there is none, or a path does not exist.
        ValueError: when two images have one stem.
    """
    files: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f'{path}: no such file or folder')
        found = path.rglob('*') if path.is_dir() else [path]
        for file in sorted(x for x in found if x.suffix.lower() in IMAGE_SUFFIXES):
            if files.setdefault(file.stem, file) != file:
                raise ValueError(
                    f'{files[file.stem]} and {file} have one stem, which is the id of an image in '
                    'a store: give one another name, or write them to stores (--out) that '
                    'datasets of their own read'
                )
    if not files:
        raise FileNotFoundError(
            f'{", ".join(map(str, paths))}: no image ({", ".join(IMAGE_SUFFIXES)})'
        )
    return list(files.values())


def extract(
    extractor: nn.Module, loader: DataLoader, device: str
) -> Iterator[list[DetectedImage | str]]:
    """Batches of images with their regions, or with the reason why one is skipped."""
    for batch in loader:
        readable = [item for item in batch if 'img' in item]
        found = iter(_regions(extractor, readable, device) if readable else ())
        yield [item['error'] if 'error' in item else next(found) for item in batch]


def _regions(extractor: nn.Module, items: list[dict], device: str) -> Iterator[DetectedImage]:
    images = [item['img'].to(device) for item in items]
    found = extractor.extract(images, [item['image_id'] for item in items])
    for item, regions in zip(items, found, strict=True):
        pixels = regions.boxes.cpu().numpy() * np.array(item['size'] * 2, np.float32)
        labels = regions.labels and ObjectLabels(*(x.cpu().numpy() for x in regions.labels))
        features = regions.features.cpu().numpy()
        yield DetectedImage(item['image_id'], *item['size'], features, pixels, labels)


def write(
    extractor: nn.Module,
    paths: list[tuple[Path, int]],
    writer: RegionStoreWriter,
    args: argparse.Namespace,
) -> list[str]:
    """Writes the regions of all images that are not in the store, and returns broken ones."""
    start, broken = writer.position or (0, [])
    if start:
        print(f'{writer.folder}: continuing after {writer.images} images')
    device = device_of_process(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    loader = DataLoader(
        Images(paths[start:], extractor.image_size),
        args.batch_size,
        num_workers=args.workers,
        collate_fn=list,
    )
    with tqdm(total=len(paths), initial=start, unit=' images', desc=writer.folder.name) as bar:
        for batch in extract(extractor.to(device), loader, device):
            for image in batch:
                if isinstance(image, str):
                    broken.append(image)
                else:
                    writer.append(image)
            bar.update(len(batch))
            start += len(batch)  # not of the bar, which TQDM_DISABLE stops from counting
            writer.checkpoint([start, broken])
    return broken


def main() -> None:
    """Computes the store of the command line."""
    args = parse_args()
    keep_freed_memory()
    register_all()
    section = find_load_regions(read_config(args.config))
    paths, out = find_images(args.images), args.out or section['store']
    if not isinstance(out, str | Path):
        raise ValueError(f'{args.config}: LoadRegions.store={out}, so say which one: --out FOLDER')
    rank, processes = (int(os.environ.get(key, n)) for key, n in (('RANK', 0), ('WORLD_SIZE', 1)))
    if len(paths) < processes:
        raise ValueError(
            f'{len(paths)} images for {processes} processes: each needs one, take fewer processes'
        )
    out = Path(out)
    if processes > 1:
        paths, out = paths[rank::processes], out / f'part_{rank}'
    sources = {
        'extractor': section['extractor'],
        'images': [len(paths), paths[0].name, paths[-1].name],
    }
    if args.views > 1:
        sources['views'] = args.views
    # An error of a process would end the others, whose parts are not finished.
    if processes > 1 and is_finished(out, sources, args.dtype):
        print(f'{out}: finished before')
        return
    views = [(path, view) for path in paths for view in range(args.views)]
    extractor = MODELS.build(section['extractor'])
    if args.views > 1 and extractor.image_size is None:
        raise ValueError(
            f'--views {args.views}: {type(extractor).__name__} takes whole images; leave it out'
        )
    with RegionStoreWriter(out, sources, args.dtype) as writer:
        broken = write(extractor, views, writer, args)
        if writer.images or processes == 1:
            writer.finish()
        else:
            rmtree(out)  # all images of this share are broken: a part without an image is none
    for reason in broken:
        print(f'skipped: {reason}')
    print(f'{out}: {writer.images} images, {writer.regions} regions, {len(broken)} skipped')


if __name__ == '__main__':
    run_or_explain(main)
