"""The embedded world as precomputed region features, in the layout of SCAN and SGRAF."""

from pathlib import Path

import cv2
import numpy as np

from xmodal.datasets.shapes.grammar import SPECIAL_TOKENS, vocabulary
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.regions import FEATURE_DIMS, REGIONS, describe_regions, propose_regions
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

PRECOMP_NAMES = {'train': 'train', 'val': 'dev', 'test': 'test'}


def write_precomp(folder: Path, splits: Splits) -> None:
    """``precomp/``: features, boxes, captions and ids of each split, and ``vocab.json``.

    ``SPLIT_ims.npy`` is float16 (images, 8, 259), ``SPLIT_boxes.npy`` float32 (images, 8, 4) with
    x1, y1, x2, y2 as shares of the image, ``SPLIT_caps.txt`` has five lines per image, and
    ``SPLIT_ids.txt`` one image id per line.
    """
    out = folder / 'precomp'
    out.mkdir(exist_ok=True)
    for split, records in splits.items():
        name = PRECOMP_NAMES[split]
        _write_regions(folder / 'images', out / name, split, records)
        captions = [text for record in records for text in record.captions]
        (out / f'{name}_caps.txt').write_text('\n'.join(captions) + '\n', 'utf-8')
        ids = [str(image_id(split, record)) for record in records]
        (out / f'{name}_ids.txt').write_text('\n'.join(ids) + '\n', 'utf-8')
    words = [word for word in vocabulary() if word not in SPECIAL_TOKENS]
    Vocabulary([*SPECIAL_WORDS, *words]).write(out / 'vocab.json')


def _write_regions(images: Path, prefix: Path, split: str, records: list[Record]) -> None:
    """Writes row by row, so that a world of any size fits into memory."""
    num_images = len(records)
    arrays = {'ims': (np.float16, FEATURE_DIMS), 'boxes': (np.float32, 4)}
    features, boxes = (
        np.lib.format.open_memmap(f'{prefix}_{name}.npy', 'w+', dtype, (num_images, REGIONS, width))
        for name, (dtype, width) in arrays.items()
    )
    for row, record in enumerate(records):
        regions = propose_regions(split, record)
        features[row] = describe_regions(read_scene(images, record), regions)
        boxes[row] = np.array(regions, np.float32) / record.size
    features.flush()
    boxes.flush()


def read_scene(images: Path, record: Record) -> np.ndarray:
    """The rendered image of a scene, (H, W, 3) uint8 RGB."""
    return cv2.imread(str(images / record.image))[..., ::-1]
