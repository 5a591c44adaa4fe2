"""The base class of all image-text datasets, and what finds their files."""

import logging
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from mmengine.logging import print_log
from torch.utils.data import Dataset

from xmodal.datasets.image_file import BrokenImageError
from xmodal.datasets.seeding import SeededDataset, isolated_random
from xmodal.datasets.transforms import LoadRegions, build_pipeline
from xmodal.fields import shorten

MAX_BROKEN_IMAGES = 20  # in a row: so many are not single broken files


class SampleDataset(SeededDataset, Dataset):
    """A dataset with reproducible random choices that skips broken images in training.

    In training all random choices of a sample (the sampled caption, the augmentation) follow from
    the seed, the epoch and the index, in whichever process the sample is made. A subclass
    implements ``__len__`` and ``get_data_info``.

    Args:
        pipeline: transforms, from the result of ``get_data_info`` to ``inputs`` and
            ``data_samples``.
        test_mode: whether a sample is the same in every run and a broken image is an error.
        seed: seed of all random choices; None for that of the run.
    """

    def __init__(
        self,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.pipeline = build_pipeline(pipeline)
        self.test_mode = test_mode

    def __len__(self) -> int:
        raise NotImplementedError

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """The dict that the pipeline starts from; random choices are made with ``rng``."""
        raise NotImplementedError

    def __getitem__(self, index: int | tuple[int, int]) -> dict:
        """A sample, by its index or by index and epoch.

        In training an image that cannot be read is replaced by another one, and its path is stored
        in the sample's ``skipped``.

        Raises:
            IndexError: when the index is out of range.
            BrokenImageError: in test mode; in training after twenty broken images in a row.
        """
        index, epoch = unpack_index(index, len(self))
        if self.test_mode:
            with isolated_random(index):  # a plug-in's transform may draw
                return self.pipeline(self.get_data_info(index, random.Random(0)))
        with isolated_random(self.seed, epoch, index):
            rng = random.Random(f'{self.seed} {epoch} {index}')
            skipped: list[str] = []
            while True:
                try:  # already the name of an image can be wrong
                    data_info = self.get_data_info(index, rng)
                    return self.pipeline({**data_info, 'skipped': skipped})
                except BrokenImageError as error:
                    skipped.append(str(error))
                    if len(skipped) == MAX_BROKEN_IMAGES:
                        raise BrokenImageError(
                            f'{MAX_BROKEN_IMAGES} broken images in a row, check data_root and '
                            'data_prefix.image of the dataset:\n  ' + '\n  '.join(skipped)
                        ) from error
                    index = rng.randrange(len(self))

    def image_paths(self) -> Iterable[str]:
        """The images of all samples, each at least once; none where a subclass does not say."""
        return ()

    def items_to_check(self, items: Sequence, num_training: int = 16) -> list:
        """Items whose images are checked when the dataset is built, evenly spaced.

        Args:
            items: all items.
            num_training: number of items checked in training. In test mode all are checked, since
                a missing image ends the test, but at most 100,000, which takes about a second.
        """
        return evenly_spaced(items, 100_000 if self.test_mode else num_training)

    def check_images(self, names: Sequence[str], file: Path, root: 'ImageFolder') -> None:
        """Checks that the images of an annotation file, or their regions, exist.

        Where the pipeline has ``LoadRegions``, its store is asked instead of the disk. A warning
        counts the images whose regions must be computed from their files again and again.

        Args:
            names: names of the images in the annotation file.
            file: the annotation file, for messages.
            root: the folder of the images.

        Raises:
            FileNotFoundError: when none of them exists; in test mode when one is missing.
            BrokenImageError: when a name leaves ``data_root``.
        """
        loader = next((t for t in self.pipeline.transforms if isinstance(t, LoadRegions)), None)
        try:
            paths = [root / name for name in dict.fromkeys(names)]
        except BrokenImageError as error:
            raise BrokenImageError(f'{file}: {error}') from error
        unstored = [path for path in paths if not loader.has_stored(path)] if loader else paths
        exists = loader.has if loader else os.path.exists
        missing = [path for path in unstored if not exists(path)]
        if missing:
            problem = 'have no regions in the store' if loader else 'do not exist'
            remedy = (
                'is LoadRegions.store the store of these images (docs/regions.md), and do '
                'data_prefix, image_path or image_info of the dataset name them as it does?'
                if loader
                else _remedy(names)
            )
        elif loader and loader.stores and unstored:
            problem = 'are in no store of LoadRegions'
            remedy = (
                'their regions are computed from the files whenever they are read, which is slow. '
                'Delete the store and make it again by `xmodal extract-regions`'
            )
        else:
            return
        some = missing or unstored
        example = shorten(str(some[0]), 200).strip("'")
        message = (
            f'{len(some)} of {len(paths)} checked images {problem}, for instance {example} '
            f'({file}): {remedy}'
        )
        if missing and (self.test_mode or len(missing) == len(paths)):
            raise FileNotFoundError(message)
        print_log(message, 'current', level=logging.WARNING)


def _remedy(names: Sequence[str]) -> str:
    """What to do about images that do not exist, by their names in the annotation file."""
    if any(map(os.path.isabs, names)):
        return (
            'it names images by absolute paths. If these are of another machine, as in the lists '
            "of ALBEF's authors, rewrite them by `xmodal albef-paths` (docs/data.md)"
        )
    return 'check data_root and data_prefix.image of the dataset, or get the images (docs/data.md)'


def unpack_index(index: int | tuple[int, int], length: int) -> tuple[int, int]:
    """Index and epoch of a sample; the epoch is 0 unless the sampler gives one.

    Raises:
        IndexError: when the index is out of range, which ends ``for sample in dataset``.
    """
    index, epoch = index if isinstance(index, tuple) else (index, 0)
    if not 0 <= index < length:
        raise IndexError(f'index {index} of a dataset with {length} samples')
    return index, epoch


def find_files(dataset: object, ann_file: str | list[str], data_root: str) -> list[Path]:
    """Paths of annotation files below ``data_root``.

    Raises:
        FileNotFoundError: names the dataset, the file and where it was expected.
    """
    names = [ann_file] if isinstance(ann_file, str) else ann_file
    files = [Path(data_root, name) for name in names]
    for file in files:
        if not file.is_file():  # a pipe would wait for its writer, a device may have no end
            problem = 'is no regular file' if file.exists() else 'does not exist'
            raise FileNotFoundError(
                f'{type(dataset).__name__}: {file} {problem} (dataset.ann_file, relative to '
                f"data_root='{data_root}' and to {Path.cwd()}). docs/data.md says how to get each "
                'dataset; for the embedded world run `xmodal make-shapes --out data/shapes`.'
            )
    return files


class ImageFolder:
    """The folder ``data_prefix.image`` below ``data_root``; ``folder / name`` is a path in it.

    Args:
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.

    Raises:
        ValueError: when ``data_prefix`` has another key.
    """

    def __init__(self, data_root: str, data_prefix: dict[str, str] | None) -> None:
        prefix = data_prefix or {}
        if unknown := sorted(prefix.keys() - {'image'}):
            raise ValueError(f"dataset.data_prefix has the keys {unknown}, expected only 'image'")
        self.data_root, self.prefix = data_root, prefix.get('image', '')
        self.has_absolute = False

    def __truediv__(self, name: str) -> Path:
        """The path of an image, by its name in an annotation file; absolute names stay.

        Raises:
            BrokenImageError: when the name leaves ``data_root`` by '..'.
        """
        path = Path(self.prefix, name)
        if '..' in path.parts and os.path.normpath(path).startswith('..'):
            raise BrokenImageError(
                f"{path} leaves data_root='{self.data_root}': set dataset.data_root to a folder "
                'that contains all images'
            )
        if path.is_absolute() and not self.has_absolute:
            self.has_absolute = True
            print_log(f'images are read by absolute paths, such as {path}', 'current')
        return Path(self.data_root, path)

    def paths(self, names: Iterable[str]) -> Iterator[str]:
        """The paths of millions of images, without a :class:`Path` for each."""
        return (os.path.join(self.data_root, self.prefix, name) for name in names)


def evenly_spaced(items: Sequence, count: int) -> list:
    """At most ``count`` items of a sequence, evenly spaced."""
    indices = np.linspace(0, len(items) - 1, min(count, len(items))).astype(int)
    return [items[index] for index in indices.tolist()]
