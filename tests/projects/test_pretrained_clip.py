"""projects/clip: a CLIP and a SigLIP with random weights, compared with transformers itself."""

import itertools
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_clip import LONGEST, SIDE, save
from torch.nn.functional import normalize
from transformers import AutoImageProcessor, AutoTokenizer, BertConfig, CLIPModel, SiglipModel

from tools import search as search_tool
from tools import test as test_tool
from xmodal.apis import Inferencer
from xmodal.engine.components import check_components
from xmodal.engine.keys import check_keys, check_options
from xmodal.engine.launch import build_runner
from xmodal.engine.loops.zero_shot import class_embeddings
from xmodal.errors import ConfigError
from xmodal.evaluation.scores import read_scores
from xmodal.registry import MODELS
from xmodal.search import Query

KINDS = ('clip', 'siglip')
RUN_NUMBERS = itertools.count()  # the loggers of one process need names
TEXTS = [
    'a red ring',
    'A Blue disc.',
    'o',
    'more letters than the model has positions for, by far and away',
]


@pytest.fixture(scope='session')
def folder(tmp_path_factory):
    """The folder of the model of each kind."""
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, path in folders.items():
        save(kind, path)
    return folders


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def read(monkeypatch, folder, kind, tiny_world, relocated, tmp_path):
    """Reads a config of the project with the model of a kind and the tiny world."""
    monkeypatch.syspath_prepend('.')
    monkeypatch.setenv('CLIP', str(folder[kind]))

    def of(name):
        config = relocated(f'projects/clip/{name}.py', tiny_world)
        config.work_dir, config.experiment_name = str(tmp_path / 'run'), f'clip{next(RUN_NUMBERS)}'
        return config

    return of


@pytest.fixture
def images(tmp_path):
    """Photographs of different sizes, wide and high, as files."""
    draw = np.random.default_rng(0)
    files = []
    for index, size in enumerate([(91, 60), (50, 83), (64, 64)]):
        small = Image.fromarray(draw.integers(0, 256, (6, 6, 3), np.uint8))
        files.append(tmp_path / f'{index}.png')  # without loss: two decoders agree
        small.resize(size, Image.Resampling.BICUBIC).save(files[-1])
    return files


@torch.no_grad()
def reference(path, files, texts):
    """What transformers computes with its own processors: its output."""
    kind = CLIPModel if path.name.startswith('clip') else SiglipModel
    pixels = AutoImageProcessor.from_pretrained(path)(
        [Image.open(file) for file in files], return_tensors='pt'
    )
    padding = 'max_length' if kind is SiglipModel else True  # as each was trained
    words = AutoTokenizer.from_pretrained(path)(
        texts, padding=padding, truncation=True, max_length=LONGEST, return_tensors='pt'
    )
    return kind.from_pretrained(path).eval()(**pixels, **words)


def test_embeddings_and_logits_are_those_of_transformers(read, folder, kind, images):
    inferencer = Inferencer(read('shapes'))
    expected = reference(folder[kind], images, TEXTS)
    found = inferencer.encode(images, TEXTS)
    assert found[0].tokens is None
    close = dict(rtol=0, atol=1e-5)
    torch.testing.assert_close(found[0].embedding, expected.image_embeds, **close)
    torch.testing.assert_close(found[1].embedding, expected.text_embeds, **close)
    cosines = expected.image_embeds @ expected.text_embeds.T
    assert cosines.std() > 0.05  # they tell images and texts apart
    similarity = inferencer.similarity(images, TEXTS)
    torch.testing.assert_close(similarity, cosines, **close)
    logits = inferencer.model.logits(similarity)
    torch.testing.assert_close(logits, expected.logits_per_image, rtol=0, atol=1e-4)  # times e²
    assert inferencer.similarity([], TEXTS).shape == (0, len(TEXTS))
    with pytest.raises(ValueError, match='PretrainedCLIP has no ITM head.*it has similarity'):
        inferencer.match(images, TEXTS)


