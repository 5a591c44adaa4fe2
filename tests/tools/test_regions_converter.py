"""Converting files of region features to stores, and LXMERT's tables of answers."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tools.dataset_converters import lxmert_answers, regions
from xmodal.datasets import GqaDataset, Nlvr2Dataset, RegionStore, VqaDataset, stack_regions
from xmodal.datasets.region_tsv import write_region_tsv
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.datasets.shapes.regions import FEATURE_DIMS

SAMPLE = Path('data/lxmert_obj36_sample')
FIXTURES = Path('data/vl_fixtures')
needs_sample = pytest.mark.skipif(
    not (SAMPLE.exists() and FIXTURES.exists()),
    reason='needs data/lxmert_obj36_sample and data/vl_fixtures: published rows and items',
)


def run(monkeypatch, module, *arguments):
    monkeypatch.setattr(sys, 'argv', ['converter', *map(str, arguments)])
    module.main()


def convert(monkeypatch, world, out, *options):
    files = [world / f'regions/{split}_obj36.tsv' for split in ('train', 'test')]
    run(monkeypatch, regions, 'tsv', *files, '--out', out, '--feature-dims', FEATURE_DIMS, *options)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_all_files_become_one_store(tiny_world, tmp_path, monkeypatch):
    convert(monkeypatch, tiny_world, tmp_path / 'store')
    store, expected = RegionStore(tmp_path / 'store'), RegionStore(tiny_world / 'regions/store')
    assert len(store) == 32 + 10
    for image in ('train_000031', 'test_000000'):
        features = store[image].features.half().float()  # the store of the world has float16
        assert torch.equal(features, expected[image].features)
        assert torch.equal(store[image].boxes, expected[image].boxes)
        assert torch.equal(store[image].labels.attributes, expected[image].labels.attributes)


@pytest.mark.parametrize('after', [1, 31, 35])
def test_a_killed_command_run_again_gives_the_same_store(tiny_world, tmp_path, monkeypatch, after):
    convert(monkeypatch, tiny_world, tmp_path / 'uninterrupted')
    append = RegionStoreWriter.append

    def append_or_interrupt(self, image):
        if self.images == after:
            raise KeyboardInterrupt
        append(self, image)

    with monkeypatch.context() as killed:
        killed.setattr(RegionStoreWriter, 'append', append_or_interrupt)
        with pytest.raises(KeyboardInterrupt):
            convert(killed, tiny_world, tmp_path / 'again', '--checkpoint', 0)
    appended = []
    monkeypatch.setattr(
        RegionStoreWriter, 'append', lambda s, i: (appended.append(i), append(s, i))
    )
    convert(monkeypatch, tiny_world, tmp_path / 'again', '--checkpoint', 0)
    assert len(appended) == 42 - after  # stored images are not read again
    assert content(tmp_path / 'again') == content(tmp_path / 'uninterrupted')


def test_an_invalid_row_is_named_with_file_and_line(tiny_world, tmp_path, monkeypatch):
    lines = (tiny_world / 'regions/test_obj36.tsv').read_text().splitlines()
    lines[3] = lines[3][:-3000]
    (tmp_path / 'cut.tsv').write_text('\n'.join(lines))
    arguments = ('tsv', tmp_path / 'cut.tsv', '--feature-dims', FEATURE_DIMS)
    with pytest.raises(ValueError, match='cut.tsv cannot be read: line 4: features'):
        run(monkeypatch, regions, *arguments, '--out', tmp_path / 'store')


def test_the_files_of_scan_become_a_store_without_padding(tmp_path, monkeypatch):
    features = np.random.default_rng(0).random((3, 4, 5), np.float32)
    features[1, 2:] = 0
    np.save(tmp_path / 'dev_ims.npy', features)
    (tmp_path / 'dev_caps.txt').write_text('one\ntwo\nthree\n')
    names = 'COCO_val2014_000000391895', '007', '9'  # the stems of the files of images
    (tmp_path / 'dev_ids.txt').write_text('\n'.join(names))
    run(monkeypatch, regions, 'precomp', tmp_path, '--split', 'dev', '--out', tmp_path / 'store')
    store = RegionStore(tmp_path / 'store')
    assert [len(store[name].features) for name in names] == [4, 2, 4]
    assert np.array_equal(store['9'].features, features[2])
    assert store[names[0]].boxes is None and store[names[0]].labels is None


def test_boxes_that_were_rounded_out_of_the_image_end_at_its_border(tmp_path, monkeypatch):
    np.save(tmp_path / 'dev_ims.npy', np.ones((1, 2, 5), np.float32))
    boxes = [[[-0.0004, 0.25, 1.0004, 0.5], [0.5, 0.5, 0.75, 1]]]
    np.save(tmp_path / 'dev_boxes.npy', np.array(boxes, np.float32))
    (tmp_path / 'dev_caps.txt').write_text('one\n')
    (tmp_path / 'dev_ids.txt').write_text('7\n')
    run(monkeypatch, regions, 'precomp', tmp_path, '--split', 'dev', '--out', tmp_path / 'store')
    found = RegionStore(tmp_path / 'store')['7'].boxes
    assert found.tolist() == [[0, 0.25, 1, 0.5], [0.5, 0.5, 0.75, 1]]


def dump(file, value):
    file.write_text(json.dumps(value))
    return file


def test_a_table_is_built_from_the_answers_of_the_pre_training_files(tmp_path, monkeypatch):
    labels = {'vqa': [{'Two': 1, 'a dog': 0.3}, {}], 'gqa': [{'2.': 1}, {'grey': 1}]}
    first = dump(tmp_path / 'a.json', [{'img_id': '1', 'sentf': {}, 'labelf': labels}])
    second = dump(
        tmp_path / 'b.json',
        [{'img_id': '2', 'sentf': {'mscoco': ['x']}}, {'labelf': {'vqa': [{'gray': 0.9}]}}],
    )
    run(monkeypatch, lxmert_answers, first, second, '--out', tmp_path / 'all.json')
    assert json.loads((tmp_path / 'all.json').read_text()) == ['2', 'gray', 'dog']
    options = ('--least', 2, '--most', 1)
    run(monkeypatch, lxmert_answers, first, second, '--out', tmp_path / 'few.json', *options)
    assert json.loads((tmp_path / 'few.json').read_text()) == ['2']
    with pytest.raises(FileExistsError, match='few.json already exists'):
        run(monkeypatch, lxmert_answers, first, '--out', tmp_path / 'few.json')


def test_the_published_table_keeps_its_order(tmp_path, monkeypatch):
    table = [{'ans': answer, 'dsets': ['vqa']} for answer in ('zebra', 'yes', 'ant')]
    file = dump(tmp_path / 'all_ans.json', table)
    run(monkeypatch, lxmert_answers, file, '--out', tmp_path / 'out.json')
    assert json.loads((tmp_path / 'out.json').read_text()) == ['zebra', 'yes', 'ant']


def test_the_table_of_the_embedded_world_is_its_answer_list(tiny_world, tmp_path, monkeypatch):
    file = tiny_world / 'lxmert/all_ans.json'
    run(monkeypatch, lxmert_answers, file, '--out', tmp_path / 'out.json')
    expected = json.loads((tiny_world / 'lxmert/answer_list.json').read_text())
    assert json.loads((tmp_path / 'out.json').read_text()) == expected


@pytest.fixture(scope='module')
def published_rows(tmp_path_factory):
    """A store of ten published rows of LXMERT's features."""
    out = tmp_path_factory.mktemp('regions') / 'store'
    with pytest.MonkeyPatch.context() as patch:
        run(patch, regions, 'tsv', SAMPLE / 'train2014_obj36.tsv', '--out', out)
    return out


