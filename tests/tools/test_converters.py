"""Converters to ALBEF's format, on small inputs in the published layouts."""

import json
import sys
from importlib import import_module

import pytest

from tools.dataset_converters import (
    albef_paths,
    csv_to_albef,
    flickr8k,
    img2dataset,
    visual_genome,
)
from xmodal.engine.errors import run_or_explain


def run(monkeypatch, module, *arguments):
    monkeypatch.setattr(sys, 'argv', ['converter', *map(str, arguments)])
    module.main()


def touch(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def load(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ('suffix', 'separator'), [('csv', ','), ('TSV', '\t'), ('txt', ','), ('csv', ';')]
)
def test_a_table_becomes_a_list_with_one_item_per_image(tmp_path, monkeypatch, suffix, separator):
    touch(tmp_path, 'a/1.jpg', '2.jpg')
    table = tmp_path / f'captions.{suffix}'
    rows = (
        ('image', 'caption'),
        ('a/1.jpg', '"one, two; three"'),
        ('2.jpg', 'three'),
        ('a/./1.jpg', 'four'),
    )
    lines = ''.join(f'{separator.join(row)}\r\n' for row in rows)
    table.write_bytes(lines.encode('utf-8-sig'))  # as Excel does
    out = tmp_path / 'train.json'
    run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)
    assert load(out) == [
        {'image': 'a/1.jpg', 'caption': ['one, two; three', 'four']},
        {'image': '2.jpg', 'caption': ['three']},
    ]
    with pytest.raises(FileExistsError, match='already exists'):
        run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)


def test_missing_images_or_columns_of_a_table_are_named(tmp_path, monkeypatch):
    table = tmp_path / 'captions.tsv'
    table.write_text('image\ttext\n9.jpg\tone\n')
    common = table, '--root', tmp_path, '--out', tmp_path / 'out.json'
    with pytest.raises(ValueError, match="no column 'caption', its header is"):
        run(monkeypatch, csv_to_albef, *common)
    with pytest.raises(ValueError, match='1 of 1 images .* relative to --root') as error:
        run(monkeypatch, csv_to_albef, *common, '--caption-column', 'text')
    assert str(error.value).endswith(f'\n  {tmp_path}/9.jpg')  # shows a folder that is there twice
    table.write_text('image\tcaption\tcaption\n9.jpg\tone\ttwo\n')
    with pytest.raises(ValueError, match="several columns 'caption'"):
        run(monkeypatch, csv_to_albef, *common)


@pytest.mark.parametrize(
    ('rows', 'line'),
    [
        ('1.jpg,"one\n2.jpg,two\n', 2),  # never closed: all that follows would be its caption
        ('1.jpg,one\n1.jpg,"two\n2.jpg,"three"\n', 3),
    ],
)
def test_a_quote_that_is_not_closed_takes_no_rows(tmp_path, monkeypatch, rows, line):
    touch(tmp_path, '1.jpg', '2.jpg')
    table, out = tmp_path / 'captions.csv', tmp_path / 'out.json'
    table.write_text(f'image,caption\n{rows}')
    with pytest.raises(ValueError, match=rf'captions\.csv, row of line {line}: .* is doubled'):
        run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)
    table.write_text('image,caption\n1.jpg,"a ""good"" dog,\nasleep"\n2.jpg,5" wide\n')
    run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)
    assert [item['caption'] for item in load(out)] == [['a "good" dog,\nasleep'], ['5" wide']]


def test_a_caption_with_a_comma_outside_of_quotes_is_refused(tmp_path, monkeypatch):
    touch(tmp_path, '1.jpg', '2.jpg')
    table, out = tmp_path / 'captions.csv', tmp_path / 'out.json'
    table.write_text('image,caption\n1.jpg,a dog\n2.jpg,a cat, asleep\n')
    with pytest.raises(ValueError, match=r"line 3 has 3 cells .* 2, .*\[' asleep'\]: quote cells"):
        run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)
    assert not out.exists()


def test_rows_without_a_caption_are_counted_and_rows_without_an_image_are_refused(
    tmp_path, monkeypatch, capsys
):
    touch(tmp_path, '1.jpg')
    table, out = tmp_path / 'captions.csv', tmp_path / 'out.json'
    table.write_text('image,caption\n1.jpg,\n1.jpg,a dog\n1.jpg, \n1.jpg\n')
    run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', out)
    assert load(out) == [{'image': '1.jpg', 'caption': ['a dog']}]
    assert f'3 row(s) of {table} without a caption (line 2, 4, 5)' in capsys.readouterr().out
    table.write_text('image,caption\n,a dog\n')
    with pytest.raises(ValueError, match='line 2 names no image'):
        run(monkeypatch, csv_to_albef, table, '--root', tmp_path, '--out', tmp_path / 'other.json')


