"""Writes a region store image by image, and continues where a killed process stopped."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_store import FILES, IMAGE, LABELS, REGION, VERSION
from xmodal.datasets.seeding import derive_seed
from xmodal.fields import Fields
from xmodal.files import exclusive_dir, explain_errors, read_json, write_json

_CONTENT = 'the content that RegionStoreWriter writes: delete the folder and start again'
DTYPES = ('float32', 'float16')


class RegionStoreWriter:
    """Writes the files of a :class:`xmodal.datasets.region_store.RegionStore`.

    Only ids are kept in memory. ``checkpoint`` records the progress. After a process was killed, a
    writer with the same arguments keeps everything up to the last checkpoint.

    Args:
        folder: output folder; new, empty, or with an unfinished store of the same arguments.
        sources: description that identifies the inputs, for instance paths and sizes.
        dtype: dtype of the features on disk.

    Attributes:
        position: the argument of the last ``checkpoint``; None at the start.

    Raises:
        FileExistsError: when the folder contains anything else.
        RuntimeError: when another process is writing to it.
        ValueError: for another dtype.
    """

    def __init__(self, folder: Path, sources: object, dtype: str = 'float32') -> None:
        if dtype not in DTYPES:
            raise ValueError(f'dtype={dtype!r}, expected one of {DTYPES}')
        self.folder, self.dtype = folder, np.dtype(dtype)
        self._arguments = _as_stored(sources, dtype)
        self._progress_file = folder / 'progress.json'
        self._lock = ExitStack()
        self._lock.enter_context(exclusive_dir(folder))
        try:
            with explain_errors(self._progress_file, _CONTENT):
                progress = Fields(self._read_progress())
                self.position = progress.get('position')
                self.images, self.regions, self.id_bytes = (
                    progress.integer(name, 0, low=0) for name in ('images', 'regions', 'id_bytes')
                )
                self._layout = _read_layout(progress)
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> 'RegionStoreWriter':
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()
        self._lock.close()

    def append(self, image: DetectedImage) -> None:
        """Checks and adds an image.

        Raises:
            ValueError: says what is wrong with the image, which is not added.
        """
        image.check()
        layout = (image.features.shape[1], image.boxes is not None, image.labels is not None)
        if self._layout is not None and layout != self._layout:
            raise ValueError(
                f'image {image.image_id} has (width of features, boxes, labels) = {layout}, and '
                f'the images before it {self._layout}: all images of a store must be alike'
            )
        id_hash = derive_seed(image.image_id)
        if id_hash in self._hashes:
            raise ValueError(f'image {image.image_id} is already in the store')
        self._layout = layout
        with np.errstate(over='ignore'):
            features = image.features.astype(self.dtype)
        if not np.isfinite(features).all():
            raise ValueError(
                f'features of image {image.image_id} reach {np.abs(image.features).max():g}, too '
                f'large for {self.dtype}: store them in float32'
            )
        self._files['features.bin'].write(features.tobytes())
        self._files['regions.bin'].write(_pack(image).tobytes())
        self.id_bytes += self._files['ids.bin'].write(image.image_id.encode())
        self.regions += len(features)
        row = np.array((image.width, image.height, self.regions, self.id_bytes), IMAGE)
        self._files['images.bin'].write(row.tobytes())
        self._hashes[id_hash] = self.images
        self.images += 1

    def checkpoint(self, position: object) -> None:
        """Saves the progress; ``position``, any JSON, says where the sources continue."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self.position = position
        counts = {name: getattr(self, name) for name in ('images', 'regions', 'id_bytes')}
        write_json(
            self._progress_file,
            {**self._arguments, **counts, 'kind': self._layout, 'position': position},
        )

    def finish(self) -> None:
        """Completes the store.

        Raises:
            ValueError: when it has no image.
        """
        if not self.images:
            raise ValueError(f'{self.folder}: it has no image')
        self.checkpoint(self.position)
        hashes = np.fromiter(self._hashes, '<i8', self.images)
        order = np.argsort(hashes)
        np.stack([hashes[order], order]).astype('<i8').tofile(self.folder / 'lookup.bin')
        feature_dims, boxes, labels = self._layout
        meta = {
            'version': VERSION,
            'images': self.images,
            'regions': self.regions,
            'id_bytes': self.id_bytes,
            'feature_dims': feature_dims,
            'boxes': boxes,
            'labels': labels,
            **self._arguments,
        }
        write_json(self.folder / 'store.json', meta, indent=1)
        self._progress_file.unlink()

    def _read_progress(self) -> dict:
        """The content of ``progress.json``; empty for a new store."""
        names = sorted(file.name for file in self.folder.iterdir())
        if 'store.json' in names:
            raise FileExistsError(
                f'{self.folder} contains a finished region store: give another folder, or delete '
                'it yourself if it is no longer needed'
            )
        if not self._progress_file.is_file():
            if names:
                raise FileExistsError(
                    f'{self.folder} contains {names[0]} and no unfinished region store: give a new '
                    'or empty folder'
                )
            write_json(self._progress_file, self._arguments)
            return {}
        progress = read_json(self._progress_file)
        if not _has_arguments(progress, self._arguments):
            raise FileExistsError(
                f'{self.folder} contains an unfinished store of other sources or options: found '
                f'{progress.get("sources")} in {progress.get("dtype")}, expected '
                f'{self._arguments["sources"]} in {self.dtype}. Give another folder, or delete it '
                'yourself'
            )
        return progress

    def _open(self) -> None:
        """Opens the files at the end of the data of the last checkpoint."""
        width = self._layout[0] if self._layout else 0
        ends = {
            'features.bin': self.regions * width * self.dtype.itemsize,
            'regions.bin': self.regions * REGION.itemsize,
            'images.bin': self.images * IMAGE.itemsize,
            'ids.bin': self.id_bytes,
        }
        self._files = {}
        for name in FILES[:4]:
            file = self.folder / name
            file.touch()
            if file.stat().st_size < ends[name]:
                raise ValueError(
                    f'{file} has {file.stat().st_size} bytes, expected {ends[name]} or more by '
                    'progress.json: delete the folder and start again'
                )
            self._files[name] = open(file, 'r+b')
            self._files[name].truncate(ends[name])
            self._files[name].seek(ends[name])
        self._hashes = dict.fromkeys(map(derive_seed, self._written_ids()))

    def _written_ids(self) -> list[str]:
        """The ids of the images up to the last checkpoint."""
        ends = np.fromfile(self.folder / 'images.bin', IMAGE)['id_end']
        content = (self.folder / 'ids.bin').read_bytes()
        starts = [0, *ends[:-1]]
        return [content[first:end].decode() for first, end in zip(starts, ends, strict=False)]


