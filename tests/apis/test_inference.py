"""Inferencer computes on image files what the test loops compute on the same images."""

import copy
import pickle
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Event, current_thread

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from PIL import Image
from safetensors.torch import load_file

from xmodal.apis import Inferencer, load_model
from xmodal.apis.inputs import image_fields
from xmodal.datasets.image_file import decode_image, read_image
from xmodal.engine.launch import build_runner
from xmodal.engine.loops.grounding import GroundingLoop
from xmodal.errors import ConfigError
from xmodal.models import AlbefPretrainer
from xmodal.models.base import CrossModalModel
from xmodal.models.necks import NoPosition
from xmodal.registry import MODELS
from xmodal.structures import Encoded
from xmodal.zoo.folder import find_folder


@pytest.fixture
def prepare(relocated, tiny_world, tmp_path):
    """Builds a config on the tiny world: its runner with random weights, and an inferencer."""

    def make(name, **encoder):
        config = relocated(f'configs/{name}.py', tiny_world)
        config.update(work_dir=str(tmp_path), experiment_name=f'infer {name}')
        image_encoder = config.model.get('backbone', config.model).image_encoder
        if image_size := image_encoder.get('image_size'):
            assert image_size == 96
            image_encoder.update(image_size=32, patch_size=8, **encoder)
        runner = build_runner(config)
        runner.model.eval()
        file = tmp_path / 'weights.pth'
        torch.save(runner.model.state_dict(), file)
        return runner, Inferencer(config, file)

    return make


class Unnormalised(CrossModalModel):
    """A whole model of a plug-in, whose embeddings are not normalised."""

    def __init__(self):
        super().__init__(None)
        self.data_preprocessor.prepare_images = lambda inputs: inputs

    def encode_image(self, images):
        return Encoded(None, images)

    def encode_text(self, input_ids, attention_mask):
        return Encoded(None, input_ids.float())


def test_similarity_is_no_product_of_embeddings_that_are_not_normalised():
    inferencer = Inferencer.__new__(Inferencer)
    inferencer.model = Unnormalised()
    with pytest.raises(ValueError, match='Unnormalised makes embeddings of length 2 to 2'):
        inferencer.encode_batch(dict(inputs=2 * torch.eye(3)))
    with pytest.raises(ValueError, match='Unnormalised makes embeddings of length 5 to 5'):
        inferencer._encode_words(torch.tensor([[3, 4]]), torch.ones(1, 2))


@torch.no_grad()
def test_similarity_is_what_the_retrieval_loop_computes(prepare):
    runner, inferencer = prepare('acerpe/pretrain_shapes')
    loop = runner.test_loop
    loop.scorer.topk = 0
    encoded = loop.encode(runner.model)
    gallery = loop.scorer.score(runner.model, encoded)
    captions, paths = encoded.captions, encoded.image_names
    texts = [caption.upper() + '.' for caption in captions[:7]]  # as users write
    actual = inferencer.similarity(paths[2:5], texts)
    torch.testing.assert_close(actual, gallery.scores[2:5, :7], atol=1e-5, rtol=1e-4)
    alone = (
        inferencer.encode_images(paths[2:5]).embedding @ inferencer.encode_texts(texts).embedding.T
    )
    torch.testing.assert_close(alone, actual)


@torch.no_grad()
@pytest.mark.parametrize('score', ['yes', 'difference'])
def test_a_match_is_a_probability_whatever_score_the_head_ranks_by(prepare, score):
    runner, inferencer = prepare('acerpe/pretrain_shapes')
    inferencer.model.matching_head.score = score
    dataset = runner.test_dataloader.dataset
    items = [dataset.get_data_info(index, None) for index in range(2)]
    paths, captions = [item['img_path'] for item in items], [item['text'][0] for item in items]
    image, text = inferencer.encode(paths, captions)
    found = inferencer.match(paths, captions)
    for i in range(2):
        for t in range(2):
            fused = runner.model.fuse(
                image.tokens.select(torch.tensor([i])), text.tokens.select(torch.tensor([t]))
            )
            no, yes = runner.model.heads['itm'](fused.text_tokens)[0]
            assert found[i, t].item() == pytest.approx(
                (yes.exp() / (no.exp() + yes.exp())).item(), abs=1e-5
            )