@pytest.mark.parametrize(
    'tool, arguments, message',
    [
        ('csv_to_albef', 'none.csv --root . --out out.json', "'none.csv'"),
        ('karpathy', 'none.json --split val --root . --out out.json', 'none.json'),
        ('albef_paths', 'none.json --out out.json --root .', 'none.json'),
        ('flickr8k', 'none', 'none of Flickr8k.token.txt, captions.token.txt in none'),
        ('img2dataset', 'none', 'none contains files, not shards: --root and --out are needed'),
        ('img2dataset', '. --root below --out out.json', '--root=below does not contain .'),
        ('visual_genome', 'none --root . --out out.json', 'none/image_data.json'),
        ('build_index', 'none.py', 'none.py'),
    ],
)
def test_a_missing_file_is_one_sentence(tool, arguments, message, tmp_path, monkeypatch, capsys):
    module = import_module(f'tools.dataset_converters.{tool}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', [tool, *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        run_or_explain(module.main)
    printed = capsys.readouterr().err
    assert ended.value.code == 2 and 'Traceback' not in printed
    error, _ = printed.splitlines()
    assert error.startswith('error: ') and message in error


def test_the_published_files_of_flickr8k_are_converted(tmp_path, monkeypatch):
    root = tmp_path / 'flickr8k'
    touch(root, 'Flicker8k_Dataset/1.jpg', 'Flicker8k_Dataset/2.jpg')
    captions = '1.jpg#0\tA dog .\n1.jpg#1\tA cat .\n2.jpg#0\tA bird .\n'
    (root / 'Flickr8k.token.txt').write_text(captions)
    (root / 'Flickr_8k.trainImages.txt').write_text('1.jpg\n3.jpg\n')
    (root / 'Flickr_8k.devImages.txt').write_text('2.jpg\n')
    run(monkeypatch, flickr8k, root)
    images = 'flickr8k/Flicker8k_Dataset'
    assert load(root / 'albef/train.json') == [
        {'image': f'{images}/1.jpg', 'caption': ['A dog .', 'A cat .']}
    ]
    assert load(root / 'albef/dev.json') == [{'image': f'{images}/2.jpg', 'caption': ['A bird .']}]


def test_flickr8k_writes_all_splits_or_none(tmp_path, monkeypatch):
    root, disk = tmp_path / 'flickr8k', tmp_path / 'disk'
    touch(disk, '1.jpg')
    root.mkdir()
    (root / 'Images').symlink_to(disk)
    (root / 'captions.token.txt').write_text('\ufeff1.jpg#0\tA dog .\n')
    with pytest.raises(FileNotFoundError, match='no list of the images of a split'):
        run(monkeypatch, flickr8k, root)
    (root / 'Flickr_8k.trainImages.txt').write_text('1.jpg\n')
    (root / 'Flickr_8k.devImages.txt').write_text('2.jpg\n')
    with pytest.raises(ValueError, match='none of the captioned images that .*devImages.txt'):
        run(monkeypatch, flickr8k, root)
    assert not (root / 'albef').exists()
    (root / 'Flickr_8k.devImages.txt').unlink()
    run(monkeypatch, flickr8k, root)
    expected = [{'image': 'flickr8k/Images/1.jpg', 'caption': ['A dog .']}]
    assert load(root / 'albef/train.json') == expected


def test_a_root_may_be_named_by_its_parent_and_a_folder_may_be_a_link(tmp_path, monkeypatch):
    folder, disk = tmp_path / 'data/flickr8k', tmp_path / 'disk/cc3m'
    touch(folder, 'Images/1.jpg')
    (folder / 'captions.token.txt').write_text('1.jpg#0\tA dog .\n')
    (folder / 'Flickr_8k.trainImages.txt').write_text('1.jpg\n')
    monkeypatch.chdir(folder)
    run(monkeypatch, flickr8k, '.', '--root', '..')
    assert load(folder / 'albef/train.json')[0]['image'] == 'flickr8k/Images/1.jpg'
    touch(disk, '00000/0.jpg')
    (disk / '00000/0.txt').write_text('a sunset')
    (tmp_path / 'data/cc3m').symlink_to(disk)
    for name, root in (('link', tmp_path / 'data'), ('disk', tmp_path / 'disk')):
        out = tmp_path / f'{name}.json'
        run(monkeypatch, img2dataset, '../cc3m', '--root', root, '--out', out)
        assert load(out) == [{'image': 'cc3m/00000/0.jpg', 'caption': 'a sunset'}]


def test_paths_of_another_machine_are_rewritten(tmp_path, monkeypatch):
    touch(tmp_path, 'coco/train2014/1.jpg')
    source = tmp_path / 'published.json'
    items = [
        {'image': '/export/home/data/coco/train2014/1.jpg', 'caption': 'one'},
        {'image': '/export/home/data/coco/train2014/1.jpg', 'caption': ['two']},
        {'image': '/export/home/data/coco/val2014/2.jpg', 'caption': 'missing'},
    ]
    source.write_text(json.dumps(items))
    out = tmp_path / 'rewritten.json'
    run(
        monkeypatch,
        albef_paths,
        source,
        '--out',
        out,
        '--root',
        tmp_path,
        '--pattern',
        '.*/(train|val)2014/',
        '--replacement',
        r'coco/\g<1>2014/',
    )
    assert load(out) == [{'image': 'coco/train2014/1.jpg', 'caption': ['one', 'two']}]


@pytest.mark.parametrize(
    'questions',
    [{'questions': [{'image_id': 70}]}, [{'img_id': 'COCO_val2014_000000000070'}]],
    ids=['VQA', 'LXMERT'],
)
def test_images_that_a_test_asks_about_are_left_out(tmp_path, monkeypatch, questions):
    names = ['COCO_train2014_000000000007.jpg', 'COCO_val2014_000000000070.jpg']
    touch(tmp_path, *names)
    source, asked, out = (tmp_path / f'{name}.json' for name in ('list', 'asked', 'out'))
    source.write_text(json.dumps([{'image': name, 'caption': 'a dog'} for name in names]))
    asked.write_text(json.dumps(questions))
    options = '--out', out, '--root', tmp_path, '--without', asked
    run(monkeypatch, albef_paths, source, *options)
    assert [item['image'] for item in load(out)] == names[:1]


def test_a_caption_that_ends_within_an_emoji_is_kept(tmp_path, monkeypatch):
    touch(tmp_path, 'a.jpg')
    items = [{'image': 'a.jpg', 'caption': ['a smile \ud83d', 'ein Lächeln']}]
    source, out = tmp_path / 'cut.json', tmp_path / 'out.json'
    source.write_text(json.dumps(items))
    run(monkeypatch, albef_paths, source, '--out', out, '--root', tmp_path)
    assert load(out) == items and 'Lächeln' in out.read_text('utf-8')


def test_files_and_shards_of_img2dataset_are_converted(tmp_path, monkeypatch, capsys):
    folder = tmp_path / 'cc3m'
    touch(folder, '00000/000000000.jpg', '00000/000000001.jpg')
    (folder / '00000/000000000.txt').write_text('a sunset \n')
    out = tmp_path / 'cc3m.json'
    run(monkeypatch, img2dataset, folder, '--root', tmp_path, '--out', out)
    assert load(out) == [{'image': 'cc3m/00000/000000000.jpg', 'caption': 'a sunset'}]
    touch(folder, '00000.tar', '00001.tar')
    (folder / '00000_stats.json').write_text('{"successes": 7}')
    run(monkeypatch, img2dataset, folder)
    printed = capsys.readouterr().out
    assert '{00000..00001}.tar' in printed and 'num_samples=7' in printed


def write_visual_genome(folder):
    """Descriptions of three images, the second of which is COCO's 77."""
    folder.mkdir()
    regions = [
        {'id': 1, 'regions': [{'phrase': 'a dog'}, {'phrase': 'a big brown dog '}]},
        {'id': 2, 'regions': [{'phrase': 'a held out cat'}]},
        {'id': 3, 'regions': [{'phrase': 'missing'}]},
    ]
    (folder / 'region_descriptions.json').write_text(json.dumps(regions))
    images = [{'image_id': n, 'coco_id': c} for n, c in ((1, None), (2, 77), (3, None))]
    (folder / 'image_data.json').write_text(json.dumps(images))


def test_visual_genome_is_converted_without_the_test_images_of_coco(tmp_path, monkeypatch, capsys):
    touch(tmp_path, 'vg/VG_100K/1.jpg', 'vg/VG_100K_2/2.jpg')
    folder = tmp_path / 'annotations'
    write_visual_genome(folder)
    karpathy = tmp_path / 'dataset_coco.json'
    karpathy.write_text(json.dumps({'images': [{'split': 'test', 'cocoid': 77}]}))
    out = tmp_path / 'vg.json'
    run(
        monkeypatch,
        visual_genome,
        folder,
        '--root',
        tmp_path,
        '--out',
        out,
        '--exclude-coco',
        karpathy,
        '--longest',
        1,
    )
    assert load(out) == [{'image': 'vg/VG_100K/1.jpg', 'caption': ['a big brown dog']}]
    assert '1 images; 1 do not exist' in capsys.readouterr().out


def test_images_of_visual_genome_that_are_all_missing_are_named(tmp_path, monkeypatch):
    write_visual_genome(tmp_path / 'annotations')
    options = '--root', tmp_path, '--out', tmp_path / 'vg.json'
    with pytest.raises(ValueError, match=r'none of 3 images .*VG_100K/1\.jpg: check --root'):
        run(monkeypatch, visual_genome, tmp_path / 'annotations', *options)
