"""Reader of precomputed region features."""

from pathlib import Path

import numpy as np
import torch
from mmengine.logging import print_log
from torch.utils.data import Dataset

from xmodal.datasets.base import evenly_spaced, find_files, unpack_index
from xmodal.datasets.boxes import find_invalid_box
from xmodal.datasets.precomp_captions import (
    assign_captions,
    name_images,
    number_images,
    read_filled_lines,
)
from xmodal.fields import shorten
from xmodal.registry import DATASETS
from xmodal.structures import DataSample, Regions

_FEATURES = '(rows, regions, features)'
_MARGIN = 1e-3  # how far a box may leave the image, as a share of it: files are rounded


@DATASETS.register_module()
class PrecompDataset(Dataset):
    """Regions with captions, in the files of SCAN, SGRAF and VSE∞.

    ============================  ===================================================
    ``SPLIT_ims.npy``             features, (rows, R, F); a region of zeros is padding
    ``SPLIT_caps.txt``            one caption per line, UTF-8
    ``SPLIT_ids.txt`` (optional)  one image id per line, for each row or each caption
    ``SPLIT_boxes.npy`` (option)  x1, y1, x2, y2 as shares of the image, (rows, R, 4)
    ============================  ===================================================

    The published files have one row per image for training. For validation and test they have one
    row per caption, with the row of an image repeated. :func:`assign_captions` finds out which of
    the two it is, and which captions belong to which image; the result is logged. Features stay on
    disk (memory-mapped).

    Flickr30K's dev split has 1,014 images and 5,070 captions, of which the reference uses the first
    5,000 captions; of COCO's dev split it uses 1,000 of 5,000 images. Here all are read;
    ``max_images=1000`` gives the images that the reference validates on.

    In training a sample is a caption with its image. Nothing is random.

    Args:
        split: the prefix of the files: 'train', 'dev', 'test', 'testall'.
        data_root: their folder.
        captions_per_image: number of consecutive lines of one image; None finds out. It is needed
            where neither ids nor rows tell, as when each caption has different features.
        max_images: number of images that are used; None for all.
        test_mode: whether a sample is an image with all its captions.

    Raises:
        FileNotFoundError: when features or captions do not exist.
        ValueError: names file and line, when a file has another layout, or two files do not match.
    """

    def __init__(
        self,
        split: str,
        data_root: str,
        captions_per_image: int | None = None,
        max_images: int | None = None,
        test_mode: bool = False,
    ) -> None:
        for name, value in dict(
            captions_per_image=captions_per_image, max_images=max_images
        ).items():
            if value is not None and value < 1:
                raise ValueError(f'dataset.{name}={value}, expected at least 1, or None')
        self.test_mode = test_mode
        prefix = Path(data_root, split)
        names = [f'{split}_ims.npy', f'{split}_caps.txt']
        self.features_file, captions_file = find_files(self, names, data_root)
        self.features = _map_array(self.features_file, _FEATURES)
        self.captions = read_filled_lines(captions_file)
        ids_file = Path(f'{prefix}_ids.txt')
        ids = read_filled_lines(ids_file) if ids_file.is_file() else None
        assignment = assign_captions(
            self.features, len(self.captions), ids, captions_per_image, prefix
        )
        self.rows, self.text_to_image = assignment
        self.image_names = name_images(ids, len(self.features), assignment, prefix)
        self.image_ids = number_images(self.image_names)
        if max_images is not None:
            self.rows = self.rows[:max_images]
            kept = np.flatnonzero(self.text_to_image < max_images)
            self.captions = [self.captions[line] for line in kept]
            self.text_to_image = self.text_to_image[kept]
        self.boxes_file = Path(f'{prefix}_boxes.npy')
        self.boxes = self._map_boxes()
        self._order = np.argsort(self.text_to_image, kind='stable')
        self._first = np.searchsorted(
            self.text_to_image[self._order], np.arange(len(self.rows) + 1)
        )
        for image in evenly_spaced(range(len(self.rows)), 64):
            self.regions(image)
        counts = np.diff(self._first)
        print_log(
            f'{prefix}: {len(self.rows)} images with {self.features.shape[1]} regions, '
            f'{len(self.captions)} captions ({counts.min()} to {counts.max()} per image)',
            'current',
        )

    def __getstate__(self) -> dict:
        # A worker process maps the files again instead of receiving their content.
        return {**self.__dict__, 'features': None, 'boxes': None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__ |= state
        self.features = _map_array(self.features_file, _FEATURES)
        self.boxes = self._map_boxes()

    def __len__(self) -> int:
        return len(self.rows if self.test_mode else self.captions)

    def __getitem__(self, index: int | tuple[int, int]) -> dict:
        """A sample, by its index or by index and epoch.

        Raises:
            IndexError: when the index is out of range.
            ValueError: when features are not finite.
        """
        index, _ = unpack_index(index, len(self))
        image = index if self.test_mode else int(self.text_to_image[index])
        # With the row, because joined data sets tell images apart by their paths.
        path = f'{self.features_file}:{self.rows[image]}'
        image_id = int(self.image_ids[image])
        names = {'image_path': path, 'image_name': f'image {image_id}'}
        sample = DataSample(metainfo={**names, 'sample_index': index, 'skipped': []})
        sample.image_id = image_id
        sample.text = self.captions_of(image) if self.test_mode else self.captions[index]
        return {'inputs': self.regions(image), 'data_samples': sample}

    def captions_of(self, image: int) -> list[str]:
        """All captions of an image."""
        lines = self._order[self._first[image] : self._first[image + 1]]
        return [self.captions[line] for line in lines]

    def regions(self, image: int) -> Regions:
        """The regions of an image, features (R, F).

        Raises:
            ValueError: names file and row, when features are not finite, all regions are padding,
                or a box is invalid.
        """
        row = self.rows[image]
        features = np.array(self.features[row], np.float32)
        mask = features.any(1)
        source = f'{self.features_file}, row {row} (of {len(self.features)}, from 0)'
        if not np.isfinite(features).all():
            broken = np.flatnonzero(~np.isfinite(features).all(1)).tolist()
            raise ValueError(
                f'{source}: regions {broken} contain NaN or infinity, for instance for '
                f"'{self.captions_of(image)[0]}'; compute the features of this image again"
            )
        if not mask.any():
            raise ValueError(f'{source}: all regions are zero, which means padding')
        boxes = None if self.boxes is None else self._read_boxes(row)
        return Regions(torch.from_numpy(features), torch.from_numpy(mask), boxes)

    def _read_boxes(self, row: int) -> torch.Tensor:
        boxes = self.boxes[row].astype(np.float32)
        if (invalid := find_invalid_box(boxes, _MARGIN)) is not None:
            raise ValueError(
                f'{self.boxes_file}, row {row} (of {len(self.boxes)}, from 0): box {invalid} is '
                f'{boxes[invalid].tolist()}, expected x1, y1, x2, y2 as shares of width and '
                "height, in 0…1: divide by the image's"
            )
        return torch.from_numpy(boxes)

    def _map_boxes(self) -> np.ndarray | None:
        """The boxes, or None when there is no file of boxes."""
        file = self.boxes_file
        if not file.is_file():
            return None
        boxes, expected = _map_array(file, '(rows, regions, 4)'), (*self.features.shape[:2], 4)
        if boxes.shape != expected:
            raise ValueError(f'{file} is {boxes.shape}, expected {expected}, one box per region')
        return boxes


def _map_array(file: Path, layout: str) -> np.ndarray:
    """Memory-maps an array of floats with three axes."""
    try:
        array = np.load(file, mmap_mode='r')
    except Exception as error:  # the header is read by Python's own parser
        raise ValueError(
            f'{file} is not an array that NumPy can map: {shorten(str(error), 100)}'
        ) from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f'{file} has several arrays, expected one: .npy, not .npz')
    if array.ndim != 3 or array.dtype.kind != 'f' or not len(array):
        raise ValueError(f'{file} is {array.dtype} {array.shape}, expected floats {layout}')
    return array
