"""The inferencer: images in every form, empty lists, wrong arguments, and threads."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
import torch
from mmengine.runner.checkpoint import save_checkpoint
from PIL import Image
from trials import require_right

from xmodal.apis import Inferencer
from xmodal.engine.errors import origin
from xmodal.errors import ConfigError
from xmodal.registry import MODELS

TEXTS = ['a red ring', 'a blue disc above a green square', 'two rings', 'a disc']
CALLS = ('similarity', 'match', 'heatmap')


@pytest.fixture(scope='module')
def make(relocated, tiny_world, tmp_path_factory):
    """Builds the inferencer of a config with random weights."""

    def build(name):
        config = relocated(f'configs/{name}.py', tiny_world)
        encoder = config.model.get('backbone', config.model).image_encoder
        encoder.update(image_size=32, patch_size=8)
        torch.manual_seed(0)
        file = tmp_path_factory.mktemp('weights') / 'weights.pth'
        save_checkpoint(MODELS.build(config.model).state_dict(), str(file))
        return Inferencer(config, file)

    return build


@pytest.fixture(scope='module')
def inferencer(make):
    return make('acerpe/grounding_shapes')


@pytest.fixture(scope='module')
def paths(tiny_world):
    return sorted(tiny_world.glob('images/test/*/*.png'))[:4]


def forms(path):
    """One image in every form."""
    pixels = cv2.imread(str(path))[..., ::-1]
    return [str(path), path, path.read_bytes(), pixels, np.ascontiguousarray(pixels),
            Image.open(path), Image.fromarray(pixels).convert('RGBA')]  # fmt: skip


@pytest.mark.parametrize('call', CALLS)
def test_an_image_in_every_form_gives_the_same(inferencer, paths, call):
    compute = getattr(inferencer, call)
    expected = compute([paths[0]], TEXTS[:1])
    for image in forms(paths[0]):
        assert torch.equal(compute([image], TEXTS[:1]), expected)
    batch = np.stack([cv2.imread(str(path))[..., ::-1] for path in paths])
    assert torch.equal(compute(batch, TEXTS), compute(paths, TEXTS))


def test_a_photograph_of_pillow_is_turned_upright_as_its_file_is(inferencer, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / 'turned.png', exif=exif)
    found = [
        inferencer.encode_images([image]).embedding
        for image in (tmp_path / 'turned.png', Image.open(tmp_path / 'turned.png'))
    ]
    assert torch.equal(*found)


def test_several_images_of_a_sample_in_every_form_give_the_same(make, paths):
    inferencer = make('acerpe/nlvr2_shapes')
    (expected,) = inferencer.predict([paths[:2]], ['one is red'])
    for first, second in zip(forms(paths[0]), forms(paths[1]), strict=True):
        (found,) = inferencer.predict([[first, second]], ['one is red'])
        assert torch.equal(found.probabilities, expected.probabilities)
    (other,) = inferencer.predict([[paths[1].read_bytes(), paths[0].read_bytes()]], ['one is red'])
    assert not torch.equal(other.probabilities, expected.probabilities)


def test_empty_lists_give_empty_results(inferencer, make, paths):
    image, text = inferencer.encode([], [])
    assert image.embedding.shape == (0, *inferencer.encode_images(paths).embedding.shape[1:])
    assert len(image.tokens.embeddings) == len(text.tokens.embeddings) == 0
    for compute in (inferencer.similarity, inferencer.match):
        assert compute([], TEXTS).shape == (0, 4)
        assert compute(paths, []).shape == (4, 0)
        assert compute([], []).shape == (0, 0)
    assert inferencer.heatmap([], []).shape == (0, 4, 4)
    assert make('acerpe/vqa_shapes').predict([], []) == []


def ask(inferencer, call, arguments):
    """Calls as a script does, for which the project's own TypeError is a sentence, too."""
    try:
        return getattr(inferencer, call)(*arguments)
    except TypeError as error:
        if origin(error) == 'xmodal':
            raise ConfigError(str(error)) from None
        raise


def test_wrong_arguments_are_sentences(inferencer, paths, trials):
    path = paths[0]
    pixels = cv2.imread(str(path))
    one = {
        'a path as images': (str(path), TEXTS[:1]),
        'a Path as images': (path, TEXTS[:1]),
        'bytes as images': (path.read_bytes(), TEXTS[:1]),
        'an array as images': (pixels, TEXTS[:1]),
        'Pillow as images': (Image.open(path), TEXTS[:1]),
        'None as images': (None, TEXTS[:1]),
        'a number as images': (3, TEXTS[:1]),
        'a set as images': ({path}, TEXTS[:1]),
        'a dict as images': ({'a': path}, TEXTS[:1]),
        'a missing file': (['/nowhere.png'], TEXTS[:1]),
        'a folder': ([path.parent], TEXTS[:1]),
        'a device': (['/dev/zero'], TEXTS[:1]),
        'a null byte': (['a\0b.png'], TEXTS[:1]),
        'no image': ([b'no image'], TEXTS[:1]),
        'half an image': ([path.read_bytes()[:90]], TEXTS[:1]),
        'no bytes': ([b''], TEXTS[:1]),
        'floats': ([pixels / 255], TEXTS[:1]),
        'grey': ([pixels[..., 0]], TEXTS[:1]),
        'transparent': ([np.zeros((4, 4, 4), np.uint8)], TEXTS[:1]),
        'planes': ([pixels.transpose(2, 0, 1)], TEXTS[:1]),
        'no pixels': ([np.zeros((0, 4, 3), np.uint8)], TEXTS[:1]),
        'a tensor': ([torch.zeros(3, 4, 4)], TEXTS[:1]),
        'None in images': ([None], TEXTS[:1]),
        'a number in images': ([3], TEXTS[:1]),
        'a text as texts': ([path], 'a ring'),
        'bytes as texts': ([path], b'a ring'),
        'None as texts': ([path], None),
        'bytes in texts': ([path], [b'a ring']),
        'None in texts': ([path], [None]),
        'a list in texts': ([path], [['a ring']]),
    }
    done = [
        trials.run(
            'Inferencer',
            f'{call}: {given}',
            lambda call=call, arguments=arguments: ask(inferencer, call, arguments),
            ['images', 'texts', '/nowhere.png', str(path.parent), '/dev/zero', "'a\\x00b.png'"],
        )
        for given, arguments in one.items()
        for call in CALLS
    ]
    require_right(done)


def test_threads_get_the_results_of_their_own_calls(inferencer, paths):
    calls = [
        (call, [paths[n % 4], paths[(n + 1) % 4]][: 1 + n % 2], TEXTS[n % 3 :][: 1 + n % 2])
        for n in range(8)
        for call in CALLS
    ]
    expected = [getattr(inferencer, call)(*arguments) for call, *arguments in calls]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = pool.map(lambda c: getattr(inferencer, c[0])(*c[1:]), calls)
            assert all(map(torch.equal, found, expected))
