"""LXMERT's files of region features."""

import pytest
from detected import WIDTH, assert_same, draw_image, draw_images, tsv_line

from xmodal.datasets.region_tsv import read_region_tsv, write_region_tsv


def read(file, start=0):
    return [image for image, _ in read_region_tsv(file, WIDTH, start)]


def write_lines(folder, *lines, end='\n'):
    file = folder / 'features.tsv'
    file.write_text('\n'.join(lines) + end, newline='')
    return file


def test_what_is_written_is_read_with_any_number_of_boxes(tmp_path):
    images = draw_images()
    write_region_tsv(tmp_path / 'a.tsv', images)
    for found, expected in zip(read(tmp_path / 'a.tsv'), images, strict=True):
        assert_same(found, expected)


def test_a_line_is_written_as_the_published_extractor_does(tmp_path):
    image = draw_image('COCO_val2014_000000000042', 3)
    write_region_tsv(tmp_path / 'a.tsv', [image])
    assert (tmp_path / 'a.tsv').read_text() == tsv_line(image) + '\n'


@pytest.mark.parametrize('integers', ['<i4', '<i8'])
@pytest.mark.parametrize('floats', ['<f4', '<f8'])
def test_the_types_of_numbers_follow_from_their_size(tmp_path, integers, floats):
    images = draw_images()
    file = write_lines(tmp_path, *(tsv_line(image, integers, floats) for image in images))
    for found, expected in zip(read(file), images, strict=True):
        assert_same(found, expected)


@pytest.mark.parametrize('quote', ["b'{}'", 'b"{}"'])
def test_cells_that_python_wrote_as_bytes_are_read(tmp_path, quote):
    image = draw_image('a', 2)
    assert_same(read(write_lines(tmp_path, tsv_line(image, wrap=quote.format)))[0], image)


@pytest.mark.parametrize('end', ['', '\n', '\r\n', '\n\n'])
def test_the_last_line_may_end_in_any_way(tmp_path, end):
    images = draw_images()
    assert len(read(write_lines(tmp_path, *map(tsv_line, images), end=end))) == len(images)


def test_reading_goes_on_at_the_place_that_came_with_an_image(tmp_path):
    file = write_lines(tmp_path, *map(tsv_line, draw_images()))
    places = [place for _, place in read_region_tsv(file, WIDTH)]
    assert [image.image_id for image in read(file, places[0])] == ['image_1', 'image_2']
    assert read(file, places[-1]) == [] and places[-1] == file.stat().st_size


def changed(column, cell):
    cells = tsv_line(draw_image('b', 2)).split('\t')
    cells[column] = cell
    return '\t'.join(cells)


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('a\t1\t2', '3 columns, expected 10: img_id, img_h'),
        (changed(1, 'tall'), "img_h is b'tall', expected a whole number"),
        (changed(7, '0'), 'num_boxes is 0, expected 1 or more'),
        (
            changed(7, '3'),
            r'objects_id has 16 bytes, expected 3 numbers of 4 or 8 .*num_boxes is 3',
        ),
        (changed(9, 'AAAA'), r'features has 3 bytes, expected 2 × 5 numbers of 2 or 4 or 8 bytes'),
        (changed(9, 'AAA'), 'features is no base64 .*is the line cut off'),
        (changed(2, '10'), r'box \d of image b is .*, expected x1, y1, x2, y2 in an image of 10 ×'),
        (changed(0, ''), "image '' of 640 × 480 has 2 regions: expected an id"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_the_file(tmp_path, line, message):
    file = write_lines(tmp_path, tsv_line(draw_image('a', 2)), line)
    with pytest.raises(ValueError, match=f'features.tsv, line 2: {message}'):
        read(file)


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('features', float('nan'), 'features of image a hold NaN'),
        ('object_confidences', 1.5, r'object_confidences of image a go from .* to 1\.5'),
        ('objects', -1, 'objects of image a go from -1'),
    ],
)
def test_numbers_that_can_not_be_are_refused(tmp_path, name, value, message):
    image = draw_image('a', 2)
    target = image.features if name == 'features' else getattr(image.labels, name)
    target.flat[0] = value
    with pytest.raises(ValueError, match=message):
        read(write_lines(tmp_path, tsv_line(image)))


def test_another_width_of_features_is_refused(tmp_path):
    file = write_lines(tmp_path, tsv_line(draw_image('a', 2)))
    with pytest.raises(ValueError, match='features has 40 bytes, expected 2 × 2048 numbers'):
        list(read_region_tsv(file))


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / 'a.tsv').write_text('mine')
    with pytest.raises(FileExistsError):
        write_region_tsv(tmp_path / 'a.tsv', draw_images())
    assert (tmp_path / 'a.tsv').read_text() == 'mine'
