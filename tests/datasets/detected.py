"""Random detections, and files of them."""

import base64

import numpy as np

from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.structures import ObjectLabels

WIDTH = 5


def random_image(image_id, count, seed=0, width=640, height=480):
    """An image with ``count`` regions."""
    rng = np.random.default_rng(seed)
    corners = rng.random((count, 2, 2)) * (width, height)
    return DetectedImage(
        image_id,
        width,
        height,
        rng.normal(size=(count, WIDTH)).astype(np.float32),
        np.concatenate([corners.min(1), corners.max(1)], 1).astype(np.float32),
        ObjectLabels(
            rng.integers(1600, size=count),
            rng.random(count, np.float32),
            rng.integers(400, size=count),
            rng.random(count, np.float32),
        ),
    )


def random_images(counts=(3, 1, 4)):
    return [random_image(f'image_{n}', count, n) for n, count in enumerate(counts)]


def tsv_line(image, integers='<i8', floats='<f4', wrap=lambda cell: cell):
    """A line as written by an extractor whose NumPy has these types."""

    def cell(array, dtype):
        return wrap(base64.b64encode(np.asarray(array).astype(dtype).tobytes()).decode())

    objects, object_confidences, attributes, attribute_confidences = image.labels
    return '\t'.join(
        [
            image.image_id,
            str(image.height),
            str(image.width),
            cell(objects, integers),
            cell(object_confidences, floats),
            cell(attributes, integers),
            cell(attribute_confidences, floats),
            str(len(image.features)),
            cell(image.boxes, floats),
            cell(image.features, floats),
        ]
    )


def assert_same(image, expected, exact=True):
    """Compares an image that was read with the image that was written."""
    assert (image.image_id, image.width, image.height) == (
        expected.image_id,
        expected.width,
        expected.height,
    )
    compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    for name in ('features', 'boxes'):
        compare(getattr(image, name), getattr(expected, name))
    for labels, expected_labels in zip(image.labels, expected.labels, strict=True):
        compare(labels, expected_labels)


def write_store(folder, images, **options):
    """A region store of images."""
    with RegionStoreWriter(folder, 'test', **options) as writer:
        for image in images:
            writer.append(image)
        writer.finish()
    return folder
