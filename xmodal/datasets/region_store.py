"""Regions of many images in a few memory-mapped files.

A folder has, for N images with K regions in total:

==================  ==================================================================
``store.json``      what is stored; it exists when the store is complete
``features.bin``    float32 or float16, (K, F)
``regions.bin``     box and labels of each region, :data:`REGION`, (K,)
``images.bin``      size of each image and the end of its regions, :data:`IMAGE`, (N,)
``ids.bin``         the concatenated ids of the images, UTF-8
``lookup.bin``      sorted hashes of the ids, and the indices of their images, int64 (2, N)
``progress.json``   while the store is being written: the progress
==================  ==================================================================

Processes share the pages that they read, and opening a store reads no features.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from xmodal.datasets.boxes import find_invalid_box
from xmodal.datasets.seeding import derive_seed
from xmodal.files import explain_errors, read_json
from xmodal.structures import ObjectLabels, Regions

VERSION = 1
REGION = np.dtype(
    [
        ('box', '<f4', 4),
        ('object', '<i4'),
        ('object_confidence', '<f4'),
        ('attribute', '<i4'),
        ('attribute_confidence', '<f4'),
    ]
)
IMAGE = np.dtype([('width', '<i4'), ('height', '<i4'), ('end', '<i8'), ('id_end', '<i8')])
FILES = ('features.bin', 'regions.bin', 'images.bin', 'ids.bin', 'lookup.bin')
_MARGIN = 1e-5  # how far a box may leave the image, as a share of it: rounding, as LXMERT


class DetectedImage(NamedTuple):
    """A detector's output for one image with R regions.

    Attributes:
        image_id: id of the image, usually the stem of its file name.
        width, height: size of the image, in the unit of the boxes.
        features: (R, F).
        boxes: x1, y1, x2, y2 in pixels, (R, 4); None when unknown.
        labels: :class:`ObjectLabels` of arrays (R,); None when unknown.
    """

    image_id: str
    width: int
    height: int
    features: np.ndarray
    boxes: np.ndarray | None = None
    labels: ObjectLabels | None = None

    def check(self) -> None:
        """Checks that all fields match.

        Raises:
            ValueError: says what is wrong.
        """
        num_regions = len(self.features)
        if not self.image_id or not num_regions or self.width < 1 or self.height < 1:
            raise ValueError(
                f'image {self.image_id!r} of {self.width} × {self.height} has {num_regions} '
                'regions: expected an id, a size and at least one region'
            )
        arrays = {'features': self.features, 'boxes': self.boxes}
        arrays |= {} if self.labels is None else self.labels._asdict()
        for name, array in arrays.items():
            if array is None:
                continue
            if len(array) != num_regions:
                raise ValueError(f'{len(array)} {name} for {num_regions} regions')
            if not np.isfinite(array).all():
                raise ValueError(f'{name} of image {self.image_id} contain NaN or infinity')
        if self.boxes is not None:
            self._check_boxes()
        if self.labels is not None:
            for name, array in self.labels._asdict().items():
                low, high = array.min(), array.max()
                if low < 0 or (name.endswith('confidences') and high > 1 + _MARGIN):
                    raise ValueError(
                        f'{name} of image {self.image_id} range from {low} to {high}, expected '
                        'values from 0, and confidences up to 1'
                    )

    def _check_boxes(self) -> None:
        shares = self.boxes / np.tile((self.width, self.height), 2)
        if (invalid := find_invalid_box(shares, _MARGIN)) is not None:
            raise ValueError(
                f'box {invalid} of image {self.image_id} is {self.boxes[invalid].tolist()}, '
                f'expected x1, y1, x2, y2 in an image of {self.width} × {self.height}'
            )


class RegionStore:
    """Reads the regions of an image by its id.

    Args:
        folder: folder that :class:`RegionStoreWriter` wrote.

    Attributes:
        feature_dims: F.
        num_regions: K, over all images.

    Raises:
        FileNotFoundError: when there is no store, or it is unfinished.
        ValueError: when the store has another version, or one of its files another size.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        file = self.folder / 'store.json'
        if not file.is_file():
            is_unfinished = (self.folder / 'progress.json').is_file()
            raise FileNotFoundError(
                f'{self.folder} contains an unfinished region store: run the same command of '
                'tools/dataset_converters/regions.py again, which continues it'
                if is_unfinished
                else f'{self.folder} is not a region store (from {Path.cwd()}): make one with '
                'tools/dataset_converters/regions.py (docs/regions.md); for the embedded world '
                'run `python tools/make_shapes.py --out data/shapes`'
            )
        with explain_errors(
            file, 'the content that RegionStoreWriter writes: make the store again'
        ):
            meta = read_json(file)
            if meta['version'] != VERSION:
                raise ValueError(f'it has version {meta["version"]}, expected {VERSION}')
            self.feature_dims, self.num_regions = meta['feature_dims'], meta['regions']
            self.has_boxes, self.has_labels = meta['boxes'], meta['labels']
            num_images, id_bytes, dtype = meta['images'], meta['id_bytes'], meta['dtype']
        self._features = self._map('features.bin', dtype, (self.num_regions, self.feature_dims))
        self._regions = self._map('regions.bin', REGION, (self.num_regions,))
        self._images = self._map('images.bin', IMAGE, (num_images,))
        self._ids = self._map('ids.bin', np.uint8, (id_bytes,))
        self._hashes, self._indices = self._map('lookup.bin', '<i8', (2, num_images))

    def __reduce__(self) -> tuple:
        # A worker process maps the files again instead of receiving their content.
        return RegionStore, (self.folder,)

    def __len__(self) -> int:
        return len(self._images)

    def __contains__(self, image_id: str) -> bool:
        return self._find(image_id) is not None

    def __getitem__(self, image_id: str) -> Regions:
        """The regions of an image, features float32 (R, F), boxes as shares of the image.

        Raises:
            KeyError: when the store does not have the image.
        """
        index = self._find(image_id)
        if index is None:
            raise KeyError(image_id)
        rows, image = self._rows(index), self._images[index]
        regions = self._regions[rows]
        boxes = labels = None
        if self.has_boxes:
            # Divided in float32, as LXMERT does.
            size = np.array([image['width'], image['height']] * 2, np.float32)
            boxes = torch.from_numpy(regions['box'] / size)
        if self.has_labels:
            labels = ObjectLabels(
                torch.from_numpy(regions['object'].astype(np.int64)),
                torch.from_numpy(regions['object_confidence'].copy()),
                torch.from_numpy(regions['attribute'].astype(np.int64)),
                torch.from_numpy(regions['attribute_confidence'].copy()),
            )
        features = torch.from_numpy(np.array(self._features[rows], np.float32))
        return Regions(features, torch.ones(len(features), dtype=torch.bool), boxes, labels)

    def image_id(self, index: int) -> str:
        """The id of an image, by its index in the order of writing."""
        first = int(self._images['id_end'][index - 1]) if index else 0
        return self._ids[first : int(self._images['id_end'][index])].tobytes().decode()

    def images(self) -> Iterator[DetectedImage]:
        """All images in the order in which they were written, boxes in pixels."""
        for index, image in enumerate(self._images):
            rows = self._rows(index)
            regions = self._regions[rows]
            names = ('object', 'object_confidence', 'attribute', 'attribute_confidence')
            yield DetectedImage(
                self.image_id(index),
                int(image['width']),
                int(image['height']),
                np.array(self._features[rows]),
                regions['box'].copy() if self.has_boxes else None,
                ObjectLabels(*(regions[n].copy() for n in names)) if self.has_labels else None,
            )

    def _map(self, name: str, dtype: str | np.dtype | type, shape: tuple[int, ...]) -> np.ndarray:
        file, dtype = self.folder / name, np.dtype(dtype)
        size, expected = file.stat().st_size, dtype.itemsize * int(np.prod(shape))
        if size != expected:
            raise ValueError(
                f'{file} has {size} bytes, expected {expected}: it was truncated or changed after '
                'the store was made; make the store again'
            )
        return np.memmap(file, dtype, 'r', shape=shape).view(np.ndarray)

    def _rows(self, index: int) -> slice:
        """The rows of the regions of an image."""
        first = int(self._images['end'][index - 1]) if index else 0
        return slice(first, int(self._images['end'][index]))

    def _find(self, image_id: str) -> int | None:
        """Index of an image, by its id."""
        id_hash = derive_seed(image_id)
        position = int(np.searchsorted(self._hashes, id_hash))
        if position == len(self) or self._hashes[position] != id_hash:
            return None
        index = int(self._indices[position])
        return index if self.image_id(index) == image_id else None


def open_stores(folders: str | Sequence[str]) -> list[RegionStore]:
    """Opens one or more stores.

    Raises:
        ValueError: when their features have different widths.
    """
    names = [folders] if isinstance(folders, str) else folders
    stores = [RegionStore(name) for name in names]
    widths = {store.feature_dims: str(store.folder) for store in stores}
    if len(widths) > 1:
        raise ValueError(f'region stores whose features have different widths: {widths}')
    return stores
