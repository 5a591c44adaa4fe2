"""The index finds what a search over all vectors finds, and survives what happens to files."""

import json
import logging
import os
import re
import shutil
import sqlite3
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from xmodal.errors import FileError
from xmodal.search import Filter, ImageIndex, Query
from xmodal.search import engine as engine_module
from xmodal.search import index as index_module
from xmodal.search import rerank as rerank_module
from xmodal.search.engine import Engine
from xmodal.search.manifest import read_manifest
from xmodal.search.sources import find_entries
from xmodal.search.vectors import VectorFile

pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")


@pytest.fixture
def photos(tiny_world, tmp_path):
    folder = tmp_path / 'photos'
    shutil.copytree(tiny_world / 'images' / 'test', folder)
    return folder


@pytest.fixture
def make(inferencer, tmp_path):
    return lambda name='index': ImageIndex(tmp_path / name, inferencer)


def paths(hits):
    return [hit.image.path for hit in hits]


def contents(index):
    ids = index.catalogue.ids()
    names = [image.path for image in index.catalogue.images(ids)]
    return dict(zip(names, np.asarray(index.matrix()[ids]).tolist(), strict=True))


def files(folder):
    return sorted(folder.rglob('*.png'))


def test_scores_are_the_cosines_of_the_inferencer(make, photos, inferencer):
    index = make()
    index.update(photos, batch_size=3, progress=False)
    names = [str(file) for file in files(photos)]
    text = 'a red ring above a blue disc'
    expected = inferencer.similarity(names, [text])[:, 0]
    (hits,) = index.search([Query.parse(text)], len(names))
    assert sorted(paths(hits)) == names
    actual = torch.tensor([hit.score for hit in hits])
    torch.testing.assert_close(
        actual, expected[[names.index(p) for p in paths(hits)]], atol=1e-3, rtol=0
    )
    assert (actual.diff() <= 0).all()


def second_stage(inferencer, names, text, adds):
    """The scores of the second stage for images and a text: ITM's, with or without ITC's."""
    image, words = inferencer.encode(names, [text])
    pairs = torch.tensor([[i, 0] for i in range(len(names))])
    with torch.no_grad():
        yes = inferencer.model.match_logits(image.tokens, words.tokens, pairs)
        matching = inferencer.model.matching_head.matching_score(yes)
        temperature = inferencer.model.contrastive_head.scale(torch.ones(()))
    return matching + adds * temperature * inferencer.similarity(names, [text])[:, 0]


@pytest.mark.parametrize('adds', [True, False])
@pytest.mark.parametrize(
    'query',
    ['a red ring', 'a red ring and not a blue disc', 'a red ring and also a green square'],
)
def test_reranked_scores_are_those_of_the_second_stage(make, photos, inferencer, query, adds):
    inferencer.config.test_cfg.scorer.add_similarity = adds
    index = make()
    index.update(photos, progress=False)
    queries = [Query.parse(query)]
    names = paths(index.search(queries, 4)[0])
    (hits,) = index.search(queries, 4, rerank=4)
    sentence = query.partition(' and not ')[0].replace('and also', 'and')
    expected = second_stage(inferencer, names, sentence, adds)
    if queries[0].without:
        expected = expected - second_stage(inferencer, names, 'a blue disc', adds)
    order = expected.argsort(descending=True)
    assert paths(hits) == [names[i] for i in order]
    np.testing.assert_allclose([h.reranked for h in hits], expected[order], rtol=1e-4, atol=1e-4)


def test_images_that_are_gone_or_broken_by_now_follow_the_reranked_ones(make, photos):
    index = make()
    index.update(photos, progress=False)
    (whole,) = index.search([Query('a red ring')], 5, rerank=4)
    gone, broken, *others = sorted(whole[:4], key=lambda hit: -hit.score)
    (photos / gone.image.path).unlink()
    (photos / broken.image.path).write_bytes(b'no image')
    (hits,) = index.search([Query('a red ring')], 5, rerank=4)
    expected = [path for path in paths(whole[:4]) if path in paths(others)]
    assert paths(hits) == [*expected, gone.image.path, broken.image.path, whole[4].image.path]
    assert [hit.reranked is None for hit in hits] == [False, False, True, True, True]