def test_images_are_those_of_transformers_bit_by_bit(read, folder, kind, images):
    inferencer = Inferencer(read('shapes'))
    processor = AutoImageProcessor.from_pretrained(folder[kind])
    exact = AutoImageProcessor.from_pretrained(folder[kind], backend='pil')
    preprocessor = inferencer.model.data_preprocessor
    for file in images:
        fields = {'img_path': str(file), 'image_id': 0, 'sample_index': 0, 'text': ''}
        pixels = inferencer.pipeline(fields)['inputs']
        assert pixels.shape == (3, SIDE, SIDE) and pixels.dtype == torch.uint8
        found = preprocessor.normalize(pixels[None])
        image = Image.open(file)
        expected = processor(image, return_tensors='pt')['pixel_values']
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
        # Pillow rounds after each of the two passes of a resize: one level of 255.
        of_pillow = exact(image, return_tensors='pt')['pixel_values']
        level = 1.001 / preprocessor.std.min()
        assert (found - of_pillow).abs().max() <= level


def test_retrieval_scores_are_those_of_transformers(read, folder, kind, tiny_world, tmp_path):
    config = read('shapes')
    file = tmp_path / 'scores.npz'
    config.test_cfg.loops = dict(
        retrieval=dict(config.test_cfg.loops.retrieval, save_scores=str(file))
    )
    config.test_dataloader.update(batch_size=3)
    metrics = build_runner(config).test()
    matrix = read_scores(str(file))
    listed = json.loads((tiny_world / 'karpathy/dataset_shapes.json').read_text())['images']
    entries = [entry for entry in listed if entry['split'] == 'test']
    files = [tiny_world / entry['filepath'] / entry['filename'] for entry in entries]
    texts = [sentence['raw'] for entry in entries for sentence in entry['sentences']]
    output = reference(folder[kind], files, texts)
    expected = output.image_embeds @ output.text_embeds.T
    np.testing.assert_allclose(matrix.scores, expected, atol=1e-5)
    best = expected.argmax(1) // 5  # five captions an image
    hits = 100 * (best == torch.arange(len(files))).float().mean()
    assert metrics['retrieval/i2t/R@1'] == pytest.approx(float(hits))


def test_zero_shot_and_skills_are_those_of_literal_code(read, folder, kind, tiny_world):
    config = read('shapes')
    metrics = build_runner(config).test()
    for skill in ('attribute', 'binding'):
        pairs = json.loads((tiny_world / f'skills/{skill}.json').read_text()).values()
        files = [tiny_world / 'skills/images' / pair['filename'] for pair in pairs]
        true, false = (
            reference(folder[kind], files, [pair[key] for pair in pairs]).logits_per_image.diag()
            for key in ('caption', 'negative_caption')
        )
        hits = 100 * (true > false).float().mean()
        assert metrics[f'skills/vectors/{skill}'] == pytest.approx(float(hits))
    names = json.loads((tiny_world / 'classes/class_names.json').read_text())
    templates = json.loads(Path('configs/_base_/prompts/shapes.json').read_text())
    classes = sorted(path for path in (tiny_world / 'classes/images').iterdir())
    files = [next(folder.glob('*.png')) for folder in classes]
    prompts = [t.replace('{}', names[path.name]) for path in classes for t in templates]
    output = reference(folder[kind], files, prompts)
    means = output.text_embeds.unflatten(0, (len(classes), len(templates))).mean(1)
    expected = output.image_embeds @ normalize(means, dim=-1).T
    embeddings = class_embeddings(
        Inferencer(config).model, [names[path.name] for path in classes], templates, max_words=None
    )
    torch.testing.assert_close(output.image_embeds @ embeddings.T, expected, rtol=0, atol=1e-5)


def test_a_blind_test_needs_no_checkpoint_and_sees_no_image(read, monkeypatch, tmp_path):
    config, file = read('shapes'), tmp_path / 'shapes.py'
    config.test_cfg.loops.zero_shot = None
    config.dump(file)
    metrics = {}
    for blind in ([], ['--blind', 'image'], ['--blind', 'text']):
        out = tmp_path / f'{len(metrics)}.json'
        arguments = ['test.py', str(file), '--metrics', str(out), *blind]
        options = ['--cfg-options', f'experiment_name=blind{next(RUN_NUMBERS)}']
        monkeypatch.setattr(sys, 'argv', [*arguments, *options])
        test_tool.main()
        metrics[' '.join(blind)] = json.loads(out.read_text())
    assert metrics['']['skills/vectors/mean'] > 0
    assert metrics['--blind image']['retrieval/t2i/R@1'] == 0  # all tie, against the model
    assert metrics['--blind text']['retrieval/i2t/R@1'] == 0
    assert metrics['--blind text']['skills/vectors/mean'] == 0


