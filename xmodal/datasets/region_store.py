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

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.seeding import derive_seed
from xmodal.fields import read_object
from xmodal.files import explain_errors
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
LABELS = REGION.names[1:]
IMAGE = np.dtype([('width', '<i4'), ('height', '<i4'), ('end', '<i8'), ('id_end', '<i8')])
FILES = ('features.bin', 'regions.bin', 'images.bin', 'ids.bin', 'lookup.bin')


class RegionStore:
    """Reads the regions of an image by its id.

    Args:
        folder: folder that :class:`RegionStoreWriter` wrote.

    Attributes:
        feature_dims: F.
        num_regions: K, over all images.
        sources: what the writer was told about the inputs, any JSON.

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
                f'{self.folder} contains an unfinished region store: run the same command again '
                '(`xmodal extract-regions` or `xmodal regions`), which continues it'
                if is_unfinished
                else f'{self.folder} is not a region store (from {Path.cwd()}): make one of images '
                'with `xmodal extract-regions`, of files of features with `xmodal regions` '
                '(docs/regions.md), or of the embedded world with `xmodal make-shapes --out '
                'data/shapes`'
            )
        with explain_errors(
            file, 'the content that RegionStoreWriter writes: make the store again'
        ):
            meta = read_object(file)
            if meta.integer('version') != VERSION:
                raise meta.error('version', str(VERSION))
            self.feature_dims, self.num_regions, num_images, id_bytes = (
                meta.integer(key, low=1)
                for key in ('feature_dims', 'regions', 'images', 'id_bytes')
            )
            self.has_boxes, self.has_labels = meta.flag('boxes'), meta.flag('labels')
            dtype = meta.choice('dtype', ('float16', 'float32'))
            self.sources = meta.get('sources')
        self._features = self._map('features.bin', dtype, (self.num_regions, self.feature_dims))
        self._regions = self._map('regions.bin', REGION, (self.num_regions,))
        self._images = self._map('images.bin', IMAGE, (num_images,))
        self._ids = self._map('ids.bin', np.uint8, (id_bytes,))
        self._hashes, self._indices = self._map('lookup.bin', '<i8', (2, num_images))
        self._check_images()
        ends = tuple(self._images[['end', 'id_end']][-1].item())
        if ends != (self.num_regions, id_bytes):
            raise ValueError(
                f'{self.folder}/images.bin ends with {ends[0]} regions and {ends[1]} bytes of ids, '
                f'expected {self.num_regions} and {id_bytes}: make the store again'
            )

    def _check_images(self) -> None:
        """Checks what the files say of each image: a wrong place would give another's regions.

        Raises:
            ValueError: names the file.
        """
        sizes = np.minimum(self._images['width'], self._images['height'])
        lengths = [np.diff(self._images[name], prepend=0) for name in ('end', 'id_end')]
        if min(sizes.min(), *(length.min() for length in lengths)) < 1:
            raise ValueError(
                f'{self.folder}/images.bin has an image without size, regions or id: it was '
                'changed after the store was made; make the store again'
            )
        is_sorted = (self._hashes[1:] > self._hashes[:-1]).all()
        if not (is_sorted and np.array_equal(np.sort(self._indices), np.arange(len(self)))):
            raise ValueError(
                f'{self.folder}/lookup.bin does not list each image once: it was changed after the '
                'store was made; make the store again'
            )

    def __reduce__(self) -> tuple:
        # A worker process maps the files again instead of receiving their content.
        return RegionStore, (self.folder,)

    @property
    def views(self) -> int:
        """K: each image and K - 1 random crops of it (``extract_regions.py --views K``)."""
        return self.sources.get('views', 1) if isinstance(self.sources, dict) else 1

    def __len__(self) -> int:
        return len(self._images)

    def __contains__(self, image_id: str) -> bool:
        return self._find(image_id) is not None

    def __getitem__(self, image_id: str) -> Regions:
        """The regions of an image, features float32 (R, F), boxes as shares of the image.

        Raises:
            KeyError: when the store does not have the image.
            ValueError: when a number of its regions is not finite.
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
            types = zip(LABELS, (np.int64, np.float32) * 2, strict=True)
            labels = ObjectLabels(*(torch.from_numpy(regions[n].astype(t)) for n, t in types))
        features = torch.from_numpy(np.array(self._features[rows], np.float32))
        if not (features.isfinite().all() and (boxes is None or boxes.isfinite().all())):
            raise ValueError(
                f'{self.folder}: features or boxes of image {image_id} contain NaN or infinity; '
                'make the store again'
            )
        return Regions(features, torch.ones(len(features), dtype=torch.bool), boxes, labels)

    def image_id(self, index: int) -> str:
        """The id of an image, by its index in the order of writing."""
        first = int(self._images['id_end'][index - 1]) if index else 0
        content = self._ids[first : int(self._images['id_end'][index])].tobytes()
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f'{self.folder}/ids.bin has an id that is not UTF-8: it was changed after the '
                'store was made; make the store again'
            ) from error

    def images(self) -> Iterator[DetectedImage]:
        """All images in the order in which they were written, boxes in pixels."""
        for index, image in enumerate(self._images):
            rows = self._rows(index)
            regions = self._regions[rows]
            yield DetectedImage(
                self.image_id(index),
                int(image['width']),
                int(image['height']),
                np.array(self._features[rows]),
                regions['box'].copy() if self.has_boxes else None,
                ObjectLabels(*(regions[n].copy() for n in LABELS)) if self.has_labels else None,
            )

    def _map(self, name: str, dtype: str | np.dtype | type, shape: tuple[int, ...]) -> np.ndarray:
        file, dtype = self.folder / name, np.dtype(dtype)
        size, expected = file.stat().st_size, dtype.itemsize * math.prod(shape)
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
    """Opens one or more stores, or those in the folders of one: processes write one each.

    Raises:
        ValueError: when their features have different widths, or two have the same image id.
    """
    names = [folders] if isinstance(folders, str) else folders
    parts = [sorted(Path(name).glob('part_*')) or [name] for name in names]
    stores = [RegionStore(part) for group in parts for part in group]
    widths = {store.feature_dims: str(store.folder) for store in stores}
    if len(widths) > 1:
        raise ValueError(f'region stores whose features have different widths: {widths}')
    if len(stores) > 1:
        _require_different_ids(stores)
    return stores


def _require_different_ids(stores: list[RegionStore]) -> None:
    """Refuses an id of two stores, whose images need not be the same: 'cats/001', 'dogs/001'."""
    hashes = np.concatenate([store._hashes for store in stores])
    owners = np.repeat(np.arange(len(stores)), [len(store) for store in stores])
    order = np.argsort(hashes)
    repeated = np.flatnonzero(np.diff(hashes[order]) == 0)
    if len(repeated):
        first, second = (stores[n] for n in sorted(owners[order[repeated[0] : repeated[0] + 2]]))
        place = np.searchsorted(first._hashes, hashes[order[repeated[0]]])
        raise ValueError(
            f'{first.folder} and {second.folder} both have an image '
            f"'{first.image_id(int(first._indices[place]))}' ({len(repeated)} such ids): an id "
            'names one image. Leave one of the stores out, or give each a dataset of its own'
        )
