"""Pickles and lists of captions that are generated, and pickles that are made to harm."""

import struct
from functools import partial

import cv2
import numpy as np
from damages import write
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import of
from trials import require_right
from wrong_values import to_json

from xmodal.datasets.refer_files import read_plain_pickle

IMAGE = cv2.imencode('.png', np.zeros((4, 4, 3), np.uint8))[1].tobytes()


def test_pickles_run_no_code_and_take_no_memory(tmp_path, trials):
    file = tmp_path / 'refs.p'
    write(tmp_path / 'instances.json', b'{"images": [], "annotations": []}')
    bombs = {
        'a place in the memo': b'\x80\x02K\x01r\xff\xff\xff\x7f.',
        'a length of bytes': b'\x80\x04\x8e' + struct.pack('<Q', 1 << 40) + b'a.',
        'a frame': b'\x80\x04\x95' + struct.pack('<Q', 1 << 40) + b'.',
        'a call': b"cos\nsystem\n(S'true'\ntR.",
        'an extension': b'\x80\x02\x82\x01.',
        'a persistent id': b'\x80\x02K\x01Q.',
        'nested tuples': b'\x80\x02)' + b'\x85' * 200_000 + b'.',
        'a long number': b'\x80\x02\x8b' + struct.pack('<i', 1 << 30) + b'1.',
    }
    done = []
    references = of('ReferDataset', 'refs.p', split='v', instances='instances.json')
    for name, content in bombs.items():
        write(file, content)
        call = partial(references, tmp_path, False)
        is_plain = name in ('nested tuples', 'a place in the memo')  # but no references
        read = partial(read_plain_pickle, file)
        done.append(trials.run('ReferDataset', name, read, [file], is_plain))
        done.append(trials.run('ReferDataset', name, call, [file]))
    require_right(done)


@settings(max_examples=150)
@given(st.binary(max_size=60))
def test_any_bytes_in_place_of_a_pickle(trials, tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / 'any.p'
    write(file, content)
    trial = trials.run(
        'ReferDataset',
        content,
        partial(read_plain_pickle, file),
        [file],
        lambda value: type(value).__module__ == 'builtins',
    )
    require_right([trial])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {'image': st.just('0.png') | json_values, 'caption': st.just('a dog') | json_values},
    optional={'image_id': json_values},
)


CAPTIONS = of('AlbefJsonDataset', 'list.json', captions='each')


@settings(max_examples=250)
@given(st.lists(FIELDS | json_values, max_size=3))
def test_any_list_of_captions(trials, tmp_path_factory, items):
    folder = tmp_path_factory.getbasetemp() / 'any'
    if not folder.exists():
        folder.mkdir()
        (folder / '0.png').write_bytes(IMAGE)
    write(folder / 'list.json', to_json(items))
    call = partial(CAPTIONS, folder, False)

    def is_right(samples):
        """Each sample is a caption of the list that is not empty after cleaning."""
        captions = [item['caption'] for item in items]
        listed = [[each] if isinstance(each, str) else each for each in captions]
        texts = [text for part in listed for text in part]
        return all(isinstance(text, str) for text in texts) and 0 < len(samples) <= len(texts)

    trial = trials.run('AlbefJsonDataset', items, call, [folder / 'list.json'], is_right)
    require_right([trial])