def test_a_warning_says_that_no_image_to_rerank_can_be_read(make, photos, monkeypatch):
    warnings = []
    monkeypatch.setattr(rerank_module, 'print_log', lambda *arguments: warnings.append(arguments))
    index = make()
    index.update(photos, progress=False)
    for hit in index.search([Query('a red ring')], 3)[0][:2]:
        Path(hit.image.path).unlink()
    index.search([Query('a red ring')], 3, rerank=3)
    assert not warnings
    (hits,) = index.search([Query('a red ring')], 3, rerank=2)
    ((warning, _, level),) = warnings
    assert warning.startswith('none of the images to re-rank can be read')
    assert level == logging.WARNING and [hit.reranked for hit in hits] == [None] * 3


def test_a_server_sees_what_another_process_has_indexed(make, photos):
    first, *_ = files(photos)
    server, other = make(), make()
    server.update(photos, progress=False)
    query, count = [Query('a red ring')], len(files(photos))
    assert str(first) in paths(server.search(query, count)[0])
    first.rename(photos / 'renamed.png')
    other.update(photos, progress=False)
    found = paths(server.search(query, count)[0])
    assert str(photos / 'renamed.png') in found and str(first) not in found and len(found) == count


def test_a_structure_that_is_renewed_while_it_is_read_is_read_again(make, photos, monkeypatch):
    other, reading = make(), make()
    other.update(photos, progress=False)
    first, *_, last = files(photos)
    read = Engine.read

    def renewed(*arguments):
        if first.exists():
            first.unlink()
            shutil.copy(last, last.with_name('z.png'))  # as many images as before
            other.update(photos, progress=False)
        return read(*arguments)

    monkeypatch.setattr(Engine, 'read', renewed)
    query = [Query.parse(None, str(last))]
    (hits,) = reading.search(query, 2)
    assert sorted(paths(hits)) == [str(last), str(last.with_name('z.png'))]


def test_more_like_this_finds_the_image_itself_and_not_subtracts(make, photos, inferencer):
    index = make()
    index.update(photos, progress=False)
    name = str(files(photos)[2])
    (like, both) = index.search([Query(image=name), Query('a ring', name, 'a disc')], 1)
    assert paths(like) == [name]
    a, b = inferencer.encode_texts(['a ring', 'a disc']).embedding
    vector = a - b + inferencer.encode_images([name]).embedding[0]
    vectors = inferencer.encode_images([str(f) for f in files(photos)]).embedding
    assert both[0].score == pytest.approx(float((vectors @ vector / vector.norm()).max()), abs=2e-3)


def test_an_update_encodes_what_is_new_alone(make, photos, monkeypatch):
    index = make()
    index.update(photos, progress=False)
    first, *_, last = files(photos)
    before = contents(index)
    first.unlink()
    last.touch()
    Image.new('RGB', (32, 32), 'red').save(photos / 'new.png')
    (photos / 'broken.png').write_bytes(b'no image')
    read = []
    encode = index_module.encode_entries
    monkeypatch.setattr(
        index_module, 'encode_entries', lambda m, new, *a: (read.extend(new), encode(m, new, *a))
    )
    index.update(photos, progress=False)
    after = contents(index)
    assert {entry.path for entry in read} == {
        str(last), str(photos / 'new.png'), str(photos / 'broken.png')
    }  # fmt: skip
    assert index.catalogue.rows() == len(before) + 1  # the content of the touched one is known
    assert after.keys() == before.keys() - {str(first)} | {str(photos / 'new.png')}
    assert all(after[name] == before[name] for name in before.keys() & after.keys())
    assert [path for path, _ in index.catalogue.broken()] == [str(photos / 'broken.png')]
    (hits,) = index.search([Query('a ring')], 100, Filter(path='new.png', min_width=32))
    assert paths(hits) == [str(photos / 'new.png')]
    assert index.search([Query('a ring')], 9, Filter(min_width=33, path='new.png')) == [[]]
    read.clear()
    index.update(photos, progress=False)
    assert [entry.path for entry in read] == [str(photos / 'broken.png')]