@pytest.mark.parametrize(
    'name',
    [
        'acerpe/vqa_shapes',
        'acerpe/snli_ve_shapes',
        'acerpe/nlvr2_shapes',
        'lxmert/vqa_shapes',
        'lxmert/nlvr2_shapes',
    ],
)
def test_predictions_are_those_of_the_test(prepare, name):
    runner, inferencer = prepare(name)
    dataset = runner.test_dataloader.dataset
    items = [dataset.get_data_info(index, None) for index in range(5)]
    batch = runner.test_dataloader.collate_fn([dataset[index] for index in range(5)])
    expected = runner.model.test_step(batch)
    images = [item.get('img_paths', item['img_path']) for item in items]
    actual = inferencer.predict(images, [item['text'] for item in items])
    for sample, reference in zip(actual, expected, strict=True):
        assert sample.predicted == reference.predicted
        if 'top_answers' in reference:
            assert [text for text, _ in sample.top_answers] == [
                text for text, _ in reference.top_answers
            ]
        else:
            torch.testing.assert_close(sample.probabilities, reference.probabilities)


def test_questions_are_cleaned_as_in_the_test_set(prepare):
    _, inferencer = prepare('acerpe/vqa_shapes')
    assert inferencer.clean_text('What COLOUR is it?') == 'what colour is it'
    assert len(inferencer.clean_text('word ' * 60).split()) == 50


def test_heatmaps_are_those_of_the_grounding_loop(prepare):
    runner, inferencer = prepare('acerpe/grounding_shapes')
    batch = next(iter(runner.test_dataloader))
    expected = GroundingLoop.predict(runner.test_loop, runner.model, batch)[:4]
    actual = inferencer.heatmap([s.image_path for s in expected], [s.text for s in expected])
    for heat, sample in zip(actual, expected, strict=True):
        large = torch.nn.functional.interpolate(heat[None, None], sample.size, mode='bicubic')
        torch.testing.assert_close(large[0, 0], sample.heat, atol=1e-6, rtol=1e-4)


def test_a_heatmap_is_that_of_the_layer_which_is_asked_for(prepare):
    runner, inferencer = prepare('acerpe/grounding_shapes', conv_stem=False)
    item = runner.test_dataloader.dataset[0]['data_samples']
    image, text = inferencer.encode([item.image_path], [item.text])
    fused = runner.model.backbone.fuse(image.tokens, text.tokens, need_attentions=True)
    _, yes = runner.model.heads['itm'](fused.text_tokens)[0]
    expected = []
    for attentions in fused.attentions:
        attention = attentions.text_to_image
        (gradient,) = torch.autograd.grad(yes, attention, retain_graph=True)
        heat = (attention * gradient.clamp(min=0)).detach().mean(1)[0, :, 1:].mean(0)
        expected.append(heat.view(1, 4, 4))
    assert len(expected) == 2 and not torch.allclose(*expected, atol=0)
    for layer, index in ((None, 0), (0, 0), (1, 1), (-1, 1), (-2, 0)):
        heat = inferencer.heatmap([item.image_path], [item.text], layer=layer)
        torch.testing.assert_close(heat, expected[index], atol=1e-7, rtol=1e-3)
    with pytest.raises(ValueError, match='layer=2, expected -2 to 1: the number .* is 2'):
        inferencer.heatmap([item.image_path], [item.text], layer=2)


