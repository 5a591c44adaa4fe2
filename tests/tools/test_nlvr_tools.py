"""Boxes of NLVR's objects, and statements about its scenes."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.dataset_converters import nlvr_boxes, nlvr_statements
from xmodal.datasets.nlvr_scene import ORDERS

COLORS = {'Yellow': (0, 255, 255), 'Black': (0, 0, 0), '#0099ff': (255, 153, 0)}  # BGR


def run(monkeypatch, tool, *arguments):
    monkeypatch.setattr(sys, 'argv', ['tool', *map(str, arguments)])
    tool.main()


@pytest.fixture
def scenes(tmp_path):
    """Forty presentations of two scenes, half of them of towers."""
    rng, lines = random.Random(0), []
    for index in range(80):
        boxes = []
        for _ in range(3):
            items = []
            for level in range(rng.randint(1, 4)):
                shape = rng.choice(('square', 'triangle', 'circle'))
                place = (rng.randrange(80), 20 * level)
                if index % 4 < 2:
                    shape, place = 'square', (40, 80 - 20 * level)
                fields = dict(zip(('x_loc', 'y_loc'), place, strict=True))
                items.append(dict(fields, size=20, type=shape, color=rng.choice(list(COLORS))))
            boxes.append(items)
        lines.append(
            dict(
                identifier=f'{index // 2}-{index % 2}',
                structured_rep=boxes,
                label='true',
                sentence='All.',
            )
        )
    file = tmp_path / 'mini.json'
    file.write_text('\n'.join(map(json.dumps, lines)))
    return file


def draw(boxes, order):
    """The image of an order of the boxes."""
    image = np.full((100, 400, 3), 128, np.uint8)
    for place, box in enumerate(order):
        for item in boxes[box]:
            left, top, size = 150 * place + item['x_loc'], item['y_loc'], item['size']
            image[top : top + size, left : left + size] = COLORS[item['color']]
    return image


def test_boxes_are_where_the_items_of_each_order_are(monkeypatch, scenes, tmp_path):
    out = tmp_path / 'instances.json'
    run(monkeypatch, nlvr_boxes, scenes, '--out', out)
    content = json.loads(out.read_text())
    lines = [json.loads(line) for line in scenes.read_text().splitlines()]
    assert len(content['images']) == 6 * len(lines)
    names = {image['id']: image['file_name'] for image in content['images']}
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    assert list(ORDERS) == orders
    boxes = {}
    for annotation in content['annotations']:
        boxes.setdefault(names[annotation['image_id']], []).append(annotation)
    for line in lines[:4]:
        for number, order in enumerate(orders):
            found = boxes[f'mini-{line["identifier"]}-{number}.png']
            grey = [x['bbox'] for x in found if x['category_id'] == 1]
            assert grey == [[0, 0, 100, 100], [150, 0, 100, 100], [300, 0, 100, 100]]
            image = draw(line['structured_rep'], order)
            items = [x['bbox'] for x in found if x['category_id'] == 2]
            assert len(items) == sum(map(len, line['structured_rep']))
            for left, top, width, height in items:
                crop = image[top : top + height, left : left + width].reshape(-1, 3)
                assert (crop != 128).any(1).all()  # nothing but items
    with pytest.raises(FileExistsError, match='already exists'):
        run(monkeypatch, nlvr_boxes, scenes, '--out', out)


@pytest.mark.parametrize('boxes', [(), ('--boxes',)])
def test_a_statement_is_true_of_one_image_and_false_of_another(
    monkeypatch, scenes, tmp_path, boxes
):
    outs = [tmp_path / f'{name}.json' for name in 'abc']
    for out, seed in zip(outs, (0, 0, 1), strict=True):
        run(
            monkeypatch, nlvr_statements, scenes, '--out', out, '--statements', 200,
            '--seed', seed, '--vocab', tmp_path / 'words' / f'{out.stem}.txt', *boxes,
        )  # fmt: skip
    contents = [out.read_text() for out in outs]
    assert contents[0] == contents[1] != contents[2]
    assert (tmp_path / 'words/a.txt').read_text().splitlines()[:2] == ['[PAD]', '[UNK]']
    items = json.loads(contents[0])
    assert len(items) == 400
    for true, false in zip(items[::2], items[1::2], strict=True):
        assert true['sentence'] == false['sentence']
        assert (true['label'], false['label']) == ('true', 'false')
        assert true['images'] != false['images']
    with pytest.raises(FileExistsError, match='already exists'):
        run(monkeypatch, nlvr_statements, scenes, '--out', outs[0])


def test_words_are_learned_from_the_true_statements_about_boxes(monkeypatch, scenes, tmp_path):
    out, words = tmp_path / 'boxes.json', tmp_path / 'words.json'
    options = ('--boxes', '--statements', 50, '--words', words)
    run(monkeypatch, nlvr_statements, scenes, '--out', out, *options)
    true = [item for item in json.loads(out.read_text()) if item['label'] == 'true']
    expected = sorted((Path(item['images'][0]).stem, item['sentence']) for item in true)
    images = json.loads(words.read_text())
    found = [(image['img_id'], text) for image in images for text in image['sentf']['grammar']]
    assert sorted(found) == expected and len(found) == 50


def test_scenes_that_no_statement_tells_apart_are_an_error(monkeypatch, scenes, tmp_path):
    scenes.write_text(scenes.read_text().splitlines()[0])
    with pytest.raises(ValueError, match='no statement .* true of one scene and false of another'):
        run(monkeypatch, nlvr_statements, scenes, '--out', tmp_path / 'out.json')
    assert not (tmp_path / 'out.json').exists()
