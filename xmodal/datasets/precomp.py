"""Reader of region features that were computed beforehand."""

import codecs
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import print_log
from torch.utils.data import Dataset

from xmodal.datasets.base import find_files, sampled
from xmodal.datasets.boxes import find_wrong_box
from xmodal.registry import DATASETS
from xmodal.structures import DataSample, Regions

_MARGIN = 1e-3  # that a box may leave the image by, as a share of it: files round


@DATASETS.register_module()
class PrecompDataset(Dataset):
    """Regions with captions, in the files of SCAN, SGRAF and VSE∞.

    ============================  ===================================================
    ``SPLIT_ims.npy``             features, (rows, R, F); a region of zeros is padding
    ``SPLIT_caps.txt``            a caption a line, UTF-8
    ``SPLIT_ids.txt`` (optional)  an image's id a line: a line a row, or a line a caption
    ``SPLIT_boxes.npy`` (option)  x1, y1, x2, y2 as shares of the image, (rows, R, 4)
    ============================  ===================================================

    The published files have one row an image for training and one row a caption, with the image's
    row repeated, for validation and test. Which it is, and whose captions are whose, is found by
    :func:`assign_captions` and logged. Features stay on disk (memory-mapped).

    Flickr30K's dev has 1,014 images and 5,070 captions, of which the reference uses the first 5,000
    captions; of COCO's dev it uses 1,000 images of 5,000. Here all are read: ``max_images=1000``
    gives what the reference validates on.

    In training a sample is a caption with its image. Nothing is random.

    Args:
        split: the files' prefix: 'train', 'dev', 'test', 'testall'.
        data_root: their folder.
        captions_per_image: this many lines after one another belong to an image; None finds out.
            Needed where neither ids nor rows tell, as when a caption has features of its own.
        max_images: the first images only; None for all.
        test_mode: one sample an image with all its captions.

    Raises:
        FileNotFoundError: when features or captions are not there.
        ValueError: names file and line, when a file is not of the format, or two do not match.
    """

    def __init__(
        self,
        split: str,
        data_root: str,
        captions_per_image: int | None = None,
        max_images: int | None = None,
        test_mode: bool = False,
    ) -> None:
        self.test_mode = test_mode
        names = [f'{split}_ims.npy', f'{split}_caps.txt']
        self.features_file, captions_file = find_files(self, names, data_root)
        self.features = _map_array(self.features_file, '(rows, regions, features)')
        self.captions = read_lines(captions_file)
        ids_file = Path(data_root, f'{split}_ids.txt')
        ids = read_lines(ids_file) if ids_file.is_file() else None
        self.rows, self.owner = assign_captions(
            self.features, len(self.captions), ids, captions_per_image, Path(data_root, split)
        )
        self.image_ids = _image_ids(ids, len(self.features), self.rows, self.owner)
        if max_images is not None:
            self.rows = self.rows[:max_images]
            kept = np.flatnonzero(self.owner < max_images)
            self.captions = [self.captions[line] for line in kept]
            self.owner = self.owner[kept]
        self.boxes_file = Path(data_root, f'{split}_boxes.npy')
        self.boxes = self._map_boxes(self.boxes_file)
        self._order = np.argsort(self.owner, kind='stable')
        self._first = np.searchsorted(self.owner[self._order], np.arange(len(self.rows) + 1))
        for image in sampled(range(len(self.rows)), 64):
            self.regions(image)
        counts = np.diff(self._first)
        print_log(
            f'{Path(data_root, split)}: {len(self.rows)} images of {self.features.shape[1]} '
            f'regions, {len(self.captions)} captions ({counts.min()} to {counts.max()} an image)',
            'current',
        )

    def __len__(self) -> int:
        return len(self.rows if self.test_mode else self.captions)

    def __getitem__(self, draw: int | tuple[int, int]) -> dict:
        """A sample; ``draw`` is its index, or index and epoch.

        Raises:
            IndexError: past the end.
            ValueError: when features are not finite.
        """
        index = draw[0] if isinstance(draw, tuple) else draw
        if not 0 <= index < len(self):  # what ends `for sample in dataset`
            raise IndexError(f'sample {index} of a data set of {len(self)}')
        image = index if self.test_mode else int(self.owner[index])
        sample = DataSample(
            metainfo={'image_path': str(self.features_file), 'sample_index': index, 'skipped': []}
        )
        sample.image_id = int(self.image_ids[image])
        sample.text = self.captions_of(image) if self.test_mode else self.captions[index]
        return {'inputs': self.regions(image), 'data_samples': sample}

    def captions_of(self, image: int) -> list[str]:
        """All captions of an image."""
        lines = self._order[self._first[image] : self._first[image + 1]]
        return [self.captions[line] for line in lines]

    def regions(self, image: int) -> Regions:
        """The regions of an image, features (R, F).

        Raises:
            ValueError: when they are not finite, all are padding, or a box is none; names file
                and row.
        """
        row = self.rows[image]
        features = np.array(self.features[row], np.float32)
        mask = features.any(1)
        where = f'{self.features_file}, row {row} (of {len(self.features)}, from 0)'
        if not np.isfinite(features).all():
            broken = np.flatnonzero(~np.isfinite(features).all(1)).tolist()
            raise ValueError(
                f'{where}: regions {broken} hold NaN or infinity, for instance of '
                f"'{self.captions_of(image)[0]}'; compute the features of this image again"
            )
        if not mask.any():
            raise ValueError(f'{where}: all regions are zero, which is padding')
        boxes = None if self.boxes is None else self._boxes_of(row)
        return Regions(torch.from_numpy(features), torch.from_numpy(mask), boxes)

    def _boxes_of(self, row: int) -> torch.Tensor:
        boxes = self.boxes[row].astype(np.float32)
        if (wrong := find_wrong_box(boxes, _MARGIN)) is not None:
            raise ValueError(
                f'{self.boxes_file}, row {row} (of {len(self.boxes)}, from 0): box {wrong} is '
                f'{boxes[wrong].tolist()}, expected x1, y1, x2, y2 as shares of width and height, '
                "in 0…1: divide by the image's"
            )
        return torch.from_numpy(boxes)

    def _map_boxes(self, file: Path) -> np.ndarray | None:
        """The boxes, if there are any."""
        if not file.is_file():
            return None
        boxes, expected = _map_array(file, '(rows, regions, 4)'), (*self.features.shape[:2], 4)
        if boxes.shape != expected:
            raise ValueError(f'{file} is {boxes.shape}, expected {expected}, a box a region')
        return boxes


