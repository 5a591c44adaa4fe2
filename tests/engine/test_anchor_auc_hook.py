"""The hook that logs whether anchors find what words name, against the literal area."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from runs import call_at, stop, train
from torch import nn

from xmodal.datasets.collate import stack_regions
from xmodal.datasets.image_file import read_image
from xmodal.engine.errors import ConfigError
from xmodal.engine.hooks import AnchorAucHook
from xmodal.engine.launch import build_runner
from xmodal.engine.wrappers import unwrap
from xmodal.registry import DATASETS, MODELS

IMAGES = 4


def area(on, beside):
    """The share of pairs of similarities in which that of a named object is the larger."""
    wins = sum((a > b) + 0.5 * (a == b) for a in on for b in beside)
    return wins / (len(on) * len(beside))


def logged(runner):
    """What the log of a run has of the hook, by the step."""
    logs = Path(runner.work_dir).glob('*/vis_data/scalars.json')
    rows = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return sorted((row for row in rows if 'anchor_auc' in row), key=lambda row: row['step'])


def logged_auc(runner):
    """The values of the start and of the one epoch, in the log of a run: see `by_group`."""
    first, last = logged(runner)
    assert (first['step'], last['step']) == (0, runner.iter)
    return by_group(first), by_group(last)


def by_group(scalars):
    """The area of the mean of the groups, and those of the four groups."""
    assert 'anchor_auc/group_4' not in scalars
    groups = [scalars[f'anchor_auc/group_{group}'] for group in range(4)]
    return [scalars['anchor_auc'], *groups]


def literal_areas(similarity, inside):
    """The areas of the mean of the groups and of each, token by token; none without both kinds.

    Args:
        similarity: of a word, (M, G).
        inside: of each token, whether it is on an object of the word.
    """
    if all(inside) or not any(inside):
        return []
    maps = [similarity.mean(-1), *similarity.unbind(-1)]
    return [
        [
            area(*([float(one[m]) for m in range(len(inside)) if inside[m] == on] for on in (1, 0)))
            for one in maps
        ]
    ]


@torch.no_grad()
def literal_auc(model, captions, world):
    """The mean areas over all words of captions that name something, patch by patch."""
    content = json.loads((world / 'coco/instances_val.json').read_text())
    names = {item['id']: item['name'] for item in content['categories']}
    areas = []
    for item, caption in captions:
        pixels = torch.from_numpy(read_image(world / item['image']))
        pixels = (pixels.permute(2, 0, 1)[None].float() - 127.5) / 63.75
        image = model.encode_image(pixels).tokens
        text = model.encode_text(*model.data_preprocessor.tokenize([caption])).tokens
        similarity = model.relate(image, text).similarity[0]
        for position, word in enumerate(caption.split(), start=1):
            boxes = [
                one['bbox']
                for one in content['annotations']
                if one['image_id'] == item['image_id']
                and word in (names[one['category_id']], *one['attributes'])
            ]
            inside = []
            for patch in range(
                16
            ):  # a convolutional stem, whose patches are at corners of 4 x 4 cells
                x, y = 8 * (patch % 4), 8 * (patch // 4)
                inside.append(any(a <= x < a + w and b <= y < b + h for a, b, w, h in boxes))
            areas += literal_areas(similarity[1:, position], inside)
    return np.mean(areas, 0)


@pytest.fixture
def config(tiny_config, tiny_world):
    tiny_config.train_cfg.max_epochs = 1
    instances = str(tiny_world / 'coco/instances_val.json')
    hook = dict(type='AnchorAucHook', instances=instances, images=IMAGES)
    tiny_config.custom_hooks = [*tiny_config.custom_hooks, hook]
    return tiny_config


def test_a_run_that_is_resumed_measures_no_other_start(config):
    options = {'default_hooks.checkpoint.by_epoch': False, 'default_hooks.checkpoint.interval': 2}
    interrupted = config.copy()
    interrupted.custom_hooks = [*config.custom_hooks, call_at(3, stop)]
    with pytest.raises(KeyboardInterrupt):
        train(interrupted, **options)
    runner = train(config, resume=True, **options)
    assert [row['step'] for row in logged(runner)] == [0, 4]


@pytest.mark.parametrize('each', [False, True])
def test_the_log_has_the_area_of_the_named_objects(config, tiny_world, monkeypatch, each):
    """Of the first caption of each image, or of the first samples where each has one caption."""
    items = json.loads((tiny_world / 'albef/val.json').read_text())
    captions = [(item, item['caption'][0]) for item in items]
    if each:
        captions = [(item, caption) for item in items for caption in item['caption']]
        config.val_dataloader.dataset.update(test_mode=False, captions='each')
        config.val_dataloader.dataset.pipeline = config.test_dataloader.dataset.pipeline
    runner = build_runner(config)
    monkeypatch.setattr(runner.val_loop, 'run', dict)  # retrieval has all captions of an image
    model = unwrap(runner.model).eval()
    start = literal_auc(model, captions[:IMAGES], tiny_world)
    runner.train()
    end = literal_auc(model.eval(), captions[:IMAGES], tiny_world)
    assert np.array(logged_auc(runner)) == pytest.approx(np.array([start, end]), abs=1e-5)


def test_the_first_stage_of_anchors_has_it(shrink, tiny_world):
    config = shrink('configs/acerpe/contrast_shapes_anchored.py')
    config.model.backbone.image_encoder.pretrained = False
    config.train_cfg.max_epochs = 1
    config.default_hooks.anchor_auc.instances = str(tiny_world / 'coco/instances_val.json')
    runner = build_runner(config)
    runner.train()
    assert all(0 < area < 1 for areas in logged_auc(runner) for area in areas)


@torch.no_grad()
def test_regions_have_no_cls_to_leave_out(relocated, tiny_world):
    config = relocated('configs/acerpe/pretrain_shapes_regions.py', tiny_world)
    torch.manual_seed(0)
    model = MODELS.build(config.model).eval()
    dataset = DATASETS.build(config.test_dataloader.dataset)
    loader = SimpleNamespace(dataset=dataset, collate_fn=stack_regions)
    logged = {}
    hook = AnchorAucHook(str(tiny_world / 'coco/instances_test.json'), IMAGES)
    hook.after_train_epoch(
        SimpleNamespace(
            whole_model=lambda: model,
            val_loop=SimpleNamespace(dataloader=loader),
            visualizer=SimpleNamespace(add_scalars=lambda values, step: logged.update(values)),
            iter=0,
            logger=SimpleNamespace(info=str),
        )
    )
    areas = []
    for row in range(IMAGES):
        sample = dataset[row]
        caption, regions = sample['data_samples'].text[0], sample['inputs']
        batch = model.data_preprocessor(stack_regions([sample]), False)['inputs']
        image = model.encode_image(batch.images).tokens
        text = model.encode_text(*model.data_preprocessor.tokenize([caption])).tokens
        similarity = model.relate(image, text).similarity[0]
        objects = hook.objects[sample['data_samples'].image_id]
        for position, word in enumerate(caption.split(), start=1):
            boxes = [box for names, box in objects if word in names]
            inside = []
            for x1, y1, x2, y2 in regions.boxes.tolist():
                x, y = (x1 + x2) / 2, (y1 + y2) / 2
                inside.append(any(a <= x < c and b <= y < d for a, b, c, d in boxes))
            areas += literal_areas(similarity[:, position], inside)
    assert np.array(by_group(logged)) == pytest.approx(np.mean(areas, 0), abs=1e-5)


def test_weights_are_the_same_with_and_without_it(config):
    states = []
    for hooks in (config.custom_hooks, config.custom_hooks[:-1]):
        config.custom_hooks = hooks
        config.experiment_name = f'hooks_{len(hooks)}'
        runner = build_runner(config)
        runner.train()
        states.append(unwrap(runner.model).state_dict())
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name]), name


@pytest.mark.parametrize('position', ['NoPosition', 'UniformPosition'])
def test_a_model_without_anchors_is_refused(config, position):
    config.model.backbone.position = dict(type=position)
    with pytest.raises(ConfigError, match="AnchorAucHook needs .*'AnchorRelativePosition'"):
        build_runner(config).train()


def test_instances_of_other_images_are_refused_before_the_first_iteration(config, tiny_world):
    config.custom_hooks[-1].instances = str(tiny_world / 'coco/instances_test.json')
    runner = build_runner(config)
    with pytest.raises(ConfigError, match='are hook.instances those of val_dataloader'):
        runner.train()
    assert runner.iter == 0


def test_a_model_that_does_not_relate_images_and_texts_is_refused(tiny_world):
    model = nn.Module()
    model.backbone = SimpleNamespace(position=SimpleNamespace(has_similarities=True))
    hook = AnchorAucHook(str(tiny_world / 'coco/instances_val.json'))
    with pytest.raises(ConfigError, match='such as an AlbefPretrainer, found Module'):
        hook.before_train(SimpleNamespace(model=model))
