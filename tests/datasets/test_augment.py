"""ALBEF's augmentation, against Pillow and literal affine maps."""

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torchvision.transforms.v2 import functional

from xmodal.datasets.transforms import augment
from xmodal.datasets.transforms.augment import AlbefAugment, ColorJitter

SIZE, MAGNITUDE = 24, 7
STRENGTH = MAGNITUDE / 10
FACTOR = 0.1 + 1.8 * STRENGTH
PILLOW = [
    lambda image: image,
    ImageOps.autocontrast,
    ImageOps.equalize,
    lambda image: ImageEnhance.Brightness(image).enhance(FACTOR),
    lambda image: ImageEnhance.Sharpness(image).enhance(FACTOR),
]


@pytest.fixture
def array():
    """Smooth noise, (H, W, 3) uint8, that is neither as dark nor as bright as can be."""
    coarse = np.random.default_rng(0).integers(20, 230, (6, 6, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((SIZE, SIZE), Image.BICUBIC))


def applied(operation, array, **options):
    image = torch.from_numpy(array.copy()).permute(2, 0, 1)
    return operation(image, **options).permute(1, 2, 0).numpy().astype(float)


@pytest.mark.parametrize('index', range(len(PILLOW)))
def test_changes_of_colour_are_those_of_pillow(array, index):
    operation = AlbefAugment(SIZE, magnitude=MAGNITUDE)._color_ops[index]
    expected = np.asarray(PILLOW[index](Image.fromarray(array)), dtype=float)
    # Pillow does not sharpen the outermost pixels.
    errors = np.abs(applied(operation, array) - expected)[1:-1, 1:-1]
    assert errors.max() <= 1


@pytest.mark.parametrize(
    ('key', 'enhance'),
    [
        ('brightness', ImageEnhance.Brightness),
        ('contrast', ImageEnhance.Contrast),
        ('saturation', ImageEnhance.Color),
    ],
)
def test_jitter_is_what_pillow_does_by_a_factor_in_its_range(array, key, enhance):
    jitter = ColorJitter(**{'brightness': 0.0, 'contrast': 0.0, 'saturation': 0.0, key: 0.4})
    candidates = [
        np.asarray(enhance(Image.fromarray(array)).enhance(factor), dtype=float)
        for factor in np.linspace(0.6, 1.4, 401)
    ]
    found = set()
    for _ in range(4):
        image = torch.from_numpy(array.copy()).permute(2, 0, 1)
        changed = jitter.transform({'img': image})['img'].permute(1, 2, 0).numpy()
        errors = [np.abs(changed - one).max() for one in candidates]
        assert min(errors) <= 2
        found.add(int(np.argmin(errors)))
    assert len(found) == 4


def source(index, x, y, sign):
    """The point of the image that ALBEF's affine map number ``index`` brings to (x, y)."""
    shear, shift = sign * 0.3 * STRENGTH, sign * 10 * STRENGTH
    if index == 4:
        angle, middle = math.radians(sign * 30 * STRENGTH), (SIZE - 1) / 2
        dx, dy = x - middle, y - middle
        return (
            middle + dx * math.cos(angle) + dy * math.sin(angle),
            middle - dx * math.sin(angle) + dy * math.cos(angle),
        )
    return [(x - shear * y, y), (x, y - shear * x), (x - shift, y), (x, y - shift)][index]


def literal_map(array, index, sign):
    """Every pixel by bilinear interpolation, grey outside the image."""
    result = np.empty(array.shape)
    for y in range(SIZE):
        for x in range(SIZE):
            u, v = source(index, x, y, sign)
            left, top = math.floor(u), math.floor(v)
            value = 0.0
            for row, vertical in ((top, 1 - (v - top)), (top + 1, v - top)):
                for column, horizontal in ((left, 1 - (u - left)), (left + 1, u - left)):
                    inside = 0 <= row < SIZE and 0 <= column < SIZE
                    pixel = array[row, column].astype(float) if inside else 128.0
                    value = value + vertical * horizontal * pixel
            result[y, x] = value
    return result


@pytest.mark.parametrize('sign', [1, -1])
@pytest.mark.parametrize('index', range(5))
def test_affine_maps_are_bilinear_and_grey_outside(array, index, sign):
    operation = AlbefAugment(SIZE, magnitude=MAGNITUDE)._affine_ops[index]
    expected = literal_map(array, index, sign)
    # OpenCV rounds positions to 1/32 of a pixel. A rotation turns to either side.
    turned = literal_map(array, index, -sign) if index == 4 else expected
    actual = applied(operation, array, sign=sign)
    errors = [np.abs(actual - image) for image in (expected, turned)]
    assert min(error.mean() for error in errors) < 0.5
    assert min(error.max() for error in errors) <= 8


def test_a_crop_without_operations_keeps_type_and_layout(array):
    torch.manual_seed(0)
    image = torch.from_numpy(array.copy()).permute(2, 0, 1)
    result = AlbefAugment(16, num_ops=2).transform({'img': image})['img']
    assert result.shape == (3, 16, 16) and result.dtype == torch.uint8


@pytest.mark.parametrize('function', [augment.autocontrast, augment.equalize])
@pytest.mark.parametrize('low, high', [(0, 256), (37, 190), (80, 81), (5, 7)])
def test_tables_of_values_are_torchvisions_operations_bit_for_bit(function, low, high):
    images = np.random.default_rng(0).integers(low, high, (20, 33, 21, 3), np.uint8)
    images[:, :, :, 2] = 9  # a flat channel
    images[:7] = images[:7] // 16 * 16
    for image in images:
        expected = getattr(functional, function.__name__)(torch.from_numpy(image).permute(2, 0, 1))
        np.testing.assert_array_equal(function(image), expected.permute(1, 2, 0).numpy())
