"""Image files of strangers: what is broken costs one image, and neither memory nor time."""

import io
import os
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from xmodal.datasets.image_file import (
    IMAGE_SUFFIXES,
    BrokenImageError,
    decode_image,
    image_stem,
    read_image,
    write_image,
)


@pytest.fixture
def picture():
    rng = np.random.default_rng(0)
    return cv2.GaussianBlur(rng.integers(0, 256, (40, 56, 3), np.uint8), (7, 7), 0)


def jpeg(picture, **options):
    """Encoded by Pillow, which can add a thumbnail and write progressive files."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, 'JPEG', quality=95, **options)
    return file.getvalue()


def png_that_claims(width, height):
    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack('>I', len(content)) + kind + content + struct.pack('>I', check)

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    body = chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(b'')) + chunk(b'IEND', b'')
    return b'\x89PNG\r\n\x1a\n' + body


@pytest.mark.parametrize('suffix', IMAGE_SUFFIXES)
def test_files_of_every_suffix_that_a_folder_is_searched_for_are_read(tmp_path, suffix):
    file = tmp_path / f'2020.01{suffix}'
    try:
        Image.new('RGB', (40, 30), (200, 60, 20)).save(file)
    except (KeyError, OSError) as error:
        pytest.skip(f'this Pillow does not write it: {error}')
    if not cv2.haveImageReader(str(file)):
        pytest.skip('this OpenCV does not read it')
    np.testing.assert_allclose(read_image(file), np.full((30, 40, 3), (200, 60, 20)), atol=4)
    assert image_stem(file) == '2020.01'


@pytest.mark.parametrize('options', [{}, {'progressive': True}], ids=str)
def test_a_jpeg_may_be_followed_by_anything(picture, options):
    content = jpeg(picture, **options)
    expected = np.asarray(Image.open(io.BytesIO(content)).convert('RGB'))
    film = b'\0' * 5 * len(content)
    for tail in (b'', film):
        np.testing.assert_allclose(decode_image(content + tail, 'a.jpg'), expected, atol=4)


def test_a_truncated_jpeg_is_broken_although_its_thumbnail_is_whole(picture):
    exif = Image.Exif()
    exif[0x010E] = 'a description'
    exif = exif.tobytes() + jpeg(picture[:16, :16])
    content = jpeg(picture, exif=exif)
    assert content.count(b'\xff\xd9') == 2
    decode_image(content, 'a.jpg')
    with pytest.raises(BrokenImageError, match=r'a\.jpg: the JPEG file is truncated'):
        decode_image(content[: -len(content) // 4], 'a.jpg')


@pytest.mark.parametrize('side', [12_000, 20_000, 50_000, 2**31 - 1])
def test_a_small_file_that_claims_many_pixels_is_not_decoded(side, monkeypatch):
    monkeypatch.setattr(cv2, 'imdecode', lambda *_: pytest.fail('it was decoded'))
    with pytest.raises(BrokenImageError, match=r'a\.png'):
        decode_image(png_that_claims(side, side), 'a.png')


def test_the_limit_of_pixels_is_a_key(picture):
    content = jpeg(picture)
    assert decode_image(content, 'a.jpg', 40 * 56).shape == (40, 56, 3)
    with pytest.raises(BrokenImageError, match=r'56 × 40 pixels, more than .*max_pixels=2239'):
        decode_image(content, 'a.jpg', 40 * 56 - 1)


def test_what_the_decoder_raises_is_a_broken_image(picture, monkeypatch):
    def raises(*_):
        raise cv2.error('OpenCV(4) insufficient memory')

    monkeypatch.setattr(cv2, 'imdecode', raises)
    with pytest.raises(BrokenImageError, match=r'a\.jpg: OpenCV cannot decode it.*memory'):
        decode_image(jpeg(picture), 'a.jpg')


@pytest.mark.parametrize(
    'content', [b'', b'no image', b'\xff\xd8', b'<svg/>', b'BM' + b'\xff' * 60]
)
def test_other_content_is_a_broken_image(content):
    with pytest.raises(BrokenImageError, match=r'a\.jpg'):
        decode_image(content, 'a.jpg')


def test_only_regular_files_of_some_size_are_opened(tmp_path):
    os.mkfifo(tmp_path / 'pipe.jpg')
    with open(tmp_path / 'long.jpg', 'wb') as file:
        file.truncate((1 << 28) + 1)
    for path, problem in {
        tmp_path / 'pipe.jpg': 'not a regular file',
        '/dev/zero': 'not a regular file',
        tmp_path: 'not a regular file',
        tmp_path / 'long.jpg': '268435457 bytes',
        tmp_path / 'none.jpg': 'No such file',
        'null\0byte.jpg': r"'null\\x00byte\.jpg': no path",
        'half \ud83d.jpg': r"'half \\ud83d\.jpg': no path",
    }.items():
        with pytest.raises(BrokenImageError, match=problem):
            read_image(path)


@pytest.mark.parametrize('options', [{}, {'progressive': True}, {'with_thumbnail': True}], ids=str)
def test_the_size_of_a_jpeg_is_that_of_its_own_frame(options):
    output = io.BytesIO()
    if options.pop('with_thumbnail', False):  # an image with a frame of its own, before the frame
        Image.new('RGB', (8, 6)).save(output, 'JPEG')
        exif = Image.Exif()
        exif[0x927C] = output.getvalue()
        options, output = {'exif': exif}, io.BytesIO()
    Image.new('RGB', (40, 30)).save(output, 'JPEG', **options)
    assert decode_image(output.getvalue(), 'x.jpg').shape == (30, 40, 3)
    with pytest.raises(BrokenImageError, match='x.jpg: 40 × 30 pixels'):
        decode_image(output.getvalue(), 'x.jpg', max_pixels=100)


@pytest.mark.parametrize(('suffix', 'error'), [('png', 0), ('jpg', 12)])
def test_what_is_written_is_read_again(picture, tmp_path, capfd, suffix, error):
    write_image(tmp_path / f'image.{suffix}', picture)
    read = read_image(tmp_path / f'image.{suffix}')
    assert np.abs(read.astype(int) - picture).mean() <= error
    assert not capfd.readouterr().err  # OpenCV warns of options of another format


def test_an_image_that_cannot_be_written_is_an_error(picture, tmp_path):
    with pytest.raises(OSError, match='image.png could not be written'):
        write_image(tmp_path / 'missing' / 'image.png', picture)
