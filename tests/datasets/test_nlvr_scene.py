"""NLVR's scenes, read from its files."""

import json

import pytest

from xmodal.datasets.nlvr_scene import Item, read_scenes
from xmodal.files import FileError


def item(color, shape, left, top, size):
    return {'color': color, 'type': shape, 'x_loc': left, 'y_loc': top, 'size': size}


def write(folder, *scenes):
    file = folder / 'mini.json'
    lines = [
        {'identifier': f'7-{i}', 'structured_rep': boxes, 'label': 'true', 'sentence': 'A.'}
        for i, boxes in enumerate(scenes)
    ]
    file.write_text('\n'.join(map(json.dumps, lines)))
    return file


def test_items_are_ordered_upwards_and_measured_from_the_walls(tmp_path):
    top, base = item('Black', 'circle', 70, 5, 30), item('#0099ff', 'square', 0, 80, 20)
    (scene,) = read_scenes(write(tmp_path, [[top, base], [top], [base]]))
    assert scene.identifier == '7-0' and not scene.has_towers
    blue, black = scene.boxes[0]
    assert blue == Item('blue', 'square', 0, 80, 20) and black.color == 'black'
    assert (blue.left, blue.bottom_gap, blue.right_gap) == (0, 0, 80)
    assert (black.right_gap, black.bottom_gap) == (0, 65)
    assert len(scene.items) == 4


def test_towers_are_squares_above_each_other(tmp_path):
    blocks = [item('Yellow', 'square', 40, top, 20) for top in (80, 59, 38)]
    (scene,) = read_scenes(write(tmp_path, [blocks, blocks[:1], blocks[:2]]))
    assert scene.has_towers


@pytest.mark.parametrize(
    ('boxes', 'message'),
    [
        ([[item('Black', 'circle', 0, 0, 10)]] * 2, 'structured_rep.*three lists of items'),
        ([[item('Black', 'circle', 0, 0, 10)], [], []], 'three lists of items'),
        ([[item('Red', 'circle', 0, 0, 10)]] * 3, "color.*'Red'.*'Yellow'"),
        ([[item('Black', 'star', 0, 0, 10)]] * 3, "type.*'star'.*'square'"),
        ([[item('Black', 'circle', 95, 0, 10)]] * 3, 'size.*100 × 100'),
        ([[item('Black', 'circle', -1, 0, 10)]] * 3, 'x_loc'),
        ([[item('Black', 'circle', 0, 0, 0)]] * 3, 'size'),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, boxes, message):
    with pytest.raises(FileError, match=message) as error:
        list(read_scenes(write(tmp_path, boxes)))
    assert 'mini.json' in str(error.value) and 'line 1' in str(error.value)


def test_a_file_without_a_line_is_an_error(tmp_path):
    with pytest.raises(FileError, match='mini.json .*it has no line'):
        list(read_scenes(write(tmp_path)))
