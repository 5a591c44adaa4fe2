"""Readers of phrases with boxes, Flickr30k Entities' files and lists."""

import json

import cv2
import numpy as np
import pytest

from xmodal.datasets import EntitiesDataset, PhraseListDataset

FIELDS = ('ref_id', 'sent_id', 'split', 'size', 'box', 'proposals')
TRAIN = [dict(type='LoadImage'), dict(type='PackImageText')]
TEST = [dict(type='LoadImage'), dict(type='PackImageText', fields=FIELDS)]

SENTENCES = (
    '[/EN#40/people A man] and [/EN#41/people/other two girls] eat on [/EN#42/scene a lawn] .\n'
    '[/EN#0/notvisual It] shows [/EN#41/people The "girls"] .\n'
)


def annotated_object(content, *names):
    return f'<object>{"".join(f"<name>{name}</name>" for name in names)}{content}</object>'


def bounding_box(left, top, right, bottom):
    corners = zip(('xmin', 'ymin', 'xmax', 'ymax'), (left, top, right, bottom), strict=True)
    return f'<bndbox>{"".join(f"<{name}>{n}</{name}>" for name, n in corners)}</bndbox>'


# A man with one box, two girls with a box each, a lawn that is the whole scene.
ANNOTATIONS = (
    '<annotation><filename>7.jpg</filename>'
    '<size><width>30</width><height>20</height><depth>3</depth></size>'
    + annotated_object(bounding_box(1, 1, 10, 20), 40)
    + annotated_object(bounding_box(12, 5, 18, 19), 41)
    + annotated_object(bounding_box(20, 3, 30, 15), 41)
    + annotated_object('<scene>1</scene><nobndbox>0</nobndbox>', 42)
    + '</annotation>'
)


@pytest.fixture
def entities(tmp_path):
    """A folder in the layout of Flickr30k Entities with one annotated image."""
    for folder, name, content in (
        ('Sentences', '7.txt', SENTENCES),
        ('Annotations', '7.xml', ANNOTATIONS),
        ('', 'test.txt', '7\n'),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(content)
    for name in ('7.jpg', '8.jpg'):
        cv2.imwrite(str(tmp_path / name), np.full((20, 30, 3), 90, np.uint8))
    return dict(data_root=str(tmp_path))


def read(dataset):
    return [sample['data_samples'] for sample in dataset]


def test_a_phrase_gets_the_box_around_all_its_boxes_and_needs_at_least_one(entities):
    samples = read(EntitiesDataset('test.txt', test_mode=True, pipeline=TEST, **entities))
    assert [(s.text, s.box) for s in samples] == [
        ('a man', [0, 0, 10, 20]),
        ('two girls', [11, 2, 19, 17]),  # columns 12 to 30, rows 3 to 19
        ('the girls', [11, 2, 19, 17]),
    ]
    assert [s.sent_id for s in samples] == [0, 1, 2]
    assert {(s.image_id, s.split, s.size) for s in samples} == {(7, 'test', (20, 30))}
    assert all(s.proposals == [[0, 0, 10, 20], [11, 2, 19, 17]] for s in samples)


def test_a_byte_order_mark_does_not_belong_to_the_first_id(entities, tmp_path):
    for name in ('test.txt', 'Sentences/7.txt'):
        (tmp_path / name).write_text((tmp_path / name).read_text(), encoding='utf-8-sig')
    assert len(EntitiesDataset('test.txt', pipeline=TRAIN, **entities)) == 3


def test_training_samples_have_phrases_without_boxes(entities):
    samples = read(EntitiesDataset('test.txt', pipeline=TRAIN, **entities))
    assert [s.text for s in samples] == ['a man', 'two girls', 'the girls']
    assert not any(hasattr(s, name) for s in samples for name in FIELDS)


def test_a_detectors_boxes_can_be_the_proposals(entities, tmp_path):
    (tmp_path / 'dets.json').write_text(json.dumps({'7': [[1, 2, 3, 4]]}))
    test = EntitiesDataset(
        'test.txt', proposals='dets.json', test_mode=True, pipeline=TEST, **entities
    )
    assert read(test)[0].proposals == [[1, 2, 3, 4]]


def test_missing_files_and_files_with_another_layout_are_named(entities, tmp_path):
    (tmp_path / 'Annotations/7.xml').write_text('<annotation><size></size></annotation>')
    with pytest.raises(ValueError, match=r'7\.xml cannot be read as annotations of Flickr30k'):
        EntitiesDataset('test.txt', **entities)
    (tmp_path / 'Annotations/7.xml').unlink()
    with pytest.raises(FileNotFoundError, match=r'Annotations/7\.xml does not exist'):
        EntitiesDataset('test.txt', **entities)


def item(image, phrase, corners, split='dev'):
    return dict(
        image=image, phrase=phrase, box_xyxy=corners, width=60, height=40, flickr8k_split=split
    )


@pytest.fixture
def write(entities, tmp_path):
    """Writes a list, and gives the arguments of its reader."""

    def make(items):
        (tmp_path / 'list.json').write_text(json.dumps(items))
        return dict(
            ann_file='list.json',
            split_key='flickr8k_split',
            test_mode=True,
            pipeline=TEST,
            **entities,
        )

    return make


def test_the_proposals_of_a_list_are_the_distinct_boxes_of_the_image(write):
    args = write(
        [
            item('7.jpg', 'A red ball', [1, 1, 30, 20]),
            item('8.jpg', 'a dog', [1, 1, 5, 5], split='train'),
            item('7.jpg', 'ball', [1, 1, 30, 20]),
            item('7.jpg', 'grass', [11.0, 21.0, 60.0, 40.0]),
        ]
    )
    samples = read(PhraseListDataset(split='dev', **args))
    assert [(s.text, s.sent_id, s.split) for s in samples] == [
        ('a red ball', 0, 'dev'),
        ('ball', 2, 'dev'),
        ('grass', 3, 'dev'),
    ]
    assert samples[2].box == [10, 20, 50, 20] and samples[2].size == (40, 60)
    assert all(s.proposals == [[0, 0, 30, 20], [10, 20, 50, 20]] for s in samples)
    all_splits = read(PhraseListDataset(**args))
    assert [s.image_id for s in all_splits] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (dict(box_xyxy=[5, 5, 4, 9]), r'box \[5, 5, 4, 9\] ends before it begins'),
        (
            dict(box_xyxy=[5, 5, float('nan'), 9]),
            r'box \[5, 5, nan, 9\] is not of four numbers of pixels',
        ),
        (
            dict(box_xyxy=[5, 5, float('inf'), 9]),
            r'box \[5, 5, inf, 9\] is not of four numbers of pixels',
        ),
        (dict(box_xyxy=[5, 5, 9]), r'box \[5, 5, 9\] is not of four numbers'),
        (dict(width=-30), r'height and width of 7\.jpg are \[40, -30\], expected whole'),
        (dict(height=float('nan')), r'height and width of 7\.jpg are \[nan, 60\], expected'),
        (dict(flickr8k_split='test'), 'no record in'),
    ],
)
def test_an_invalid_list_is_an_error_that_names_it(write, change, message):
    args = write([item('7.jpg', 'a ball', [1, 1, 2, 2]) | change])
    with pytest.raises(ValueError, match=rf'(?s)(list\.json.*{message}|{message}.*list\.json)'):
        PhraseListDataset(split='dev', **args)