def test_an_index_finds_by_the_cosines_of_transformers(read, folder, kind, images, tmp_path):
    pytest.importorskip('faiss', reason="search needs the extra: pip install -e '.[search]'")
    config, file = read('shapes'), tmp_path / 'shapes.py'
    config.dump(file)
    expected = reference(folder[kind], images, TEXTS[:1])
    cosines = (expected.image_embeds @ expected.text_embeds[0]).tolist()
    best = sorted(zip(cosines, map(str, images), strict=True), reverse=True)
    arguments = SimpleNamespace(
        command='index', index=tmp_path / 'index', config=str(file), checkpoint=None, device='cpu'
    )
    index, about = search_tool.open_index(arguments)
    index.update(tmp_path, dtype='float32', progress=False, **about)
    (hits,) = index.search([Query.parse(TEXTS[0])], k=3)
    assert [str(hit.image.path) for hit in hits] == [path for _, path in best]
    assert [hit.score for hit in hits] == pytest.approx([score for score, _ in best], abs=1e-5)
    arguments.command, arguments.config = 'query', None  # as the index remembers it
    again, _ = search_tool.open_index(arguments)
    assert again.fingerprint == index.fingerprint


@pytest.mark.parametrize(
    'name', ['retrieval_coco', 'retrieval_flickr30k', 'zero_shot_imagenet', 'sugarcrepe', 'shapes']
)
def test_each_config_reads_texts_as_written_and_images_as_the_model(read, name, folder, kind):
    config = read(name)
    check_keys(config)
    check_components(config)
    loops = config.test_cfg.get('loops', {'': config.test_cfg})
    loaders = [loop.get('dataloader', config.test_dataloader) for loop in loops.values()]
    for loop, loader in zip(loops.values(), loaders, strict=True):
        load, resize, pack = loader.dataset.pipeline
        assert (load.type, pack.type) == ('LoadImage', 'PackImageText')
        assert resize == dict(type='CLIPImage', pretrained=str(folder[kind]))
        reads = loop if loop.type == 'ZeroShotLoop' else loader.dataset
        assert reads.max_words is None
        assert loop.get('scorer', dict(topk=0))['topk'] == 0


def test_another_model_on_the_command_line_is_named_in_all_its_places(read):
    places = 'model.pretrained, test_dataloader.dataset.pipeline.1.pretrained'
    with pytest.raises(ConfigError, match=rf"'pretrained' is a variable .*change .*{places}"):
        check_options(read('retrieval_coco'), {'pretrained': 'another'})


def test_what_is_no_clip_is_a_sentence(read, folder, kind, tmp_path):
    read('shapes')

    def build(path):
        return MODELS.build(dict(type='PretrainedCLIP', pretrained=str(path)))

    with pytest.raises(ConfigError, match=r"pretrained='.*nowhere' is neither a folder with a mo"):
        build(tmp_path / 'nowhere')
    BertConfig().save_pretrained(tmp_path / 'bert')
    with pytest.raises(ConfigError, match=r"bert' is a 'bert', expected a CLIPModel or a Siglip"):
        build(tmp_path / 'bert')
    bare = shutil.copytree(folder[kind], tmp_path / 'bare')
    (bare / 'model.safetensors').unlink()
    with pytest.raises(
        FileNotFoundError, match=r'name that\. A part of a model that is to be train'
    ):
        build(bare)  # pretrained=None is no choice of this model
    part = shutil.copytree(folder[kind], tmp_path / 'part')
    config = json.loads((part / 'config.json').read_text())
    config['text_config']['vocab_size'] += 200
    (part / 'config.json').write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r'its tokenizer has \d+ words and its text'):
        build(part)
    (part / 'preprocessor_config.json').unlink()
    with pytest.raises(ConfigError, match=r"part' has no image processor: save that of the model"):
        build(part)