def assign_captions(
    features: np.ndarray,
    captions: int,
    ids: list[str] | None,
    captions_per_image: int | None,
    prefix: Path,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the images among the rows, and the image of each caption.

    ========================  =================================================================
    what is there             how it is read
    ========================  =================================================================
    ``captions_per_image``    so many lines an image; rows: one an image, or one a caption
    as many rows as captions  same id, same image; where all ids differ (they may be row numbers)
                              or there are none: same features, same image
    as many ids as captions   images in the order in which their ids come first, a row each
    otherwise                 rows × n = captions: n lines an image
    ========================  =================================================================

    Args:
        features: (rows, R, F).
        captions: number of captions.
        ids: an id a row or a caption; None when there is no such file.
        captions_per_image: see above.
        prefix: path of the files up to ``_ims.npy``, for messages.

    Returns:
        The row of each image, (I,), and the image of each caption, (captions,).

    Raises:
        ValueError: when the counts do not match, or rows with the same id differ.
    """
    rows = len(features)
    found = f'{prefix}_ims.npy has {rows} rows and {prefix}_caps.txt has {captions} captions'
    if ids is not None and len(ids) not in (rows, captions):
        raise ValueError(f'{found}; {prefix}_ids.txt has {len(ids)} ids, expected one of these')
    if captions_per_image is not None:
        return _by_count(rows, captions, captions_per_image, found)
    if rows == captions:
        if ids is None or len(set(ids)) == len(ids):
            return _group([_content(row) for row in features])
        first, owner = _group(ids)
        _check_repeated(features, first, owner, ids, prefix)
        return first, owner
    if ids is not None and len(ids) == captions:
        first, owner = _group(ids)
        if len(first) != rows:
            raise ValueError(
                f'{found}; {prefix}_ids.txt has {len(first)} different ids, expected {rows}'
            )
        return np.arange(rows), owner
    if captions % rows or not captions:
        raise ValueError(
            f'{found}: expected as many, or a multiple. Where images have different numbers of '
            f"captions, {prefix}_ids.txt needs a line a caption with its image's id"
        )
    return np.arange(rows), np.arange(captions) // (captions // rows)


def read_lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file, stripped.

    Raises:
        ValueError: when a line is empty or not UTF-8; names it.
    """
    lines = file.read_bytes().removeprefix(codecs.BOM_UTF8).split(b'\n')
    if not lines[-1].strip():
        lines.pop()
    texts = []
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode('utf-8').strip()
        except UnicodeDecodeError as error:
            raise ValueError(f'{file}, line {number}: not UTF-8, {error}') from error
        if not text:
            raise ValueError(
                f'{file}, line {number} is empty: every line belongs to a row, so put a text there '
                '(or take line and row out of all files)'
            )
        texts.append(text)
    return texts


def _map_array(file: Path, layout: str) -> np.ndarray:
    """Memory-maps an array of numbers with three axes."""
    try:
        array = np.load(file, mmap_mode='r')
    except (ValueError, EOFError) as error:
        raise ValueError(f'{file} is no array that NumPy can map: {error}') from error
    if array.ndim != 3 or array.dtype.kind != 'f' or not len(array):
        raise ValueError(f'{file} is {array.dtype} {array.shape}, expected floats {layout}')
    return array


def _image_ids(
    ids: list[str] | None, row_count: int, rows: np.ndarray, owner: np.ndarray
) -> np.ndarray:
    """A number of each image: its id where all ids are numbers, else its place."""
    if ids is None or not all(text.isdecimal() for text in ids):
        return np.arange(len(rows))
    lines = rows if len(ids) == row_count else np.unique(owner, return_index=True)[1]
    return np.array([int(ids[line]) for line in lines])


def _by_count(rows: int, captions: int, count: int, found: str) -> tuple[np.ndarray, np.ndarray]:
    """So many lines an image."""
    images = captions // count
    if captions % count or rows not in (images, captions):
        raise ValueError(
            f'{found}: with captions_per_image={count} expected {captions / count:g} rows, or '
            f'{captions}'
        )
    return np.arange(images) * (rows // images), np.arange(captions) // count


def _group(keys: list) -> tuple[np.ndarray, np.ndarray]:
    """Where each key comes first, and which of these each place holds."""
    number: dict = {}
    owner = np.array([number.setdefault(key, len(number)) for key in keys])
    return np.unique(owner, return_index=True)[1], owner


def _content(row: np.ndarray) -> bytes:
    """What tells an image's row from others: its first and last region."""
    return row[[0, -1]].tobytes()


def _check_repeated(
    features: np.ndarray, first: np.ndarray, owner: np.ndarray, ids: list[str], prefix: Path
) -> None:
    """Looks whether rows with the same id are the same."""
    for place, image in enumerate(owner):
        same = first[image]
        if place != same and _content(features[place]) != _content(features[same]):
            raise ValueError(
                f'{prefix}_ids.txt, lines {same + 1} and {place + 1}: both are {ids[place]}, but '
                f'rows {same} and {place} (from 0) of {prefix}_ims.npy differ; if each caption has '
                'features of its own, set captions_per_image'
            )
