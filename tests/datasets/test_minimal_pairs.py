"""Readers of minimal pairs, on files in the layouts in which the benchmarks are published."""

import json
import re

import cv2
import numpy as np
import pytest
import torch
from minimal_pair_files import ATTRIBUTION, ORDER, RELATION, SUGARCREPE, VSR, WINOGROUND

from xmodal.datasets import (
    AroDataset,
    AroOrderDataset,
    SugarCrepeDataset,
    VsrDataset,
    WinogroundDataset,
)
from xmodal.datasets.aro_relations import UNSCORED_RELATIONS
from xmodal.datasets.transforms import BrokenImageError, CropBox
from xmodal.errors import FileError


def write(folder, file, content, images):
    for image in images:
        (folder / 'images' / image).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / 'images' / image), np.zeros((8, 8, 3), np.uint8))
    (folder / file).write_text(content)


def samples(dataset):
    return [dataset.get_data_info(index, None) for index in range(len(dataset))]


def build(reader, folder, files):
    return reader(files, data_root=str(folder), data_prefix={'image': 'images'}, test_mode=True)


def test_a_file_of_sugarcrepe_is_a_skill(tmp_path):
    for name in ('add_att', 'swap_obj'):
        images = ['000000085329.jpg', 'b.jpg']
        write(tmp_path, f'{name}.json', json.dumps(SUGARCREPE), images)
    found = samples(build(SugarCrepeDataset, tmp_path, ['add_att.json', 'swap_obj.json']))
    assert [(s['skill'], s['pair_id']) for s in found] == [
        ('add_att', 'add_att-0'), ('add_att', 'add_att-7'),
        ('swap_obj', 'swap_obj-0'), ('swap_obj', 'swap_obj-7'),
    ]  # fmt: skip
    assert found[0]['text'] == ['a man at a laptop', 'a man at a table']
    assert found[0]['label'] == 0 and found[0]['img_path'].endswith('images/000000085329.jpg')
    assert found[0]['image_id'] == found[2]['image_id'] != found[1]['image_id']


def test_texts_stay_as_they_were_written_where_the_config_says_so(tmp_path):
    write(tmp_path, 'add_att.json', json.dumps(SUGARCREPE), ['000000085329.jpg', 'b.jpg'])
    folders = dict(data_root=str(tmp_path), data_prefix={'image': 'images'}, test_mode=True)
    found = samples(SugarCrepeDataset('add_att.json', max_words=None, **folders))
    first = next(iter(SUGARCREPE.values()))
    assert found[0]['text'] == [first['caption'], first['negative_caption']]
    assert found[0]['text'] != ['a man at a laptop', 'a man at a table']


def test_aro_names_relations_and_pairs_of_attributes_and_the_part_of_the_image(tmp_path):
    write(tmp_path, 'visual_genome_relation.json', json.dumps(RELATION), ['2322999.jpg'])
    write(tmp_path, 'visual_genome_attribution.json', json.dumps(ATTRIBUTION), ['1.jpg'])
    (relation,) = samples(build(AroDataset, tmp_path, 'visual_genome_relation.json'))
    (attribution,) = samples(build(AroDataset, tmp_path, 'visual_genome_attribution.json'))
    assert relation['skill'] == 'to the left of' and attribution['skill'] == 'white_open'
    assert relation['text'][0] == 'the dog is to the left of the cat' and relation['label'] == 0
    pixels = torch.arange(48).view(1, 6, 8)
    cropped = CropBox()({'img': pixels, 'img_path': 'x', 'box': relation['box']})['img']
    assert cropped.tolist() == [[[row * 8 + x for x in range(1, 6)] for row in range(2, 5)]]
    with pytest.raises(BrokenImageError, match=r'x has \(6, 8\) pixels.*\[8, 0, 3, 3\]'):
        CropBox()({'img': pixels, 'img_path': 'x', 'box': [8, 0, 3, 3]})


def test_a_box_of_aro_may_begin_beyond_the_edge_as_some_of_visual_genome_do(tmp_path):
    pairs = [{**RELATION[0], 'bbox_x': -1, 'bbox_y': -2}]
    write(tmp_path, 'relation.json', json.dumps(pairs), ['2322999.jpg'])
    (found,) = samples(build(AroDataset, tmp_path, 'relation.json'))
    pixels = torch.arange(48).view(1, 6, 8)
    cropped = CropBox()({'img': pixels, 'img_path': 'x', 'box': found['box']})['img']
    assert torch.equal(cropped, pixels[:, :1, :4])


