"""The region features that LXMERT publishes, ``train2014_obj36.tsv`` and its like.

A line an image, ten columns without a heading: id, height, width, objects, their confidences,
attributes, their confidences, number of boxes, boxes, features. The arrays are base64 of raw
little-endian numbers, whose size tells their type: ids are int32 or int64, the rest float32 or
float64 (features float16 too), as the extractor's platform had them. Cells that Python 3 wrote as
``b'…'`` are read as well.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from xmodal.datasets.region_store import DetectedImage
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
_INTEGERS = {4: '<i4', 8: '<i8'}
_FLOATS = {4: '<f4', 8: '<f8'}
_FEATURES = {2: '<f2', **_FLOATS}


def read_region_tsv(
    file: Path, feature_dims: int = 2048, start: int = 0
) -> Iterator[tuple[DetectedImage, int]]:
    """Yields the images of a file, each with the byte at which the next one begins.

    Args:
        file: the file.
        feature_dims: width of the features; by it the type of their numbers is known.
        start: byte to begin at, the beginning of a line.

    Raises:
        ValueError: names file and line, counted from ``start``, that can't be read.
    """
    with open(file, 'rb') as lines:
        lines.seek(start)
        place = start
        for number, line in enumerate(lines, 1):
            place += len(line)
            if not line.strip():
                continue
            try:
                yield _read_line(line, feature_dims), place
            except ValueError as error:
                after = f' after byte {start}' if start else ''
                raise ValueError(f'{file}, line {number}{after}: {error}') from error


def _read_line(line: bytes, feature_dims: int) -> DetectedImage:
    cells = line.rstrip(b'\r\n').split(b'\t')
    if len(cells) != len(COLUMNS):
        raise ValueError(f'{len(cells)} columns, expected {len(COLUMNS)}: {", ".join(COLUMNS)}')
    row = dict(zip(COLUMNS, map(_bare, cells), strict=True))
    height, width, count = (_integer(row, name) for name in ('img_h', 'img_w', 'num_boxes'))
    if count < 1:
        raise ValueError(f'num_boxes is {count}, expected 1 or more')
    labels = ObjectLabels(
        _array(row, 'objects_id', (count,), _INTEGERS),
        _array(row, 'objects_conf', (count,), _FLOATS),
        _array(row, 'attrs_id', (count,), _INTEGERS),
        _array(row, 'attrs_conf', (count,), _FLOATS),
    )
    boxes = _array(row, 'boxes', (count, 4), _FLOATS)
    features = _array(row, 'features', (count, feature_dims), _FEATURES)
    image = DetectedImage(row['img_id'].decode(), width, height, features, boxes, labels)
    image.check()
    return image


def _bare(cell: bytes) -> bytes:
    """A cell without the ``b'…'`` of Python's ``str(bytes)``."""
    cell = cell.strip()
    return cell[2:-1] if cell[:2] in (b"b'", b'b"') and cell[-1:] in (b"'", b'"') else cell


def _integer(row: dict[str, bytes], name: str) -> int:
    try:
        return int(row[name])
    except ValueError:
        raise ValueError(f'{name} is {row[name][:20]!r}, expected a whole number') from None


def _array(
    row: dict[str, bytes], name: str, shape: tuple[int, ...], types: dict[int, str]
) -> np.ndarray:
    """Decodes numbers whose size follows from how many there are."""
    try:
        content = base64.b64decode(row[name], validate=True)
    except binascii.Error as error:
        raise ValueError(f'{name} is no base64 ({error}): is the line cut off?') from error
    size, rest = divmod(len(content), int(np.prod(shape)))
    if rest or size not in types:
        raise ValueError(
            f'{name} has {len(content)} bytes, expected {" × ".join(map(str, shape))} numbers of '
            f'{" or ".join(map(str, types))} bytes (num_boxes is {shape[0]})'
        )
    return np.frombuffer(content, types[size]).reshape(shape)


def write_region_tsv(file: Path, images: Iterable[DetectedImage]) -> None:
    """Writes a new file as LXMERT's extractor does: int64 ids, float32 numbers.

    For features of your own detector: give what it found, image after image.

    Raises:
        FileExistsError: when there is such a file.
        ValueError: when an image has no boxes or labels, or something is wrong with it.
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
