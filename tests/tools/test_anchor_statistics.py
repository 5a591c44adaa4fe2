"""Statistics of anchors, against literal loops."""

import math
import sys

import pytest
import torch

from tools.analysis import anchor_statistics
from tools.analysis.anchor_statistics import location_rows, next_of_another, pair_statistics
from xmodal.apis.location import Location
from xmodal.engine.errors import ConfigError
from xmodal.models import AlbefPretrainer
from xmodal.registry import MODELS
from xmodal.structures import Regions


@pytest.fixture
def model(tiny_config):
    torch.manual_seed(0)
    model = MODELS.build(tiny_config.model).eval()
    for parameter in model.backbone.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@torch.no_grad()
def test_distances_and_additions_are_averaged_over_every_pair(model):
    image = model.encode_image(torch.randn(2, 3, 32, 32)).tokens
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    text = model.encode_text(torch.randint(5, 60, (2, 6)), mask).tokens
    actual = pair_statistics(model, image, text)
    relation, position = model.relate(image, text), model.backbone.position
    for row in range(2):
        all_paths, spread = [], []
        for word in range(1, int(mask[row].sum())):
            for group in range(position.groups):
                paths = [float(relation.distance[row, 1 + m, word, group]) for m in range(16)]
                paths = [path for path in paths if math.isfinite(path)]
                all_paths += paths
                mean = sum(paths) / len(paths) if paths else 0
                spread += [(path - mean) ** 2 for path in paths]
        assert actual['mean of P'][row] == pytest.approx(sum(all_paths) / len(all_paths))
        deviation = math.sqrt(sum(spread) / len(spread))
        assert actual['deviation of P over patches'][row] == pytest.approx(deviation, rel=1e-4)
        words = range(1, int(mask[row].sum()))
        for role, tokens, means, indices in (
            ('query', text, relation.text_mean, words),
            ('value', image, relation.image_mean, range(1, 17)),
        ):
            weight = position.weight[role][0]
            addition = sum(float((means[row, index] @ weight).norm()) for index in indices)
            length = sum(float(tokens.embeddings[row, index].norm()) for index in indices)
            name = f'addition to {role} / token'
            assert actual[name][row] == pytest.approx(addition / length, rel=1e-4)


@torch.no_grad()
def test_shares_of_regions_count_the_first_one_and_no_padding(relocated, tiny_world):
    torch.manual_seed(0)
    config = relocated('configs/acerpe/contrast_shapes_regions.py', tiny_world)
    model = MODELS.build(config.model).eval()
    corners = torch.rand(2, 6, 2, 2).sort(2).values
    boxes = torch.cat([corners[:, :, 0], corners[:, :, 1]], -1)
    real = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    image = model.encode_image(Regions(torch.randn(2, 6, 259), real, boxes)).tokens
    text = model.encode_text(torch.randint(5, 40, (2, 5)), torch.ones(2, 5, dtype=bool)).tokens
    actual = pair_statistics(model, image, text)
    relation, position = model.relate(image, text), model.backbone.position
    for row, count in enumerate((6, 2)):
        pairs = [(r, w, g) for r in range(count) for w in range(1, 5) for g in range(4)]
        anchors = [float(relation.similarity[row][pair]) >= position.delta for pair in pairs]
        assert 0 < sum(anchors) < len(pairs)
        assert actual['anchor_share'][row] == pytest.approx(sum(anchors) / len(pairs))


@pytest.mark.parametrize(
    'images, others', [([4, 7, 9], [1, 2, 0]), ([4, 4, 7, 7, 7], [2, 2, 0, 0, 0])]
)
def test_the_caption_of_a_mismatched_pair_is_of_another_image(images, others):
    assert next_of_another(torch.tensor(images)).tolist() == others


def test_one_image_has_no_mismatched_pair():
    with pytest.raises(ValueError, match='of 3 samples shows only image 5: give more --images'):
        next_of_another(torch.tensor([5, 5, 5]))


def test_the_tool_prints_the_statistics_of_a_trained_model(
    tiny_config, trained, tiny_world, tmp_path, monkeypatch, capsys
):
    config = f'{tmp_path}/config.py'
    tiny_config.dump(config)
    instances = ['--instances', f'{tiny_world}/coco/instances_test.json']
    arguments = [config, str(trained), *instances]
    monkeypatch.setattr(sys, 'argv', ['anchor_statistics.py', *arguments])
    encoded, encode = [], AlbefPretrainer.encode_image
    monkeypatch.setattr(
        AlbefPretrainer, 'encode_image', lambda model, x: encoded.append(len(x)) or encode(model, x)
    )
    anchor_statistics.main()
    assert encoded == [10]  # each image once
    printed = capsys.readouterr().out
    for line in (
        'anchor share',
        'mean of P',
        'anchors on the object',
        'anchors off the object',
        'the similarity S, group 0',
        'words that name objects',
    ):
        assert line in printed