def is_finished(folder: Path, sources: object, dtype: str) -> bool:
    """Whether a folder has the whole store that a writer of the same arguments has finished."""
    file = folder / 'store.json'
    if not file.is_file():
        return False
    with explain_errors(file, _CONTENT):
        return _has_arguments(read_json(file), _as_stored(sources, dtype))


def _as_stored(sources: object, dtype: str) -> dict:
    """The arguments of a writer as JSON has them, which knows no tuples."""
    return json.loads(json.dumps({'sources': sources, 'dtype': dtype}))


def _has_arguments(content: object, arguments: dict) -> bool:
    return {name: Fields(content).get(name) for name in arguments} == arguments


def _read_layout(progress: Fields) -> tuple[int, bool, bool] | None:
    """Width of the features, and whether there are boxes and labels; None before any image."""
    layout = progress.items('kind', None)
    if layout is None and not progress.integer('images', 0):
        return None
    if layout is None or list(map(type, layout)) != [int, bool, bool] or layout[0] < 1:
        raise progress.error('kind', 'the width of the features, and two of true or false')
    return tuple(layout)


def _pack(image: DetectedImage) -> np.ndarray:
    """Boxes and labels as stored, zeros where unknown."""
    packed = np.zeros(len(image.features), REGION)
    if image.boxes is not None:
        packed['box'] = image.boxes
    if image.labels is not None:
        for name, array in zip(LABELS, image.labels, strict=True):
            packed[name] = array
    return packed
