"""Regions of a detector against torchvision's own output."""

import json

import pytest
import torch
from torchvision.models import get_model

from xmodal.models.backbones import DetectorExtractor
from xmodal.registry import MODELS

NAME = 'fasterrcnn_mobilenet_v3_large_320_fpn'
CLASSES = 7


@pytest.fixture(scope='module')
def weights(tmp_path_factory):
    """A file of random weights for seven classes."""
    torch.manual_seed(0)
    model = get_model(NAME, weights=None, weights_backbone=None, num_classes=CLASSES)
    file = tmp_path_factory.mktemp('detector') / 'weights.pth'
    torch.save(model.state_dict(), file)
    return str(file)


@pytest.fixture
def images():
    return [torch.randint(256, (3, *size), dtype=torch.uint8) for size in ((64, 96), (80, 50))]


def make(weights, **options):
    config = dict(type='DetectorExtractor', detector=NAME, pretrained=weights, max_regions=5)
    return MODELS.build({**config, **options})


@torch.no_grad()
def test_regions_are_those_that_torchvision_finds(weights, images):
    extractor = make(weights, min_score=0.0).train()
    reference = get_model(
        NAME, weights=None, weights_backbone=None, num_classes=CLASSES,
        box_detections_per_img=5, box_score_thresh=0.0,
    ).eval()  # fmt: skip
    reference.load_state_dict(torch.load(weights, weights_only=True))
    expected = reference([image / 255 for image in images])
    found = extractor.extract(images, ['a', 'b'])
    for image, regions, detections in zip(images, found, expected, strict=True):
        height, width = image.shape[1:]
        pixels = regions.boxes * torch.tensor([width, height] * 2)
        assert len(pixels) == 5 and regions.features.shape == (5, 1024)
        torch.testing.assert_close(pixels, detections['boxes'], atol=0.5, rtol=0)
        torch.testing.assert_close(regions.labels.object_confidences, detections['scores'])
        assert torch.equal(regions.labels.objects, detections['labels'])
        # The class of a final box is predicted from these very features.
        assert reference.roi_heads.box_predictor(regions.features)[0].shape == (5, CLASSES)


def test_given_boxes_have_the_features_of_found_ones(weights, images, tmp_path):
    found = make(weights, min_score=0.0).extract(images, ['a', 'b'])
    annotations = []
    for number, (image, regions) in enumerate(zip(images, found, strict=True)):
        height, width = image.shape[1:]
        boxes = regions.boxes * torch.tensor([width, height] * 2)
        for left, top, right, bottom in boxes.tolist():
            box = [left, top, right - left, bottom - top]
            annotations.append(dict(image_id=number, category_id=number + 3, bbox=box))
    names = [dict(id=n, file_name=f'photos/{stem}.jpg') for n, stem in enumerate('ab')]
    file = tmp_path / 'instances.json'
    file.write_text(json.dumps(dict(images=names, annotations=annotations)))
    extractor = make(weights, boxes=str(file))
    given = extractor.extract(images[::-1], ['b', 'a'])[::-1]
    for number, (one, other) in enumerate(zip(found, given, strict=True)):
        torch.testing.assert_close(other.features, one.features, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(other.boxes, one.boxes, atol=1e-5, rtol=0)
        assert (other.labels.objects == number + 3).all()
    with pytest.raises(ValueError, match="no box of the image 'c'"):
        extractor.extract(images[:1], ['c'])


def test_boxes_that_are_none_are_named_with_their_file(weights, tmp_path):
    file = tmp_path / 'instances.json'
    image, box = dict(id=0, file_name='a.jpg'), dict(image_id=0, category_id=1, bbox=[0, 0, 1, 1])
    for change, message in (
        (dict(image_id=5), r'image_id is 5, expected the id of an image of the file'),
        (dict(bbox=[0, 0, 'x', 1]), 'the box of annotation 0 is .*expected x, y, width and height'),
        (dict(bbox=[0, 0, -1, 1]), 'the box of annotation 0 is .*are not negative'),
    ):
        file.write_text(json.dumps(dict(images=[image], annotations=[box | change])))
        with pytest.raises(ValueError, match=f'instances.json.*{message}'):
            make(weights, boxes=str(file))


def test_an_image_in_which_nothing_is_found_is_one_region(weights, images):
    for regions in make(weights, min_score=1.0).extract(images, ['a', 'b']):
        assert regions.boxes.tolist() == [[0, 0, 1, 1]] and regions.features.isfinite().all()
        assert regions.labels.objects.tolist() == [0]


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        (dict(detector='ssd300_vgg16'), ValueError, 'expected one of.*fasterrcnn_resnet50_fpn'),
        (dict(pretrained=False), ValueError, 'without weights would be random'),
        (dict(pretrained='nowhere.pth'), FileNotFoundError, 'nowhere.pth'),
        (
            dict(detector='fasterrcnn_resnet50_fpn'),
            ValueError,
            r'has \d+ tensors, .* \d+: \d+ fit. They are of another detector',
        ),
    ],
)
def test_what_is_wrong_is_a_sentence(weights, options, error, message):
    with pytest.raises(error, match=message):
        make(weights, **options)


def test_it_is_frozen(weights):
    extractor = make(weights)
    assert isinstance(extractor, DetectorExtractor) and not extractor.train().training
    assert not any(x.requires_grad for x in extractor.parameters())