def test_a_broken_image_that_can_be_read_again_is_added_though_its_file_has_not_changed(
    make, photos
):
    file = files(photos)[0]
    content, times = file.read_bytes(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_bytes(bytes(len(content)))
    os.utime(file, ns=times)
    index = make()
    index.update(photos, progress=False)
    assert str(file) not in contents(index) and len(index.catalogue.broken()) == 1
    file.write_bytes(content)
    os.utime(file, ns=times)
    index.update(photos, progress=False)
    assert str(file) in contents(index) and not index.catalogue.broken()


@pytest.mark.parametrize('at', range(5))
def test_an_update_that_ends_anywhere_goes_on_to_the_same_index(make, photos, monkeypatch, at):
    whole, cut = make('whole'), make('cut')
    whole.update(photos, batch_size=2, progress=False)
    calls = 0
    commit = type(cut.catalogue).commit

    def fail(self, *args):
        nonlocal calls
        calls += 1
        if calls == at + 1:
            raise KeyboardInterrupt  # its vectors are written, its rows are not
        commit(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(type(cut.catalogue), 'commit', fail)
        with pytest.raises(KeyboardInterrupt):
            cut.update(photos, batch_size=2, progress=False)
    assert cut.catalogue.rows() == 2 * at
    cut.update(photos, batch_size=2, progress=False)
    assert contents(cut) == contents(whole)
    assert (cut.folder / 'vectors.f16').read_bytes() == (whole.folder / 'vectors.f16').read_bytes()
    query = [Query('a ring')]
    assert paths(cut.search(query)[0]) == paths(whole.search(query)[0])


@pytest.mark.parametrize(
    ('rows', 'problem'),
    [
        ('1.png,"a dog\n2.png,a cat\n', r'row of line 2: .* is doubled'),
        ('"1.png,a dog\n"2.png",a cat\n', r'row of line 2: .* is doubled'),
        ('1.png,a dog\na cat, asleep,2.png\n', 'line 3 has 3 cells and the header 2'),
        ('1.png,a dog\n,a cat\n', 'line 3 names no image'),
    ],
)
def test_a_table_with_wrong_quotes_or_cells_leaves_no_image_out(tmp_path, rows, problem):
    for name in ('1.png', '2.png'):
        Image.new('RGB', (8, 8)).save(tmp_path / name)
    table = tmp_path / 'list.csv'
    table.write_text(f'image,caption\n{rows}')
    with pytest.raises(FileError, match=rf'list\.csv, {problem}'):
        find_entries(str(table))


@pytest.mark.parametrize(
    ('content', 'problem'),
    [
        ('image,image\n1.png,2.png\n', " has several columns 'image'"),
        ('file\na.png\n', " has no column 'image', its header is .* rename that of the paths"),
        ('caption,image\na ring,a.png\na disc\n', ', line 3 names no image'),
    ],
)
def test_a_table_without_one_column_of_images_is_a_sentence(tmp_path, content, problem):
    (tmp_path / 'list.csv').write_text(content)
    with pytest.raises(FileError, match=rf'list\.csv{problem}'):
        find_entries(str(tmp_path / 'list.csv'))


def test_another_source_without_any_of_the_images_empties_no_index(make, photos, tmp_path):
    index, part = make(), photos / 'part'
    part.mkdir()
    files(photos)[0].rename(part / 'a.png')
    index.update(photos, progress=False)
    before, manifest = contents(index), read_manifest(index.folder)
    shutil.copytree(photos, tmp_path / 'other')
    message = f'has {len(before)} images of {photos}, such as .* and {tmp_path}/other has none'
    with pytest.raises(ValueError, match=message):
        index.update(tmp_path / 'other', progress=False, config='new name')
    assert contents(index) == before
    assert read_manifest(index.folder)['source'] == manifest['source']
    index.update(part, progress=False)  # a part of the source may be meant
    assert sorted(contents(index)) == [str(part / 'a.png')]
    (part / 'a.png').rename(part / 'b.png')
    index.update(part, progress=False)  # and so may new images of the same source
    assert sorted(contents(index)) == [str(part / 'b.png')]


def test_images_in_a_tar_and_in_lists_have_the_same_vectors(make, photos, tmp_path):
    index = make('folder')
    index.update(photos, progress=False)
    with tarfile.open(tmp_path / 'shard.tar', 'w') as tar:
        for file in files(photos):
            tar.add(file, file.name)
    lines = [str(file.relative_to(tmp_path)) for file in files(photos)]
    (tmp_path / 'list.csv').write_text('\n'.join(['image', *lines]))
    expected = sorted(contents(index).values())
    rows = [f'{line}\ta, b' for line in lines]
    (tmp_path / 'list.tsv').write_text('\n'.join(['image\tcaption', *rows]))
    for source in ('shard.tar', 'list.csv', 'list.tsv'):
        other = make(f'index of {source}')
        other.update(tmp_path / source, progress=False)
        assert sorted(contents(other).values()) == expected


def cut_in_a_member(content, start, end):
    return content[: end - 1]


def cut_between_members(content, start, end):
    return content[: start - tarfile.BLOCKSIZE]


def cut_in_a_header(content, start, end):
    return content[: start - 1]


def damage_a_header(content, start, end):
    return content[: start - 99] + b'damaged' + content[start - 92 :]


@pytest.mark.parametrize(
    ('damage', 'lost', 'problem'),
    [
        (cut_in_a_member, 1, 'unexpected end of data'),
        (cut_between_members, 1, 'neither a member nor the end at byte'),
        (cut_in_a_header, 1, 'neither a member nor the end at byte'),
        (damage_a_header, 2, 'neither a member nor the end at byte'),
        (lambda *_: b'', 4, 'empty file'),
        (lambda *_: b'<html>' * 1000, 4, 'invalid header'),
    ],
)
def test_of_a_damaged_shard_all_before_the_damage_is_indexed(
    make, photos, tmp_path, damage, lost, problem
):
    shards = tmp_path / '0.tar', tmp_path / '1.tar'
    for shard, part in zip(shards, (files(photos)[:4], files(photos)[4:6]), strict=True):
        with tarfile.open(shard, 'w', format=tarfile.USTAR_FORMAT) as tar:
            for file in part:
                tar.add(file, file.name)
    index, whole = make(), make('whole')
    whole.update(tmp_path / '*.tar', progress=False)
    expected, content = contents(whole).keys(), shards[0].read_bytes()
    *_, hurt, last = tarfile.open(shards[0])
    member = hurt if damage is damage_a_header else last
    shards[0].write_bytes(damage(content, member.offset_data, member.offset_data + member.size))
    index.update(tmp_path / '*.tar', progress=False)
    gone = [f'{shards[0]}::{file.name}' for file in files(photos)[4 - lost : 4]]
    assert contents(index).keys() == expected - set(gone)
    broken = dict(index.catalogue.broken())
    assert re.match(rf'{shards[0]}: .*{problem}.* left out$', broken.pop(str(shards[0])), re.DOTALL)
    assert broken == {
        name: f'{name}: the shard ends within it' for name in gone if damage is cut_in_a_member
    }
    shards[1].unlink()
    if lost == 4:  # nothing is left to go on with
        with pytest.raises(FileNotFoundError, match=rf'no image can be read, 1 .*{problem}'):
            whole.update(shards[0], progress=False)
        assert contents(whole).keys() == expected
    shards[0].write_bytes(content)
    index.update(tmp_path / '*.tar', progress=False)
    assert contents(index).keys() == {name for name in expected if '0.tar' in name}
    assert not index.catalogue.broken()


@pytest.mark.parametrize('name', ['list.csv', 'list.json', '*.csv'])
def test_paths_of_a_list_are_relative_to_its_folder_or_to_a_root(make, photos, tmp_path, name):
    lines = [str(file.relative_to(photos)) for file in files(photos)]
    (tmp_path / 'lists').mkdir()
    (tmp_path / 'lists/list.csv').write_text('\n'.join(['image', *lines, 'gone.png']))
    records = [{'image': line} for line in [*lines, 'gone.png']]
    (tmp_path / 'lists/list.json').write_text(json.dumps(records))
    index, source = make(), tmp_path / 'lists' / name
    index.update(source, root=photos, progress=False)
    assert sorted(contents(index)) == [str(file) for file in files(photos)]
    assert [path for path, _ in index.catalogue.broken()] == [str(photos / 'gone.png')]
    # A root that is forgotten, or a disk that is absent, empties no index.
    missing = f'no image can be read, {len(lines) + 1} left out, the first is {tmp_path}/lists/000/'
    with pytest.raises(FileNotFoundError, match=rf'{missing}\S+: no such file\. .* with --root'):
        index.update(source, progress=False)
    assert len(contents(index)) == len(lines)
    with pytest.raises(ValueError, match=f'--root=x is for a list .*, and {photos} is none'):
        index.update(photos, root='x')


def test_photographs_are_found_by_their_time_and_other_forms_of_it_are_refused(make, tmp_path):
    times = '2019:12:31 23:59:59', '2020:01:31 10:11:12', '2020:11:01 00:00:00'
    (tmp_path / 'dated').mkdir()
    for number, time in enumerate(times):
        exif = Image.Exif()
        exif[306] = time
        Image.new('RGB', (32, 32), (number, 0, 0)).save(tmp_path / f'dated/{number}.jpg', exif=exif)
    index = make()
    index.update(tmp_path / 'dated', progress=False)

    def found(**limits):
        (hits,) = index.search([Query('a ring')], 9, Filter(**limits))
        return sorted(int(hit.image.path[-5]) for hit in hits)

    assert found(after='2020') == found(after='2020-01') == found(after='2020-01-31') == [1, 2]
    assert found(before='2020') == [0] and found(before='2020-01-31 10:12') == [0, 1]
    assert found(after='2020-02', before='2020-11-01 00:00:01') == [2]
    for time in ('2020/01/31', '31.01.2020', '2020-1-31', '2020-31-01', 'garbage', ''):
        for name in ('after', 'before'):
            with pytest.raises(ValueError, match=f"{name}='{time}', expected a date such as 2020"):
                found(**{name: time})


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('a.json', '[{"image": 3}]', r'\[0\].image is 3, expected a text'),
        ('a.json', '[{"image": ["a.png", "b.png"]}]', r"\[0\].image is \['a.png', 'b.png'\], exp"),
        ('a.json', '[{"images": "a.png"}]', r"key 'image' is missing in \[0\]"),
        ('a.json', '{"image": "a.png"}', "it is {'image': 'a.png'}, expected a list"),
    ],
)
def test_a_list_without_names_of_images_is_a_sentence(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=f'{name} cannot be read: {message}'):
        find_entries(str(tmp_path / name))


