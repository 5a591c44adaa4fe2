"""The base class of task datasets: one annotation per sample."""

import os
import pickle
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

from xmodal.datasets.base import ImageFolder, SampleDataset, find_files
from xmodal.datasets.seeding import derive_seed
from xmodal.files import read_explained


class PackedRecords(Sequence):
    """Records in one array, which worker processes share; a list of objects would be copied.

    Args:
        records: any objects that can be pickled.
    """

    def __init__(self, records: Iterable[object]) -> None:
        pickled = [pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL) for record in records]
        self._bytes = np.frombuffer(b''.join(pickled), np.uint8)
        self._ends = np.fromiter(accumulate(map(len, pickled)), np.int64, len(pickled))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> object:
        start = int(self._ends[index - 1]) if index else 0
        return pickle.loads(self._bytes[start : int(self._ends[index])].data)


class RecordDataset(SampleDataset):
    """Annotations of a task; a subclass implements ``read_records``.

    A record has ``image``, a name, and what else a sample has. Without an ``image_id`` an image is
    identified by its name.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from the result of ``get_data_info`` to ``inputs`` and
            ``data_samples``.
        test_mode: whether nothing is random and a broken image is an error.
        seed: seed of all random choices; None for that of the run.

    Attributes:
        file_names: a different name of each annotation file, for ids that the file does not give.
        records: all records, in the order of the files.

    Raises:
        FileNotFoundError: when an annotation file does not exist, or none of the images; in test
            mode when one image does not exist.
        ValueError: when an annotation file has another layout, or there is no record.
    """

    #: The layout of an annotation file, for error messages; set by subclasses.
    layout = 'a file that its read_records can read'

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__(pipeline, test_mode, seed)
        self.image_root = ImageFolder(data_root, data_prefix)
        files = find_files(self, ann_file, data_root)
        self.file_names = _different_names(files)
        self.records = PackedRecords(self.read_files(files, **self.read_tables()))
        if not self.records:
            raise ValueError(f'{type(self).__name__}: no record in {", ".join(map(str, files))}')
        names = [name for x in self.items_to_check(self.records) for name in self.images_of(x)]
        self.check_images(names, files[0], self.image_root)

    def read_tables(self) -> dict:
        """Content of further files that ``read_records`` needs, as its keyword arguments.

        It is read once for all annotation files and not kept afterwards.
        """
        return {}

    def read_records(self, file: Path, **tables) -> Iterable[dict]:
        """Yields the records of an annotation file; invalid ones raise KeyError or ValueError."""
        raise NotImplementedError

    def read_files(self, files: list[Path], **tables) -> Iterable[dict]:
        """Yields the records of all annotation files."""
        for file in files:
            read = partial(self.read_records, file, **tables)
            yield from read_explained(read, file, self.layout, type(self).__name__, 'records')

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """The record, with the path of its image."""
        record = dict(self.records[index])
        image = record.pop('image')
        path, image_id = str(self.image_root / image), derive_seed(image)
        return {'img_path': path, 'image_id': image_id, **record, 'sample_index': index}

    def images_of(self, record: dict) -> list[str]:
        """Names of the images of a record."""
        return [record['image']]

    def image_paths(self) -> Iterable[str]:
        """The images of all records."""
        return self.image_root.paths(name for x in self.records for name in self.images_of(x))

    def __len__(self) -> int:
        return len(self.records)


def _different_names(files: list[Path]) -> dict[Path, str]:
    """The stems of files, or where two are equal the paths below their common folder.

    Either is the same on every machine, as ids must be that runs are compared by.
    """
    if len({file.stem for file in files}) == len(set(files)):
        return {file: file.stem for file in files}
    paths = [Path(os.path.abspath(file)) for file in files]
    common = os.path.commonpath([path.parent for path in paths])
    return {
        file: path.relative_to(common).as_posix() for file, path in zip(files, paths, strict=True)
    }