def test_the_lines_of_a_map_are_those_of_the_mean_of_its_groups_and_of_each():
    aucs = {'S': torch.tensor([0.75, 0.5, 1.0]), 'Grad-CAM': torch.tensor([0.625])}
    lines = [
        ('things', '7'),
        ('share of anchors on the object of a word', '0.250'),
        ('share of anchors off the object of a word', '0.125'),
        ('AUC of S, mean of the groups', '0.750'),
        ('AUC of S, group 0', '0.500'),
        ('AUC of S, group 1', '1.000'),
        ('AUC of Grad-CAM', '0.625'),
    ]
    location = Location(7, aucs, torch.tensor([0.25, 0.125]), 0, {}, 'among others')
    assert list(location_rows(location, 'things')) == lines
    assert list(location_rows(location._replace(anchors=None), 'things')) == lines[:1] + lines[3:]
    location = location._replace(rivals=3, among={'Grad-CAM': torch.tensor([0.375])})
    assert list(location_rows(location, 'things')) == [
        *lines,
        ('things, with tokens among others', '3'),
        ('AUC of Grad-CAM, among others', '0.375'),
    ]


def test_a_config_of_grounding_needs_no_instances(
    relocated, tiny_world, tmp_path, monkeypatch, capsys
):
    config = relocated('configs/acerpe/grounding_shapes.py', tiny_world)
    config.model.backbone.image_encoder.image_size = 32  # of the tiny world
    config.dump(tmp_path / 'config.py')
    weights = MODELS.build(config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, tmp_path / 'weights.pth')
    arguments = [f'{tmp_path}/config.py', f'{tmp_path}/weights.pth', '--images', '8']
    monkeypatch.setattr(sys, 'argv', ['anchor_statistics.py', *arguments])
    anchor_statistics.main()
    printed = capsys.readouterr().out
    for line in ('expressions of one object', 'the nearness -P, group 3', 'Grad-CAM, layer 2 of 2'):
        assert line in printed


def test_every_image_has_a_mismatched_pair_and_one_without_anchors_spoils_no_mean(
    tiny_config, tmp_path, monkeypatch, capsys
):
    config, weights = f'{tmp_path}/config.py', f'{tmp_path}/weights.pth'
    tiny_config.dump(config)
    torch.save({'state_dict': MODELS.build(tiny_config.model).state_dict(), 'meta': {}}, weights)
    seen = []

    def statistics(model, image, text):
        seen.append((image.embeddings[:, 1], text.embeddings[:, 0]))
        paths = torch.full((len(image.embeddings),), 3.0)
        return {'mean of P': paths.index_fill(0, torch.tensor([0]), torch.nan)}

    monkeypatch.setattr(anchor_statistics, 'pair_statistics', statistics)
    # Of the 10 images one would be left.
    monkeypatch.setattr('xmodal.evaluation.first_captions.BATCH', 9)
    monkeypatch.setattr(sys, 'argv', ['anchor_statistics.py', config, weights])
    anchor_statistics.main()
    assert sum(len(image) for image, _ in seen[::2]) == 10
    for (image, text), (same, other) in zip(seen[::2], seen[1::2], strict=True):
        assert image.equal(same)
        assert not (text == other).all(1).any()
    assert '3.000 │      3.000' in capsys.readouterr().out


@pytest.mark.parametrize(
    'file, found',
    [
        ('temde/saf_temde_shapes', 'model.backbone.position is NoneType, which has no anchors'),
        ('acerpe/vqa_shapes', "AlbefVQA encodes no image and text apart; .*'AlbefPretrainer'"),
    ],
)
def test_models_without_anchors_to_measure_are_refused(
    relocated, tiny_world, tmp_path, monkeypatch, file, found
):
    config = relocated(f'configs/{file}.py', tiny_world)
    config.dump(tmp_path / 'config.py')
    weights = MODELS.build(config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, tmp_path / 'weights.pth')
    arguments = [f'{tmp_path}/config.py', f'{tmp_path}/weights.pth']
    monkeypatch.setattr(sys, 'argv', ['anchor_statistics.py', *arguments])
    with pytest.raises(ConfigError, match=found):
        anchor_statistics.main()
