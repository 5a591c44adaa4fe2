"""The scenes of the embedded world: their objects, and the held-out compositions."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import (
    COLOURS,
    DIRECTIONS,
    OPPOSITE,
    SHAPES,
    Scene,
    SceneObject,
    direction,
    has_held_out_composition,
    is_held_out,
    relation_holds,
    sample_scene,
)

COUNT = 120


@pytest.fixture(scope='module', params=['train', 'val', 'test'])
def split(request):
    return request.param, [sample_scene(0, request.param, index) for index in range(COUNT)]


def object_at(x, y, shape='disc', colour='red'):
    return SceneObject(shape, colour, 'small', 'solid', x, y, 0.08)


def test_a_scene_does_not_depend_on_the_order_of_sampling(split):
    name, scenes = split
    assert [sample_scene(0, name, index) for index in reversed(range(COUNT))] == scenes[::-1]


def test_the_text_that_seeds_annotations_does_not_change():
    disc = SceneObject('disc', 'red', 'small', 'solid', 0.5, 0.25, 0.1)
    assert repr(Scene(3, (disc,), (1, 2, 3))) == (
        "Scene(index=3, things=(Thing(shape='disc', colour='red', size='small', texture='solid', "
        'x=0.5, y=0.25, radius=0.1),), ground=(1, 2, 3))'
    )


def test_another_seed_gives_other_scenes(split):
    name, scenes = split
    assert all(sample_scene(1, name, index) != scenes[index] for index in range(10))


def test_scenes_have_two_to_six_objects(split):
    assert {len(scene.objects) for scene in split[1]} == {2, 3, 4, 5, 6}


def test_objects_do_not_overlap_and_are_inside_the_image(split):
    for scene in split[1]:
        for obj in scene.objects:
            assert obj.radius <= min(obj.x, obj.y, 1 - obj.x, 1 - obj.y)
        for a, b in permutations(scene.objects, 2):
            assert np.hypot(a.x - b.x, a.y - b.y) > a.radius + b.radius


def test_no_scene_is_in_two_splits():
    scenes = [sample_scene(0, name, i) for name in ('train', 'val', 'test') for i in range(COUNT)]
    assert len({scene.objects for scene in scenes}) == len(scenes)


def test_training_and_validation_show_no_held_out_composition_and_test_does(split):
    name, scenes = split
    share = np.mean([has_held_out_composition(scene) for scene in scenes])
    assert 0.3 < share < 0.7 if name == 'test' else share == 0


def test_every_direction_has_different_kinds_that_never_occur_there():
    kinds = [object_at(0, 0, shape, colour) for shape in SHAPES for colour in COLOURS]
    barred = [
        {kind for kind in kinds if all(is_held_out(kind, name, other) for other in kinds)}
        for name in DIRECTIONS
    ]
    assert all(3 <= len(kinds) <= 5 for kinds in barred)
    assert not any(a & b for a, b in permutations(barred, 2))


def test_the_reverse_wording_of_a_held_out_composition_is_held_out():
    kinds = [object_at(0, 0, shape, colour) for shape in ('disc', 'bar') for colour in COLOURS]
    for a, b in permutations(kinds, 2):
        for name in DIRECTIONS:
            assert is_held_out(a, name, b) == is_held_out(b, OPPOSITE[name], a)


@pytest.mark.parametrize(
    ('position', 'expected'),
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
def test_a_direction_needs_one_axis_to_be_clearly_larger(position, expected):
    assert direction(object_at(*position), object_at(0.5, 0.5)) == expected


def test_between_is_true_only_from_opposite_directions():
    low, middle, high = object_at(0.1, 0.5), object_at(0.5, 0.5), object_at(0.9, 0.5)
    assert relation_holds('between', middle, low, high)
    assert relation_holds('between', middle, high, low)
    assert not relation_holds('between', low, middle, high)
    assert not relation_holds('between', middle, high, object_at(0.5, 0.1))
    assert not relation_holds('between', object_at(0.1, 0.1), high, middle)


def test_some_scenes_are_rotated_or_recoloured_counterparts_of_the_scene_before(split):
    rotated = recoloured = 0
    for before, scene in zip(split[1][::2], split[1][1::2], strict=True):
        rotated_objects = tuple(replace(o, x=1 - o.x, y=1 - o.y) for o in before.objects)
        rotated += rotated_objects == scene.objects
        colourless = [[replace(o, colour='') for o in s.objects] for s in (before, scene)]
        recoloured += colourless[0] == colourless[1]
    assert rotated >= 3 and recoloured >= 3


@pytest.mark.parametrize('size', [64, 96])
def test_a_rendered_object_has_its_colour_at_its_position(size):
    blue = SceneObject('disc', 'blue', 'large', 'solid', 0.3, 0.4, 0.15)
    image, (mask,) = render_scene(Scene(0, (blue,), (240, 240, 240)), size)
    assert image.shape == (size, size, 3)
    assert tuple(image[int(0.4 * size), int(0.3 * size)]) == COLOURS['blue']
    assert tuple(image[-1, -1]) == (240, 240, 240)
    assert mask.sum() == pytest.approx(np.pi * (0.15 * size) ** 2, rel=0.05)


def test_masks_are_disjoint_and_cover_all_pixels_that_differ_from_the_background(split):
    for scene in split[1][:30]:
        image, masks = render_scene(scene, 96)
        covered = np.sum(masks, 0)
        assert covered.max() == 1
        # An edge pixel that is covered less than half is tinted but outside the mask.
        near = np.maximum.reduce([np.roll(covered, s, a) for s in (-1, 0, 1) for a in (0, 1)])
        near = np.maximum.reduce([np.roll(near, s, a) for s in (-1, 0, 1) for a in (0, 1)])
        assert (image[near == 0] == scene.ground).all()


def test_textures_look_different_on_the_same_object():
    images = [
        render_scene(
            Scene(0, (SceneObject('star', 'red', 'small', t, 0.5, 0.5, 0.08),), (220,) * 3), 96
        )[0]
        for t in ('solid', 'striped', 'dotted')
    ]
    for a, b in permutations(images, 2):
        assert (np.abs(a.astype(int) - b).max(-1) > 100).sum() > 8
