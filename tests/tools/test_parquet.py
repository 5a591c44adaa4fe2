"""Parquet files with images inside become images and a list in ALBEF's format."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tools.dataset_converters import parquet_to_albef
from xmodal.datasets import AlbefJsonDataset
from xmodal.datasets.image_file import read_image


def picture(value, form='PNG'):
    """The file of an image of one colour."""
    file = io.BytesIO()
    Image.fromarray(np.full((4, 6, 3), value, np.uint8)).save(file, form)
    return file.getvalue()


def write(file, rows):
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file


@pytest.fixture
def convert(monkeypatch, tmp_path):
    """Converts tables below the folder ``root``; the list that is written."""

    def call(*tables, out='train.json', **options):
        arguments = ['--root', tmp_path / 'root', '--out', tmp_path / out]
        for name, value in options.items():
            arguments += [f'--{name.replace("_", "-")}', *value.split()]
        monkeypatch.setattr('sys.argv', ['', *map(str, [*tables, *arguments])])
        parquet_to_albef.main()
        return json.loads((tmp_path / out).read_text())

    return call


def test_images_and_captions_come_out_as_they_are_in_the_rows(tmp_path, convert):
    table = write(
        tmp_path / 'train-0.parquet',
        [
            {'image': {'bytes': picture(1), 'path': 'cats/1.png'}, 'caption': ['one', 'two']},
            {'image': {'bytes': picture(2, 'JPEG'), 'path': None}, 'caption': ['three']},
        ],
    )
    records = convert(table)
    assert records == [
        {'image': 'images/cats/1.png', 'caption': ['one', 'two']},
        {'image': 'images/train-0_0000001.jpg', 'caption': ['three']},
    ]
    root = tmp_path / 'root'
    assert (root / 'images/cats/1.png').read_bytes() == picture(1)
    assert read_image(root / records[1]['image']).mean() == pytest.approx(2, abs=1)
    dataset = AlbefJsonDataset('train.json', str(tmp_path), {'image': 'root'}, test_mode=True)
    assert len(dataset) == 2


def test_a_row_for_each_caption_gives_one_image(tmp_path, convert):
    """In files of their own, too. A text a column is the form of other data sets."""
    first = write(
        tmp_path / 'a.parquet',
        [{'png': picture(1), 'caption_0': 'one', 'caption_1': 'two'}],
    )
    second = write(
        tmp_path / 'b.parquet',
        [
            {'png': picture(2), 'caption_0': 'three', 'caption_1': ' '},
            {'png': picture(1), 'caption_0': 'four', 'caption_1': None},
        ],
    )
    records = convert(first, second, image_column='png', caption_columns='caption_0 caption_1')
    assert records == [
        {'image': 'images/a_0000000.png', 'caption': ['one', 'two', 'four']},
        {'image': 'images/b_0000000.png', 'caption': ['three']},
    ]
    assert len(list((tmp_path / 'root/images').iterdir())) == 2


def test_splits_share_a_folder_and_a_second_run_keeps_its_images(tmp_path, convert):
    rows = [
        {'image': picture(value), 'caption': str(value), 'split': split}
        for value, split in enumerate(['train', 'test', 'train'])
    ]
    table = write(tmp_path / 'all.parquet', rows)
    train = convert(table, where='split=train')
    assert [record['caption'] for record in train] == [['0'], ['2']]
    images = list((tmp_path / 'root/images').iterdir())
    written = [image.stat().st_mtime_ns for image in images]
    assert convert(table, where='split=train', out='again.json') == train
    assert [image.stat().st_mtime_ns for image in images] == written
    test = convert(table, where='split=test', out='test.json')
    assert test == [{'image': 'images/all_0000001.png', 'caption': ['1']}]
    with pytest.raises(ValueError, match=r"no row .*, and split is \['test', 'train'\]"):
        convert(table, where='split=val', out='val.json')


def test_no_image_is_overwritten_or_written_elsewhere(tmp_path, convert):
    rows = [
        {'image': {'bytes': picture(value), 'path': path}, 'caption': 'a caption'}
        for value, path in enumerate(['1.png', '1.png', '../../1.png', '/1.png', 'notes.txt'])
    ]
    table = write(tmp_path / 'x.parquet', rows)
    names = [record['image'] for record in convert(table)]
    assert names == ['images/1.png', *(f'images/x_{row:07d}.png' for row in range(1, 5))]
    for value, name in enumerate(names):
        assert (tmp_path / 'root' / name).read_bytes() == picture(value)
    other = write(tmp_path / 'y.parquet', [{**rows[1], 'caption': 'another'}])
    with pytest.raises(FileExistsError, match=r'images/1\.png is another image'):
        convert(other, out='other.json')


def test_rows_without_caption_or_image_are_counted(tmp_path, convert, capsys):
    table = write(
        tmp_path / 'x.parquet',
        [
            {'image': picture(1), 'caption': 'one'},
            {'image': picture(2), 'caption': None},
            {'image': None, 'caption': 'three'},
            {'image': b'no image', 'caption': 'four'},
        ],
    )
    assert len(convert(table)) == 1
    printed = capsys.readouterr().out
    for reason in ('without a caption', 'without an image', 'with bytes that are no image'):
        assert f'dropped: 1 row(s) {reason}' in printed


@pytest.mark.parametrize(
    ('row', 'message'),
    [
        ({'picture': b'1', 'caption': 'x'}, "no column 'image', but .*picture"),
        ({'image': 'a.jpg', 'caption': 'x'}, 'a.jpg.*, expected the bytes of an image'),
        ({'image': {'path': 'a.jpg', 'bytes': None}, 'caption': 'x'}, 'a.jpg.*csv-to-albef'),
        ({'image': b'1', 'caption': 3}, "row 0, column 'caption' is 3, expected a text"),
    ],
)
def test_other_tables_are_refused(tmp_path, convert, row, message):
    with pytest.raises(ValueError, match=message):
        convert(write(tmp_path / 'x.parquet', [row]))
    assert not (tmp_path / 'train.json').exists()
