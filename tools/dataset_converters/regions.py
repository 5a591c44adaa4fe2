"""Converts region features to one memory-mapped store, from which datasets read them.

    python tools/dataset_converters/regions.py tsv data/mscoco_imgfeat/*_obj36.tsv \\
        --out data/regions/mscoco
    python tools/dataset_converters/regions.py precomp data/f30k_precomp --split train \\
        --out data/regions/f30k_train

``tsv``: LXMERT's files; ``precomp``: the .npy files of SCAN's data. Images are checked and written
one by one, so that any number fits into memory. After the command was killed, the same command
continues. docs/regions.md describes stores and says where the files come from.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.precomp import PrecompDataset
from xmodal.datasets.region_tsv import read_region_tsv
from xmodal.datasets.region_writer import DTYPES, RegionStoreWriter
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest='kind', required=True)
    tsv = kinds.add_parser('tsv', help="LXMERT's obj36.tsv", formatter_class=ShowDefaults)
    tsv.add_argument('files', type=Path, nargs='+', help='files, converted to one store')
    tsv.add_argument('--feature-dims', type=at_least(1), default=2048, help='width of a feature')
    precomp = kinds.add_parser('precomp', help="SCAN's ims.npy", formatter_class=ShowDefaults)
    precomp.add_argument('folder', type=Path, help='folder of SPLIT_ims.npy')
    precomp.add_argument('--split', required=True, help='train, dev, test, …')
    for kind in (tsv, precomp):
        kind.add_argument('--out', type=Path, required=True, help='folder to write to')
        kind.add_argument('--dtype', choices=DTYPES, default='float32', help='of the features')
        kind.add_argument(
            '--checkpoint',
            type=at_least(0),
            default=10,
            help='seconds between checkpoints; a kill costs at most so much work',
        )
    return parser.parse_args()


class TsvSource(NamedTuple):
    """A file of LXMERT; positions are bytes."""

    file: Path
    feature_dims: int

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def end(self) -> int:
        return self.file.stat().st_size

    def read(self, start: int) -> Iterator[tuple[DetectedImage, int]]:
        """Images from a position on, each with the position of the next one."""
        return read_region_tsv(self.file, self.feature_dims, start)


class PrecompSource(NamedTuple):
    """A split of SCAN's data; positions are image indices, and boxes are shares of the image."""

    dataset: PrecompDataset

    @property
    def name(self) -> str:
        return self.dataset.features_file.name

    @property
    def end(self) -> int:
        return len(self.dataset)

    def read(self, start: int) -> Iterator[tuple[DetectedImage, int]]:
        """The regions of each image, without padding."""
        for index in range(start, self.end):
            regions = self.dataset.regions(index)
            kept = regions.attention_mask
            features = regions.features[kept].numpy()
            # The reader lets rounded boxes leave the image by a little.
            boxes = None if regions.boxes is None else regions.boxes[kept].clamp(0, 1).numpy()
            yield DetectedImage(self.dataset.image_names[index], 1, 1, features, boxes), index + 1


def convert(
    sources: list[TsvSource] | list[PrecompSource], writer: RegionStoreWriter, seconds: float
) -> None:
    """Writes all images that are not in the store, with a checkpoint every so many seconds."""
    first, start = writer.position or (0, 0)
    if writer.images:
        print(f'{writer.folder}: continuing after {writer.images} images')
    for source_index in range(first, len(sources)):
        source, last = sources[source_index], time.monotonic()
        scale = dict(unit='B', unit_scale=True) if isinstance(source, TsvSource) else {}
        with tqdm(total=source.end, initial=start, desc=source.name, **scale) as bar:
            for image, position in source.read(start):
                try:
                    writer.append(image)
                except ValueError as error:
                    raise ValueError(
                        f'{source.name}, before position {position}: {error}'
                    ) from error
                bar.update(position - bar.n)
                if time.monotonic() - last >= seconds:
                    writer.checkpoint([source_index, position])
                    last = time.monotonic()
        start = 0
        writer.checkpoint([source_index + 1, 0])
    writer.finish()


def main() -> None:
    """Converts the files of the command line."""
    args = parse_args()
    if args.kind == 'tsv':
        files, sources = args.files, [TsvSource(file, args.feature_dims) for file in args.files]
        options = {'feature_dims': args.feature_dims}
    else:
        sources = [PrecompSource(PrecompDataset(args.split, str(args.folder), test_mode=True))]
        files, options = [sources[0].dataset.features_file], {'split': args.split}
    if empty := [source.name for source in sources if not source.end]:
        raise ValueError(f'{", ".join(empty)}: there is no image')
    # Without folders: the data may be mounted elsewhere when the command is run again.
    stamps = [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]
    with RegionStoreWriter(args.out, {'files': stamps, **options}, args.dtype) as writer:
        convert(sources, writer, args.checkpoint)
    size = sum(file.stat().st_size for file in args.out.iterdir())
    print(
        f'{args.out}: {writer.images} images, {writer.regions} regions, {size / 1e9:.2f} GB in '
        f'{args.dtype}'
    )


if __name__ == '__main__':
    run_or_explain(main)