def test_a_folder_that_cannot_be_listed_is_named_and_not_taken_for_empty(photos, monkeypatch):
    inner = next(path for path in sorted(photos.rglob('*')) if path.is_dir())
    scan = os.scandir

    def refuse(path):
        if os.fspath(path) == str(inner):
            raise PermissionError(13, 'Permission denied', str(path))
        return scan(path)

    monkeypatch.setattr(os, 'scandir', refuse)
    with pytest.raises(PermissionError, match=f'{inner}'):
        find_entries(str(photos))


def test_what_goes_wrong_is_said_in_a_sentence(make, photos, inferencer, tmp_path):
    index = make()
    index.folder.mkdir()
    for where in (None, Filter(path='a')):
        with pytest.raises(FileNotFoundError, match='index has no index: make one'):
            index.search([Query('a ring')], where=where)
    assert not list(index.folder.iterdir())
    with pytest.raises(FileNotFoundError, match='no images'):
        index.update(tmp_path / 'nothing')
    index.update(photos, progress=False)
    for empty in (Query(), Query(''), Query(' '), Query(' and also '), Query(without='a')):
        with pytest.raises(ValueError, match='the query is empty: expected a text, an image'):
            index.search([Query('a ring'), empty])
    for text in ('?!', 'a ring and not ...', 'a ring and also "'):
        with pytest.raises(ValueError, match='in which there is no word'):
            index.search([Query.parse(text)])
    before = contents(index)
    with pytest.raises(FileNotFoundError, match='no images'):
        index.update(tmp_path / 'nothing')
    assert contents(index) == before
    weight = next(inferencer.model.parameters()).data
    former = weight.clone()
    weight += 1
    made = r'index was made with the model of a script \(\w{24}\)'
    given = r'the model given now is \S+pretrain_shapes.py with \S+weights.pth \(\w{24}\)'
    with pytest.raises(ValueError, match=rf'{made}, and {given}: give the former \(--config'):
        make()
    weight.copy_(former)
    (index.folder / 'catalogue.sqlite').write_bytes(b'damaged' * 1000)
    with pytest.raises(FileError, match='catalogue.sqlite cannot be used'):
        make().search([Query('a ring')], where=Filter(path='a'))
    for text in ('', 'a and not ', ' and not b', 'and not b', 'a and not'):
        with pytest.raises(ValueError, match='expected a text'):
            Query.parse(text)
    for more in ('and not', 'and also'):
        with pytest.raises(ValueError, match=f"one text after 'and not', found 'b {more} c'"):
            Query.parse(f'a and not b {more} c')
    assert Query.parse('a and also b and not c') == Query('a and also b', without='c')