@needs_sample
def test_published_rows_are_read_as_by_the_reference_code(published_rows):
    store = RegionStore(published_rows)
    lines = (SAMPLE / 'train2014_obj36.tsv').read_text().splitlines()
    assert len(store) == len(lines) == 10
    for line in lines:
        name, height, width, objects, confidences, *_, boxes, features = line.split('\t')
        regions_of_image = store[name]

        def decode(cell, dtype):
            return np.frombuffer(base64.b64decode(cell), dtype)

        expected = decode(boxes, np.float32).reshape(36, 4).copy()
        expected[:, (0, 2)] /= int(width)
        expected[:, (1, 3)] /= int(height)
        assert np.array_equal(regions_of_image.boxes, expected)
        assert np.array_equal(
            regions_of_image.features, decode(features, np.float32).reshape(36, 2048)
        )
        assert np.array_equal(regions_of_image.labels.objects, decode(objects, np.int64))
        assert np.array_equal(
            regions_of_image.labels.object_confidences, decode(confidences, np.float32)
        )
        assert (SAMPLE / 'images' / f'{name}.jpg').exists()


@needs_sample
def test_published_rows_are_written_to_the_same_file(published_rows, tmp_path):
    write_region_tsv(tmp_path / 'again.tsv', RegionStore(published_rows).images())
    published = (SAMPLE / 'train2014_obj36.tsv').read_bytes()
    assert (tmp_path / 'again.tsv').read_bytes().split() == published.split()


@needs_sample
def test_official_items_of_vqa_gqa_and_nlvr2_are_read_with_published_regions(
    published_rows, tmp_path
):
    """The ten rows are renamed to the images of the items, since theirs are only in large files."""
    names = [
        file.stem
        for name in ('vqav2', 'gqa', 'nlvr2')
        for file in sorted((FIXTURES / 'images' / name).iterdir())
    ]
    rows = list(RegionStore(published_rows).images())
    with RegionStoreWriter(tmp_path / 'store', 'renamed') as writer:
        for index, name in enumerate(names):
            writer.append(rows[index % 10]._replace(image_id=name))
        writer.finish()
    fields = {
        'vqa': ('question_id', 'human_answers'),
        'gqa': ('question_id', 'gqa'),
        'nlvr2': ('label', 'group'),
    }
    arguments = {
        name: dict(
            data_root=str(FIXTURES),
            pipeline=[
                dict(type='LoadRegions', store=str(tmp_path / 'store')),
                dict(type='PackRegionText', fields=names_of_fields),
            ],
            test_mode=True,
        )
        for name, names_of_fields in fields.items()
    }
    vqa = VqaDataset(
        'vqav2/questions.json', answer_file='vqav2/annotations.json', **arguments['vqa']
    )
    gqa = GqaDataset('gqa/questions.json', **arguments['gqa'])
    nlvr2 = Nlvr2Dataset('nlvr2/tiny-dev.json', **arguments['nlvr2'])
    batches = [stack_regions([dataset[0]]) for dataset in (gqa, nlvr2)]
    assert [tuple(batch['inputs'].features.shape) for batch in batches] == [
        (1, 36, 2048),
        (2, 36, 2048),
    ]
    expected = dict(zip(names, rows * 5, strict=False))['n578564'].features
    assert np.array_equal(batches[0]['inputs'].features[0], expected)
    assert vqa[0]['data_samples'].human_answers[0] == 'net'
