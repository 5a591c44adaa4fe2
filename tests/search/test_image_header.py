"""Size and capture time of an image file, as Pillow reads them, whatever the format."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps, features
from PIL.PngImagePlugin import PngInfo

from xmodal.datasets.image_file import decode_image
from xmodal.search.build import _header

AVIF = pytest.param(
    'AVIF',
    marks=pytest.mark.skipif(
        not (features.check('avif') and cv2.haveImageWriter('1.avif')), reason='no AVIF here'
    ),
)
PIXELS = np.arange(24 * 40 * 3, dtype=np.uint8).reshape(24, 40, 3)


def encoded(form, **options):
    output = io.BytesIO()
    Image.fromarray(PIXELS).save(output, form, **options)
    return output.getvalue()


def exif(tag=306, time='2024:05:06 07:08:09'):
    data = Image.Exif()
    if tag == 36867:  # it stands in a part of its own
        data.get_ifd(0x8769)[tag] = time
    else:
        data[tag] = time
    return data


def old_png(data=None):
    """EXIF as ImageMagick wrote it before PNG had a chunk for it."""
    body = (data or exif()).tobytes()
    info = PngInfo()
    info.add_text('Raw profile type exif', f'\nexif\n{len(body):8}\n{body.hex()}\n')
    return encoded('PNG', pnginfo=info)


@pytest.mark.parametrize(
    'content',
    [
        encoded('JPEG', exif=exif()),
        encoded('JPEG', exif=exif(36867)),
        encoded('PNG', exif=exif()),
        old_png(),
        encoded('WEBP', exif=exif()),
        encoded('TIFF', tiffinfo={306: '2024:05:06 07:08:09'}),
    ],
    ids=['JPEG', 'JPEG, DateTimeOriginal', 'PNG', 'old PNG', 'WebP', 'TIFF'],
)
def test_the_capture_time_is_found(content):
    assert _header(content) == ((40, 24), '2024-05-06 07:08:09')


def test_a_chunk_that_pillow_refuses_spoils_no_image_that_opencv_decodes():
    info = PngInfo()
    info.add_text('Raw profile type 8bim', '0' * (2 << 20), zip=True)
    content = encoded('PNG', pnginfo=info, exif=exif())
    assert np.array_equal(decode_image(content, 'long.png'), PIXELS)
    assert _header(content) == ((40, 24), None)


def test_a_clock_that_was_never_set_is_no_capture_time():
    unset = '0000:00:00 00:00:00'
    assert _header(encoded('JPEG', exif=exif(time=unset))) == ((40, 24), None)
    both = exif()
    both.get_ifd(0x8769)[36867] = unset
    assert _header(encoded('JPEG', exif=both)) == ((40, 24), '2024-05-06 07:08:09')


@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'WEBP', 'TIFF', 'BMP', 'GIF'])
def test_an_image_without_a_capture_time_has_its_size(form):
    assert _header(encoded(form)) == ((40, 24), None)


@pytest.mark.parametrize('turned', range(1, 9))
@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'old PNG', 'WEBP', 'TIFF', AVIF])
def test_the_size_is_that_of_the_image_as_it_is_decoded(form, turned):
    options = {'tiffinfo': {274: turned}} if form == 'TIFF' else {'exif': exif(274, turned)}
    is_old = form == 'old PNG'  # which is not turned
    content = old_png(options['exif']) if is_old else encoded(form, **options)
    decoded = decode_image(content, form)
    height, width, _ = decoded.shape
    assert (width, height) == ((24, 40) if turned > 4 and not is_old else (40, 24))
    assert _header(content) == ((width, height), None)
    if not is_old:
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        np.testing.assert_allclose(decoded, np.asarray(expected).astype(int), atol=4)
