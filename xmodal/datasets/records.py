"""Data sets of a task: one annotation a sample."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from xmodal.datasets.base import SampleDataset, find_files, image_folder
from xmodal.files import explain_errors


class PackedRecords(Sequence):
    """Records in one array: worker processes share it, where each would copy a list of objects.

    Args:
        records: anything that pickles.
    """

    def __init__(self, records: Iterable[object]) -> None:
        pickled = [pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL) for record in records]
        self._bytes = np.frombuffer(b''.join(pickled), np.uint8)
        self._ends = np.fromiter(accumulate(map(len, pickled)), np.int64, len(pickled))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> object:
        start = int(self._ends[number - 1]) if number else 0
        return pickle.loads(self._bytes[start : int(self._ends[number])].data)


class RecordDataset(SampleDataset):
    """Annotations of a task; a subclass says how a file is read and what a sample starts from.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        data_prefix: ``image``: folder of the images, below ``data_root``.
        pipeline: transforms, from what ``describe`` gives to ``inputs`` and ``data_samples``.
        test_mode: nothing random, and a broken image is an error.
        seed: of all random choices.

    Attributes:
        records: what ``read_records`` gave, in the order of the files.

    Raises:
        FileNotFoundError: when an annotation file is not there, or no image, in test mode any.
        ValueError: when an annotation file is not of the format, or holds no record.
    """

    #: What the annotation file should look like; subclasses name their own in error messages.
    layout = ''

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        data_prefix: dict[str, str] | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(pipeline, test_mode, seed)
        self.image_root = image_folder(data_root, data_prefix)
        files = find_files(self, ann_file, data_root)
        self.records = PackedRecords(record for file in files for record in self._read(file))
        if not self.records:
            raise ValueError(f'{type(self).__name__}: no record in {", ".join(map(str, files))}')
        self.check_images(self.sampled_image_paths(), files[0])

    def read_records(self, file: Path) -> Iterable[dict]:
        """Yields the records of an annotation file; errors in them are KeyError or ValueError."""
        raise NotImplementedError

    def sampled_image_paths(self) -> list[Path]:
        """Paths of images, to look whether they are there."""
        return [self.image_root / record['image'] for record in self.sampled(self.records)]

    def __len__(self) -> int:
        return len(self.records)

    def _read(self, file: Path) -> Iterable[dict]:
        """``read_records``, with errors that name file, place and format."""
        done = 0
        reader = type(self).__name__
        with explain_errors(file, self.layout, lambda: f' by {reader} after {done} records'):
            for record in self.read_records(file):
                yield record
                done += 1
