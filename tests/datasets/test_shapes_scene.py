"""The scenes of the embedded world: what they hold, and what training lacks."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from xmodal.datasets.shapes.draw import draw_scene
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    OPPOSITE,
    SHAPES,
    Scene,
    Thing,
    direction,
    holds_held_out,
    is_held_out,
    sample_scene,
    stands,
)

COUNT = 120


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def split(request):
    return request.param, [sample_scene(0, request.param, index) for index in range(COUNT)]


def thing_at(x, y, shape='disc', colour='red'):
    return Thing(shape, colour, 'small', 'solid', x, y, 0.08)


def test_a_scene_is_the_same_whenever_it_is_drawn(split):
    name, scenes = split
    assert [sample_scene(0, name, index) for index in reversed(range(COUNT))] == scenes[::-1]


def test_another_seed_gives_other_scenes(split):
    name, scenes = split
    assert all(sample_scene(1, name, index) != scenes[index] for index in range(10))


def test_scenes_hold_two_to_six_things(split):
    assert {len(scene.things) for scene in split[1]} == {2, 3, 4, 5, 6}


def test_things_do_not_overlap_and_lie_inside_the_picture(split):
    for scene in split[1]:
        for thing in scene.things:
            assert thing.radius <= min(thing.x, thing.y, 1 - thing.x, 1 - thing.y)
        for a, b in permutations(scene.things, 2):
            assert np.hypot(a.x - b.x, a.y - b.y) > a.radius + b.radius


def test_no_scene_is_in_two_splits():
    scenes = [sample_scene(0, name, i) for name in ('train', 'val', 'test') for i in range(COUNT)]
    assert len({scene.things for scene in scenes}) == len(scenes)


def test_training_and_validation_show_no_held_out_composition_and_test_does(split):
    name, scenes = split
    share = np.mean([holds_held_out(scene) for scene in scenes])
    assert 0.3 < share < 0.7 if name == 'test' else share == 0


def test_every_direction_has_kinds_that_never_lie_there_and_that_lie_elsewhere():
    kinds = [thing_at(0, 0, shape, colour) for shape in SHAPES for colour in COLOURS]
    barred = [
        {kind for kind in kinds if all(is_held_out(kind, name, other) for other in kinds)}
        for name in DIRECTIONS
    ]
    assert all(3 <= len(kinds) <= 5 for kinds in barred)
    assert not any(a & b for a, b in permutations(barred, 2))


def test_held_out_is_the_same_in_the_reverse_wording():
    kinds = [thing_at(0, 0, shape, colour) for shape in ('disc', 'bar') for colour in COLOURS]
    for a, b in permutations(kinds, 2):
        for name in DIRECTIONS:
            assert is_held_out(a, name, b) == is_held_out(b, OPPOSITE[name], a)


@pytest.mark.parametrize(
    ('place', 'expected'),
    [
        ((0.2, 0.5), 'left of'),
        ((0.8, 0.5), 'right of'),
        ((0.5, 0.2), 'above'),
        ((0.5, 0.8), 'below'),
        ((0.2, 0.2), None),
        ((0.2, 0.31), 'left of'),
        ((0.2, 0.29), None),
    ],
)
def test_a_direction_needs_one_axis_to_win_clearly(place, expected):
    assert direction(thing_at(*place), thing_at(0.5, 0.5)) == expected


def test_between_is_true_from_opposite_directions_only():
    low, middle, high = thing_at(0.1, 0.5), thing_at(0.5, 0.5), thing_at(0.9, 0.5)
    assert stands('between', middle, low, high)
    assert stands('between', middle, high, low)
    assert not stands('between', low, middle, high)
    assert not stands('between', middle, high, thing_at(0.5, 0.1))
    assert not stands('between', thing_at(0.1, 0.1), high, middle)


def test_some_scenes_are_turned_or_recoloured_twins_of_the_one_before(split):
    turned = recoloured = 0
    for before, scene in zip(split[1][::2], split[1][1::2], strict=True):
        back = tuple(replace(t, x=1 - t.x, y=1 - t.y) for t in before.things)
        turned += back == scene.things
        bare = [[replace(t, colour='') for t in s.things] for s in (before, scene)]
        recoloured += bare[0] == bare[1]
    assert turned >= 3 and recoloured >= 3


@pytest.mark.parametrize('size', [64, 96])
def test_a_drawn_thing_has_its_colour_at_its_place(size):
    blue = Thing('disc', 'blue', 'large', 'solid', 0.3, 0.4, 0.15)
    image, (mask,) = draw_scene(Scene(0, (blue,), (240, 240, 240)), size)
    assert image.shape == (size, size, 3)
    assert tuple(image[int(0.4 * size), int(0.3 * size)]) == COLOURS['blue']
    assert tuple(image[-1, -1]) == (240, 240, 240)
    assert mask.sum() == pytest.approx(np.pi * (0.15 * size) ** 2, rel=0.05)


def test_masks_are_apart_and_cover_all_that_differs_from_the_ground(split):
    for scene in split[1][:30]:
        image, masks = draw_scene(scene, 96)
        covered = np.sum(masks, 0)
        assert covered.max() == 1
        # An edge pixel less than half covered is tinted, yet outside the mask.
        near = np.maximum.reduce([np.roll(covered, s, a) for s in (-1, 0, 1) for a in (0, 1)])
        near = np.maximum.reduce([np.roll(near, s, a) for s in (-1, 0, 1) for a in (0, 1)])
        assert (image[near == 0] == scene.ground).all()


def test_textures_look_different_on_the_same_thing():
    images = [
        draw_scene(Scene(0, (Thing('star', 'red', 'small', t, 0.5, 0.5, 0.08),), (220,) * 3), 96)[0]
        for t in ('solid', 'striped', 'dotted')
    ]
    for a, b in permutations(images, 2):
        assert (np.abs(a.astype(int) - b).max(-1) > 100).sum() > 8
