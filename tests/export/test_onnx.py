"""Exported parts compute what the model computes, for other numbers of images and words."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from tools import export as export_tool
from xmodal.apis import get_model
from xmodal.apis.models import locate
from xmodal.engine.launch import read_config
from xmodal.export import parts_of
from xmodal.export.onnx import OnnxModel, export_onnx
from xmodal.export.towers import Part
from xmodal.functional import relative_distance
from xmodal.models.backbones import Encoder
from xmodal.registry import MODELS
from xmodal.structures import Tokens
from xmodal.zoo.folder import find_folder

VOCABULARY = find_folder('acerpe-shapes') / 'vocab.txt'  # no test needs `data/shapes`
TEXTS = ['a red ring above a blue disc', 'two squares', 'a', 'the small striped green cross', 'x']


def build_small(config):
    """A model with one layer of each kind, and random weights."""
    config.model.backbone.image_encoder.update(image_size=48, depth=1)
    config.model.backbone.text_encoder.config.num_hidden_layers = 1
    config.model.backbone.fusion.depth = 1
    torch.manual_seed(0)
    model = MODELS.build(config.model).eval()
    for name, parameter in model.named_parameters():
        if 'position' in name:  # zero at first
            torch.nn.init.normal_(parameter, std=0.05)
    return model


@pytest.fixture(scope='module')
def model():
    """The model of the package, small."""
    return build_small(locate('acerpe-shapes')[0])


@pytest.fixture(scope='module')
def programs(model):
    """The parts as programs of torch.export, which ONNX starts from, too."""
    return {name: part.program() for name, part in parts_of(model).items()}


@pytest.fixture(scope='module')
def expected(model):
    """Inputs of five pairs, and what the model computes for them."""
    torch.manual_seed(1)
    images = torch.randint(0, 256, (5, 3, 48, 48), dtype=torch.uint8)
    input_ids, mask = model.data_preprocessor.tokenize(TEXTS)
    with torch.no_grad():
        image = model.encode_image(model.data_preprocessor.normalize(images))
        text = model.encode_text(input_ids, mask)
        pairs = torch.arange(5)[:, None].expand(5, 2)
        logits = model.match_logits(image.tokens, text.tokens, pairs)
    inputs = {'images': images, 'input_ids': input_ids, 'attention_mask': mask.long()}
    return inputs, image, text, logits


def test_the_program_of_images_writes_into_no_part_of_a_tensor(programs):
    # ONNX's ScatterElements would take the batch of the example alone.
    assert not [str(node) for node in programs['image'].graph.nodes if 'copy_' in str(node.target)]


def test_programs_of_torch_compute_what_the_model_computes(programs, expected):
    inputs, image, text, logits = expected
    tokens, embedding = programs['image'].module()(images=inputs['images'])
    torch.testing.assert_close(tokens, image.tokens.embeddings)
    torch.testing.assert_close(embedding, image.embedding)
    mask = inputs['attention_mask']
    of_text = programs['text'].module()(input_ids=inputs['input_ids'], attention_mask=mask)
    torch.testing.assert_close(of_text, (text.tokens.embeddings, text.embedding))
    found = programs['matcher'].module()(
        image_tokens=tokens, text_tokens=of_text[0], attention_mask=mask
    )
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_matcher_of_places_through_anchors_takes_any_number_of_pairs():
    config = read_config('configs/acerpe/pretrain_shapes_anchored.py')
    config.model.backbone.image_encoder.pretrained = False
    config.model.data_preprocessor.tokenizer.pretrained = str(VOCABULARY)
    matcher = parts_of(build_small(config))['matcher']
    program = matcher.program().module()
    for pairs in (1, 7):
        tokens = torch.randn(pairs, 10, 128), torch.randn(pairs, 8, 128)
        mask = torch.ones(pairs, 8, dtype=torch.long)
        mask[0, 5:] = 0
        found = program(image_tokens=tokens[0], text_tokens=tokens[1], attention_mask=mask)
        torch.testing.assert_close(found, matcher.module(*tokens, mask))


@pytest.mark.parametrize('kind', ['clip_text_model', 'siglip_text_model', 'gpt2'])
@torch.no_grad()
def test_texts_summed_up_by_their_last_token_are_exported_for_any_number_of_them(kind):
    sizes = dict(
        hidden_size=128, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=40, projection_size=128,
    )  # fmt: skip
    if kind == 'gpt2':
        sizes = dict(n_embd=128, n_layer=1, n_head=2, n_positions=40)
    words = dict(model_type=kind, vocab_size=128, pad_token_id=0, bos_token_id=2, eos_token_id=3)
    config = locate('acerpe-shapes')[0]
    config.model.backbone.text_encoder = dict(
        type='TransformersTextEncoder', config=dict(words, **sizes)
    )
    config.model.heads = dict(itc=config.model.heads.itc)
    model = MODELS.build(config.model).eval()
    part = parts_of(model)['text']
    program = part.program().module()
    for texts in (TEXTS, TEXTS[:1]):
        input_ids, mask = model.data_preprocessor.tokenize(texts)
        found = program(input_ids=input_ids, attention_mask=mask.long())
        torch.testing.assert_close(found, part.module(input_ids, mask.long()))


@pytest.fixture(scope='module')
def onnx_folder(model, programs, tmp_path_factory):
    """The model as ONNX, in float32 and int8."""
    for package in ('onnx', 'onnxscript', 'onnxruntime'):
        pytest.importorskip(package, reason=f"{package} is missing: pip install -e '.[onnx]'")
    folder = tmp_path_factory.mktemp('onnx')
    names = {tuple(part.outputs): name for name, part in parts_of(model).items()}
    with pytest.MonkeyPatch.context() as patch:  # made already
        patch.setattr(Part, 'program', lambda part: programs[names[tuple(part.outputs)]])
        export_onnx(model, folder, int8=True)
    return folder


def test_onnx_computes_what_the_model_computes(onnx_folder, expected):
    inputs, image, text, logits = expected
    inputs = {name: value.numpy() for name, value in inputs.items()}
    runtime = OnnxModel(onnx_folder, threads=1)
    tokens, embedding = runtime.encode_images(inputs['images'])
    mask = inputs['attention_mask']
    text_tokens, text_embedding = runtime.encode_texts(inputs['input_ids'], mask)
    found = runtime.match(tokens, text_tokens, mask)
    for actual, wanted in (
        (tokens, image.tokens.embeddings),
        (embedding, image.embedding),
        (text_tokens, text.tokens.embeddings),
        (text_embedding, text.embedding),
        (found, logits),
    ):
        np.testing.assert_allclose(actual, wanted.numpy(), atol=1e-4, rtol=1e-4)
    ranking = np.argsort(-embedding @ text_embedding.T, 1)
    assert (
        ranking == (image.embedding @ text.embedding.T).argsort(1, descending=True).numpy()
    ).all()


def test_inputs_of_another_size_or_type_are_a_sentence(onnx_folder, expected):
    images = expected[0]['images'].numpy()
    runtime = OnnxModel(onnx_folder, threads=1)
    with pytest.raises(ValueError, match=r'image: images are uint8 \(.*, 7\), expected uint8 \('):
        runtime.encode_images(images[..., :7])
    with pytest.raises(ValueError, match=r'image: images are float32 .*, expected uint8'):
        runtime.encode_images(images.astype('float32'))


def test_eight_bits_are_near(onnx_folder, expected):
    inputs, image, _, _ = expected
    _, embedding = OnnxModel(onnx_folder, int8=True, threads=1).encode_images(
        inputs['images'].numpy()
    )
    cosine = (embedding * image.embedding.numpy()).sum(1)
    assert (cosine > 0.99).all() and not np.allclose(embedding, image.embedding, atol=1e-6)
    sizes = [(onnx_folder / f'image{kind}.onnx').stat().st_size for kind in ('.int8', '')]
    assert sizes[0] < 0.7 * sizes[1]


def test_the_exported_tokenizer_is_the_models(onnx_folder, model):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(onnx_folder / 'tokenizer.json'))
    assert tokenizer.encode(TEXTS[0]).ids == model.data_preprocessor.tokenizer(TEXTS[0]).input_ids


def test_parts_that_are_not_there_are_sentences(tmp_path, monkeypatch):
    """Runs without the packages of ONNX."""
    runtime = ModuleType('onnxruntime')
    runtime.SessionOptions, runtime.InferenceSession = SimpleNamespace, lambda *a, **k: a[0]
    monkeypatch.setitem(sys.modules, 'onnxruntime', runtime)
    for name in ('image', 'text'):
        (tmp_path / f'{name}.onnx').touch()
    with pytest.raises(
        FileNotFoundError, match='image.int8.onnx is missing: .* onnx --int8` makes'
    ):
        OnnxModel(tmp_path, int8=True)
    with pytest.raises(FileNotFoundError, match='nowhere/image.onnx is missing: .* onnx` makes'):
        OnnxModel(tmp_path / 'nowhere')
    with pytest.raises(ValueError, match='the model has no matcher: its parts are image, text'):
        OnnxModel(tmp_path).match(*[np.zeros(1)] * 3)


def test_a_package_of_onnx_that_is_missing_is_named(tmp_path, monkeypatch, model):
    monkeypatch.setitem(sys.modules, 'onnxruntime', None)
    with pytest.raises(ModuleNotFoundError, match=r'ONNX needs more packages: .* \(.*onnxruntime'):
        OnnxModel(tmp_path)
    monkeypatch.setitem(sys.modules, 'onnxscript', None)
    with pytest.raises(RuntimeError, match=r'ONNX needs more packages: .* \(.*onnxscript'):
        export_onnx(model, tmp_path)


def test_an_exported_distance_is_the_shortest_path():
    class Distance(torch.nn.Module):
        def forward(self, distance, mask):
            return relative_distance(distance, (3, 4), mask.bool())

    torch.manual_seed(0)
    distance = 1 / torch.rand(2, 13, 7, 2)
    distance[distance > 3] = torch.inf
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    program = torch.export.export(Distance(), (distance, mask), strict=False)
    expected = relative_distance(distance.requires_grad_(), (3, 4), mask.bool()).detach()
    torch.testing.assert_close(program.module()(distance, mask), expected)
    assert expected.isinf().any() and expected.isfinite().any()


class Stripes(Encoder):
    """An image encoder of rectangles: each of two columns is a token, after one of the whole."""

    has_cls = True
    image_size, embed_dims = (4, 6), 128

    def embed(self, images):
        columns = images.unflatten(3, (2, 3)).transpose(2, 3).flatten(3).mean(3)
        tokens = torch.cat([columns.mean(2, keepdim=True), columns], 2).transpose(1, 2)
        return Tokens(tokens.repeat(1, 1, 43)[..., :128], grid_size=(1, 2))

    def encode(self, tokens):
        return tokens


def test_a_model_of_rectangular_images_is_exported_at_its_size():
    config = locate('acerpe-shapes')[0].model
    config.backbone.image_encoder = dict(type=Stripes)
    config.heads.pop('mim', None)
    parts = parts_of(MODELS.build(config).eval())
    assert parts['image'].example['images'].shape == (2, 3, 4, 6)
    assert parts['matcher'].example['image_tokens'].shape == (2, 3, 128)


def test_other_models_are_refused():
    config = read_config('configs/acerpe/encoder_shapes.py').model
    if 'tokenizer' in config.data_preprocessor:
        config.data_preprocessor.tokenizer = dict(pretrained=str(VOCABULARY))
    model = MODELS.build(config)
    with pytest.raises(
        ValueError, match='MultiLabelClassifier with .* cannot be exported: expected'
    ):
        parts_of(model)


def test_a_model_of_regions_is_refused_by_its_image_encoder_before_packages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxscript', None)
    config = read_config('configs/acerpe/pretrain_shapes_regions.py').model
    config.data_preprocessor.tokenizer = dict(pretrained=str(VOCABULARY))
    with pytest.raises(ValueError, match='the image encoder ObjectEncoder cannot be'):
        export_onnx(MODELS.build(config), tmp_path)


def test_the_tool_exports_a_model_by_name(tmp_path, monkeypatch, capsys):
    out = tmp_path / 'model'
    arguments = ['export.py', 'acerpe-shapes', '--to', 'folder', '--out', str(out), '--half']
    monkeypatch.setattr(sys, 'argv', arguments)
    export_tool.main()
    assert str(out) in capsys.readouterr().out
    ours, theirs = get_model(str(out)).state_dict(), get_model('acerpe-shapes').state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    monkeypatch.setattr(sys, 'argv', [*arguments[:-1], '--int8'])
    with pytest.raises(SystemExit):
        export_tool.main()
    assert '--int8 is for --to onnx' in capsys.readouterr().err