@pytest.mark.parametrize('side', 'xy')
def test_a_box_of_aro_that_ends_before_its_image_begins_is_named_at_once(tmp_path, side):
    places = dict(bbox_x=1, bbox_y=2, bbox_w=9, bbox_h=9) | {f'bbox_{side}': -9}
    pairs = [RELATION[0], RELATION[0] | places]
    write(tmp_path, 'relation.json', json.dumps(pairs), ['2322999.jpg'])
    box = re.escape(str([*places.values()]))
    message = rf'relation\.json .* after 1 records: the box of 2322999\.jpg ends .*: {box}'
    with pytest.raises(FileError, match=message):
        build(AroDataset, tmp_path, 'relation.json')


def test_relations_that_aro_does_not_score_are_dropped_and_counted(tmp_path, monkeypatch):
    log = []
    monkeypatch.setattr('xmodal.datasets.minimal_pairs.print_log', lambda text, _: log.append(text))
    names = ['next to', 'to the left of', 'sitting on', 'lying on top of', 'with', 'wearing']
    pairs = [{**RELATION[0], 'relation_name': name} for name in names]
    write(tmp_path, 'relation.json', json.dumps(pairs), ['2322999.jpg'])
    found = samples(build(AroDataset, tmp_path, 'relation.json'))
    assert [sample['skill'] for sample in found] == ['to the left of', 'sitting on', 'wearing']
    assert [sample['pair_id'] for sample in found] == ['relation-1', 'relation-2', 'relation-5']
    assert len(log) == 1 and '3 pairs dropped' in log[0]
    assert len(UNSCORED_RELATIONS) == 157  # names in the list of ARO's notebook


def test_an_order_that_is_the_caption_is_no_false_one(tmp_path):
    write(tmp_path, 'coco_order.json', json.dumps(ORDER), [ORDER[0]['image']])
    (found,) = samples(build(AroOrderDataset, tmp_path, 'coco_order.json'))
    assert found['text'] == ['a man rides', 'man a rides', 'rides man a', 'rides a']
    assert found['label'] == 0 and found['skill'] == 'order'


@pytest.mark.parametrize('max_words', [30, None])
def test_an_order_that_a_tagger_only_spaced_is_no_false_one(tmp_path, max_words):
    caption = "a man's t-shirt, red"  # ARO joins the tokens of its tagger with spaces
    options = [caption, "a man 's t - shirt , red", "man a 's t - shirt , red"]
    images = [ORDER[0]['image']]
    write(tmp_path, 'order.json', json.dumps([{**ORDER[0], 'caption_options': options}]), images)
    folders = dict(data_root=str(tmp_path), data_prefix={'image': 'images'}, test_mode=True)
    (found,) = samples(AroOrderDataset('order.json', max_words=max_words, **folders))
    assert len(found['text']) == 2 and found['text'][1].startswith('man a')


def test_an_example_of_winoground_is_two_samples_of_one_group(tmp_path):
    images = ['ex_0_img_0.png', 'ex_0_img_1.png']
    write(tmp_path, 'examples.jsonl', json.dumps(WINOGROUND) + '\n', images)
    first, second = samples(build(WinogroundDataset, tmp_path, 'examples.jsonl'))
    assert first['text'] == second['text'] == [WINOGROUND['caption_0'], WINOGROUND['caption_1']]
    assert (first['label'], second['label']) == (0, 1)
    assert first['group'] == second['group'] == '0' and first['pair_id'] != second['pair_id']
    assert second['img_path'].endswith('ex_0_img_1.png') and first['skill'] == 'Object'


def test_a_statement_of_vsr_is_one_text_with_its_truth(tmp_path):
    lines = [VSR, {**VSR, 'label': 0}]
    content = ''.join(json.dumps(line) + '\n' for line in lines)
    write(tmp_path, 'test.jsonl', content, [VSR['image']])
    true, false = samples(build(VsrDataset, tmp_path, 'test.jsonl'))
    assert true['text'] == ['the bowl is at the left side of the banana']
    assert (true['label'], false['label']) == (1, 0) and true['skill'] == VSR['relation']
    (tmp_path / 'test.jsonl').write_text(json.dumps({**VSR, 'label': 2}))
    with pytest.raises(ValueError, match='line 1: label is 2, expected 0 or 1'):
        build(VsrDataset, tmp_path, 'test.jsonl')


@pytest.mark.parametrize(
    'files, ids',
    [
        (['a/relation.json', 'b/attribution.json'], ['relation-0', 'attribution-0']),
        (['a/test.json', 'b/test.json'], ['a/test.json-0', 'b/test.json-0']),
        (['b/test.json', 'b/test.jsonl'], ['test.json-0', 'test.jsonl-0']),
    ],
)
def test_pairs_of_several_files_have_different_ids(tmp_path, files, ids):
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        write(tmp_path, file, json.dumps(RELATION), [RELATION[0]['image_path']])
    assert [sample['pair_id'] for sample in samples(build(AroDataset, tmp_path, files))] == ids
