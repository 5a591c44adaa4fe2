"""Fine-tuned files of ALBEF, one a task, in the layout of its models: outputs against a literal."""

import sys
from copy import deepcopy

import pytest
import torch
from mmengine.config import Config
from tiny_albef import WIDTH, WORDS, TinyAlbef, write_config
from torch.testing import assert_close

from tools.model_converters import albef
from xmodal import converters
from xmodal.engine.checkpoint import load_weights
from xmodal.registry import MODELS
from xmodal.structures import ImageTextBatch, Tokens

UNKNOWN = {'something.else': torch.zeros(1)}
MASK = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Converts weights for a config, and returns the model as a test loads it and the report."""

    def make(weights, name, wrapped=False):
        file, out = tmp_path / 'source.pth', tmp_path / 'out.pth'
        torch.save({'model': weights} if wrapped else weights, file)
        config = write_config(name, tmp_path)
        command = ['albef.py', file, out, '--config', config]
        monkeypatch.setattr(sys, 'argv', list(map(str, command)))
        albef.main()
        model = MODELS.build(Config.fromfile(config).model).eval()
        load_weights(model, out)  # refuses a checkpoint that lacks weights
        report = capsys.readouterr().out
        tensors = torch.load(out, weights_only=True)['state_dict']
        assert f'{out}: {len(tensors)} tensors\n' in report
        return model, report

    return make


def make_inputs(images=3):
    return torch.randn(images, 3, 24, 24), torch.randint(5, WORDS, (3, 6))


def make_batch(images, input_ids):
    ids = torch.arange(3)
    return ImageTextBatch(images, input_ids, MASK.bool(), ids, ids, ids)


def with_teacher(source, parts):
    """The weights of a file that has a momentum teacher, and the teacher."""
    teacher = deepcopy(source)
    for parameter in teacher.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    weights = source.fine_tuned_state_dict()
    for name, value in teacher.fine_tuned_state_dict().items():
        part, rest = name.split('.', 1)
        assert part in parts
        weights[f'{part}_m.{rest}'] = value
    return weights, teacher


@torch.no_grad()
@pytest.mark.parametrize('name', ['retrieval_coco_albef', 'grounding_refcoco_plus_albef'])
def test_a_flat_file_of_retrieval_or_refcoco_plus_computes_the_same(convert, name):
    source = TinyAlbef().eval()
    queues = {'idx_queue': torch.zeros(1, 4), 'queue_ptr': torch.zeros(1)}
    weights = source.fine_tuned_state_dict() | queues | UNKNOWN | {'temp': torch.tensor(0.05)}
    model, report = convert(weights, name)
    assert 'ALBEF of retrieval or RefCOCO+' in report
    assert 'model: 3\n  idx_queue\n  queue_ptr\n  something.else\n' in report
    images, input_ids = make_inputs()
    image, text = model.encode_image(images), model.encode_text(input_ids, MASK.bool())
    words = model.fuse(image.tokens, text.tokens).text_tokens
    actual = image.embedding, text.embedding, model.heads['itm'](words)
    assert_close(actual, source(images, input_ids, MASK), atol=1e-5, rtol=1e-4)
    assert model.heads['itc'].temperature().item() == pytest.approx(0.05)


@torch.no_grad()
def test_a_file_of_snli_ve_classifies_the_same_and_so_does_its_teacher(convert):
    source = TinyAlbef(num_classes=3).eval()
    parts = ('visual_encoder', 'text_encoder', 'cls_head')
    weights, teacher = with_teacher(source, parts)
    model, report = convert(weights | UNKNOWN, 'snli_ve_albef', wrapped=True)
    assert 'ALBEF of SNLI-VE' in report
    assert 'model: 1\n  something.else\n' in report
    images, input_ids = make_inputs()
    batch = make_batch(images, input_ids)
    for theirs, modules in ((source, model.online_modules()), (teacher, model.teacher.module)):
        expected = theirs.cls_head(theirs.fuse([images], input_ids, MASK)[:, 0])
        assert_close(model._classify(modules, batch), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_file_of_nlvr2_classifies_the_same_with_a_copy_of_each_layer_for_each_image(convert):
    source = TinyAlbef(num_images=2, num_classes=2).eval()
    weights, teacher = with_teacher(source, ('visual_encoder', 'text_encoder', 'cls_head'))
    assert 'text_encoder.encoder.layer.17.crossattention.self.query.weight' in weights
    model, report = convert(weights | UNKNOWN, 'nlvr2_albef', wrapped=True)
    assert 'ALBEF of NLVR2' in report
    assert 'model: 1\n  something.else\n' in report
    images, input_ids = make_inputs(images=6)
    left, right = images[::2], images[1::2]  # a text's images follow each other
    batch = make_batch(images, input_ids)
    for theirs, modules in ((source, model.online_modules()), (teacher, model.teacher.module)):
        expected = theirs.cls_head(theirs.fuse([left, right], input_ids, MASK)[:, 0])
        assert_close(model._classify(modules, batch), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_pre_trained_file_starts_both_copies_of_the_layers_for_nlvr2(convert):
    source = TinyAlbef().eval()
    weights = source.albef_state_dict()
    head = TinyAlbef(num_classes=2).cls_head.state_dict()
    weights |= {f'cls_head.{name}': value for name, value in head.items()}
    model, _ = convert(weights, 'nlvr2_albef', wrapped=True)
    copied = TinyAlbef(num_images=2).eval()
    copied.load_state_dict(
        {
            **{name: x for name, x in source.state_dict().items() if not name.startswith('fusion')},
            **{
                f'fusion.{2 * layer + copy}.{name}': value
                for layer, module in enumerate(source.fusion)
                for name, value in module.state_dict().items()
                for copy in (0, 1)
            },
        }
    )
    images, input_ids = make_inputs(images=6)
    batch = make_batch(images, input_ids)
    text = model.backbone.encode_text(input_ids, batch.attention_mask).tokens
    actual = model.fuse(model.backbone, model.backbone.encode_image(images).tokens, text)
    expected = copied.fuse([images[::2], images[1::2]], input_ids, MASK)
    assert_close(actual[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_file_of_vqa_decodes_the_same_and_so_does_its_teacher(convert):
    source = TinyAlbef(has_decoder=True).eval()
    parts = ('visual_encoder', 'text_encoder', 'text_decoder')
    weights, teacher = with_teacher(source, parts)
    model, report = convert(weights | UNKNOWN, 'vqa_v2_albef', wrapped=True)
    assert 'ALBEF of VQA' in report and 'something.else' in report
    _, _, unused = report.partition('in the model: ')
    listed = [line.strip() for line in unused.splitlines()[1:] if line.startswith('  ')]
    tied = 'text_decoder{}.cls.predictions.decoder.{}'
    allowed = {tied.format(m, part) for m in ('', '_m') for part in ('weight', 'bias')}
    projections = {
        f'backbone.{modality}_proj.{part}'
        for modality in ('image', 'text')
        for part in ('weight', 'bias')
    }
    assert set(listed) == allowed | projections | {'something.else'}

    images, input_ids = make_inputs()
    question = torch.randn(3, 6, WIDTH)
    answers = torch.randint(5, WORDS, (3, 4))
    for theirs, modules in ((source, model.online_modules()), (teacher, model.teacher.module)):
        backbone, decoder = modules['backbone'], modules['decoder']
        image = backbone.encode_image(images).tokens
        text = backbone.encode_text(input_ids, MASK.bool()).tokens
        words = backbone.fuse(image, text, need_image=False).text_tokens
        expected = theirs.fuse([images], input_ids, MASK)
        assert_close(words[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=1e-4)
        expected = theirs.text_decoder(
            input_ids=answers, encoder_hidden_states=question, encoder_attention_mask=MASK
        ).logits
        actual = decoder.logits(decoder(answers[:, None], Tokens(question, MASK.bool())))[:, 0]
        assert_close(actual, expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_pre_trained_file_starts_the_decoder_of_answers(convert):
    source = TinyAlbef().eval()
    head = {
        'transform.dense.weight': torch.randn(WIDTH, WIDTH),
        'transform.dense.bias': torch.randn(WIDTH),
        'transform.LayerNorm.weight': torch.randn(WIDTH),
        'transform.LayerNorm.bias': torch.randn(WIDTH),
        'bias': torch.randn(WORDS),
    }
    weights = source.albef_state_dict()
    weights |= {f'text_encoder.cls.predictions.{name}': value for name, value in head.items()}
    model, report = convert(weights, 'vqa_v2_albef', wrapped=True)
    assert 'ALBEF of pre-training' in report and 'initial values are kept: 0\n' in report
    for index, layer in enumerate(model.decoder.layers):
        theirs = source.fusion[index]
        assert layer.feed_forward.fc1.weight.equal(theirs.intermediate.dense.weight)
        assert layer.cross_attention.v_proj.bias.equal(theirs.crossattention.self.value.bias)
    words = model.decoder.words
    assert words.bias.equal(head['bias'])
    assert words.transform.weight.equal(head['transform.dense.weight'])
    ours, theirs = model.decoder.embeddings, source.bert.embeddings
    assert ours.word_embeddings.weight.equal(theirs.word_embeddings.weight)


def test_a_file_of_nlvr2_is_refused_by_a_model_with_one_copy_of_the_layers(convert):
    weights = TinyAlbef(num_images=2, num_classes=2).fine_tuned_state_dict()
    message = 'has 12 fusion layers, a copy of each for both images .*share_two_images=False'
    with pytest.raises(ValueError, match=message):
        convert(weights, 'albef_4m')


def test_a_head_of_another_task_is_refused(convert):
    weights = TinyAlbef(num_classes=2).fine_tuned_state_dict()
    with pytest.raises(ValueError, match=r'classifier\.2\.weight has the shape \(2, 16\)'):
        convert(weights, 'snli_ve_albef')


def test_text_assignment_starts_nlvr2_and_its_head_has_a_place(convert):
    names = {'ta_head.weight': torch.randn(3, WIDTH), 'ta_head.bias': torch.randn(3)}
    assert converters.albef.describe(names).startswith('text assignment')
    renamed, unused = converters.albef.convert(names)
    assert not unused
    assert renamed['heads.assignment.weight'].equal(names['ta_head.weight'])
