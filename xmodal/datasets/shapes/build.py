"""Builds the embedded world on disk."""

import json
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import cv2
from tqdm import tqdm

from xmodal.datasets.image_file import write_image
from xmodal.datasets.shapes.captions import generate_captions
from xmodal.datasets.shapes.class_folders import write_class_folders
from xmodal.datasets.shapes.detections import write_skill_regions
from xmodal.datasets.shapes.exporters import EXPORTERS
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import SPLITS, sample_scene
from xmodal.datasets.shapes.skills import write_skills
from xmodal.files import exclusive_dir, name_in_errors

FORMAT_VERSION = 11  # increase it with every change of the content of a build
SMALLEST_IMAGE = 32
LARGEST_IMAGE = 4096


@dataclass(frozen=True)
class WorldSpec:
    """The content of a build; the same spec gives the same bytes.

    Attributes:
        train, val, test: number of scenes.
        size: side of an image, in pixels.
        seed: seed of all random choices, at least 0.

    Raises:
        ValueError: for a split without scenes, or images too small to distinguish objects.
    """

    train: int = 8000
    val: int = 500
    test: int = 500
    size: int = 96
    seed: int = 0

    def __post_init__(self) -> None:
        minimum = {'train': 1, 'val': 1, 'test': 1, 'size': SMALLEST_IMAGE, 'seed': 0}
        for name, limit in minimum.items():
            if getattr(self, name) < limit:
                raise ValueError(f'{name}: found {getattr(self, name)}, expected {limit} or more')
        if self.size > LARGEST_IMAGE:
            raise ValueError(f'size: found {self.size}, expected {LARGEST_IMAGE} or less')

    def to_meta(self) -> dict[str, int]:
        """The content of ``meta.json``."""
        return {'format_version': FORMAT_VERSION, **asdict(self)}


def build_world(folder: Path, spec: WorldSpec, workers: int) -> bool:
    """Writes images and annotations; ``meta.json`` is written last and marks a finished build.

    Args:
        folder: output folder; must be new, empty, or contain a build of the same spec.
        spec: the content of the build.
        workers: number of processes that render.

    Returns:
        False when the folder already contained the same build.

    Raises:
        FileExistsError: when the folder contains anything else.
        RuntimeError: when another process is building in it.
        ValueError: for less than one worker.
    """
    if workers < 1:
        raise ValueError(f'workers: found {workers}, expected 1 or more')
    if _is_built(folder, spec):
        return False
    with exclusive_dir(folder):
        with name_in_errors(folder):
            _build(folder, spec, workers)
    return True


def _build(folder: Path, spec: WorldSpec, workers: int) -> None:
    unfinished = folder / 'unfinished.json'
    unfinished.write_text(json.dumps(spec.to_meta()))
    # Forked workers do not have to import everything again. OpenCV's threads would only slow each
    # other down.
    context = get_context('fork' if sys.platform == 'linux' else 'spawn')
    with context.Pool(workers, _prepare_worker) as pool:
        parallel_map = partial(pool.imap, chunksize=64)
        splits = {split: _render_split(folder, spec, split, parallel_map) for split in SPLITS}
        written = pool.imap_unordered(partial(_export, folder, splits), EXPORTERS)
        for _ in tqdm(written, 'writing annotations', len(EXPORTERS), unit='format'):
            pass
        pool.close()
        pool.join()
    write_class_folders(folder / 'classes', spec.seed, spec.size)
    skills = write_skills(folder / 'skills', spec.seed, spec.test, spec.size)
    write_skill_regions(folder, skills)
    unfinished.rename(folder / 'meta.json')


def _prepare_worker() -> None:
    """Sets up a worker, which must not keep a signal handler of the process that forks it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    cv2.setNumThreads(0)


def _export(folder: Path, splits: Splits, export: Callable[[Path, Splits], None]) -> None:
    """Calls an exporter in another process."""
    export(folder, splits)


def _render_split(
    folder: Path, spec: WorldSpec, split: str, parallel_map: Callable[..., Iterable[Record]]
) -> list[Record]:
    count = getattr(spec, split)
    for first in range(0, count, 1000):
        _image_file(folder, split, first).parent.mkdir(parents=True, exist_ok=True)
    records = parallel_map(partial(make_record, folder, spec, split), range(count))
    return list(tqdm(records, f'rendering {split}', count, unit='scene'))


def _image_file(folder: Path, split: str, index: int) -> Path:
    """The path of an image; a folder has a thousand images, for file systems and viewers.

    The stem is the id of the image in formats without folders, such as region features.
    """
    return folder / 'images' / split / f'{index // 1000:03d}' / f'{split}_{index:06d}.png'


def make_record(folder: Path, spec: WorldSpec, split: str, index: int) -> Record:
    """Samples and renders one scene, writes its image and generates its captions."""
    scene = sample_scene(spec.seed, split, index)
    image, masks = render_scene(scene, spec.size)
    file = _image_file(folder, split, index)
    write_image(file, image)
    captions = tuple(text for text, _ in generate_captions(spec.seed, split, scene))
    name = file.relative_to(folder / 'images').as_posix()
    return Record.rendered(scene, captions, masks, spec.size, name)


def _is_built(folder: Path, spec: WorldSpec) -> bool:
    """Whether the folder has a finished build of the spec; an unfinished one is built again."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    for name in ('meta.json', 'unfinished.json'):
        file = folder / name
        if file.exists():
            meta = json.loads(file.read_text())
            if meta == spec.to_meta():
                return name == 'meta.json'
            raise FileExistsError(
                f'{file} belongs to another build: found {meta}, expected {spec.to_meta()}. Give '
                'another --out, or delete the folder yourself if it is no longer needed.'
            )
    raise FileExistsError(
        f'{folder} contains files that are not a build of shapes: give a new folder as --out.'
    )
