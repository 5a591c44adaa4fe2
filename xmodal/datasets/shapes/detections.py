"""The embedded world as LXMERT's region features: a detector's labels of each region, as TSV.

Classes are the shapes; attributes are a colour with a texture. Like a real detector it is not
always right, and its confidence shows this. The confidence is the overlap of the box with the
object. It is low where there is no object, since some class has the highest score there as well.
One label in twenty is wrong.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torchvision.ops import box_iou

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_tsv import read_region_tsv, write_region_tsv
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.shapes.precomp import PRECOMP_NAMES, read_scene
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.shapes.regions import FEATURE_DIMS, Region, describe_regions, propose_regions
from xmodal.datasets.shapes.scene import COLOURS, SHAPES, TEXTURES
from xmodal.structures import ObjectLabels

#: A class id is an index into one of these; their lengths are the widths of a model's heads.
OBJECTS = SHAPES  # 8
ATTRIBUTES = tuple(f'{texture} {colour}' for colour in COLOURS for texture in TEXTURES)  # 48
_ERROR_RATE = 0.05
_MIN_OVERLAP = 0.3  # IoU from which on a region shows an object


def write_detections(folder: Path, splits: Splits) -> None:
    """``regions/``: ``SPLIT_obj36.tsv``, names of classes and attributes, and one store of all.

    Features are those of ``precomp/``, which must exist, standardised over the regions of the
    training split: otherwise nine tenths of each feature would be common to all regions. The id of
    an image is the stem of its file name.
    """
    out = folder / 'regions'
    shutil.rmtree(out, ignore_errors=True)  # from an interrupted build
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


def write_skill_regions(folder: Path, records: list[Record]) -> None:
    """``skills/store``: the regions of the images of minimal pairs, as those of ``regions/store``.

    Args:
        folder: of the world, with ``precomp/`` and the images of ``skills/``.
        records: the scenes of these images.
    """
    out = folder / 'skills' / 'store'
    shutil.rmtree(out, ignore_errors=True)  # from an interrupted build
    images, statistics = folder / 'skills' / 'images', _feature_statistics(folder / 'precomp')
    with RegionStoreWriter(out, {'images': len(records)}, 'float16') as writer:
        for record in records:
            regions = propose_regions('skills', record)
            features = describe_regions(read_scene(images, record), regions)
            writer.append(_detect('skills', record, regions, features, statistics))
        writer.finish()


def _feature_statistics(precomp: Path) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the training features, (F,) each."""
    features = np.load(precomp / f'{PRECOMP_NAMES["train"]}_ims.npy', mmap_mode='r')
    rows = features.reshape(-1, FEATURE_DIMS)
    # The minimum keeps values that hardly vary from becoming as large as the others.
    return rows.mean(0, np.float64), rows.std(0, np.float64).clip(min=0.02)


def _detect_all(
    precomp: Path, split: str, records: list[Record], statistics: tuple[np.ndarray, np.ndarray]
) -> Iterator[DetectedImage]:
    """The regions of each scene of a split, with the features from disk."""
    features = np.load(precomp / f'{PRECOMP_NAMES[split]}_ims.npy', mmap_mode='r')
    for image_features, record in zip(features, records, strict=True):
        regions = propose_regions(split, record)
        yield _detect(split, record, regions, image_features, statistics)


def _detect(
    split: str,
    record: Record,
    regions: list[Region],
    features: np.ndarray,
    statistics: tuple[np.ndarray, np.ndarray],
) -> DetectedImage:
    """The regions of a scene, with their features standardised."""
    mean, deviation = statistics
    return DetectedImage(
        Path(record.image).stem,
        record.size,
        record.size,
        ((features - mean) / deviation).astype(np.float32),
        np.array(regions, np.float32),
        label_regions(split, record, regions),
    )


def label_regions(split: str, record: Record, regions: list[Region]) -> ObjectLabels:
    """Class, attribute and confidences of regions, arrays (R,)."""
    rng = np.random.default_rng(derive_seed('detections', split, record.scene))
    boxes = [(x, y, x + width, y + height) for x, y, width, height in record.boxes]
    overlaps = box_iou(*(torch.tensor(x, dtype=torch.float64) for x in (regions, boxes))).tolist()
    labels = [_label(record, max(row), row.index(max(row)), rng) for row in overlaps]
    types = (np.int64, np.float32, np.int64, np.float32)
    columns = zip(*labels, strict=True)
    return ObjectLabels(*(np.array(c, t) for c, t in zip(columns, types, strict=True)))


def _label(
    record: Record, overlap: float, nearest: int, rng: np.random.Generator
) -> tuple[int, float, int, float]:
    """Class, its confidence, attribute, its confidence."""
    obj = record.scene.objects[nearest]
    true_labels = OBJECTS.index(obj.shape), ATTRIBUTES.index(f'{obj.texture} {obj.colour}')
    labels: list[float] = []
    for true_label, classes in zip(true_labels, (OBJECTS, ATTRIBUTES), strict=True):
        is_correct = overlap >= _MIN_OVERLAP and rng.random() >= _ERROR_RATE
        confidence = overlap if is_correct else rng.uniform(0.02, 0.3)
        labels += [true_label if is_correct else int(rng.integers(len(classes))), confidence]
    return tuple(labels)