def test_two_threads_get_the_heatmaps_of_their_own_calls(prepare, monkeypatch):
    runner, inferencer = prepare('acerpe/grounding_shapes')
    items = [runner.test_dataloader.dataset[index]['data_samples'] for index in (0, 5)]
    calls = [([item.image_path], [item.text]) for item in items]
    expected = [inferencer.heatmap(*call) for call in calls]
    waiting, other_is_done = Event(), Event()
    layer = inferencer.model.backbone.fusion.layers[0]
    attend_self, main_thread = layer.attend_self, current_thread()

    def wait_for_the_other(*arguments):
        if current_thread() is not main_thread and not waiting.is_set():
            waiting.set()
            assert other_is_done.wait(60)
        return attend_self(*arguments)

    monkeypatch.setattr(layer, 'attend_self', wait_for_the_other)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(inferencer.heatmap, *calls[0])
        assert waiting.wait(60)
        # The first call stands before the cross-attention that the second one passes meanwhile.
        second = inferencer.heatmap(*calls[1])
        other_is_done.set()
        found = [first.result(60), second]
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
    assert not torch.equal(*expected)


@torch.no_grad()
def test_the_words_of_a_text_come_with_their_anchors(prepare):
    runner, inferencer = prepare('acerpe/pretrain_shapes', conv_stem=False)
    path = runner.test_dataloader.dataset.get_data_info(0, None)['img_path']
    found = inferencer.anchors(path, 'The RED ring, left!')
    assert [anchors.word for anchors in found] == ['the', 'red', 'ring', 'left', '[SEP]']
    image, text = inferencer.encode([path], ['the red ring left'])
    groups = inferencer.model.backbone.position.groups
    for n, anchors in enumerate(found):
        assert anchors.patches.shape == (4, 4, groups)
        for m in range(16):
            for g in range(groups):
                x, y = (
                    tokens.embeddings[0, 1 + index].chunk(groups)[g].double()
                    for tokens, index in ((image.tokens, m), (text.tokens, n))
                )
                cosine = (x @ y / (x.norm() * y.norm())).item()
                assert bool(anchors.patches[m // 4, m % 4, g]) == (cosine >= 0.05)
    assert 0 < torch.stack([anchors.patches for anchors in found]).float().mean() < 1


@pytest.mark.parametrize('name', ['acerpe/pretrain_shapes', 'emkum/tte_post_shapes'])
def test_a_model_without_anchors_is_an_error_that_names_its_position(prepare, name):
    runner, inferencer = prepare(name)
    path = runner.test_dataloader.dataset.get_data_info(0, None)['img_path']
    found = 'None'
    if name.startswith('acerpe'):
        inferencer.model.backbone.position = NoPosition(2, 128, 4)
        found = 'NoPosition'
    with pytest.raises(
        ValueError, match=f"position is {found}, expected type='AnchorRelativePosition'"
    ):
        inferencer.anchors(path, 'a ring')


@pytest.mark.parametrize(
    ('name', 'call', 'lacks'),
    [
        ('lxmert/vqa_shapes', 'similarity', 'LxmertVQA has no encode_text'),
        ('lxmert/vqa_shapes', 'encode_texts', 'LxmertVQA has no encode_text'),
    ],
)
def test_a_call_for_models_of_other_tasks_says_which_take_it(prepare, name, call, lacks):
    runner, inferencer = prepare(name)
    path = runner.test_dataloader.dataset.get_data_info(0, None)['img_path']
    arguments = ([path], ['a ring'])[call == 'encode_texts' :]
    with pytest.raises(ValueError, match=rf'{lacks}\(\): .*predict\(\) is for those of other'):
        getattr(inferencer, call)(*arguments)


def test_unsupported_calls_are_errors(prepare, tiny_world):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    with pytest.raises(ValueError, match="mode='predict', expected one of"):
        inferencer.predict(sorted(tiny_world.glob('images/test/*/*.png'))[:1], ['one'])
    with pytest.raises(ValueError, match='2 images and 1 texts, expected one text for each image'):
        inferencer.predict(['a.png', 'b.png'], ['one'])
    config = Config.fromfile('configs/acerpe/pretrain_4m.py')
    with pytest.raises(ConfigError, match='pretrain_4m.py has no test_dataloader, which says how'):
        Inferencer(config, 'any.pth')
    for config in ('configs/acerpe/pretrain_shapes.py', inferencer.config):
        with pytest.raises(ConfigError, match='pretrain_shapes.py has no weights: give a checkp'):
            Inferencer(config)
    config = Config.fromfile('configs/temde/saf_temde_shapes.py')
    with pytest.raises(ValueError, match='reads precomputed features, not image files'):
        Inferencer(config, 'any.pth')


def test_a_single_text_or_path_in_place_of_a_list_is_an_error(prepare, tiny_world):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    (image, *_) = sorted(tiny_world.glob('images/test/*/*.png'))
    for call in (inferencer.similarity, inferencer.match, inferencer.heatmap):
        with pytest.raises(TypeError, match=r"texts='a ring', expected a list: texts=\['a ring'\]"):
            call([image], 'a ring')
        with pytest.raises(TypeError, match=r'images=.*\.png.*, expected a list'):
            call(str(image), ['a ring'])


@MODELS.register_module()
class OwnPretrainer(AlbefPretrainer):
    """A model of a plug-in, which passes on what it does not know."""

    def __init__(self, **options):
        super().__init__(**options)


@pytest.mark.parametrize('kind', ['AlbefPretrainer', 'OwnPretrainer'])
def test_a_model_for_inference_has_no_teacher(shrink, tmp_path, monkeypatch, kind):
    config = shrink('configs/acerpe/pretrain_shapes_paper.py')
    config.model.type = kind
    trained = build_runner(config).model
    torch.save(trained.state_dict(), tmp_path / 'trained.pth')
    # As in a process that has read no config and built nothing before.
    monkeypatch.setattr(DefaultScope, '_instance_dict', OrderedDict())
    model = load_model(config, tmp_path / 'trained.pth')
    assert trained.teacher and model.teacher is None
    expected = trained.backbone.state_dict()
    for name, value in model.backbone.state_dict().items():
        assert value.equal(expected[name])
    assert sum(p.numel() for p in model.parameters()) < 0.6 * sum(
        p.numel() for p in trained.parameters()
    )


def test_any_number_of_images_of_any_kind_is_encoded_in_batches(prepare, tiny_world, capsys):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    paths = sorted(tiny_world.glob('images/test/*/*.png'))[:5]
    images = [
        str(paths[0]), paths[1], Image.open(paths[2]), np.asarray(Image.open(paths[3])),
        paths[4].read_bytes(),
    ]  # fmt: skip
    expected = torch.cat([inferencer.encode_images([path]).embedding for path in paths])
    sizes = []
    encode = inferencer.encode_batch
    inferencer.encode_batch = lambda data: (sizes.append(len(data['inputs'])), encode(data))[1]
    matched = inferencer.match(images, ['a red ring', 'a disc'])
    inferencer.batch_size, inferencer.progress = 2, True
    torch.testing.assert_close(inferencer.match(images, ['a red ring', 'a disc']), matched)
    sizes.clear()
    image = inferencer.encode_images(images)
    assert sizes == [2, 2, 1] and len(image.tokens.embeddings) == 5
    torch.testing.assert_close(image.embedding, expected, atol=1e-5, rtol=1e-5)
    assert '5/5' in capsys.readouterr().err
    with pytest.raises(OSError, match=r'images\[4\]'):  # its place among all, not in its batch
        inferencer.encode_images([*paths[:4], b'no image'])
    with ThreadPoolExecutor(4) as pool:
        for embedding in pool.map(lambda _: inferencer.encode_images(images).embedding, range(8)):
            assert embedding.equal(image.embedding)


@pytest.mark.parametrize('again', [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_and_one_of_another_process_say_the_same(prepare, tiny_world, again):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    query = sorted(tiny_world.glob('images/test/*/*.png'))[:2], ['a red ring', 'a disc']
    with inferencer.lock:  # of a thread that uses it
        other = again(inferencer)
    assert other.similarity(*query).equal(inferencer.similarity(*query))
    assert other.lock is not inferencer.lock


def test_cosines_keep_the_tokens_of_one_batch_at_most(prepare, tiny_world):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    paths = sorted(tiny_world.glob('images/test/*/*.png'))[:5]
    inferencer.batch_size, kept, most = 1, [], []
    encode = inferencer.encode_batch

    def watch(data):
        most.append(sum(tokens() is not None for tokens in kept))
        encoded = encode(data)
        kept.append(weakref.ref(encoded.tokens.embeddings))
        return encoded

    inferencer.encode_batch = watch
    inferencer.similarity(paths, ['a red ring'])
    assert len(most) == 5 and max(most) <= 1


def test_as_many_images_at_once_as_the_model_takes(prepare, tiny_world):
    first, second, *_ = sorted(tiny_world.glob('images/test/*/*.png'))
    _, inferencer = prepare('acerpe/pretrain_shapes')
    for call in (inferencer.similarity, inferencer.match, inferencer.heatmap):
        with pytest.raises(TypeError, match=r'images\[0\] is a list of 2, .* takes one image'):
            call([[first, second]], ['a ring'])
    _, inferencer = prepare('acerpe/nlvr2_shapes')
    with pytest.raises(TypeError, match=r'images\[1\] is one image, .* takes a list of several'):
        inferencer.predict([[first, second], first], ['one', 'two'])


def test_the_folder_of_a_model_takes_another_checkpoint(tmp_path):
    folder = find_folder('acerpe-shapes')
    weights = load_file(folder / 'model.safetensors')
    torch.save({name: value + 1 for name, value in weights.items()}, tmp_path / 'other.pth')
    inferencer = Inferencer(str(folder), tmp_path / 'other.pth')
    name, parameter = next(inferencer.model.named_parameters())
    torch.testing.assert_close(parameter.data, (weights[name] + 1).float())
    with pytest.raises(ValueError, match="no model 'acerpe-shape', .* did you mean acerpe-shapes"):
        Inferencer('acerpe-shape', tmp_path / 'other.pth')


@pytest.mark.parametrize('form', ['png', 'tif'])
def test_sixteen_bits_of_pillow_are_those_of_the_file(tmp_path, form):
    file = tmp_path / f'grey.{form}'
    values = np.random.default_rng(0).integers(0, 1 << 16, (20, 30)).astype(np.uint16)
    Image.fromarray(values).save(file)
    with Image.open(file) as image:
        pixels = decode_image(image_fields(image, 'image')['img_bytes'], 'image')
    np.testing.assert_array_equal(pixels, read_image(file))
    np.testing.assert_allclose(pixels[..., 0], values / 256, atol=1)


def test_texts_of_an_array_are_texts(prepare):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    texts = ['a red ring', 'a disc']
    expected = inferencer.encode_texts(texts).embedding
    for dtype in (str, object):
        assert inferencer.encode_texts(np.array(texts, dtype)).embedding.equal(expected)
        assert inferencer.encode_texts(np.array([], dtype)).embedding.shape[0] == 0


def test_images_of_a_column_are_taken_in_its_order(prepare, tiny_world):
    """The indices of a column of pandas are labels, and a shuffled one has them in any order."""

    class Column:
        def __init__(self, values, labels):
            self.values, self.labels = values, labels

        def __len__(self):
            return len(self.values)

        def __iter__(self):
            return iter(self.values)

        def __getitem__(self, label):
            return self.values[self.labels.index(label)]

    _, inferencer = prepare('acerpe/pretrain_shapes')
    paths = sorted(tiny_world.glob('images/test/*/*.png'))[:3]
    found = inferencer.encode_images(Column(paths, [2, 0, 1])).embedding
    assert found.equal(inferencer.encode_images(paths).embedding)


def test_empty_lists_give_empty_results(prepare):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    assert inferencer.similarity([], ['a', 'b']).shape == (0, 2)
    assert inferencer.similarity([], []).shape == inferencer.match([], []).shape == (0, 0)
    assert inferencer.encode_texts([]).embedding.shape[0] == 0
    assert inferencer.heatmap([], []).shape[0] == 0
    assert inferencer.predict([], []) == []


@pytest.mark.parametrize('empty', ['', ' \n', '?!'])
def test_a_text_without_a_word_is_named(prepare, empty):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    image = np.zeros((32, 32, 3), np.uint8)
    calls = [
        lambda: inferencer.similarity([image], ['a ring', empty]),
        lambda: inferencer.match([image], ['a ring', empty]),
        lambda: inferencer.heatmap([image] * 2, ['a ring', empty]),
        lambda: inferencer.predict([image] * 2, ['a ring', empty]),
        lambda: inferencer.encode(['none.png'] * 2, ['a ring', empty]),  # before images are read
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r'texts\[1\] is .*, in which there is no word'):
            call()
    with pytest.raises(ValueError, match=r'texts\[0\] is .*, in which there is no word'):
        inferencer.anchors(image, empty)


def test_empty_lists_give_empty_results_of_regions_too(prepare):
    _, inferencer = prepare('acerpe/contrast_shapes_regions')
    assert inferencer.similarity([], ['a', 'b']).shape == (0, 2)


@pytest.mark.parametrize(
    ('name', 'lacks', 'has'),
    [
        ('acerpe/contrast_shapes_anchored', 'AlbefPretrainer', 'similarity'),
        ('emkum/none_shapes', 'EmkumModel', 'similarity'),
        ('lxmert/vqa_shapes', 'LxmertVQA', 'predict'),
    ],
)
def test_a_model_without_an_itm_head_says_what_it_has(prepare, name, lacks, has):
    _, inferencer = prepare(name)
    sentence = rf'{lacks} has no ITM head, so there is no match\(\), .* --rerank: it has {has}\(\)$'
    with pytest.raises(ValueError, match=sentence):
        inferencer.match([np.zeros((32, 32, 3), np.uint8)], ['a red ring'])


@pytest.mark.parametrize('name', ['acerpe/pretrain_shapes', 'emkum/tte_post_shapes'])
def test_texts_of_any_length_are_encoded_in_their_order(prepare, name):
    _, inferencer = prepare(name)
    texts = ['a red ring', 'a', 'a red ring above a blue disc and a bar', 'two', 'a blue bar'] * 3
    alone = [inferencer.encode_texts([text]) for text in texts]
    widths, encode = [], inferencer.model.encode_text
    inferencer.model.encode_text = lambda ids, mask: (
        widths.append(ids.shape[1]),
        encode(ids, mask),
    )[1]
    inferencer.batch_size = 6
    together = inferencer.encode_texts(texts)
    assert widths == sorted(widths) and widths[0] < widths[-1] and len(widths) == 3
    for row, expected in enumerate(alone):
        length = expected.tokens.embeddings.shape[1]
        actual = together.tokens.embeddings[row, :length]
        torch.testing.assert_close(actual, expected.tokens.embeddings[0], atol=1e-5, rtol=1e-4)
        assert together.tokens.attention_mask[row].sum() == length
        torch.testing.assert_close(
            together.embedding[row], expected.embedding[0], atol=1e-5, rtol=1e-4
        )


@pytest.fixture
def warnings(monkeypatch):
    """What preprocessors warn of."""
    texts = []
    patched = 'xmodal.models.base.preprocessor.print_log'
    monkeypatch.setattr(patched, lambda text, *_, **__: texts.append(text))
    return texts


def test_words_that_the_model_does_not_know_are_named_once_for_a_list(prepare, warnings):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    image = np.zeros((32, 32, 3), np.uint8)
    inferencer.similarity([image], ['a red ring', 'a blue disc'])
    inferencer.encode_texts([])
    assert not warnings
    inferencer.batch_size = 1
    inferencer.match([image] * 3, ['A zebra!', 'a ring', 'giraffe and zebra'])
    assert warnings == ['not in the vocabulary of this model: zebra, giraffe']
    inferencer.encode_texts([f'word{n}' for n in range(21)])
    assert warnings[1].endswith(': ' + ', '.join(f'word{n}' for n in range(20)) + ', …')


def test_unknown_words_of_questions_are_named(prepare, warnings):
    _, inferencer = prepare('lxmert/vqa_shapes')
    inferencer.predict(['test_000000.png'], ['what colour is the zebra'])
    assert warnings == ['not in the vocabulary of this model: zebra']