@pytest.mark.parametrize('kind', ['flat', 'hnsw', 'ivfpq'])
def test_engines_find_what_all_products_find(kind, monkeypatch, width=16):
    monkeypatch.setattr(engine_module, 'FEW', 20)  # with 1000 images the structure filters
    random = np.random.default_rng(0)
    matrix = random.normal(size=(3000, width)).astype(np.float16)
    ids = np.arange(0, 3000, 2)
    queries = random.normal(size=(20, width)).astype(np.float32)
    engine = Engine.build(matrix, ids, kind)
    if kind == 'ivfpq':
        engine.faiss_index.nprobe = engine.faiss_index.nlist
    products = queries @ matrix[ids].astype(np.float32).T
    hits = 0
    for row, (found, scores) in enumerate(engine.search(queries, 10)):
        best = ids[np.argsort(-products[row])[:10]]
        hits += len(set(best) & set(found))
        exact = matrix[found].astype(np.float32) @ queries[row]
        np.testing.assert_allclose(scores, exact, rtol=1e-5)
    assert hits >= (200 if kind == 'flat' else 190)
    for few in (15, 1000):
        newer = np.append(ids[:few], 10**6)  # the structure does not know the last one yet
        overlap = 0
        for row, (found, _) in enumerate(engine.search(queries, 5, newer)):
            assert len(found) == 5 and set(found) <= set(ids[:few])
            overlap += len(set(found) & set(ids[np.argsort(-products[row, :few])[:5]]))
        assert overlap >= (95 if few > 20 and kind != 'flat' else 100)


