"""LXMERT's files of region features."""

import pytest
from detected import WIDTH, assert_same, random_image, random_images, tsv_line

from xmodal.datasets.region_tsv import read_region_tsv, write_region_tsv


def read(file, start=0):
    return [image for image, _ in read_region_tsv(file, WIDTH, start)]


def write_lines(folder, *lines, end='\n'):
    file = folder / 'features.tsv'
    file.write_text('\n'.join(lines) + end, newline='')
    return file


def test_images_with_any_number_of_boxes_are_written_and_read(tmp_path):
    images = random_images()
    write_region_tsv(tmp_path / 'a.tsv', images)
    for image, expected in zip(read(tmp_path / 'a.tsv'), images, strict=True):
        assert_same(image, expected)


def test_a_line_is_written_as_by_the_published_extractor(tmp_path):
    image = random_image('COCO_val2014_000000000042', 3)
    write_region_tsv(tmp_path / 'a.tsv', [image])
    assert (tmp_path / 'a.tsv').read_text() == tsv_line(image) + '\n'


@pytest.mark.parametrize('integers', ['<i4', '<i8'])
@pytest.mark.parametrize('floats', ['<f4', '<f8'])
def test_the_types_of_arrays_follow_from_their_size(tmp_path, integers, floats):
    images = random_images()
    file = write_lines(tmp_path, *(tsv_line(image, integers, floats) for image in images))
    for image, expected in zip(read(file), images, strict=True):
        assert_same(image, expected)


@pytest.mark.parametrize('quote', ["b'{}'", 'b"{}"'])
def test_cells_written_as_python_bytes_can_be_read(tmp_path, quote):
    image = random_image('a', 2)
    assert_same(read(write_lines(tmp_path, tsv_line(image, wrap=quote.format)))[0], image)


@pytest.mark.parametrize('end', ['', '\n', '\r\n', '\n\n'])
def test_the_last_line_may_end_in_any_way(tmp_path, end):
    images = random_images()
    assert len(read(write_lines(tmp_path, *map(tsv_line, images), end=end))) == len(images)


def test_reading_continues_at_the_offset_that_comes_with_an_image(tmp_path):
    file = write_lines(tmp_path, *map(tsv_line, random_images()))
    offsets = [offset for _, offset in read_region_tsv(file, WIDTH)]
    assert [image.image_id for image in read(file, offsets[0])] == ['image_1', 'image_2']
    assert read(file, offsets[-1]) == [] and offsets[-1] == file.stat().st_size


def changed(column, cell):
    cells = tsv_line(random_image('b', 2)).split('\t')
    cells[column] = cell
    return '\t'.join(cells)


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('a\t1\t2', '3 columns, expected 10.* img_id, img_h'),
        (changed(1, 'tall'), "img_h is b'tall', expected a whole number"),
        (changed(7, '0'), 'num_boxes is 0, expected 1 or more'),
        (
            changed(7, '3'),
            r'objects_id has 16 bytes, expected 3 numbers of 4 or 8 .*num_boxes is 3',
        ),
        (changed(9, 'AAAA'), r'features has 3 bytes, expected 2 × 5 numbers of 2 or 4 or 8 bytes'),
        (changed(9, 'AAA'), 'features is not base64 .*is the line truncated'),
        (changed(2, '10'), r'box \d of image b is .*, expected x1, y1, x2, y2 in an image of 10 ×'),
        (changed(0, ''), "image '' of 640 × 480 has 2 regions: expected an id"),
    ],
)
def test_an_invalid_line_is_named_with_the_file(tmp_path, line, message):
    file = write_lines(tmp_path, tsv_line(random_image('a', 2)), line)
    with pytest.raises(ValueError, match=f'features.tsv cannot be read: line 2: {message}'):
        read(file)


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('features', float('nan'), 'features of image a contain NaN'),
        ('object_confidences', 1.5, r'object_confidences of image a range from .* to 1\.5'),
        ('objects', -1, 'objects of image a range from -1'),
    ],
)
def test_invalid_values_are_refused(tmp_path, name, value, message):
    image = random_image('a', 2)
    target = image.features if name == 'features' else getattr(image.labels, name)
    target.flat[0] = value
    with pytest.raises(ValueError, match=message):
        read(write_lines(tmp_path, tsv_line(image)))


def test_features_of_another_width_are_refused(tmp_path):
    file = write_lines(tmp_path, tsv_line(random_image('a', 2)))
    with pytest.raises(ValueError, match='features has 40 bytes, expected 2 × 2048 numbers'):
        list(read_region_tsv(file))


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / 'a.tsv').write_text('mine')
    with pytest.raises(FileExistsError):
        write_region_tsv(tmp_path / 'a.tsv', random_images())
    assert (tmp_path / 'a.tsv').read_text() == 'mine'
