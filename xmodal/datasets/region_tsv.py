"""LXMERT's published region features, ``train2014_obj36.tsv`` and similar files.

One line per image, ten columns without a header: id, height, width, objects, their confidences,
attributes, their confidences, number of boxes, boxes, features. The arrays are base64 of raw
little-endian numbers. Their type follows from their size: ids are int32 or int64, all others
float32 or float64 (features also float16), depending on the extractor's platform. Cells that
Python 3 wrote as ``b'…'`` can be read as well.
"""

import base64
import binascii
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.json_stream import at_line, read_lines
from xmodal.files import explain_errors
from xmodal.structures import ObjectLabels

COLUMNS = (
    'img_id',
    'img_h',
    'img_w',
    'objects_id',
    'objects_conf',
    'attrs_id',
    'attrs_conf',
    'num_boxes',
    'boxes',
    'features',
)
_LAYOUT = f'one image a line in {len(COLUMNS)} columns: {", ".join(COLUMNS)}'
_INTEGERS = {4: '<i4', 8: '<i8'}
_FLOATS = {4: '<f4', 8: '<f8'}
_FEATURES = {2: '<f2', **_FLOATS}


def read_region_tsv(
    file: Path, feature_dims: int = 2048, start: int = 0
) -> Iterator[tuple[DetectedImage, int]]:
    """Yields the images of a file, each with the byte offset of the next one.

    Args:
        file: the file.
        feature_dims: width of the features, from which the type of their numbers follows.
        start: byte offset to start from, the beginning of a line.

    Raises:
        ValueError: names file and line, counted from ``start``, that cannot be read.
    """
    offset, after = start, f' after byte {start}' if start else ''
    with explain_errors(file, _LAYOUT, lambda: after):
        for line_number, line in read_lines(file, start):
            offset += len(line)
            if line.strip():
                with at_line(line_number):
                    image = _read_line(line, feature_dims)
                yield image, offset


def _read_line(line: bytes, feature_dims: int) -> DetectedImage:
    cells = line.rstrip(b'\r\n').split(b'\t')
    if len(cells) != len(COLUMNS):
        raise ValueError(f'{len(cells)} columns, expected {len(COLUMNS)}')
    row = dict(zip(COLUMNS, map(_unwrap, cells), strict=True))
    height, width, num_boxes = (_read_int(row, name) for name in ('img_h', 'img_w', 'num_boxes'))
    if num_boxes < 1:
        raise ValueError(f'num_boxes is {num_boxes}, expected 1 or more')
    labels = ObjectLabels(
        _read_array(row, 'objects_id', (num_boxes,), _INTEGERS),
        _read_array(row, 'objects_conf', (num_boxes,), _FLOATS),
        _read_array(row, 'attrs_id', (num_boxes,), _INTEGERS),
        _read_array(row, 'attrs_conf', (num_boxes,), _FLOATS),
    )
    boxes = _read_array(row, 'boxes', (num_boxes, 4), _FLOATS)
    features = _read_array(row, 'features', (num_boxes, feature_dims), _FEATURES)
    image = DetectedImage(row['img_id'].decode(), width, height, features, boxes, labels)
    image.check()
    return image


def _unwrap(cell: bytes) -> bytes:
    """A cell without the ``b'…'`` of Python's ``str(bytes)``."""
    cell = cell.strip()
    return cell[2:-1] if cell[:2] in (b"b'", b'b"') and cell[-1:] in (b"'", b'"') else cell


def _read_int(row: dict[str, bytes], name: str) -> int:
    if not (row[name].isdigit() and len(row[name]) < 10):
        raise ValueError(f'{name} is {row[name][:20]!r}, expected a whole number')
    return int(row[name])


def _read_array(
    row: dict[str, bytes], name: str, shape: tuple[int, ...], types: dict[int, str]
) -> np.ndarray:
    """Decodes an array; the size of its numbers follows from their count."""
    try:
        content = base64.b64decode(row[name], validate=True)
    except binascii.Error as error:
        raise ValueError(f'{name} is not base64 ({error}): is the line truncated?') from error
    size, remainder = divmod(len(content), math.prod(shape))
    if remainder or size not in types:
        raise ValueError(
            f'{name} has {len(content)} bytes, expected {" × ".join(map(str, shape))} numbers of '
            f'{" or ".join(map(str, types))} bytes (num_boxes is {shape[0]})'
        )
    return np.frombuffer(content, types[size]).reshape(shape)


def write_region_tsv(file: Path, images: Iterable[DetectedImage]) -> None:
    """Writes a new file in the format of LXMERT's extractor: int64 ids, float32 numbers.

    Use it for the output of another detector, image by image.

    Raises:
        FileExistsError: when the file already exists.
        ValueError: when an image has no boxes or labels, or is invalid.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'xb') as output:
        for image in images:
            image.check()
            if image.boxes is None or image.labels is None:
                raise ValueError(f'image {image.image_id} has no boxes or no labels')
            labels = image.labels
            cells = (
                image.image_id.encode(),
                b'%d' % image.height,
                b'%d' % image.width,
                _encode(labels.objects, '<i8'),
                _encode(labels.object_confidences, '<f4'),
                _encode(labels.attributes, '<i8'),
                _encode(labels.attribute_confidences, '<f4'),
                b'%d' % len(image.features),
                _encode(image.boxes, '<f4'),
                _encode(image.features, '<f4'),
            )
            output.write(b'\t'.join(cells) + b'\n')


def _encode(array: np.ndarray, dtype: str) -> bytes:
    return base64.b64encode(np.ascontiguousarray(array, dtype))