def test_an_engine_of_codes_needs_as_many_images_as_codes(make, photos):
    first, *_ = files(photos)
    for number in range(16 - len(files(photos))):
        shutil.copy(first, photos / f'copy{number}.png')
    index = make()
    index.update(photos, engine='ivfpq', progress=False)
    assert len(index.search([Query('a ring')], 20)[0]) == 16
    for few in (15, 3, 1):
        for file in files(photos)[few:]:
            file.unlink()
        with pytest.raises(
            ValueError, match=f'ivfpq needs at least 16 images, and there are {few}'
        ):
            index.update(photos, engine='ivfpq', progress=False)
        index.update(photos, progress=False)
        assert len(index.search([Query('a ring')], 20)[0]) == few


def test_the_catalogue_is_plain_sqlite(make, photos):
    index = make()
    index.update(photos, progress=False)
    with sqlite3.connect(index.catalogue.file) as connection:
        assert connection.execute('SELECT count(*) FROM images').fetchone() == (len(files(photos)),)


def test_single_rows_are_those_of_the_memory_map(tmp_path):
    vectors = VectorFile(tmp_path / 'vectors.f16', 'float16')
    written = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float16)
    vectors.write(written, 0)
    rows = vectors.open(50, 7)
    ids = np.array([49, 0, 17, 17])
    np.testing.assert_array_equal(rows[ids], written[ids])
    assert rows[ids[:0]].shape == (0, 7)
    vectors.write(written[:2], 1)
    with pytest.raises(FileError, match='has become shorter'):
        rows[ids]


def test_an_index_without_a_whole_image_finds_nothing(tmp_path, inferencer):
    (tmp_path / 'images').mkdir()
    (tmp_path / 'images/broken.png').write_bytes(b'no image')
    index = ImageIndex(tmp_path / 'index', inferencer)
    index.update(tmp_path / 'images', progress=False)
    assert index.search([Query('a red ring')]) == [[]]
