"""Image files as they are found: anything may be behind a path or inside a file."""

import io
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageOps

#: Of the files in a folder that are images; a file that a list names may have any suffix.
IMAGE_SUFFIXES = (
    '.jpg', '.jpeg', '.jfif', '.png', '.webp', '.avif', '.bmp', '.gif', '.tif', '.tiff',
)  # fmt: skip
MAX_PIXELS = 100_000_000
MAX_BYTES = 1 << 28  # no photograph is as long; more would fill the memory before it is decoded
_JPEG_START, _JPEG_SCAN, _JPEG_END = b'\xff\xd8', 0xDA, b'\xff\xd9'
_AVIF_STARTS, _ORIENTATION = (b'ftypavif', b'ftypavis'), 274  # the tag of EXIF
_PNG_START = b'\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR'
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # tables and arithmetic coding


class BrokenImageError(OSError):
    """An image that cannot be read or decoded."""


def image_stem(path: str | Path) -> str:
    """The name of an image file without the suffix, which is the image's id in a store of regions.

    Many files name images by the id itself, which may have dots: "2020.01.05_a" has no suffix.
    """
    path = Path(path)
    return path.stem if path.suffix.lower() in IMAGE_SUFFIXES else path.name


def read_image(path: str | Path) -> np.ndarray:
    """The RGB pixels of an image file, uint8 (H, W, 3).

    Raises:
        BrokenImageError: see :func:`read_image_bytes` and :func:`decode_image`.
    """
    return decode_image(read_image_bytes(path), path)


def read_image_bytes(path: str | Path) -> bytes:
    """The content of an image file.

    Raises:
        BrokenImageError: when the file is missing or very long, or no regular file: a pipe would
            wait for its writer, and a device may have no end.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise BrokenImageError(f'{path}: not a regular file')
        if status.st_size > MAX_BYTES:
            raise BrokenImageError(
                f'{path}: {status.st_size} bytes, expected at most {MAX_BYTES} for an image'
            )
        with open(path, 'rb', buffering=0) as file:
            return file.read()
    except BrokenImageError:
        raise
    except OSError as error:
        raise BrokenImageError(f'{path}: {error.strerror or error}') from error
    except ValueError as error:  # a null byte, or half a character, which cannot be printed
        raise BrokenImageError(f'{str(path)!a}: no path of a file, {error}') from error


def decode_image(content: bytes, name: str | Path, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The RGB pixels of an encoded image, uint8 (H, W, 3).

    Args:
        content: the file.
        name: its name, for errors.
        max_pixels: largest H · W. A file of 100 bytes may claim any size.

    Raises:
        BrokenImageError: when it is truncated, too large or not an image.
    """
    _check_size(content, name, max_pixels)
    if content.startswith(_JPEG_START) and _is_truncated(content):
        # OpenCV 4 fills the missing part with grey without a warning.
        raise BrokenImageError(f'{name}: the JPEG file is truncated')
    try:
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR_RGB)
    except (cv2.error, MemoryError) as error:
        raise BrokenImageError(f'{name}: OpenCV cannot decode it, {error}') from error
    if image is None:
        raise BrokenImageError(f'{name}: not an image that OpenCV can decode')
    return _turn_avif(image, content) if content[4:12] in _AVIF_STARTS else image


def _turn_avif(image: np.ndarray, content: bytes) -> np.ndarray:
    """An AVIF turned upright, which OpenCV (5.0) does with images of all other formats."""
    with Image.open(io.BytesIO(content)) as header:
        orientation = header.getexif().get(_ORIENTATION, 1)
    if orientation == 1:
        return image
    turned = Image.fromarray(image)
    turned.getexif()[_ORIENTATION] = orientation
    return np.array(ImageOps.exif_transpose(turned))


def write_image(file: Path, image: np.ndarray) -> None:
    """Writes an image, uint8 RGB (H, W, 3), in the format of the file's suffix.

    Raises:
        OSError: when it cannot be written, of which OpenCV itself says nothing.
    """
    options = [cv2.IMWRITE_PNG_COMPRESSION, 3] if file.suffix == '.png' else []
    if not cv2.imwrite(str(file), image[..., ::-1], options):
        raise OSError(f'{file} could not be written: is the disk full?')


def _check_size(content: bytes, name: str | Path, max_pixels: int) -> None:
    """Reads the size that the header claims; nothing is decoded."""
    try:
        size = header_size(content)
        if size is None:
            with Image.open(io.BytesIO(content)) as image:
                size = image.size
    except Image.DecompressionBombError as error:
        raise BrokenImageError(f'{name}: {error}') from error
    except Exception as error:  # each format has its own ways to fail
        raise BrokenImageError(f'{name}: not an image, no format has such a header') from error
    width, height = size
    if width * height > max_pixels:
        raise BrokenImageError(
            f'{name}: {width} × {height} pixels, more than LoadImage.max_pixels={max_pixels}'
        )


def header_size(content: bytes) -> tuple[int, int] | None:
    """Width and height in the header of a JPEG or PNG; None where there is none.

    Pillow takes half as long for it as OpenCV for the decoding.
    """
    if content.startswith(_PNG_START) and len(content) >= len(_PNG_START) + 8:
        return struct.unpack_from('>II', content, len(_PNG_START))
    for marker, position in _segments(content):
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from('>HH', content, position + 5)
            return width, height
    return None


def _is_truncated(content: bytes) -> bool:
    """Whether a JPEG has no end after the start of its pixels.

    The segments before may contain a thumbnail with an end of its own, and a film may follow the
    image (motion photos), so that the end can be anywhere.
    """
    *_, (_, last) = [(0, len(_JPEG_START)), *_segments(content)]
    return content.find(_JPEG_END, last) < 0


def _segments(content: bytes) -> Iterator[tuple[int, int]]:
    """The marker and the place of each segment of a JPEG, up to the start of its pixels.

    The last place is where they end, also if they end early; its marker is that of the pixels or 0.
    """
    if not content.startswith(_JPEG_START):
        return
    position = len(_JPEG_START)
    while content[position : position + 1] == b'\xff' and len(content) > position + 3:
        marker = content[position + 1]
        yield marker, position
        if marker == _JPEG_SCAN:
            return
        is_filling = marker == 0xFF
        length = int.from_bytes(content[position + 2 : position + 4], 'big')
        position += 1 if is_filling else 2 + length
    yield 0, position
