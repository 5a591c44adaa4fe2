"""The embedded world as LXMERT's region features: what a detector says of each region, as TSV.

Classes are the shapes, attributes a colour with a texture. Like a detector it is not always right,
and its confidence tells: it follows how well the box fits the thing, is low where there is no thing
(some class comes first there, too), and one label in twenty is another.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xmodal.datasets.region_store import DetectedImage
from xmodal.datasets.region_tsv import read_region_tsv, write_region_tsv
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.precomp import PRECOMP_NAMES
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.shapes.regions import FEATURE_DIMS, Region, propose_regions
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, TEXTURES
from xmodal.structures import ObjectLabels

#: A class id is a place in one of these: what a model's heads are as wide as.
OBJECTS = SHAPES  # 8
ATTRIBUTES = tuple(f'{texture} {colour}' for colour in COLOURS for texture in TEXTURES)  # 48
_MISTAKES = 0.05
_SEEN = 0.3  # least overlap (IoU) with a thing at which a region shows it


def write_detections(folder: Path, splits: Splits) -> None:
    """``regions/``: ``SPLIT_obj36.tsv``, names of classes and attributes, and the store of all.

    Features are those of ``precomp/``, which must be there, standardised over the regions of the
    training split: without it nine tenths of each are what all regions have in common. An image's
    id is the stem of its file.
    """
    out = folder / 'regions'
    shutil.rmtree(out, ignore_errors=True)  # of a build that was interrupted
    out.mkdir()
    for name, classes in (('objects', OBJECTS), ('attributes', ATTRIBUTES)):
        (out / f'{name}_vocab.txt').write_text('\n'.join(classes) + '\n', 'utf-8')
    files = [out / f'{split}_obj36.tsv' for split in splits]
    statistics = _feature_statistics(folder / 'precomp')
    for file, (split, records) in zip(files, splits.items(), strict=True):
        write_region_tsv(file, _detect_all(folder / 'precomp', split, records, statistics))
    names = [file.name for file in files]
    with RegionStoreWriter(out / 'store', {'files': names}, 'float16') as writer:
        for file in files:
            for image, _ in read_region_tsv(file, FEATURE_DIMS):
                writer.append(image)
        writer.finish()


def _feature_statistics(precomp: Path) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the training features, (F,) each."""
    features = np.load(precomp / f'{PRECOMP_NAMES["train"]}_ims.npy', mmap_mode='r')
    rows = features.reshape(-1, FEATURE_DIMS)
    # What hardly ever differs is no signal to make as large as the rest.
    return rows.mean(0, np.float64), rows.std(0, np.float64).clip(min=0.02)


def _detect_all(
    precomp: Path, split: str, records: list[Record], statistics: tuple[np.ndarray, np.ndarray]
) -> Iterator[DetectedImage]:
    """The regions of each scene of a split, with the features on disk."""
    features = np.load(precomp / f'{PRECOMP_NAMES[split]}_ims.npy', mmap_mode='r')
    mean, deviation = statistics
    for own, record in zip(features, records, strict=True):
        regions = propose_regions(split, record)
        boxes = np.array([region.box for region in regions], np.float32)
        yield DetectedImage(
            Path(record.image).stem,
            record.size,
            record.size,
            ((own - mean) / deviation).astype(np.float32),
            boxes,
            label_regions(split, record, regions),
        )


def label_regions(split: str, record: Record, regions: list[Region]) -> ObjectLabels:
    """Class, attribute and confidences of regions, arrays (R,)."""
    rng = np.random.default_rng(derive_seed('detections', split, record.scene))
    things = [(x, y, x + width, y + height) for x, y, width, height in record.boxes]
    overlaps = [[_overlap(region.box, thing) for thing in things] for region in regions]
    labels = [_label(record, max(own), own.index(max(own)), rng) for own in overlaps]
    types = (np.int64, np.float32, np.int64, np.float32)
    columns = zip(*labels, strict=True)
    return ObjectLabels(*(np.array(c, t) for c, t in zip(columns, types, strict=True)))


def _overlap(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Intersection over union of two boxes x1, y1, x2, y2."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return common / (areas - common)


def _label(
    record: Record, overlap: float, nearest: int, rng: np.random.Generator
) -> tuple[int, float, int, float]:
    """Class, its confidence, attribute, its confidence."""
    thing = record.scene.things[nearest]
    true = OBJECTS.index(thing.shape), ATTRIBUTES.index(f'{thing.texture} {thing.colour}')
    found: list[float] = []
    for right, classes in zip(true, (OBJECTS, ATTRIBUTES), strict=True):
        known = overlap >= _SEEN and rng.random() >= _MISTAKES
        confidence = overlap if known else rng.uniform(0.02, 0.3)
        found += [right if known else int(rng.integers(len(classes))), confidence]
    return tuple(found)
