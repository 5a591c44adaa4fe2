"""What the maps of a model find in the embedded world, against literal loops."""

import math
from functools import partial

import pytest
import torch

from xmodal.apis.location import MIDDLE, measure_location
from xmodal.datasets.collate import stack_images
from xmodal.engine.errors import ConfigError
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.location import read_objects
from xmodal.registry import DATASETS, MODELS
from xmodal.visualization.grad_cam import grad_cam
from xmodal.visualization.token_maps import NEARNESS, SIMILARITY

SAMPLES = 12


def area(heat, is_on):
    """The share of pairs of a patch on the object and one beside it that the first wins."""
    on = [float(value) for value, inside in zip(heat, is_on, strict=True) if inside]
    beside = [float(value) for value, inside in zip(heat, is_on, strict=True) if not inside]
    return sum((a > b) + 0.5 * (a == b) for a in on for b in beside) / (len(on) * len(beside))


def patches_in(boxes):
    """Whether the centre of each of 4 x 4 patches of 8 pixels is in one of x, y, w, h."""
    centres = [(8 * (patch % 4) + 4, 8 * (patch // 4) + 4) for patch in range(16)]
    return [
        any(x <= column < x + w and y <= row < y + h for x, y, w, h in boxes)
        for column, row in centres
    ]


def mean(values):
    return sum(values) / len(values)


@pytest.fixture
def prepared(relocated, tiny_world):
    """A model and the test set of a config, in 32 pixels."""

    def prepare(name):
        config = relocated(f'configs/acerpe/{name}.py', tiny_world)
        config.model.backbone.image_encoder.update(
            image_size=32, patch_size=8, pretrained=False, conv_stem=False
        )
        config.model.heads.mim = None
        torch.manual_seed(0)
        model = MODELS.build(config.model).eval()
        for parameter in model.backbone.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        return model, DATASETS.build(config.test_dataloader.dataset)

    return prepare


def locate(model, dataset, rows, *instances):
    captions = encode_first_captions(model, dataset, rows, stack_images)
    return measure_location(model, captions, instances)


@torch.no_grad()
def encode(model, sample):
    image = model.data_preprocessor(stack_images([sample]), False)['inputs'].images
    text = sample['data_samples'].text
    text = text if isinstance(text, str) else text[0]
    encoded = model.encode_text(*model.data_preprocessor.tokenize([text]))
    return model.encode_image(image).tokens, encoded.tokens, text.split()


def test_the_true_box_of_an_expression_is_looked_for_without_instances(prepared):
    model, dataset = prepared('grounding_shapes')
    location = locate(model, dataset, range(SAMPLES))
    literal = {name: [] for name in (SIMILARITY, 'group 1', NEARNESS, 'first', 'last', MIDDLE)}
    among = []
    for sample in map(dataset.__getitem__, range(SAMPLES)):
        is_on = patches_in([sample['data_samples'].box])
        if not 0 < sum(is_on) < 16:
            continue
        image, text, _ = encode(model, sample)
        with torch.no_grad():
            relation = model.relate(image, text)
        similarity = relation.similarity[0, 1:, 1:].mean(1)
        literal[SIMILARITY].append(area(similarity.mean(-1), is_on))
        box, proposals = sample['data_samples'].box, sample['data_samples'].proposals
        is_other = patches_in([other for other in proposals if other != box])
        seen = [i for i in range(16) if is_on[i] != is_other[i]]
        own = [is_on[i] for i in seen]
        if any(own) and not all(own):
            among.append(area(similarity.mean(-1)[seen], own))
        literal['group 1'].append(area(similarity[:, 1], is_on))
        paths = relation.distance[0, 1:, 1:]
        farthest = paths[paths.isfinite()].max()
        literal[NEARNESS].append(area(-paths.clamp(max=farthest).mean((1, 2)), is_on))
        for name, layer in (('first', 0), ('last', 1)):
            literal[name].append(area(grad_cam(model, image, text, layer)[1].flatten(), is_on))
        from_middle = [math.dist((x, y), (1.5, 1.5)) for y in range(4) for x in range(4)]
        literal[MIDDLE].append(area(-torch.tensor(from_middle), is_on))
    close = partial(pytest.approx, abs=1e-6)
    assert location.count == len(literal['last']) > 3
    assert location.anchors is None and location.scope == 'among proposals'
    assert location.rivals == len(among) > 3
    assert location.among[SIMILARITY][0] == close(mean(among))
    assert location.aucs[SIMILARITY][0] == close(mean(literal[SIMILARITY]))
    assert location.aucs[SIMILARITY][2] == close(mean(literal['group 1']))
    assert location.aucs[NEARNESS][0] == close(mean(literal[NEARNESS]))
    assert location.aucs['Grad-CAM, layer 1 of 2'].item() == close(mean(literal['first']))
    assert location.aucs['Grad-CAM, layer 2 of 2'].item() == close(mean(literal['last']))
    assert location.aucs[MIDDLE].item() == close(mean(literal[MIDDLE]))
    assert len(location.aucs) == 5 and len(location.aucs[NEARNESS]) == 5


def test_with_instances_the_objects_of_words_are_looked_for(prepared, tiny_world):
    model, dataset = prepared('pretrain_shapes')
    model.backbone.position.delta = 0.05
    file = tiny_world / 'coco/instances_test.json'
    location = locate(model, dataset, range(len(dataset)), file)
    objects, areas, among, on, off = read_objects(file), [], [], [], []
    from_middle = [-math.dist((x, y), (1.5, 1.5)) for y in range(4) for x in range(4)]
    for sample in map(dataset.__getitem__, range(len(dataset))):
        image, text, words = encode(model, sample)
        with torch.no_grad():
            similarity = model.relate(image, text).similarity[0, 1:]
        shown = [
            (tags, [32 * x1, 32 * y1, 32 * (x2 - x1), 32 * (y2 - y1)])
            for tags, (x1, y1, x2, y2) in objects[sample['data_samples'].image_id]
        ]
        for index, word in enumerate(words, start=1):
            is_on = patches_in([box for tags, box in shown if word in tags])
            if 0 < sum(is_on) < 16:
                heat = similarity[:, index].mean(-1)
                areas.append(area(heat, is_on))
                is_other = patches_in(
                    [box for tags, box in shown if word not in tags and tags & set(words)]
                )
                own = [i for i in range(16) if is_on[i] and not is_other[i]]
                others = [i for i in range(16) if is_other[i] and not is_on[i]]
                if own and others:
                    patches, is_own = own + others, [True] * len(own) + [False] * len(others)
                    middle = [from_middle[i] for i in patches]
                    among.append((area(heat[patches], is_own), area(middle, is_own)))
                is_anchor = (similarity[:, index] >= 0.05).float().mean(-1).tolist()
                on.append(mean([x for x, inside in zip(is_anchor, is_on, strict=True) if inside]))
                off.append(
                    mean([x for x, inside in zip(is_anchor, is_on, strict=True) if not inside])
                )
    assert location.count == len(areas)
    assert location.aucs[SIMILARITY][0] == pytest.approx(mean(areas), abs=1e-3)
    assert location.rivals == len(among) > 3
    for name, literal in zip((SIMILARITY, MIDDLE), zip(*among, strict=True), strict=True):
        assert location.among[name][0] == pytest.approx(mean(literal), abs=1e-3)
    assert location.anchors.tolist() == pytest.approx([mean(on), mean(off)], abs=1e-3)
    assert 0 < mean(on) < 1


def test_nothing_to_find_is_an_error(prepared, tiny_world):
    model, dataset = prepared('grounding_shapes')
    samples = [dataset[0], dataset[1]]
    for sample in samples:
        sample['data_samples'].box = [0.0, 0.0, 1.0, 1.0]
    with pytest.raises(ConfigError, match='no box of an expression has the centre of a patch'):
        locate(model, samples, range(2))
    other = tiny_world / 'coco/instances_val.json'
    with pytest.raises(ConfigError, match='instances_val.json: no word of the captions names an'):
        locate(*prepared('pretrain_shapes'), range(10), other)
