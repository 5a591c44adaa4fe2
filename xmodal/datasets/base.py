"""What every data set of images with text does alike."""

import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from mmengine.logging import print_log
from torch.utils.data import Dataset

from xmodal.datasets.seeding import isolated_random
from xmodal.datasets.transforms import BrokenImageError, LoadRegions, build_pipeline

MOST_BROKEN = 20  # in a row: by then it is not single files that are wrong


class SampleDataset(Dataset):
    """Samples whose random choices follow from the seed, and that outlive broken images.

    In training every random choice of a sample (what is drawn, the augmentation) follows from the
    seed, the epoch and the sample's index, in whatever process it is made. A subclass says how many
    samples there are (``__len__``) and what the pipeline starts from (``describe``).

    Args:
        pipeline: transforms, from what ``describe`` gives to ``inputs`` and ``data_samples``.
        test_mode: nothing random, and a broken image is an error.
        seed: of all random choices.
    """

    def __init__(
        self, pipeline: list[dict | Callable] = (), test_mode: bool = False, seed: int = 0
    ) -> None:
        self.pipeline = build_pipeline(pipeline)
        self.test_mode, self.seed = test_mode, seed

    def __len__(self) -> int:
        raise NotImplementedError

    def describe(self, index: int, chooser: random.Random) -> dict:
        """What the pipeline starts from; random choices are the chooser's."""
        raise NotImplementedError

    def __getitem__(self, draw: int | tuple[int, int]) -> dict:
        """A sample; ``draw`` is its index, or index and epoch.

        In training an image that can't be read is replaced by another, and its path is handed on
        in the sample's ``skipped``.

        Raises:
            IndexError: past the end.
            BrokenImageError: in test mode; in training after twenty broken images in a row.
        """
        index, epoch = draw if isinstance(draw, tuple) else (draw, 0)
        if not 0 <= index < len(self):  # what ends `for sample in dataset`
            raise IndexError(f'sample {index} of a data set of {len(self)}')
        if self.test_mode:
            return self.pipeline(self.describe(index, random.Random(0)))
        with isolated_random(self.seed, epoch, index):
            chooser = random.Random(f'{self.seed} {epoch} {index}')
            skipped: list[str] = []
            while True:
                described = self.describe(index, chooser)
                try:
                    return self.pipeline({**described, 'skipped': skipped})
                except BrokenImageError as error:
                    skipped.append(str(error))
                    if len(skipped) == MOST_BROKEN:
                        raise BrokenImageError(
                            f'{MOST_BROKEN} broken images in a row, check data_root and '
                            'data_prefix.image of the dataset:\n  ' + '\n  '.join(skipped)
                        ) from error
                    index = chooser.randrange(len(self))

    def sampled(self, items: Sequence, few: int = 16) -> list:
        """Items whose images are looked for when the set is built, from all over a sequence.

        In training a few; in test mode all, since a missing one ends the test. Of more than
        100,000 so many, which takes about a second.
        """
        return sampled(items, 100_000 if self.test_mode else few)

    def check_images(self, paths: list[Path], file: Path) -> None:
        """Looks whether images that an annotation file names, or their regions, are there.

        Where the pipeline begins with ``LoadRegions``, that is asked instead of the disk.

        Args:
            paths: of the images.
            file: the annotation file, for messages.

        Raises:
            FileNotFoundError: when none is; in test mode when one is missing.
        """
        loaders = [t for t in self.pipeline.transforms if isinstance(t, LoadRegions)]
        has = loaders[0].has if loaders else Path.exists
        paths = list(dict.fromkeys(paths))
        missing = [path for path in paths if not has(path)]
        if not missing:
            return
        what = 'have no regions in the store' if loaders else 'are not there'
        remedy = (
            'is LoadRegions.store that of these images (docs/regions.md)?'
            if loaders
            else 'check data_root and data_prefix.image of the dataset, or get the images '
            '(docs/data.md)'
        )
        message = (
            f'{len(missing)} of {len(paths)} images looked for {what}, for instance {missing[0]} '
            f'({file}): {remedy}'
        )
        if self.test_mode or len(missing) == len(paths):
            raise FileNotFoundError(message)
        print_log(message, 'current', level=logging.WARNING)


def find_files(owner: object, ann_file: str | list[str], data_root: str) -> list[Path]:
    """Annotation files, below ``data_root``.

    Raises:
        FileNotFoundError: names the data set, the file and where it was looked for.
    """
    names = [ann_file] if isinstance(ann_file, str) else ann_file
    files = [Path(data_root, name) for name in names]
    for file in files:
        if not file.exists():
            raise FileNotFoundError(
                f'{type(owner).__name__}: {file} is not there (dataset.ann_file, relative to '
                f"data_root='{data_root}' and to {Path.cwd()}). docs/data.md says how to get each "
                'set; for the embedded world run `python tools/make_shapes.py --out data/shapes`.'
            )
    return files


def image_folder(data_root: str, data_prefix: dict[str, str] | None) -> Path:
    """The folder ``data_prefix.image`` below ``data_root``.

    Raises:
        ValueError: when ``data_prefix`` has another key.
    """
    prefix = data_prefix or {}
    if unknown := sorted(prefix.keys() - {'image'}):
        raise ValueError(f"dataset.data_prefix has {unknown}, expected 'image' alone")
    return Path(data_root, prefix.get('image', ''))


def sampled(items: Sequence, count: int = 16) -> list:
    """A few items from all over a sequence."""
    places = np.unique(np.linspace(0, len(items) - 1, count).astype(int))
    return [items[int(place)] for place in places]
