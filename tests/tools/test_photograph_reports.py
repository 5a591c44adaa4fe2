"""Reports of models of grid features: drawn scenes in place of photographs, random encoders."""

import base64
import json
import re
import sys
from pathlib import Path
from shutil import copytree

import cv2
import numpy as np
import pytest
import torch

from tools.analysis import report
from xmodal.apis import Inferencer
from xmodal.engine.launch import build_runner
from xmodal.visualization.figures import highlight_patches, overlay_heatmap, to_uri
from xmodal.visualization.retrieval_examples import read_thumbnail


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A place for the run that both tests read: the first one of them trains it."""
    return tmp_path_factory.mktemp('report') / 'run'


@pytest.fixture
def config(grid_config, trained, tmp_path):
    """A tested run of re-ranking on grid features, with small encoders, on the embedded world."""
    torch.manual_seed(0)
    config = grid_config('configs/acerpe/retrieval_flickr8k_grid.py')
    config.model.backbone.fusion.update(embed_dims=32, num_heads=2, feedforward_dims=32)
    config.model.backbone.position.delta = 0.2  # some words are anchors
    config.default_hooks.logger.interval = 5
    config.work_dir = str(trained)
    config.test_cfg.save_rankings = f'{config.work_dir}/rankings.json'
    if not trained.exists():
        runner = build_runner(config)
        runner.train()
        runner.test()
    config.work_dir = str(copytree(trained, tmp_path / 'run'))
    config.test_cfg.save_rankings = f'{config.work_dir}/rankings.json'
    return config


@pytest.fixture
def write(config, monkeypatch):
    """A function that writes the report and returns it."""

    def run():
        monkeypatch.setattr(sys, 'argv', ['report.py', config.work_dir])
        report.main()
        return Path(config.work_dir, 'report.html').read_text(encoding='utf-8')

    return run


def shown(page, alt):
    return re.findall(rf'src="(data:\S+)" alt="{alt}"', page)


def test_it_shows_images_with_heat_maps_and_anchors_of_their_cells(config, write):
    page = write()
    for uri in re.findall(r'src="(\S+)"', page):
        pixels = np.frombuffer(base64.b64decode(uri.partition(',')[2]), np.uint8)
        assert cv2.imdecode(pixels, cv2.IMREAD_COLOR).shape == (32, 32, 3)
    rankings = json.loads(Path(config.test_cfg.save_rankings).read_text())
    images = [to_uri(read_thumbnail(path)) for path in rankings['images']]
    assert len(shown(page, 'rank 1')) == 4 and {*shown(page, 'rank 1')} <= {*images}
    assert len(shown(page, 'query')) == 4 and {*shown(page, 'query')} <= {*images}

    inferencer = Inferencer(config, f'{config.work_dir}/epoch_1.pth')
    of_words = re.findall(r'alt="Grad-CAM of (\w+)"><img src="(\S+)" alt="anchors of (\w+)"', page)
    queries = [images.index(uri) for uri in shown(page, 'image')]
    assert len(queries) == 4 and len(of_words) >= 4
    anchor_maps = set()
    for row, whole in zip(queries, shown(page, 'whole text'), strict=True):
        path = rankings['images'][row]
        text = rankings['texts'][rankings['text_to_image'].index(row)]
        (heat,) = inferencer.heatmap([path], [text])
        assert heat.shape == (3, 3) and heat.max() > heat.min() >= 0
        assert whole == to_uri(overlay_heatmap(read_thumbnail(path), heat.numpy()))
        words = inferencer.anchors(path, text)
        anchor_maps |= {
            (x.word, to_uri(highlight_patches(read_thumbnail(path), x.share))) for x in words
        }
    for of_map, uri, word in of_words:
        assert of_map == word and (word, uri) in anchor_maps
    assert any(x.is_anchor for x in words)


def test_images_that_are_not_there_are_named(config, write):
    file = Path(config.test_cfg.save_rankings)
    rankings = json.loads(file.read_text())
    rankings['images'] = [f'elsewhere/{Path(path).name}' for path in rankings['images']]
    file.write_text(json.dumps(rankings))
    page = write()
    assert 'data:image' not in page and '<h2>Heat maps' not in page
    assert len(re.findall(r'\d\. elsewhere/', page)) == 12
