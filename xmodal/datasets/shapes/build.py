"""Builds the embedded world on disk."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
from tqdm import tqdm

from xmodal.datasets.shapes.class_folders import write_class_folders
from xmodal.datasets.shapes.draw import draw_scene
from xmodal.datasets.shapes.exporters import EXPORTERS
from xmodal.datasets.shapes.grammar import write_captions
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.shapes.scene import SPLITS, sample_scene
from xmodal.files import exclusive_dir

FORMAT_VERSION = 8  # raise it with every change of what a build holds
SMALLEST_IMAGE = 32


@dataclass(frozen=True)
class WorldSpec:
    """What a build holds; the same spec gives the same bytes.

    Attributes:
        train, val, test: number of scenes.
        size: side of an image, in pixels.
        seed: of everything drawn, at least 0.

    Raises:
        ValueError: for a split without scenes, or images too small to tell things apart.
    """

    train: int = 8000
    val: int = 500
    test: int = 500
    size: int = 96
    seed: int = 0

    def __post_init__(self) -> None:
        least = {'train': 1, 'val': 1, 'test': 1, 'size': SMALLEST_IMAGE, 'seed': 0}
        for name, limit in least.items():
            if getattr(self, name) < limit:
                raise ValueError(f'{name}: found {getattr(self, name)}, expected {limit} or more')

    def described(self) -> dict[str, int]:
        """The content of ``meta.json``."""
        return {'format_version': FORMAT_VERSION, **asdict(self)}


def build_world(folder: Path, spec: WorldSpec, workers: int = 2) -> bool:
    """Writes images and annotations; ``meta.json`` comes last and marks a finished build.

    Args:
        folder: where to; must be new, empty, or hold a build of the same spec.
        spec: what to build.
        workers: processes that draw.

    Returns:
        False when the same build was there already.

    Raises:
        FileExistsError: when the folder holds something else.
        RuntimeError: when another process is building there.
        ValueError: for less than one worker.
    """
    if workers < 1:
        raise ValueError(f'workers: found {workers}, expected 1 or more')
    if _is_built(folder, spec):
        return False
    with exclusive_dir(folder):
        _build(folder, spec, workers)
    return True


def _build(folder: Path, spec: WorldSpec, workers: int) -> None:
    unfinished = folder / 'unfinished.json'
    unfinished.write_text(json.dumps(spec.described()))
    # Forked workers need not import everything anew. OpenCV's own threads would only get into each
    # other's way.
    context = get_context('fork' if sys.platform == 'linux' else 'spawn')
    with context.Pool(workers, cv2.setNumThreads, (0,)) as pool:
        draw_all = partial(pool.imap, chunksize=64)
        splits = {split: _draw_split(folder, spec, split, draw_all) for split in SPLITS}
        written = pool.imap_unordered(partial(_export, folder, splits), EXPORTERS)
        for _ in tqdm(written, 'writing annotations', len(EXPORTERS), unit='format'):
            pass
    write_class_folders(folder / 'classes', spec.seed, spec.size)
    unfinished.rename(folder / 'meta.json')


def _export(folder: Path, splits: Splits, export: Callable[[Path, Splits], None]) -> None:
    """Calls an exporter, in another process."""
    export(folder, splits)


def _draw_split(
    folder: Path, spec: WorldSpec, split: str, draw_all: Callable[..., Iterable[Record]]
) -> list[Record]:
    count = getattr(spec, split)
    for part in range(0, count, 1000):
        _image_file(folder, split, part).parent.mkdir(parents=True, exist_ok=True)
    records = draw_all(partial(make_record, folder, spec, split), range(count))
    return list(tqdm(records, f'drawing {split}', count, unit='scene'))


def _image_file(folder: Path, split: str, index: int) -> Path:
    """Folders of a thousand images, which every file system and viewer copes with.

    A stem is an image's id where images are named without their folders, as regions are.
    """
    return folder / 'images' / split / f'{index // 1000:03d}' / f'{split}_{index:06d}.png'


def make_record(folder: Path, spec: WorldSpec, split: str, index: int) -> Record:
    """Draws, writes and describes one scene."""
    scene = sample_scene(spec.seed, split, index)
    image, masks = draw_scene(scene, spec.size)
    file = _image_file(folder, split, index)
    if not cv2.imwrite(str(file), image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 3]):
        raise OSError(f'{file} could not be written: is the disk full?')
    return Record(
        scene=scene,
        captions=tuple(text for text, _ in write_captions(spec.seed, split, scene)),
        boxes=tuple(_box(mask) for mask in masks),
        areas=tuple(int(mask.sum()) for mask in masks),
        size=spec.size,
        image=file.relative_to(folder / 'images').as_posix(),
    )


def _box(mask: np.ndarray) -> tuple[int, int, int, int]:
    """x, y, width and height of a mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


def _is_built(folder: Path, spec: WorldSpec) -> bool:
    """Whether the same build is finished there; an unfinished one of the same spec is redone."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    for name in ('meta.json', 'unfinished.json'):
        file = folder / name
        if file.exists():
            found = json.loads(file.read_text())
            if found == spec.described():
                return name == 'meta.json'
            raise FileExistsError(
                f'{file} is of another build: found {found}, expected {spec.described()}. Give '
                'another --out, or delete the folder yourself if it is no longer needed.'
            )
    raise FileExistsError(
        f'{folder} holds files that are no build of shapes: give another --out, a new folder.'
    )
